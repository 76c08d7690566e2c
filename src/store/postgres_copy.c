/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as the binary format of COPY: by far the fastest way in. */
#include "store/postgres_private.h"

#include "base/utf8.h"
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that are passed to libpq at once. */
#define PORTION (256u << 10)
/* Longer texts are cut. */
#define TEXT_MAX 4096

struct ow_postgres_copy {
	struct ow_postgres *postgres;
	struct ow_statement row;
	int failed;
	size_t used;
	char bytes[PORTION];
};

static void flush(struct ow_postgres_copy *c)
{
	if (c->failed == 0 && c->used) {
		bool taken = ow_pq.PQputCopyData(c->postgres->connection, c->bytes, (int)c->used) == 1;
		c->failed = taken ? ow_postgres_flush(c->postgres) : ow_postgres_note(c->postgres, NULL);
	}
	c->used = 0;
}

static void put(struct ow_postgres_copy *c, const void *bytes, size_t size)
{
	for (const char *at = bytes; size > 0;) {
		size_t part = size < PORTION - c->used ? size : PORTION - c->used;
		memcpy(c->bytes + c->used, at, part);
		c->used += part;
		at += part;
		size -= part;
		if (c->used == PORTION)
			flush(c);
	}
}

/* A column: its length, then its bytes. */
static void put_column(struct ow_postgres_copy *c, const void *bytes, size_t size)
{
	uint32_t length = htobe32((uint32_t)size);
	put(c, &length, sizeof length);
	put(c, bytes, size);
}

static void bind_null(void *handle, int at)
{
	uint32_t none = UINT32_MAX;
	(void)at;
	put(handle, &none, sizeof none);
}

static void bind_integer(void *handle, int at, int64_t value)
{
	uint64_t bits = htobe64((uint64_t)value);
	(void)at;
	put_column(handle, &bits, sizeof bits);
}

static void bind_flag(void *handle, int at, bool value)
{
	char byte = value;
	(void)at;
	put_column(handle, &byte, 1);
}

static void bind_real(void *handle, int at, double value)
{
	int64_t bits;
	memcpy(&bits, &value, sizeof bits);
	bind_integer(handle, at, bits);
}

static void bind_text(void *handle, int at, const char *text)
{
	(void)at;
	/* The server refuses text that is not UTF-8, and with it the whole batch. */
	char clean[TEXT_MAX];
	snprintf(clean, sizeof clean, "%s", text);
	ow_utf8_clean(clean);
	put_column(handle, clean, strlen(clean));
}

static void bind_bytes(void *handle, int at, const void *bytes, size_t size)
{
	(void)at;
	put_column(handle, bytes, size);
}

static const struct ow_statement_kind kind = {
	.bind_null = bind_null,
	.bind_integer = bind_integer,
	.bind_flag = bind_flag,
	.bind_real = bind_real,
	.bind_text = bind_text,
	.bind_bytes = bind_bytes,
};

int ow_postgres_copy_begin(struct ow_postgres *p, const char *sql, struct ow_postgres_copy **ret_copy,
                           struct ow_error *err)
{
	static const char heading[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0"; /* without flags */
	struct ow_postgres_copy *c = malloc(sizeof *c);
	if (!c) {
		ow_postgres_note_memory(p);
		return ow_postgres_fail(p, err);
	}
	PGresult *result = ow_postgres_exec(p, sql);
	int r = ow_pq.PQresultStatus(result) == PGRES_COPY_IN ? 0 : ow_postgres_note(p, result);
	ow_pq.PQclear(result);
	if (r < 0) {
		free(c);
		return ow_postgres_fail(p, err);
	}
	c->postgres = p;
	c->row = (struct ow_statement){&kind, c};
	c->failed = 0;
	c->used = 0;
	put(c, heading, 19);
	*ret_copy = c;
	return 0;
}

const struct ow_statement *ow_postgres_copy_row(struct ow_postgres_copy *c, int columns)
{
	uint16_t count = htobe16((uint16_t)columns);
	put(c, &count, sizeof count);
	return &c->row;
}

int ow_postgres_copy_end(struct ow_postgres_copy *c, struct ow_error *err)
{
	struct ow_postgres *p = c->postgres;
	uint16_t end = UINT16_MAX;
	int r = 0;
	put(c, &end, sizeof end);
	flush(c);
	if (c->failed == 0)
		c->failed =
			ow_pq.PQputCopyEnd(p->connection, NULL) == 1 ? ow_postgres_flush(p) : ow_postgres_note(p, NULL);
	for (PGresult *result; (result = ow_postgres_next(p)); ow_pq.PQclear(result)) {
		if (ow_pq.PQresultStatus(result) != PGRES_COMMAND_OK)
			r = ow_postgres_note(p, result);
		if (ow_pq.PQresultStatus(result) == PGRES_COPY_IN)
			break; /* the connection is lost */
	}
	if (p->is_silent)
		r = ow_postgres_note(p, NULL);
	r = r < 0 ? r : c->failed;
	free(c);
	return r < 0 ? ow_postgres_fail(p, err) : 0;
}
