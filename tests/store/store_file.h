/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/fields.h"
#include "store/database.h"
#include "store/row.h"
#include "store/store.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A store in a folder of the test's own. Include cmocka.h before. */
static char store_folder[] = "/tmp/oneway-store-XXXXXX";
static char store_path[64];

static inline int store_make(void)
{
	if (!mkdtemp(store_folder))
		return -1;
	snprintf(store_path, sizeof store_path, "%s/results.db", store_folder);
	return 0;
}

/* No store. For cmocka_unit_test_setup. */
static inline int store_fresh(void **state)
{
	(void)state;
	static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
	for (int i = 0; i < 4; i++) {
		char name[80];
		snprintf(name, sizeof name, "%s%s", store_path, ends[i]);
		unlink(name);
	}
	return 0;
}

static inline void store_done(void)
{
	store_fresh(NULL);
	rmdir(store_folder);
}

static inline struct ow_store *store_open(void)
{
	struct ow_store *store = NULL;
	struct ow_error err = {""};
	if (ow_store_open(store_path, &store, &err) < 0)
		fail_msg("%s", err.text);
	return store;
}

static inline void store_add(struct ow_store *store, const struct ow_interval_result *result)
{
	struct ow_error err = {""};
	if (ow_store_add(store, result, &err) < 0)
		fail_msg("%s", err.text);
}

/* Removes what is newer than a version of the schema: sums, and columns. 0 or an SQLite error. */
static inline int store_to_schema(sqlite3 *db, int version)
{
	char set[60];
	int code = sqlite3_exec(db,
	                        "DROP VIEW minutes; DROP VIEW hours; DROP VIEW days;"
	                        "DROP TABLE minute; DROP TABLE hour; DROP TABLE day",
	                        NULL, NULL, NULL);
	for (size_t i = 0; i < ow_field_count && code == SQLITE_OK; i++) {
		char columns[200], sql[300], *rest = columns;
		snprintf(columns, sizeof columns, "%s", ow_fields[i].since > version ? ow_fields[i].columns : "");
		for (char *name; code == SQLITE_OK && (name = strtok_r(rest, ", ", &rest));) {
			snprintf(sql, sizeof sql, "ALTER TABLE result DROP COLUMN %s", name);
			code = sqlite3_exec(db, sql, NULL, NULL, NULL);
		}
	}
	snprintf(set, sizeof set, "PRAGMA user_version = %d", version);
	return code ? code : sqlite3_exec(db, set, NULL, NULL, NULL);
}

/* Makes the file one of schema 1. */
static inline int store_to_first_schema(sqlite3 *db)
{
	int code = sqlite3_exec(
		db, "DROP TABLE event; DROP INDEX result_time; CREATE INDEX result_start ON result (start_ns)", NULL,
		NULL, NULL);
	return code ? code : store_to_schema(db, 1);
}
