/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes live results into SQLite, several in a transaction, and deletes results beyond the limits, a little at a time.
 * The file itself and its schema are in database.c.
 */
#include "store/store.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/time.h"
#include "store/database.h"
#include "store/event_row.h"
#include "store/row.h"
#include "store/sample_row.h"
#include "store/store_gaps.h"
#include "store/store_rollups.h"
#include <errno.h>
#include <math.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES_MAX 65536
/* Rows deleted in one transaction: some milliseconds, during which nobody else can write. */
#define TRIM_ROWS 500
/* Pages given back to the file system at a time. */
#define TRIM_PAGES 256
/* Free pages are used again; the file is made shorter only if they are more than this share of it. */
#define FREE_SHARE 8
/* A lane that has nothing for so long has ended, or does not go on soon: its last minute is added up. */
#define ENDED_NS (600 * (int64_t)OW_NS_PER_S)

struct lane {
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME], from[OW_RESULT_NAME], to[OW_RESULT_NAME];
	int64_t id;
	int64_t end_ns; /* of its last interval; INT64_MIN = it has none */
};

struct ow_store {
	struct ow_database file;
	struct ow_store_gaps absent;
	struct ow_store_rollups rollups;
	sqlite3_stmt *find_lane, *add_lane, *add_result, *add_event, *trim_events, *add_sample, *trim_samples;
	struct lane *lane; /* those used so far */
	size_t lanes, room, last;
	size_t suited;    /* lanes for which the cache is large enough */
	unsigned waiting; /* results in the open transaction */
};

/* -- errors ------------------------------------------------------------------------------------------------------- */

/* After a failure nothing of the batch is stored, and neither are lanes that it added. */
static int give_up(struct ow_store *store, struct ow_error *err)
{
	int r = ow_database_fail(&store->file, err);
	if (!sqlite3_get_autocommit(store->file.db))
		sqlite3_exec(store->file.db, "ROLLBACK", NULL, NULL, NULL);
	store->waiting = 0;
	store->lanes = 0;
	ow_store_rollups_forget(&store->rollups);
	return r;
}

static int prepare(struct ow_store *store, const char *sql, sqlite3_stmt **ret_statement, struct ow_error *err)
{
	return ow_database_prepare(&store->file, sql, ret_statement, err);
}

/* -- opening ------------------------------------------------------------------------------------------------------ */

static int prepare_result(struct ow_store *store, struct ow_error *err)
{
	int64_t count = 0;
	int r = ow_database_ask(&store->file, "SELECT count(*) FROM pragma_table_info('result')", &count, err);
	if (r < 0)
		return r;
	if (count != ow_row_columns())
		return ow_error_set(err, EUCLEAN, "%s: damaged: table result has %d columns instead of %d",
		                    store->file.path, (int)count, ow_row_columns());
	char *sql = NULL;
	size_t size;
	FILE *out = open_memstream(&sql, &size);
	if (out)
		ow_row_insert_result(out);
	r = out && fclose(out) == 0 ? prepare(store, sql, &store->add_result, err)
	                            : ow_error_set(err, ENOMEM, "%s: out of memory", store->file.path);
	free(sql);
	return r;
}

/* What was provisional becomes final, and is added up. */
static int settle(struct ow_store *store, struct ow_error *err)
{
	int r = ow_database_run(&store->file, "BEGIN IMMEDIATE", err);
	store->waiting++;
	if (r == 0 && (r = ow_store_gaps_settle(&store->file, &store->rollups, err)) == 0)
		return ow_store_commit(store, err);
	give_up(store, NULL);
	return r;
}

static int begin(struct ow_store *store, struct ow_error *err)
{
	char sql[120];
	int r;
	/* This also tests that the file can be written. */
	snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO meta VALUES ('opened_ns', %lld), ('opened_by', 'oneway %s')",
	         (long long)ow_clock_real_ns(), ow_version());
	if ((r = ow_database_run(&store->file, sql, err)) < 0 ||
	    (r = prepare(store,
	                 "SELECT id FROM lane WHERE segment = ? AND class = ? AND from_point = ? AND to_point = ?",
	                 &store->find_lane, err)) < 0 ||
	    (r = prepare(store, "INSERT INTO lane (segment, class, from_point, to_point) VALUES (?, ?, ?, ?)",
	                 &store->add_lane, err)) < 0 ||
	    (r = prepare(store, ow_event_row_insert, &store->add_event, err)) < 0 ||
	    (r = prepare(store, ow_sample_row_insert, &store->add_sample, err)) < 0 ||
	    (r = prepare(store, ow_sample_row_delete, &store->trim_samples, err)) < 0 ||
	    /* Events go with the results of their time. */
	    (r = prepare(store,
	                 "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE time_ns <"
	                 " ifnull((SELECT start_ns FROM result ORDER BY start_ns LIMIT 1), 9223372036854775807)"
	                 " ORDER BY time_ns LIMIT ?)",
	                 &store->trim_events, err)) < 0 ||
	    (r = ow_store_gaps_init(&store->absent, &store->file, err)) < 0 || (r = prepare_result(store, err)) < 0 ||
	    (r = ow_store_rollups_init(&store->rollups, &store->file, err)) < 0)
		return r;
	return settle(store, err);
}

int ow_store_open(const char *path, struct ow_store **ret_store, struct ow_error *err)
{
	struct ow_store *store = calloc(1, sizeof *store);
	if (!store)
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	int r = ow_database_open(path, &store->file, err);
	if (r == 0)
		r = begin(store, err);
	if (r < 0) {
		ow_store_close(store);
		return r;
	}
	*ret_store = store;
	return 0;
}

void ow_store_busy(struct ow_store *store, int ms)
{
	sqlite3_busy_timeout(store->file.db, ms);
}

void ow_store_since(struct ow_store *store, int64_t since_ns)
{
	store->absent.since_ns = since_ns;
}

void ow_store_missed(struct ow_store *store, int64_t from_ns, int64_t until_ns)
{
	store->absent.lost_ns = from_ns;
	store->absent.lost_last_ns = until_ns;
}

void ow_store_close(struct ow_store *store)
{
	if (!store)
		return;
	ow_store_commit(store, NULL);
	sqlite3_finalize(store->find_lane);
	sqlite3_finalize(store->add_lane);
	sqlite3_finalize(store->add_result);
	sqlite3_finalize(store->add_event);
	sqlite3_finalize(store->trim_events);
	sqlite3_finalize(store->add_sample);
	sqlite3_finalize(store->trim_samples);
	ow_store_gaps_done(&store->absent);
	ow_store_rollups_done(&store->rollups);
	ow_database_close(&store->file);
	free(store->lane);
	free(store);
}

/* -- lanes -------------------------------------------------------------------------------------------------------- */

static bool is_lane(const struct lane *lane, const struct ow_interval_result *r)
{
	return strcmp(lane->from, r->from) == 0 && strcmp(lane->to, r->to) == 0 &&
	       strcmp(lane->class_name, r->class_name) == 0 && strcmp(lane->segment, r->segment) == 0;
}

static int step_lane(sqlite3_stmt *statement, const struct ow_interval_result *r)
{
	const char *name[] = {r->segment, r->class_name, r->from, r->to};
	sqlite3_reset(statement);
	for (int i = 0; i < 4; i++)
		sqlite3_bind_text(statement, i + 1, name[i], -1, SQLITE_STATIC);
	return sqlite3_step(statement);
}

/* A lane that is not kept is looked up again: slower, but correct. */
static struct lane *keep_lane(struct ow_store *store, const struct lane *lane)
{
	if (store->lanes == LANES_MAX || OW_GROW(store->lane, store->room, store->lanes + 1) < 0)
		return NULL;
	store->lane[store->lanes] = *lane;
	return &store->lane[store->lanes++];
}

/* Looks the lane up in the file; adds it if it is missing. */
static int look_up_lane(struct ow_store *store, const struct ow_interval_result *r, struct lane *ret_lane,
                        struct ow_error *err)
{
	struct lane lane = {.end_ns = INT64_MIN};
	int code = step_lane(store->find_lane, r), result = 0;
	if (code == SQLITE_ROW)
		lane.id = sqlite3_column_int64(store->find_lane, 0);
	else if (code == SQLITE_DONE && (code = step_lane(store->add_lane, r)) == SQLITE_DONE)
		lane.id = sqlite3_last_insert_rowid(store->file.db);
	else
		result = ow_database_fail(&store->file, err);
	sqlite3_reset(store->find_lane);
	sqlite3_reset(store->add_lane);
	if (result == 0 && code == SQLITE_ROW)
		result = ow_store_gaps_last(&store->absent, lane.id, &lane.end_ns, err);
	if (result < 0)
		return result;
	memcpy(lane.segment, r->segment, sizeof lane.segment);
	memcpy(lane.class_name, r->class_name, sizeof lane.class_name);
	memcpy(lane.from, r->from, sizeof lane.from);
	memcpy(lane.to, r->to, sizeof lane.to);
	*ret_lane = lane;
	return 0;
}

/* *ret_lane points into the store, or to *spare. */
static int find_lane(struct ow_store *store, const struct ow_interval_result *r, struct lane *spare,
                     struct lane **ret_lane, struct ow_error *err)
{
	/* Results usually come in the same order of lanes, of some intervals of a lane at a time. */
	for (size_t i = 0; i < store->lanes; i++) {
		size_t k = (store->last + i) % store->lanes;
		if (is_lane(&store->lane[k], r)) {
			store->last = k;
			*ret_lane = &store->lane[k];
			return 0;
		}
	}
	int result = look_up_lane(store, r, spare, err);
	if (result < 0)
		return result;
	struct lane *kept = keep_lane(store, spare);
	*ret_lane = kept ? kept : spare;
	return 0;
}

/* The lane of a result; missing intervals before it are filled in. */
static int lane_id(struct ow_store *store, const struct ow_interval_result *r, int64_t *ret_id, struct ow_error *err)
{
	struct lane spare, *lane;
	int result = find_lane(store, r, &spare, &lane, err);
	if (result == 0 && lane->end_ns != INT64_MIN && r->start_ns > lane->end_ns)
		result = ow_store_gaps_fill(&store->absent, lane->id, lane->end_ns, r, err);
	/* The minute in which the lane ended may have been added up. */
	if (result == 0 && lane->end_ns != INT64_MIN && r->start_ns > lane->end_ns)
		result = ow_store_rollups_note(&store->rollups, lane->id, lane->end_ns, err);
	if (result < 0)
		return result;
	if (r->start_ns + r->length_ns > lane->end_ns)
		lane->end_ns = r->start_ns + r->length_ns;
	*ret_id = lane->id;
	return 0;
}

/* -- results ------------------------------------------------------------------------------------------------------ */

int ow_store_add(struct ow_store *store, const struct ow_interval_result *result, struct ow_error *err)
{
	int64_t lane = 0;
	bool first = !store->waiting;
	int r = 0;
	store->waiting++;
	if (first && sqlite3_exec(store->file.db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return give_up(store, err);
	if ((r = lane_id(store, result, &lane, err)) < 0) {
		give_up(store, NULL);
		return r;
	}
	ow_row_bind(OW_STATEMENT_SQLITE(store->add_result), lane, result);
	if (sqlite3_step(store->add_result) != SQLITE_DONE)
		r = ow_database_fail(&store->file, err);
	sqlite3_reset(store->add_result);
	if (r == 0 && result->final)
		r = ow_store_rollups_note(&store->rollups, lane, result->start_ns, err);
	if (r < 0) {
		give_up(store, NULL);
		return r;
	}
	return store->waiting >= OW_STORE_BATCH ? ow_store_commit(store, err) : 0;
}

static int put_event(struct ow_store *store, const struct ow_flow_event *event, struct ow_error *err)
{
	struct ow_interval_result names = {.length_ns = 0};
	struct lane spare, *lane;
	memcpy(names.segment, event->segment, sizeof names.segment);
	memcpy(names.class_name, event->class_name, sizeof names.class_name);
	memcpy(names.from, event->from, sizeof names.from);
	memcpy(names.to, event->to, sizeof names.to);
	int r = find_lane(store, &names, &spare, &lane, err);
	if (r < 0)
		return r;
	ow_event_row_bind(OW_STATEMENT_SQLITE(store->add_event), lane->id, event);
	if (sqlite3_step(store->add_event) != SQLITE_DONE)
		r = ow_database_fail(&store->file, err);
	sqlite3_reset(store->add_event);
	return r;
}

int ow_store_add_event(struct ow_store *store, const struct ow_flow_event *event, struct ow_error *err)
{
	if (!store->waiting++ && sqlite3_exec(store->file.db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return give_up(store, err);
	int r = put_event(store, event, err);
	if (r < 0) {
		give_up(store, NULL);
		return r;
	}
	return store->waiting >= OW_STORE_BATCH ? ow_store_commit(store, err) : 0;
}

int ow_store_add_sample(struct ow_store *store, const struct ow_sample_row *sample, struct ow_error *err)
{
	if (!store->waiting++ && sqlite3_exec(store->file.db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return give_up(store, err);
	ow_sample_row_bind(store->add_sample, sample);
	int r = sqlite3_step(store->add_sample) == SQLITE_DONE ? 0 : ow_database_fail(&store->file, err);
	sqlite3_reset(store->add_sample);
	sqlite3_clear_bindings(store->add_sample);
	if (r < 0) {
		give_up(store, NULL);
		return r;
	}
	return store->waiting >= OW_STORE_BATCH ? ow_store_commit(store, err) : 0;
}

/* Not within a transaction. A cache that is too small is slower, but correct. */
static void suit_lanes(struct ow_store *store)
{
	if (store->lanes <= store->suited)
		return;
	store->suited = store->lanes;
	(void)ow_database_suit(&store->file, store->suited, NULL);
}

int ow_store_commit(struct ow_store *store, struct ow_error *err)
{
	if (!store->waiting)
		return 0;
	int r = ow_store_rollups_update(&store->rollups, err);
	if (r < 0) {
		give_up(store, NULL);
		return r;
	}
	if (sqlite3_exec(store->file.db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return give_up(store, err);
	store->waiting = 0;
	suit_lanes(store);
	return 0;
}

int ow_store_relieve(struct ow_store *store)
{
	return store->waiting ? -EBUSY : ow_database_run(&store->file, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
}

int ow_store_count(struct ow_store *store, const char *key, uint64_t more, struct ow_error *err)
{
	char sql[200];
	int r = ow_store_commit(store, err);
	sqlite3_snprintf(
		sizeof sql, sql,
		"INSERT INTO meta VALUES (%Q, %lld) ON CONFLICT (key) DO UPDATE SET value = value + excluded.value",
		key, (long long)more);
	return r < 0 ? r : ow_database_run(&store->file, sql, err);
}

/* -- what is old -------------------------------------------------------------------------------------------------- */

struct size {
	int64_t page, pages, free;
};

static int size_of(const struct ow_store *store, struct size *ret_size, struct ow_error *err)
{
	int r = ow_database_ask(&store->file, "PRAGMA page_size", &ret_size->page, err);
	if (r == 0)
		r = ow_database_ask(&store->file, "PRAGMA page_count", &ret_size->pages, err);
	return r < 0 ? r : ow_database_ask(&store->file, "PRAGMA freelist_count", &ret_size->free, err);
}

/* What is deleted together: the parts of a sum. */
static int64_t parts_of(enum ow_period period)
{
	return ow_periods[period + 1 < OW_PERIODS ? period + 1 : period].length_ns;
}

/* The time before which some of the oldest rows can be deleted; all are before limit_ns. INT64_MIN: there are none. */
static int find_old(struct ow_store *store, enum ow_period period, int64_t limit_ns, int64_t *ret_before_ns,
                    struct ow_error *err)
{
	char sql[300];
	int64_t unit_ns = parts_of(period), newest = 0;
	limit_ns = ow_floor_div(limit_ns, unit_ns) * unit_ns;
	snprintf(
		sql, sizeof sql,
		"SELECT ifnull(max(start_ns), -9223372036854775807) FROM (SELECT start_ns FROM %s WHERE start_ns < %lld"
		" ORDER BY start_ns LIMIT %d)",
		ow_periods[period].table, (long long)limit_ns, TRIM_ROWS);
	int r = ow_database_ask(&store->file, sql, &newest, err);
	*ret_before_ns = INT64_MIN;
	if (r < 0 || newest < INT64_MIN + 2)
		return r;
	int64_t end_ns = ow_time_later((ow_floor_div(newest, unit_ns)) * unit_ns, unit_ns);
	*ret_before_ns = end_ns < limit_ns ? end_ns : limit_ns;
	return 0;
}

/* Within a transaction. Returns 1 if sums have to be made first, and some were. */
static int delete_before(struct ow_store *store, enum ow_period period, int64_t before_ns, struct ow_error *err)
{
	char sql[120];
	int r = period == OW_PERIOD_INTERVAL ? ow_store_rollups_update_all(&store->rollups, before_ns, err) : 0;
	if (r != 0)
		return r;
	snprintf(sql, sizeof sql, "DELETE FROM %s WHERE start_ns < %lld", ow_periods[period].table,
	         (long long)before_ns);
	if ((r = ow_database_run(&store->file, sql, err)) < 0)
		return r;
	sqlite3_bind_int64(store->trim_events, 1, TRIM_ROWS);
	if (sqlite3_step(store->trim_events) != SQLITE_DONE)
		r = ow_database_fail(&store->file, err);
	sqlite3_reset(store->trim_events);
	return r < 0 ? r : ow_store_rollups_deleted(&store->rollups, period, before_ns, err);
}

/* Deletes some of the oldest before this time. Returns 1 if there were any, or a negative errno. */
static int delete_some(struct ow_store *store, enum ow_period period, int64_t limit_ns, struct ow_error *err)
{
	int64_t before_ns;
	int r = find_old(store, period, limit_ns, &before_ns, err);
	if (r < 0 || before_ns == INT64_MIN)
		return r;
	if (sqlite3_exec(store->file.db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return give_up(store, err);
	if ((r = delete_before(store, period, before_ns, err)) < 0) {
		give_up(store, NULL);
		return r;
	}
	return sqlite3_exec(store->file.db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ? 1 : give_up(store, err);
}

/* Rows of a period without a limit count as if they were kept this long. */
#define FOR_EVER_NS (INT64_C(10) * 365 * 24 * 3600 * OW_NS_PER_S)

/* The period whose oldest rows are the oldest in relation to how long they are to be kept; OW_PERIODS: all are empty. */
static int find_oldest(struct ow_store *store, const struct ow_store_limits *limits, int64_t now_ns,
                       enum ow_period *ret_period, struct ow_error *err)
{
	double most = -INFINITY;
	*ret_period = OW_PERIODS;
	for (int p = 0; p < OW_PERIODS; p++) {
		char sql[120];
		int64_t start = 0, keep = limits->retention_ns[p] ? limits->retention_ns[p] : FOR_EVER_NS;
		snprintf(sql, sizeof sql, "SELECT ifnull(min(start_ns), 9223372036854775807) FROM %s",
		         ow_periods[p].table);
		int r = ow_database_ask(&store->file, sql, &start, err);
		if (r < 0)
			return r;
		double age = ((double)now_ns - (double)start) / (double)keep;
		if (start == INT64_MAX || age <= most)
			continue;
		most = age;
		*ret_period = (enum ow_period)p;
	}
	return 0;
}

static int delete_for_space(struct ow_store *store, const struct ow_store_limits *limits, int64_t now_ns,
                            struct ow_error *err)
{
	enum ow_period period;
	int r = find_oldest(store, limits, now_ns, &period, err);
	return r < 0 || period == OW_PERIODS ? r : delete_some(store, period, INT64_MAX, err);
}

static int delete_old(struct ow_store *store, const struct ow_store_limits *limits, int64_t now_ns,
                      struct ow_error *err)
{
	int deleted = 0;
	for (int p = 0; deleted == 0 && p < OW_PERIODS; p++) {
		int64_t keep_ns = limits->retention_ns[p];
		if (keep_ns && now_ns > INT64_MIN + keep_ns)
			deleted = delete_some(store, (enum ow_period)p, now_ns - keep_ns, err);
	}
	return deleted;
}

/*
 * Sums that no result has asked for: of results that came before the program knew sums, and of minutes before this time
 * that are the last of their lanes. Returns 1 if there are more, or a negative errno.
 */
static int catch_up(struct ow_store *store, int64_t before_ns, struct ow_error *err)
{
	if (sqlite3_exec(store->file.db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return give_up(store, err);
	int r = ow_store_rollups_update_all(&store->rollups, before_ns, err);
	if (r < 0) {
		give_up(store, NULL);
		return r;
	}
	return sqlite3_exec(store->file.db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ? r : give_up(store, err);
}

int ow_store_finish(struct ow_store *store, int64_t now_ns, struct ow_error *err)
{
	int r = ow_store_commit(store, err);
	if (r == 0)
		while ((r = catch_up(store, now_ns, err)) > 0)
			continue;
	return r;
}

static int delete_samples(struct ow_store *store, int64_t now_ns, struct ow_error *err)
{
	sqlite3_bind_int64(store->trim_samples, 1, now_ns - OW_SAMPLE_ROW_KEPT_NS);
	int r = sqlite3_step(store->trim_samples) == SQLITE_DONE ? 0 : ow_database_fail(&store->file, err);
	sqlite3_reset(store->trim_samples);
	return r;
}

int ow_store_trim(struct ow_store *store, const struct ow_store_limits *limits, int64_t now_ns, struct ow_error *err)
{
	struct size size;
	int r = ow_store_commit(store, err);
	if (r < 0 || (r = delete_samples(store, now_ns, err)) < 0 ||
	    (r = catch_up(store, now_ns - ENDED_NS, err)) != 0 || (r = size_of(store, &size, err)) < 0)
		return r;
	int64_t most =
		limits->max_bytes && limits->max_bytes < INT64_MAX ? (int64_t)limits->max_bytes / size.page : INT64_MAX;
	int deleted = 0;
	if (size.pages - size.free > most)
		deleted = delete_for_space(store, limits, now_ns, err);
	else
		deleted = delete_old(store, limits, now_ns, err);
	if (deleted < 0)
		return deleted;
	if (size.free > TRIM_PAGES && (size.free > size.pages / FREE_SHARE || size.pages > most)) {
		char sql[60];
		snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%d)", TRIM_PAGES);
		struct size after;
		if ((r = ow_database_run(&store->file, sql, err)) < 0 || (r = size_of(store, &after, err)) < 0)
			return r;
		/* A file of an early version cannot give pages back. */
		return deleted > 0 || after.pages < size.pages;
	}
	return deleted > 0;
}
