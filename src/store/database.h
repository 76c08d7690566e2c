/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file of a store: opening it, its schema and its versions, and messages for SQLite's errors. */
struct ow_database {
	char *path;
	sqlite3 *db;
	int version;     /* of its schema, if it was opened for reading */
	bool small_disk; /* if it was opened for writing: the file system has little space */
	/* Read without being able to write: the newest results may be in the log, which then cannot be read. */
	bool without_log;
};

/*
 * Creates the file if it does not exist, and converts an older schema. A file of another program or of a newer version
 * is refused.
 */
int ow_database_open(const char *path, struct ow_database *ret_database, struct ow_error *err);
/*
 * Opens it only for reading; also while a point writes, and also if nothing can be written. An older schema is
 * accepted.
 */
int ow_database_look(const char *path, struct ow_database *ret_database, struct ow_error *err);
/* Makes the cache and the log as large as so many lanes need. */
int ow_database_suit(const struct ow_database *database, size_t lanes, struct ow_error *err);
void ow_database_close(struct ow_database *database);

/* The version of the schema that this program writes. */
int ow_database_newest(void);
/* The error of the last call as a negative errno. */
int ow_database_fail(const struct ow_database *database, struct ow_error *err);
int ow_database_run(const struct ow_database *database, const char *sql, struct ow_error *err);
int ow_database_prepare(const struct ow_database *database, const char *sql, sqlite3_stmt **ret_statement,
                        struct ow_error *err);
/* The first column of the first row. */
int ow_database_ask(const struct ow_database *database, const char *sql, int64_t *ret_value, struct ow_error *err);
