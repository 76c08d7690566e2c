/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_STORE_DATABASE_H
#define OW_STORE_DATABASE_H

#include <oneway/error.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* The file of a store: opening it, its schema and its versions, and what SQLite's errors mean to a person. */
struct ow_database {
	char *path;
	sqlite3 *db;
	int version; /* of its schema, when it is only looked at */
	/* Read where nothing can be written: the newest results may still be in the log, which cannot be read there. */
	bool without_log;
};

/* Creates the file if it is not there, and brings an older schema up to date. A file of another program or of a newer
 * version is refused. */
int ow_database_open(const char *path, struct ow_database *ret_database, struct ow_error *err);
/* Only to look at; also while a point writes, and also where nothing can be written. An older schema is fine. */
int ow_database_look(const char *path, struct ow_database *ret_database, struct ow_error *err);
void ow_database_close(struct ow_database *database);

/* The error of the last call as a negative errno. */
int ow_database_fail(const struct ow_database *database, struct ow_error *err);
int ow_database_run(const struct ow_database *database, const char *sql, struct ow_error *err);
int ow_database_prepare(const struct ow_database *database, const char *sql, sqlite3_stmt **ret_statement,
                        struct ow_error *err);
/* The first column of the first row. */
int ow_database_ask(const struct ow_database *database, const char *sql, int64_t *ret_value, struct ow_error *err);

#endif
