/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/database.h"
#include "store/postgres.h"

/* What results are read from: a file of SQLite, or a PostgreSQL server. */
struct ow_stored_source {
	struct ow_database file;
	struct ow_postgres *server; /* NULL: the file */
	const char *name;           /* for messages */
	int version;                /* of the schema */
};

/* name: of a file, or the URL of a server. */
int ow_stored_source_open(const char *name, struct ow_stored_source *ret_source, struct ow_error *err);
void ow_stored_source_close(struct ow_stored_source *source);
/* The error of the last step, as a negative errno. */
int ow_stored_source_fail(const struct ow_stored_source *source, struct ow_error *err);
/* The same text for both; parameters are ?1, ?2, ...; ow_statement_free frees the statement. */
int ow_stored_source_prepare(const struct ow_stored_source *source, const char *sql,
                             struct ow_statement **ret_statement, struct ow_error *err);
/* The first column of the first row. -ENODATA: there is none. */
int ow_stored_source_ask(const struct ow_stored_source *source, const char *sql, int64_t *ret_value,
                         struct ow_error *err);
