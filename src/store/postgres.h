/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/statement.h"
#include <oneway/error.h>

/*
 * A connection to PostgreSQL. Errors are one line with the server's name, never with a password. A connection runs one
 * statement at a time.
 */
struct ow_postgres;

/* Whether it is the URL of a server, "postgresql://..." or "postgres://...", and not the name of a file. */
bool ow_postgres_is_url(const char *name);
/*
 * Files that libpq reads for this URL, if they exist: passwords, certificates, services. Loads libpq. For a sandbox, which
 * hides all others from it.
 */
#define OW_POSTGRES_FILES 6
struct ow_postgres_files {
	char path[OW_POSTGRES_FILES][4096]; /* "" = none */
};
int ow_postgres_files(const char *url, struct ow_postgres_files *ret_files, struct ow_error *err);
/* The options of the URL are those of libpq, TLS and password files included. Waits at most OW_POSTGRES_CONNECT_S, unless
 * the URL says otherwise. */
int ow_postgres_open(const char *url, struct ow_postgres **ret_postgres, struct ow_error *err);
#define OW_POSTGRES_CONNECT_S "10"
void ow_postgres_close(struct ow_postgres *postgres);
/* By default it waits for an answer as long as the server is there. Now a server that is silent for so long is given up:
 * the connection is lost. */
void ow_postgres_be_patient(struct ow_postgres *postgres, int seconds);
/* Connects again if the connection is lost. */
int ow_postgres_revive(struct ow_postgres *postgres, struct ow_error *err);

bool ow_postgres_is_connected(const struct ow_postgres *postgres);

/* For messages: postgresql://HOST:PORT/DATABASE. */
const char *ow_postgres_name(const struct ow_postgres *postgres);
/* The error of the last call as a negative errno:
 * -ENOSPC: no space at the server; -EACCES: not permitted; -EBADMSG: the data are refused, they would be the next time
 * as well; -ECONNRESET: no connection, or no more; -EAGAIN: the server asks to try again; -EIO: another error. */
int ow_postgres_fail(const struct ow_postgres *postgres, struct ow_error *err);

/* One or more statements without rows. */
int ow_postgres_run(struct ow_postgres *postgres, const char *sql, struct ow_error *err);
/* The same for one statement. *ret_rows: rows that it changed. */
int ow_postgres_change(struct ow_postgres *postgres, const char *sql, uint64_t *ret_rows, struct ow_error *err);
/* Whether a transaction is open, also a failed one. */
bool ow_postgres_in_transaction(const struct ow_postgres *postgres);
/* Parameters are ?1, ?2, ... as in SQLite. The statement runs at its first step, and rows come as the server finds them.
 * ow_statement_free frees it. */
int ow_postgres_prepare(struct ow_postgres *postgres, const char *sql, struct ow_statement **ret_statement,
                        struct ow_error *err);
/* The first column of the first row. -ENODATA: there is none. */
int ow_postgres_ask(struct ow_postgres *postgres, const char *sql, int64_t *ret_value, struct ow_error *err);

/*
 * Rows for COPY. `sql` is "COPY table (columns) FROM STDIN (FORMAT binary)"; each row is begun with its number of
 * columns and its columns are bound in their order, whatever their numbers. Types have to be those of the columns: bigint,
 * boolean, double precision, text, bytea.
 */
struct ow_postgres_copy;
int ow_postgres_copy_begin(struct ow_postgres *postgres, const char *sql, struct ow_postgres_copy **ret_copy,
                           struct ow_error *err);
const struct ow_statement *ow_postgres_copy_row(struct ow_postgres_copy *copy, int columns);
/* Ends it, also after a failure. */
int ow_postgres_copy_end(struct ow_postgres_copy *copy, struct ow_error *err);
