/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of SQLite. */
#include "store/statement.h"

#include <math.h>
#include <stdlib.h>

static void bind_null(void *handle, int at)
{
	sqlite3_bind_null(handle, at);
}

static void bind_integer(void *handle, int at, int64_t value)
{
	sqlite3_bind_int64(handle, at, value);
}

static void bind_flag(void *handle, int at, bool value)
{
	sqlite3_bind_int(handle, at, value);
}

static void bind_real(void *handle, int at, double value)
{
	sqlite3_bind_double(handle, at, value);
}

static void bind_text(void *handle, int at, const char *text)
{
	sqlite3_bind_text(handle, at, text, -1, SQLITE_TRANSIENT);
}

static void bind_bytes(void *handle, int at, const void *bytes, size_t size)
{
	sqlite3_bind_blob64(handle, at, bytes, size, SQLITE_TRANSIENT);
}

static int step(void *handle)
{
	int code = sqlite3_step(handle);
	return code == SQLITE_ROW ? OW_STEP_ROW : code == SQLITE_DONE ? OW_STEP_DONE : OW_STEP_FAILED;
}

static void reset(void *handle)
{
	sqlite3_reset(handle);
}

static void finalize(void *handle)
{
	sqlite3_finalize(handle);
}

static int columns(void *handle)
{
	return sqlite3_column_count(handle);
}

static bool is_null(void *handle, int column)
{
	return sqlite3_column_type(handle, column) == SQLITE_NULL;
}

static int64_t integer(void *handle, int column)
{
	return sqlite3_column_int64(handle, column);
}

static double real(void *handle, int column)
{
	/* Looked up once for both questions: rows have many numbers. */
	sqlite3_value *value = sqlite3_column_value(handle, column);
	return sqlite3_value_type(value) == SQLITE_NULL ? NAN : sqlite3_value_double(value);
}

static const char *text(void *handle, int column)
{
	return (const char *)sqlite3_column_text(handle, column);
}

static const void *bytes(void *handle, int column, size_t *ret_size)
{
	const void *value = sqlite3_column_blob(handle, column);
	*ret_size = (size_t)sqlite3_column_bytes(handle, column);
	return value;
}

const struct ow_statement_kind ow_statement_sqlite = {
	.bind_null = bind_null,
	.bind_integer = bind_integer,
	.bind_flag = bind_flag,
	.bind_real = bind_real,
	.bind_text = bind_text,
	.bind_bytes = bind_bytes,
	.step = step,
	.reset = reset,
	.free = finalize,
	.columns = columns,
	.is_null = is_null,
	.integer = integer,
	.real = real,
	.text = text,
	.bytes = bytes,
};

void ow_statement_free(struct ow_statement *statement)
{
	if (!statement)
		return;
	statement->kind->free(statement->handle);
	free(statement);
}
