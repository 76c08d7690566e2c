/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/positions.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 16

struct ow_positions {
	sqlite3 *db;
	sqlite3_stmt *get, *put;
	struct {
		char name[24];
		int64_t place;
		bool changed;
	} item[NAMES];
	unsigned count;
};

static int fail(const struct ow_positions *p, const char *what, struct ow_error *err)
{
	return ow_error_set(err, EIO, "%s: %s", what, p->db ? sqlite3_errmsg(p->db) : "out of memory");
}

int ow_positions_open(const char *path, struct ow_positions **ret_positions, struct ow_error *err)
{
	struct ow_positions *p = calloc(1, sizeof *p);
	if (!p)
		return ow_error_set(err, ENOMEM, "out of memory");
	if (sqlite3_open(path, &p->db) != SQLITE_OK || sqlite3_busy_timeout(p->db, 2000) != SQLITE_OK ||
	    sqlite3_exec(
		    p->db,
		    "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
		    "CREATE TABLE IF NOT EXISTS position (name TEXT PRIMARY KEY, place INTEGER NOT NULL) WITHOUT ROWID",
		    NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(p->db, "SELECT place FROM position WHERE name = ?", -1, &p->get, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(p->db, "INSERT OR REPLACE INTO position VALUES (?, ?)", -1, &p->put, NULL) !=
	            SQLITE_OK) {
		int r = fail(p, path, err);
		ow_positions_close(p);
		return r;
	}
	*ret_positions = p;
	return 0;
}

void ow_positions_close(struct ow_positions *p)
{
	if (!p)
		return;
	sqlite3_finalize(p->get);
	sqlite3_finalize(p->put);
	sqlite3_close(p->db);
	free(p);
}

int64_t ow_positions_get(struct ow_positions *p, const char *name, int64_t otherwise)
{
	for (unsigned i = 0; i < p->count; i++) {
		if (strcmp(p->item[i].name, name) == 0)
			return p->item[i].place;
	}
	sqlite3_bind_text(p->get, 1, name, -1, SQLITE_STATIC);
	int64_t place = sqlite3_step(p->get) == SQLITE_ROW ? sqlite3_column_int64(p->get, 0) : otherwise;
	sqlite3_reset(p->get);
	return place;
}

void ow_positions_set(struct ow_positions *p, const char *name, int64_t place)
{
	unsigned i = 0;
	while (i < p->count && strcmp(p->item[i].name, name) != 0)
		i++;
	if (i == NAMES)
		return;
	p->count = i == p->count ? i + 1 : p->count;
	snprintf(p->item[i].name, sizeof p->item[i].name, "%s", name);
	p->item[i].place = place;
	p->item[i].changed = true;
}

static bool write_all(struct ow_positions *p)
{
	if (sqlite3_exec(p->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return false;
	bool good = true;
	for (unsigned i = 0; good && i < p->count; i++) {
		if (!p->item[i].changed)
			continue;
		sqlite3_bind_text(p->put, 1, p->item[i].name, -1, SQLITE_STATIC);
		sqlite3_bind_int64(p->put, 2, p->item[i].place);
		good = sqlite3_step(p->put) == SQLITE_DONE;
		sqlite3_reset(p->put);
	}
	return good && sqlite3_exec(p->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
}

int ow_positions_save(struct ow_positions *p, struct ow_error *err)
{
	bool any = false;
	for (unsigned i = 0; i < p->count; i++)
		any |= p->item[i].changed;
	if (!any)
		return 0;
	if (!write_all(p)) {
		int r = fail(p, "positions of the agent", err);
		sqlite3_exec(p->db, "ROLLBACK", NULL, NULL, NULL);
		return r;
	}
	for (unsigned i = 0; i < p->count; i++)
		p->item[i].changed = false;
	return 0;
}
