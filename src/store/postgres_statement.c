/* SPDX-License-Identifier: Apache-2.0 */
/* Statements with parameters and rows, in the binary format of PostgreSQL. */
#include "store/postgres_private.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Types by their numbers in PostgreSQL's catalogue. */
enum { BOOL = 16, BYTEA = 17, INT8 = 20, INT2 = 21, INT4 = 23, TEXT = 25, FLOAT4 = 700, FLOAT8 = 701 };

#define PARAMETERS_MAX 8

struct ow_postgres_query {
	struct ow_postgres *postgres;
	char *sql;
	int parameters;
	Oid type[PARAMETERS_MAX];
	int length[PARAMETERS_MAX];
	char number[PARAMETERS_MAX][8];
	char *text[PARAMETERS_MAX]; /* a text or bytes; NULL: the number, if it has a type */
	char printed[64];           /* a number as text */
};

/* -- parameters --------------------------------------------------------------------------------------------------- */

static bool set_type(struct ow_postgres_query *q, int at, Oid type)
{
	if (at < 1 || at > PARAMETERS_MAX)
		return false;
	free(q->text[at - 1]);
	q->text[at - 1] = NULL;
	q->type[at - 1] = type;
	q->parameters = at > q->parameters ? at : q->parameters;
	return true;
}

static void set_number(struct ow_postgres_query *q, int at, Oid type, uint64_t bits, int size)
{
	uint64_t big = htobe64(bits);
	if (!set_type(q, at, type))
		return;
	memcpy(q->number[at - 1], (char *)&big + sizeof big - (size_t)size, (size_t)size);
	q->length[at - 1] = size;
}

static void bind_null(void *handle, int at)
{
	set_type(handle, at, 0);
}

static void bind_integer(void *handle, int at, int64_t value)
{
	set_number(handle, at, INT8, (uint64_t)value, 8);
}

static void bind_flag(void *handle, int at, bool value)
{
	set_number(handle, at, BOOL, value, 1);
}

static void bind_real(void *handle, int at, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	set_number(handle, at, FLOAT8, bits, 8);
}

static void set_bytes(struct ow_postgres_query *q, int at, Oid type, const void *bytes, size_t size)
{
	char *copy = malloc(size + 1);
	if (!copy || !set_type(q, at, copy ? type : 0)) {
		free(copy);
		return;
	}
	memcpy(copy, bytes, size);
	q->text[at - 1] = copy;
	q->length[at - 1] = (int)size;
}

static void bind_text(void *handle, int at, const char *text)
{
	set_bytes(handle, at, TEXT, text, strlen(text));
}

static void bind_bytes(void *handle, int at, const void *bytes, size_t size)
{
	set_bytes(handle, at, BYTEA, bytes, size);
}

/* -- running ------------------------------------------------------------------------------------------------------ */

static int begin(struct ow_postgres_query *q)
{
	struct ow_postgres *p = q->postgres;
	const char *value[PARAMETERS_MAX];
	int format[PARAMETERS_MAX];
	ow_postgres_end_active(p);
	for (int i = 0; i < q->parameters; i++) {
		value[i] = q->text[i] ? q->text[i] : q->type[i] ? q->number[i] : NULL;
		format[i] = 1;
	}
	if (!ow_pq.PQsendQueryParams(p->connection, q->sql, q->parameters, q->type, value, q->length, format, 1))
		return ow_postgres_note(p, NULL);
	ow_pq.PQsetSingleRowMode(p->connection);
	p->active = q;
	return ow_postgres_flush(p);
}

static int step(void *handle)
{
	struct ow_postgres_query *q = handle;
	struct ow_postgres *p = q->postgres;
	if (p->active != q && begin(q) < 0)
		return OW_STEP_FAILED;
	ow_pq.PQclear(p->row);
	p->row = ow_postgres_next(p);
	enum ow_step step = OW_STEP_ROW;
	switch (ow_pq.PQresultStatus(p->row)) {
	case PGRES_SINGLE_TUPLE:
		break;
	case PGRES_TUPLES_OK:
	case PGRES_COMMAND_OK:
		step = OW_STEP_DONE;
		break;
	default:
		ow_postgres_note(p, p->row);
		step = OW_STEP_FAILED;
	}
	if (step != OW_STEP_ROW)
		ow_postgres_end_active(p);
	return step;
}

static void reset(void *handle)
{
	struct ow_postgres_query *q = handle;
	if (q->postgres->active == q)
		ow_postgres_end_active(q->postgres);
}

static void finish(void *handle)
{
	struct ow_postgres_query *q = handle;
	reset(q);
	for (int i = 0; i < PARAMETERS_MAX; i++)
		free(q->text[i]);
	free(q->sql);
	free(q);
}

/* -- columns ------------------------------------------------------------------------------------------------------ */

/* The row that was read last; NULL: there is none. */
static const PGresult *row_of(const struct ow_postgres_query *q)
{
	return q->postgres->active == q ? q->postgres->row : NULL;
}

static int columns(void *handle)
{
	const PGresult *row = row_of(handle);
	return row ? ow_pq.PQnfields(row) : 0;
}

static bool is_null(void *handle, int column)
{
	const PGresult *row = row_of(handle);
	return !row || ow_pq.PQntuples(row) < 1 || ow_pq.PQgetisnull(row, 0, column);
}

/* A number of up to 8 bytes, with the sign of its size. */
static int64_t number_of(const PGresult *row, int column)
{
	const unsigned char *bytes = (const unsigned char *)ow_pq.PQgetvalue(row, 0, column);
	int size = ow_pq.PQgetlength(row, 0, column);
	uint64_t value = size > 0 && bytes[0] & 0x80 ? UINT64_MAX : 0;
	for (int i = 0; i < size && i < 8; i++)
		value = value << 8 | bytes[i];
	return (int64_t)value;
}

static double real_of(const PGresult *row, int column)
{
	uint64_t bits = (uint64_t)number_of(row, column);
	uint32_t few = (uint32_t)bits;
	double value;
	float less;
	if (ow_pq.PQftype(row, column) == FLOAT8) {
		memcpy(&value, &bits, sizeof value);
		return value;
	}
	memcpy(&less, &few, sizeof less);
	return less;
}

static int64_t integer(void *handle, int column)
{
	const struct ow_postgres_query *q = handle;
	if (is_null(handle, column))
		return 0;
	switch (ow_pq.PQftype(row_of(q), column)) {
	case BOOL:
	case INT8:
	case INT4:
	case INT2:
		return number_of(row_of(q), column);
	case FLOAT8:
	case FLOAT4: {
		double value = real_of(row_of(q), column);
		return value >= -0x1p62 && value <= 0x1p62 ? (int64_t)value : 0;
	}
	case TEXT:
		return strtoll(ow_pq.PQgetvalue(row_of(q), 0, column), NULL, 10);
	default:
		return 0;
	}
}

static double real(void *handle, int column)
{
	const struct ow_postgres_query *q = handle;
	if (is_null(handle, column))
		return NAN;
	Oid type = ow_pq.PQftype(row_of(q), column);
	if (type == TEXT)
		return strtod(ow_pq.PQgetvalue(row_of(q), 0, column), NULL);
	return type == FLOAT8 || type == FLOAT4 ? real_of(row_of(q), column) : (double)integer(handle, column);
}

/* Numbers as SQLite prints them. */
static const char *text(void *handle, int column)
{
	struct ow_postgres_query *q = handle;
	if (is_null(handle, column))
		return NULL;
	switch (ow_pq.PQftype(row_of(q), column)) {
	case BOOL:
	case INT8:
	case INT4:
	case INT2:
		snprintf(q->printed, sizeof q->printed, "%lld", (long long)integer(handle, column));
		return q->printed;
	case FLOAT8:
	case FLOAT4:
		return sqlite3_snprintf(sizeof q->printed, q->printed, "%!.15g", real(handle, column));
	default:
		return ow_pq.PQgetvalue(row_of(q), 0, column);
	}
}

static const void *bytes(void *handle, int column, size_t *ret_size)
{
	const struct ow_postgres_query *q = handle;
	*ret_size = 0;
	if (is_null(handle, column))
		return NULL;
	*ret_size = (size_t)ow_pq.PQgetlength(row_of(q), 0, column);
	return ow_pq.PQgetvalue(row_of(q), 0, column);
}

static const struct ow_statement_kind kind = {
	.bind_null = bind_null,
	.bind_integer = bind_integer,
	.bind_flag = bind_flag,
	.bind_real = bind_real,
	.bind_text = bind_text,
	.bind_bytes = bind_bytes,
	.step = step,
	.reset = reset,
	.free = finish,
	.columns = columns,
	.is_null = is_null,
	.integer = integer,
	.real = real,
	.text = text,
	.bytes = bytes,
};

/* ?1 becomes $1. */
static char *dollars(const char *sql)
{
	char *copy = strdup(sql);
	bool quoted = false;
	for (char *c = copy; copy && *c; c++) {
		quoted ^= *c == '\'';
		if (*c == '?' && !quoted)
			*c = '$';
	}
	return copy;
}

int ow_postgres_prepare(struct ow_postgres *p, const char *sql, struct ow_statement **ret_statement,
                        struct ow_error *err)
{
	struct ow_statement *statement = malloc(sizeof *statement);
	struct ow_postgres_query *q = calloc(1, sizeof *q);
	if (q)
		*q = (struct ow_postgres_query){.postgres = p, .sql = dollars(sql)};
	if (!statement || !q || !q->sql) {
		free(q);
		free(statement);
		ow_postgres_note_memory(p);
		return ow_postgres_fail(p, err);
	}
	*statement = (struct ow_statement){&kind, q};
	*ret_statement = statement;
	return 0;
}

int ow_postgres_ask(struct ow_postgres *p, const char *sql, int64_t *ret_value, struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	int r = ow_postgres_prepare(p, sql, &statement, err);
	if (r != 0)
		return r;
	enum ow_step step = ow_step(statement);
	if (step == OW_STEP_ROW)
		*ret_value = ow_column_integer(statement, 0);
	else if (step == OW_STEP_DONE)
		r = ow_error_set(err, ENODATA, "%s: no such row", p->name);
	else
		r = ow_postgres_fail(p, err);
	ow_statement_free(statement);
	return r;
}
