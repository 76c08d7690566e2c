/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A statement of a database: parameters in, columns of rows out. Everything that reads or writes rows uses this, so that
 * SQLite and PostgreSQL have the same code. Parameters count from 1, columns from 0.
 */
struct ow_statement;

struct ow_statement_kind {
	void (*bind_null)(void *handle, int at);
	void (*bind_integer)(void *handle, int at, int64_t value);
	void (*bind_flag)(void *handle, int at, bool value);
	void (*bind_real)(void *handle, int at, double value);
	void (*bind_text)(void *handle, int at, const char *text);
	void (*bind_bytes)(void *handle, int at, const void *bytes, size_t size);
	int (*step)(void *handle);
	void (*reset)(void *handle);
	void (*free)(void *handle);
	int (*columns)(void *handle);
	bool (*is_null)(void *handle, int column);
	int64_t (*integer)(void *handle, int column);
	double (*real)(void *handle, int column);
	const char *(*text)(void *handle, int column);
	const void *(*bytes)(void *handle, int column, size_t *ret_size);
};

struct ow_statement {
	const struct ow_statement_kind *kind;
	void *handle;
};

/* Its handle is an sqlite3_stmt. Texts and bytes are copied. */
extern const struct ow_statement_kind ow_statement_sqlite;
#define OW_STATEMENT_SQLITE(statement) (&(struct ow_statement){&ow_statement_sqlite, (statement)})

static inline void ow_bind_null(const struct ow_statement *s, int at)
{
	s->kind->bind_null(s->handle, at);
}

static inline void ow_bind_integer(const struct ow_statement *s, int at, int64_t value)
{
	s->kind->bind_integer(s->handle, at, value);
}

static inline void ow_bind_flag(const struct ow_statement *s, int at, bool value)
{
	s->kind->bind_flag(s->handle, at, value);
}

static inline void ow_bind_real(const struct ow_statement *s, int at, double value)
{
	s->kind->bind_real(s->handle, at, value);
}

static inline void ow_bind_text(const struct ow_statement *s, int at, const char *text)
{
	s->kind->bind_text(s->handle, at, text);
}

static inline void ow_bind_bytes(const struct ow_statement *s, int at, const void *bytes, size_t size)
{
	s->kind->bind_bytes(s->handle, at, bytes, size);
}

/* The next row. After a failure, the database has the error. */
enum ow_step { OW_STEP_FAILED = -1, OW_STEP_DONE, OW_STEP_ROW };

static inline enum ow_step ow_step(const struct ow_statement *s)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it was prepared */
	return (enum ow_step)s->kind->step(s->handle);
}

/* Ready to run again; parameters stay. */
static inline void ow_reset(const struct ow_statement *s)
{
	s->kind->reset(s->handle);
}

/* How many there are; of PostgreSQL only while there is a row. */
static inline int ow_columns(const struct ow_statement *s)
{
	return s->kind->columns(s->handle);
}

static inline bool ow_column_is_null(const struct ow_statement *s, int column)
{
	return s->kind->is_null(s->handle, column);
}

/* Another type is converted, and 0 if it cannot be; true is 1. */
static inline int64_t ow_column_integer(const struct ow_statement *s, int column)
{
	return s->kind->integer(s->handle, column);
}

/* NAN if it is NULL. */
static inline double ow_column_real(const struct ow_statement *s, int column)
{
	return s->kind->real(s->handle, column);
}

/* NULL if it is NULL. Valid until the next step. */
static inline const char *ow_column_text(const struct ow_statement *s, int column)
{
	return s->kind->text(s->handle, column);
}

/* Empty if it is NULL. */
static inline const char *ow_column_string(const struct ow_statement *s, int column)
{
	const char *text = ow_column_text(s, column);
	return text ? text : "";
}

static inline const void *ow_column_bytes(const struct ow_statement *s, int column, size_t *ret_size)
{
	return s->kind->bytes(s->handle, column, ret_size);
}

/* One that was made by ow_stored_source_prepare; may be NULL. */
void ow_statement_free(struct ow_statement *statement);
