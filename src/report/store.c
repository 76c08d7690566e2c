/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live results in SQLite. The schema carries its own explanations: `.schema` in the sqlite3 shell shows them. Writing
 * goes through a write-ahead log, so that people can query while a point writes, and with synchronous = NORMAL: after a
 * power failure the last moments may be missing, but the file is whole.
 */
#include "report/store.h"

#include "base/clock.h"
#include "report/live.h"
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <oneway/oneway.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define APPLICATION_ID 0x6f776179 /* "oway", in the header of the file */
#define SCHEMA_VERSION 1
/* How long another writer may keep us waiting: longer than a batch takes, shorter than people wait. */
#define BUSY_MS   2000
#define COLUMNS   66
#define LANES_MAX 65536
/* Of the statement that writes a result: every column is named twice. */
#define SQL_MAX 8192

static const char schema[] =
	"CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;\n"
	"CREATE TABLE lane ( -- the packets of one class that go one way over one segment\n"
	"  id INTEGER PRIMARY KEY,\n"
	"  segment TEXT NOT NULL, class TEXT NOT NULL, from_point TEXT NOT NULL, to_point TEXT NOT NULL,\n"
	"  UNIQUE (segment, class, from_point, to_point));\n"
	"CREATE TABLE result ( -- one row a lane and interval; NULL is what is not known\n"
	"  lane INTEGER NOT NULL REFERENCES lane,\n"
	"  start_ns INTEGER NOT NULL, length_ns INTEGER NOT NULL, -- since 1970-01-01 UTC\n"
	"  interval INTEGER NOT NULL,\n"
	"  final INTEGER NOT NULL, -- 0: what is pending may still arrive\n"
	"  exact INTEGER NOT NULL, -- 1: every packet was compared one by one\n"
	"  status TEXT NOT NULL, cause TEXT, -- measured, partial, unknown, and why\n"
	"  -- sent = matched + late + lost + pending, received = matched + late_received + extra\n"
	"  sent INTEGER, received INTEGER, matched INTEGER, late INTEGER, late_received INTEGER, lost INTEGER,\n"
	"  pending INTEGER, extra INTEGER, duplicated INTEGER, ambiguous INTEGER, reordered INTEGER, bytes INTEGER,\n"
	"  sample_shift INTEGER NOT NULL, -- counts are those of one packet in 2^shift\n"
	"  total_sent INTEGER, total_received INTEGER, coverage REAL,\n"
	"  ring_drops_from INTEGER, ring_drops_to INTEGER, unreadable INTEGER,\n"
	"  samples INTEGER, -- delays that the numbers rest on; _low.._high holds the truth in 95 % of cases\n"
	"  mean_ns REAL, mean_low_ns REAL, mean_high_ns REAL,\n"
	"  stddev_ns REAL, stddev_low_ns REAL, stddev_high_ns REAL,\n"
	"  min_ns REAL, max_ns REAL,\n"
	"  p50_ns REAL, p50_low_ns REAL, p50_high_ns REAL,\n"
	"  p90_ns REAL, p90_low_ns REAL, p90_high_ns REAL,\n"
	"  p95_ns REAL, p95_low_ns REAL, p95_high_ns REAL,\n"
	"  p99_ns REAL, p99_low_ns REAL, p99_high_ns REAL,\n"
	"  p999_ns REAL, p999_low_ns REAL, p999_high_ns REAL,\n"
	"  loss_ratio REAL, loss_low REAL, loss_high REAL,\n"
	"  not_estimated TEXT, -- JSON: the reasons by name\n"
	"  clock_error_from_ns INTEGER, clock_error_to_ns INTEGER, -- NULL: not synchronised\n"
	"  synopsis TEXT, cost_bytes INTEGER, round_trips INTEGER,\n"
	"  transmit_ns INTEGER, decode_ns INTEGER, missing_ns INTEGER, erase_ns INTEGER, compute_ns INTEGER,\n"
	"  ready_ns INTEGER, -- from the end of the interval to the result\n"
	"  UNIQUE (lane, start_ns));\n"
	"CREATE INDEX result_start ON result (start_ns);\n"
	"CREATE VIEW results AS SELECT -- for people: names, readable times, percent and microseconds\n"
	"  strftime('%Y-%m-%d %H:%M:%S', start_ns / 1000000000, 'unixepoch')\n"
	"    || printf('.%03d', start_ns / 1000000 % 1000) AS time,\n"
	"  segment, class, from_point, to_point, 100 * loss_ratio AS loss_percent,\n"
	"  mean_ns / 1e3 AS mean_us, stddev_ns / 1e3 AS stddev_us, p50_ns / 1e3 AS p50_us, p99_ns / 1e3 AS p99_us,\n"
	"  result.* FROM result JOIN lane ON lane.id = result.lane;\n";

struct lane {
	char segment[OW_LIVE_NAME], class_name[OW_LIVE_NAME], from[OW_LIVE_NAME], to[OW_LIVE_NAME];
	int64_t id;
};

struct ow_store {
	char *path;
	sqlite3 *db;
	sqlite3_stmt *find_lane, *add_lane, *add_result;
	struct lane *lane; /* those met so far */
	size_t lanes, room, next;
	unsigned waiting; /* results in the open transaction */
};

/* -- errors ------------------------------------------------------------------------------------------------------- */

static int fail(const struct ow_store *store, struct ow_error *err)
{
	const char *path = store->path;
	int os = sqlite3_system_errno(store->db);
	switch (sqlite3_errcode(store->db) & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ow_error_set(err, EBUSY, "%s: locked by another program", path);
	case SQLITE_READONLY:
		return ow_error_set(err, EROFS, "%s: cannot be written, it or its directory is read-only", path);
	case SQLITE_PERM:
	case SQLITE_CANTOPEN:
		os = os ? os : EIO;
		return ow_error_set(err, os, "%s: cannot be opened: %s", path, strerror(os));
	case SQLITE_NOTADB:
		return ow_error_set(err, EINVAL, "%s: not an SQLite database", path);
	case SQLITE_CORRUPT:
		return ow_error_set(err, EUCLEAN, "%s: damaged; move it away and a new one will be made", path);
	case SQLITE_FULL:
		return ow_error_set(err, ENOSPC, "%s: no space left", path);
	case SQLITE_NOMEM:
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	default:
		return ow_error_set(err, EIO, "%s: %s", path, sqlite3_errmsg(store->db));
	}
}

/* After a failure nothing of the batch is there: also lanes that it introduced are not. */
static int give_up(struct ow_store *store, struct ow_error *err)
{
	int r = fail(store, err);
	if (!sqlite3_get_autocommit(store->db))
		sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	store->waiting = 0;
	store->lanes = 0;
	return r;
}

static int run(struct ow_store *store, const char *sql, struct ow_error *err)
{
	return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : give_up(store, err);
}

static int prepare(struct ow_store *store, const char *sql, sqlite3_stmt **ret_statement, struct ow_error *err)
{
	int code = sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL);
	return code == SQLITE_OK ? 0 : fail(store, err);
}

/* -- opening ------------------------------------------------------------------------------------------------------ */

static int ask(struct ow_store *store, const char *sql, int64_t *ret_value, struct ow_error *err)
{
	sqlite3_stmt *statement;
	int r = prepare(store, sql, &statement, err);
	if (r < 0)
		return r;
	if (sqlite3_step(statement) == SQLITE_ROW)
		*ret_value = sqlite3_column_int64(statement, 0);
	else
		r = fail(store, err);
	sqlite3_finalize(statement);
	return r;
}

/* 1: ours; 0: empty, to become ours; negative errno: neither. */
static int recognise(struct ow_store *store, struct ow_error *err)
{
	int64_t application = 0, version = 0, objects = 0;
	int r;
	if ((r = ask(store, "SELECT count(*) FROM sqlite_schema", &objects, err)) < 0 ||
	    (r = ask(store, "PRAGMA application_id", &application, err)) < 0 ||
	    (r = ask(store, "PRAGMA user_version", &version, err)) < 0)
		return r;
	if (application == 0 && version == 0 && objects == 0)
		return 0;
	if (application != APPLICATION_ID)
		return ow_error_set(err, EINVAL, "%s: a database of another program, not a store of oneway",
		                    store->path);
	if (version > SCHEMA_VERSION)
		return ow_error_set(err, ENOTSUP,
		                    "%s: written by a newer version of oneway (schema %d, this one knows %d)",
		                    store->path, (int)version, SCHEMA_VERSION);
	return 1;
}

static int make_schema(struct ow_store *store, struct ow_error *err)
{
	char sql[200];
	int r = run(store, "BEGIN IMMEDIATE", err);
	if (r < 0)
		return r;
	/* Another program may have been faster. */
	int known = recognise(store, err);
	if (known == 0) {
		snprintf(sql, sizeof sql,
		         "INSERT INTO meta VALUES ('created_ns', %lld), ('created_by', 'oneway %s');"
		         "PRAGMA application_id = %d; PRAGMA user_version = %d",
		         (long long)ow_clock_real_ns(), ow_version(), APPLICATION_ID, SCHEMA_VERSION);
		if ((r = run(store, schema, err)) < 0 || (r = run(store, sql, err)) < 0)
			return r;
	}
	r = run(store, known < 0 ? "ROLLBACK" : "COMMIT", err);
	return known < 0 ? known : r;
}

/* INSERT ... ON CONFLICT: a final result replaces any other, a provisional one only a provisional one. The columns are
 * those that the table has. */
static int prepare_result(struct ow_store *store, struct ow_error *err)
{
	sqlite3_stmt *names;
	char values[3 * COLUMNS], sql[SQL_MAX];
	int r = prepare(store, "SELECT * FROM result LIMIT 0", &names, err);
	if (r < 0)
		return r;
	int count = sqlite3_column_count(names);
	if (count != COLUMNS) {
		r = ow_error_set(err, EUCLEAN, "%s: damaged: table result has %d columns instead of %d", store->path,
		                 count, COLUMNS);
		goto out;
	}
	for (int i = 0; i < COLUMNS; i++)
		memcpy(values + 2 * i, i ? ",?" : " ?", 3);
	int used = snprintf(sql, sizeof sql,
	                    "INSERT INTO result VALUES (%s) ON CONFLICT (lane, start_ns) DO UPDATE SET", values);
	for (int i = 0; i < COLUMNS && used < SQL_MAX; i++) {
		const char *name = sqlite3_column_name(names, i);
		used += snprintf(sql + used, (size_t)(SQL_MAX - used), "%s \"%s\" = excluded.\"%s\"", i ? "," : "",
		                 name, name);
	}
	if (used < SQL_MAX)
		used += snprintf(sql + used, (size_t)(SQL_MAX - used), " WHERE excluded.final >= result.final");
	r = used < SQL_MAX ? prepare(store, sql, &store->add_result, err)
	                   : ow_error_set(err, EUCLEAN, "%s: damaged: names of columns", store->path);
out:
	sqlite3_finalize(names);
	return r;
}

static int begin_store(struct ow_store *store, struct ow_error *err)
{
	sqlite3_busy_timeout(store->db, BUSY_MS);
	/* Nothing is written before it is known that the file is ours. */
	int r = recognise(store, err);
	if (r < 0)
		return r;
	if (sqlite3_db_readonly(store->db, "main") == 1)
		return ow_error_set(err, EROFS, "%s: cannot be written, it or its directory is read-only", store->path);
	int known = r;
	/* Where a log is not possible (some network file systems) the mode stays as it was: slower, not wrong. */
	if ((r = run(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON", err)) <
	    0)
		return r;
	if (!known && (r = make_schema(store, err)) < 0)
		return r;
	/* Also the trial that the file can be written. */
	char sql[120];
	snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO meta VALUES ('opened_ns', %lld), ('opened_by', 'oneway %s')",
	         (long long)ow_clock_real_ns(), ow_version());
	if ((r = run(store, sql, err)) < 0 ||
	    (r = prepare(store,
	                 "SELECT id FROM lane WHERE segment = ? AND class = ? AND from_point = ? AND to_point = ?",
	                 &store->find_lane, err)) < 0 ||
	    (r = prepare(store, "INSERT INTO lane (segment, class, from_point, to_point) VALUES (?, ?, ?, ?)",
	                 &store->add_lane, err)) < 0)
		return r;
	return prepare_result(store, err);
}

int ow_store_open(const char *path, struct ow_store **ret_store, struct ow_error *err)
{
	struct ow_store *store = calloc(1, sizeof *store);
	if (!store || !(store->path = strdup(path))) {
		free(store);
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	}
	int r = 0;
	if (sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
		r = store->db ? fail(store, err) : ow_error_set(err, ENOMEM, "%s: out of memory", path);
	if (r == 0)
		r = begin_store(store, err);
	if (r < 0) {
		ow_store_close(store);
		return r;
	}
	*ret_store = store;
	return 0;
}

void ow_store_close(struct ow_store *store)
{
	if (!store)
		return;
	ow_store_commit(store, NULL);
	sqlite3_finalize(store->find_lane);
	sqlite3_finalize(store->add_lane);
	sqlite3_finalize(store->add_result);
	sqlite3_close(store->db);
	free(store->lane);
	free(store->path);
	free(store);
}

/* -- lanes -------------------------------------------------------------------------------------------------------- */

static bool is_lane(const struct lane *lane, const struct ow_live_result *r)
{
	return strcmp(lane->from, r->from) == 0 && strcmp(lane->to, r->to) == 0 &&
	       strcmp(lane->class_name, r->class_name) == 0 && strcmp(lane->segment, r->segment) == 0;
}

static int step_lane(sqlite3_stmt *statement, const struct ow_live_result *r)
{
	const char *name[] = {r->segment, r->class_name, r->from, r->to};
	sqlite3_reset(statement);
	for (int i = 0; i < 4; i++)
		sqlite3_bind_text(statement, i + 1, name[i], -1, SQLITE_STATIC);
	return sqlite3_step(statement);
}

static int keep_lane(struct ow_store *store, const struct ow_live_result *r, int64_t id)
{
	/* Without a place the lane is looked up again: slower, not wrong. */
	if (store->lanes == LANES_MAX)
		return 0;
	if (store->lanes == store->room) {
		size_t room = store->room ? 2 * store->room : 8;
		struct lane *lane = reallocarray(store->lane, room, sizeof *lane);
		if (!lane)
			return -ENOMEM;
		store->lane = lane;
		store->room = room;
	}
	struct lane *lane = &store->lane[store->lanes++];
	lane->id = id;
	memcpy(lane->segment, r->segment, sizeof lane->segment);
	memcpy(lane->class_name, r->class_name, sizeof lane->class_name);
	memcpy(lane->from, r->from, sizeof lane->from);
	memcpy(lane->to, r->to, sizeof lane->to);
	return 0;
}

static int lane_id(struct ow_store *store, const struct ow_live_result *r, int64_t *ret_id, struct ow_error *err)
{
	/* Results come in the same order of lanes again and again. */
	for (size_t i = 0; i < store->lanes; i++) {
		size_t k = (store->next + i) % store->lanes;
		if (is_lane(&store->lane[k], r)) {
			store->next = k + 1;
			*ret_id = store->lane[k].id;
			return 0;
		}
	}
	int code = step_lane(store->find_lane, r);
	if (code == SQLITE_ROW)
		*ret_id = sqlite3_column_int64(store->find_lane, 0);
	else if (code == SQLITE_DONE && (code = step_lane(store->add_lane, r)) == SQLITE_DONE)
		*ret_id = sqlite3_last_insert_rowid(store->db);
	int result = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : fail(store, err);
	sqlite3_reset(store->find_lane);
	sqlite3_reset(store->add_lane);
	if (result == 0 && keep_lane(store, r, *ret_id) < 0)
		result = ow_error_set(err, ENOMEM, "%s: out of memory", store->path);
	return result;
}

/* -- results ------------------------------------------------------------------------------------------------------ */

/* Binds one value after the other, in the order of the columns. */
struct binder {
	sqlite3_stmt *statement;
	int at;
	bool known; /* false: counts and numbers are NULL */
};

static void bind_integer(struct binder *b, int64_t value)
{
	sqlite3_bind_int64(b->statement, ++b->at, value);
}

static void bind_count(struct binder *b, uint64_t count)
{
	if (!b->known || count == OW_LIVE_NOT_COUNTED)
		sqlite3_bind_null(b->statement, ++b->at);
	else
		bind_integer(b, count > INT64_MAX ? INT64_MAX : (int64_t)count);
}

static void bind_real(struct binder *b, double value)
{
	if (b->known && isfinite(value))
		sqlite3_bind_double(b->statement, ++b->at, value);
	else
		sqlite3_bind_null(b->statement, ++b->at);
}

static void bind_text(struct binder *b, const char *text)
{
	if (*text)
		sqlite3_bind_text(b->statement, ++b->at, text, -1, SQLITE_TRANSIENT);
	else
		sqlite3_bind_null(b->statement, ++b->at);
}

static void bind_value(struct binder *b, const struct ow_value *value, bool bounds)
{
	bool none = value->status == OW_VALUE_NONE;
	bind_real(b, none ? NAN : value->value);
	if (bounds) {
		bind_real(b, none ? NAN : value->low);
		bind_real(b, none ? NAN : value->high);
	}
}

static void bind_counts(struct binder *b, const struct ow_live_result *r)
{
	const uint64_t counts[] = {r->sent,    r->received, r->matched,    r->late,      r->late_received, r->lost,
	                           r->pending, r->extra,    r->duplicated, r->ambiguous, r->reordered,     r->bytes};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		bind_count(b, counts[i]);
	bind_integer(b, r->sample_shift);
	bind_count(b, r->total_sent);
	bind_count(b, r->total_received);
	bind_real(b, r->coverage);
	bind_count(b, r->ring_drops_from);
	bind_count(b, r->ring_drops_to);
	bind_count(b, r->unreadable);
	bind_count(b, r->samples);
}

static void bind_delays(struct binder *b, const struct ow_live_result *r)
{
	bind_value(b, &r->mean_ns, true);
	bind_value(b, &r->stddev_ns, true);
	bind_value(b, &r->min_ns, false);
	bind_value(b, &r->max_ns, false);
	for (int i = 0; i < OW_QUANTILES; i++)
		bind_value(b, &r->quantile_ns[i], true);
	bind_value(b, &r->loss_ratio, true);
	char reasons[2048] = "";
	FILE *out = fmemopen(reasons, sizeof reasons, "w");
	if (out) {
		ow_live_json_reasons(out, r);
		/* What does not fit would be no JSON. */
		if (fclose(out) != 0 || strcmp(reasons, "{}") == 0)
			*reasons = 0;
	}
	bind_text(b, reasons);
}

static void bind_clock(struct binder *b, const struct ow_clock_state *clock)
{
	bool known = clock->synchronised && clock->error_ns != OW_CLOCK_UNKNOWN;
	bind_count(b, known && clock->error_ns >= 0 ? (uint64_t)clock->error_ns : OW_LIVE_NOT_COUNTED);
}

static void bind_result(sqlite3_stmt *statement, int64_t lane, const struct ow_live_result *r)
{
	struct binder b = {statement, 0, r->status != OW_LIVE_UNKNOWN};
	bind_integer(&b, lane);
	bind_integer(&b, r->start_ns);
	bind_integer(&b, r->length_ns);
	bind_integer(&b, r->interval);
	bind_integer(&b, r->final);
	bind_integer(&b, r->exact);
	bind_text(&b, ow_live_status_name[r->status]);
	bind_text(&b, r->cause);
	bind_counts(&b, r);
	bind_delays(&b, r);
	bind_clock(&b, &r->clock_from);
	bind_clock(&b, &r->clock_to);
	bind_text(&b, r->synopsis);
	const struct ow_live_cost *cost = &r->cost;
	bind_count(&b, cost->bytes);
	bind_count(&b, cost->round_trips);
	const int64_t stages[] = {cost->transmit_ns, cost->decode_ns,  cost->missing_ns,
	                          cost->erase_ns,    cost->compute_ns, cost->ready_ns};
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		b.known ? bind_integer(&b, stages[i]) : bind_real(&b, NAN);
	assert(b.at == COLUMNS);
}

int ow_store_add(struct ow_store *store, const struct ow_live_result *result, struct ow_error *err)
{
	int64_t lane = 0;
	int r = 0;
	if (!store->waiting && (r = run(store, "BEGIN IMMEDIATE", err)) < 0)
		return r;
	store->waiting++;
	if ((r = lane_id(store, result, &lane, err)) < 0) {
		give_up(store, NULL);
		return r;
	}
	bind_result(store->add_result, lane, result);
	int code = sqlite3_step(store->add_result);
	if (code != SQLITE_DONE)
		r = fail(store, err);
	sqlite3_reset(store->add_result);
	if (r < 0) {
		give_up(store, NULL);
		return r;
	}
	return store->waiting >= OW_STORE_BATCH ? ow_store_commit(store, err) : 0;
}

int ow_store_commit(struct ow_store *store, struct ow_error *err)
{
	if (!store->waiting)
		return 0;
	store->waiting = 0;
	return run(store, "COMMIT", err);
}
