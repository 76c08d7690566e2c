/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres_rollup.h"

#include "base/array.h"
#include "base/text.h"
#include "base/time.h"
#include "result/rollup.h"
#include "store/postgres_schema.h"
#include "store/row.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An hour is added up this long after its end: by then, most of its minutes are there. */
#define GRACE_NS (300 * OW_NS_PER_S)
/* How often the running hour and day are added up. */
#define RUNNING_NS (600 * OW_NS_PER_S)
/* Lanes in one step: a tenth of a second. */
#define LANES 500
/* Steps in a row in one hour or day: enough for 50,000 lanes. */
#define STEPS 100

#define LOCK(kind, what) "SELECT pg_" kind "(" OW_POSTGRES_LOCK_CLASS ", " what ")"
#define ROLLUP           "2" /* see OW_POSTGRES_LOCK_CLASS */
#define FRONTIER         "3"

struct range {
	int64_t first, last; /* lanes */
};

/* What is added up in one step. */
struct work {
	struct ow_postgres *postgres;
	enum ow_period period;
	int64_t start_ns;
	bool is_over;
	struct range *range; /* of lanes */
	size_t ranges, ranges_room;
	int64_t lane[LANES]; /* those of this step */
	size_t lanes;
	struct ow_interval_result *result; /* of those that have any */
	int64_t result_lane[LANES];
	size_t results;
};

/* -- what is late ------------------------------------------------------------------------------------------------- */

static int ask_until(struct ow_postgres *p, enum ow_period period, int64_t *ret_ns, struct ow_error *err)
{
	char sql[100];
	snprintf(sql, sizeof sql, "SELECT value::bigint FROM meta WHERE key = '%s_until_ns'", ow_periods[period].table);
	return ow_postgres_ask(p, sql, ret_ns, err);
}

int ow_postgres_rollup_is_late(struct ow_postgres *p, enum ow_period period, int64_t start_ns, struct ow_error *err)
{
	int64_t until_ns = 0;
	/* Who moves the time waits until all transactions that have read the old one have ended. */
	int r = ow_postgres_run(p, LOCK("advisory_xact_lock_shared", FRONTIER), err);
	if (r == 0)
		r = ask_until(p, period, &until_ns, err);
	return r < 0 ? r : start_ns < until_ns;
}

int ow_postgres_rollup_merge(struct ow_postgres *p, enum ow_period period, const char *insert, uint64_t *ret_rows,
                             struct ow_error *err)
{
	char *sql = NULL;
	struct ow_statement *statement = NULL;
	int64_t length_ns = ow_periods[period].length_ns;
	if (asprintf(&sql,
	             "WITH changed AS (%s RETURNING lane, start_ns), due AS (INSERT INTO rollup_due"
	             " SELECT DISTINCT %d, start_ns - start_ns %% %" PRId64 ", lane, lane FROM changed WHERE start_ns <"
	             " (SELECT value::bigint FROM meta WHERE key = '%s_until_ns')) SELECT count(*) FROM changed",
	             insert, (int)period, length_ns, ow_periods[period].table) < 0)
		return ow_error_set(err, ENOMEM, "%s: out of memory", ow_postgres_name(p));
	int r = ow_postgres_prepare(p, sql, &statement, err);
	free(sql);
	if (r < 0)
		return r;
	enum ow_step step = ow_step(statement);
	if (step == OW_STEP_ROW) {
		*ret_rows = (uint64_t)ow_column_integer(statement, 0);
		step = ow_step(statement);
	}
	r = step == OW_STEP_DONE ? 0 : ow_postgres_fail(p, err);
	ow_statement_free(statement);
	return r;
}

/* -- what is over ------------------------------------------------------------------------------------------------- */

static enum ow_period below(enum ow_period period)
{
	return period == OW_PERIOD_DAY ? OW_PERIOD_HOUR : OW_PERIOD_MINUTE;
}

/* "EXISTS ...": whether the table has something of the hour or day that begins at `start`. */
#define HAS_SOME(table) \
	"EXISTS (SELECT FROM " table " AS part WHERE part.start_ns >= start AND part.start_ns < start + %" PRId64 ")"

/* Puts what has ended since the last time on the list, for all lanes. */
static int put_ended(struct ow_postgres *p, enum ow_period period, int64_t until_ns, struct ow_error *err)
{
	static const char text[] = "BEGIN; " LOCK(
		"advisory_xact_lock",
		FRONTIER) ";"
			  "INSERT INTO rollup_due SELECT %d, start, 0, %" PRId64 " FROM meta, generate_series(greatest("
			  "value::bigint, (SELECT min(start_ns) - min(start_ns) %% %" PRId64 " FROM %s)), %" PRId64
			  ", %" PRId64 ") AS start WHERE key = '%s_until_ns' AND value::bigint < %" PRId64
			  " AND " HAS_SOME("%s") ";"
						 "UPDATE meta SET value = '%" PRId64
						 "' WHERE key = '%s_until_ns' AND value::bigint < %" PRId64 "; COMMIT";
	char sql[1000];
	int64_t length_ns = ow_periods[period].length_ns;
	const char *table = ow_periods[period].table, *parts = ow_periods[below(period)].table;
	snprintf(sql, sizeof sql, text, (int)period, INT64_MAX, length_ns, parts, until_ns - length_ns, length_ns,
	         table, until_ns, parts, length_ns, until_ns, table, until_ns);
	return ow_postgres_run(p, sql, err);
}

/* Puts what runs on the list as well, now and then: sums of months are made of hours, and must not lack the last ones. */
static int put_running(struct ow_postgres *p, int64_t now_ns, struct ow_error *err)
{
	static const char one[] =
		"INSERT INTO rollup_due SELECT %d, start, 0, %" PRId64 " FROM meta, meta AS last, generate_series("
		"meta.value::bigint, %" PRId64 ", %" PRId64 ") AS start WHERE meta.key = '%s_until_ns' AND"
		" last.key = 'running_ns' AND last.value::bigint < %" PRId64 " AND " HAS_SOME("minute");
	char sql[2][600], all[1500];
	for (int i = 0; i < 2; i++) {
		const struct ow_period_of *period = &ow_periods[OW_PERIOD_HOUR + i];
		snprintf(sql[i], sizeof sql[i], one, OW_PERIOD_HOUR + i, INT64_MAX, now_ns, period->length_ns,
		         period->table, now_ns - RUNNING_NS, period->length_ns);
	}
	snprintf(all, sizeof all,
	         "BEGIN; " LOCK("advisory_xact_lock", FRONTIER) "; %s; %s; UPDATE meta SET value = '%" PRId64
	                                                        "' WHERE key = 'running_ns'; COMMIT",
	         sql[0], sql[1], now_ns);
	return ow_postgres_run(p, all, err);
}

/* A clock that was a year ahead must not have ended the hours of this year: none ends a day after the newest minute. */
static int put_certainly_ended(struct ow_postgres *p, enum ow_period period, int64_t from_ns, int64_t until_ns,
                               struct ow_error *err)
{
	int64_t newest_ns = 0, length_ns = ow_periods[period].length_ns;
	int r = ow_postgres_ask(p, "SELECT coalesce(max(start_ns), 0) FROM minute", &newest_ns, err);
	int64_t most_ns = ow_floor_div(newest_ns + ow_periods[OW_PERIOD_DAY].length_ns, length_ns) * length_ns;
	until_ns = until_ns < most_ns ? until_ns : most_ns;
	return r < 0 || until_ns <= from_ns ? r : put_ended(p, period, until_ns, err);
}

static int look_for_due(struct ow_postgres *p, int64_t now_ns, struct ow_error *err)
{
	static const char first_hour[] =
		"SELECT coalesce(min(start_ns), 9223372036854775807) FROM rollup_due WHERE period"
		" = 2 AND start_ns >= (SELECT value::bigint FROM meta WHERE key ="
		" 'day_until_ns')";
	int64_t running_ns = 0;
	int r = 0;
	for (enum ow_period period = OW_PERIOD_HOUR; r == 0 && period <= OW_PERIOD_DAY; period++) {
		int64_t length_ns = ow_periods[period].length_ns, until_ns = 0;
		int64_t ended_ns = ow_floor_div(now_ns - GRACE_NS, length_ns) * length_ns, hour_ns = INT64_MAX;
		/* A day is over when its hours are added up: each of them would be late otherwise. */
		if (period == OW_PERIOD_DAY)
			r = ow_postgres_ask(p, first_hour, &hour_ns, err);
		if (hour_ns < ended_ns)
			ended_ns = ow_floor_div(hour_ns, length_ns) * length_ns;
		if (r == 0 && (r = ask_until(p, period, &until_ns, err)) == 0 && until_ns < ended_ns)
			r = put_certainly_ended(p, period, until_ns, ended_ns, err);
	}
	if (r == 0)
		r = ow_postgres_ask(p, "SELECT value::bigint FROM meta WHERE key = 'running_ns'", &running_ns, err);
	/* A clock that was set back must not stop it. */
	if (r == 0 && (running_ns < now_ns - RUNNING_NS || running_ns > now_ns))
		r = put_running(p, now_ns, err);
	if (r < 0 && ow_postgres_in_transaction(p))
		ow_postgres_run(p, "ROLLBACK", NULL);
	return r;
}

/* -- one step ----------------------------------------------------------------------------------------------------- */

static int no_memory(const struct work *w, struct ow_error *err)
{
	return ow_error_set(err, ENOMEM, "%s: out of memory", ow_postgres_name(w->postgres));
}

/* Passes each row of a query on. */
static int each_row(struct ow_postgres *p, const char *sql, int (*take)(void *arg, const struct ow_statement *row),
                    void *arg, struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	enum ow_step step = OW_STEP_DONE;
	int r = ow_postgres_prepare(p, sql, &statement, err);
	while (r == 0 && (step = ow_step(statement)) == OW_STEP_ROW)
		r = take(arg, statement);
	if (r == -ENOMEM)
		ow_error_set(err, ENOMEM, "%s: out of memory", ow_postgres_name(p));
	else if (r == 0 && step == OW_STEP_FAILED)
		r = ow_postgres_fail(p, err);
	ow_statement_free(statement);
	return r;
}

static int take_first(void *arg, const struct ow_statement *row)
{
	struct work *w = arg;
	int64_t period = ow_column_integer(row, 0);
	if (period != OW_PERIOD_HOUR && period != OW_PERIOD_DAY)
		return 0;
	w->period = (enum ow_period)period;
	w->start_ns = ow_column_integer(row, 1);
	w->ranges = 1;
	return 0;
}

static int take_range(void *arg, const struct ow_statement *row)
{
	struct work *w = arg;
	if (OW_GROW(w->range, w->ranges_room, w->ranges + 1) < 0)
		return -ENOMEM;
	w->range[w->ranges++] = (struct range){ow_column_integer(row, 0), ow_column_integer(row, 1)};
	return 0;
}

static int take_lane(void *arg, const struct ow_statement *row)
{
	struct work *w = arg;
	w->lane[w->lanes++] = ow_column_integer(row, 0);
	return 0;
}

static int by_first(const void *left, const void *right)
{
	const struct range *a = left, *b = right;
	return (a->first > b->first) - (a->first < b->first);
}

/* Ranges that overlap become one. There is at least one. */
static void join_ranges(struct work *w)
{
	size_t kept = 0;
	qsort(w->range, w->ranges, sizeof *w->range, by_first);
	for (size_t i = 1; i < w->ranges; i++) {
		struct range *last = &w->range[kept];
		if (w->range[i].first > last->last)
			w->range[++kept] = w->range[i];
		else if (w->range[i].last > last->last)
			last->last = w->range[i].last;
	}
	w->ranges = kept + 1;
}

/* The lanes of this step: the first ones of the ranges, which then begin behind them. */
static int choose_lanes(struct work *w, struct ow_error *err)
{
	char sql[160];
	size_t at = 0;
	int r = 0;
	while (r == 0 && at < w->ranges && w->lanes < LANES) {
		struct range *range = &w->range[at];
		size_t room = LANES - w->lanes, before = w->lanes;
		if (range->first == range->last) {
			w->lane[w->lanes++] = range->first;
			at++;
			continue;
		}
		snprintf(sql, sizeof sql,
		         "SELECT id FROM lane WHERE id BETWEEN %" PRId64 " AND %" PRId64 " ORDER BY id LIMIT %zu",
		         range->first, range->last, room);
		r = each_row(w->postgres, sql, take_lane, w, err);
		if (w->lanes - before < room || w->lane[w->lanes - 1] == range->last)
			at++;
		else
			range->first = w->lane[w->lanes - 1] + 1;
	}
	memmove(w->range, w->range + at, (w->ranges - at) * sizeof *w->range);
	w->ranges -= at;
	return r;
}

static int put_back(const struct work *w, struct ow_error *err)
{
	struct ow_postgres_copy *copy = NULL;
	if (!w->ranges)
		return 0;
	int r = ow_postgres_copy_begin(w->postgres, "COPY rollup_due FROM STDIN (FORMAT binary)", &copy, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < w->ranges; i++) {
		const struct ow_statement *row = ow_postgres_copy_row(copy, 4);
		ow_bind_integer(row, 1, w->period);
		ow_bind_integer(row, 2, w->start_ns);
		ow_bind_integer(row, 3, w->range[i].first);
		ow_bind_integer(row, 4, w->range[i].last);
	}
	return ow_postgres_copy_end(copy, err);
}

/* Takes this hour or day from the list, chooses lanes, and puts the others back. */
static int take_due(struct work *w, struct ow_error *err)
{
	char sql[200];
	w->ranges = 0;
	snprintf(sql, sizeof sql,
	         "DELETE FROM rollup_due WHERE period = %d AND start_ns = %" PRId64 " RETURNING first_lane, last_lane",
	         (int)w->period, w->start_ns);
	int r = each_row(w->postgres, sql, take_range, w, err);
	/* None: another collector has added it up since it was chosen. */
	if (r < 0 || !w->ranges)
		return r;
	join_ranges(w);
	r = choose_lanes(w, err);
	return r < 0 ? r : put_back(w, err);
}

/* The query for the results that are added up, in the order of lanes. NULL: out of memory. */
static char *rows_sql(const struct work *w)
{
	struct ow_text sql;
	FILE *out = ow_text_open(&sql);
	if (!out)
		return NULL;
	fputs("SELECT ", out);
	ow_row_select(out, ow_row_version());
	/* An hour that is not over is not final. */
	fprintf(out, " FROM %s WHERE %sstart_ns >= %" PRId64 " AND start_ns < %" PRId64 " AND lane = ANY ('{",
	        ow_periods[below(w->period)].table, w->period == OW_PERIOD_HOUR ? "final AND " : "", w->start_ns,
	        w->start_ns + ow_periods[w->period].length_ns);
	for (size_t i = 0; i < w->lanes; i++)
		fprintf(out, "%s%" PRId64, i ? "," : "", w->lane[i]);
	fputs("}'::bigint[]) ORDER BY lane, start_ns", out);
	return ow_text_close(&sql);
}

struct adding {
	struct work *work;
	struct ow_rollup *rollup;
	struct ow_row_reader reader;
	int64_t lane; /* -1: none yet */
};

static void finish_lane(struct adding *a)
{
	struct work *w = a->work;
	if (a->lane < 0 || w->results == LANES)
		return;
	ow_rollup_result(a->rollup, &w->result[w->results]);
	w->result[w->results].final = w->is_over;
	w->result_lane[w->results++] = a->lane;
}

static int take_row(void *arg, const struct ow_statement *row)
{
	struct adding *a = arg;
	struct ow_interval_result result;
	int64_t lane = ow_column_integer(row, 0);
	if (lane != a->lane) {
		finish_lane(a);
		ow_rollup_begin(a->rollup, a->work->start_ns, ow_periods[a->work->period].length_ns);
		a->lane = lane;
	}
	ow_row_read(&a->reader, row, &result);
	ow_rollup_add(a->rollup, &result);
	return 0;
}

static int add_up(struct work *w, struct ow_error *err)
{
	struct adding a = {.work = w, .reader = {.version = ow_row_version()}, .lane = -1};
	char *sql = rows_sql(w);
	int r = sql && ow_rollup_create(&a.rollup) == 0 ? each_row(w->postgres, sql, take_row, &a, err)
	                                                : no_memory(w, err);
	if (r == 0)
		finish_lane(&a);
	ow_row_reader_done(&a.reader);
	ow_rollup_free(a.rollup);
	free(sql);
	return r;
}

static int copy_results(const struct work *w, struct ow_error *err)
{
	char *sql = NULL;
	size_t size;
	struct ow_postgres_copy *copy = NULL;
	FILE *out = open_memstream(&sql, &size);
	if (!out)
		return no_memory(w, err);
	ow_postgres_put_copy(out, w->period);
	int r = fclose(out) == 0 ? ow_postgres_copy_begin(w->postgres, sql, &copy, err) : no_memory(w, err);
	free(sql);
	if (r < 0)
		return r;
	for (size_t i = 0; i < w->results; i++)
		ow_row_bind(ow_postgres_copy_row(copy, ow_row_columns()), w->result_lane[i], &w->result[i]);
	return ow_postgres_copy_end(copy, err);
}

/*
 * What is added up again replaces what was, unless it knows less: then what it was made of has been deleted since.
 */
static int store_results(const struct work *w, struct ow_error *err)
{
	char *sql = NULL;
	size_t size;
	uint64_t changed;
	FILE *out = open_memstream(&sql, &size);
	if (!out)
		return no_memory(w, err);
	ow_postgres_put_merge(out, w->period);
	fputs(" WHERE excluded.intervals - excluded.intervals_unknown >= old.intervals - old.intervals_unknown", out);
	int r = fclose(out) == 0 ? 0 : no_memory(w, err);
	int late = r < 0 || w->period == OW_PERIOD_DAY
	                   ? 0
	                   : ow_postgres_rollup_is_late(w->postgres, OW_PERIOD_DAY, w->start_ns, err);
	if (r == 0)
		r = late < 0 ? late
		    : late   ? ow_postgres_rollup_merge(w->postgres, OW_PERIOD_DAY, sql, &changed, err)
		             : ow_postgres_change(w->postgres, sql, &changed, err);
	free(sql);
	return r;
}

/* The index has the order that is needed. Whatever the statistics say, sorting rows of this size takes longer. */
#define BY_INDEX                                                                                          \
	"SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off;" \
	"SET LOCAL max_parallel_workers_per_gather = 0"

static int do_work(struct work *w, struct ow_error *err)
{
	struct ow_postgres_part part = ow_postgres_part(w->period, w->start_ns);
	int64_t mine = 0, until_ns = 0;
	int r = ow_postgres_add_part(w->postgres, &part, err);
	if (r == 0)
		r = ow_postgres_run(w->postgres, "BEGIN; " BY_INDEX, err);
	/* Two that add up the same hour could store the older sum last. */
	if (r == 0)
		r = ow_postgres_ask(w->postgres, LOCK("try_advisory_xact_lock", ROLLUP) "::int", &mine, err);
	if (r == 0 && mine)
		r = ask_until(w->postgres, w->period, &until_ns, err);
	if (r == 0 && mine) {
		w->is_over = w->start_ns < until_ns;
		if ((r = take_due(w, err)) == 0 && w->lanes && (r = add_up(w, err)) == 0 && w->results &&
		    (r = copy_results(w, err)) == 0)
			r = store_results(w, err);
	}
	if (r == 0)
		r = ow_postgres_run(w->postgres, "COMMIT", err);
	else if (ow_postgres_in_transaction(w->postgres))
		ow_postgres_run(w->postgres, "ROLLBACK", NULL);
	return r < 0 ? r : mine != 0;
}

/* Chooses the hour or day at this place of the list, or the next one: hours before days, old ones before new ones. */
static int choose_due(struct work *w, const struct ow_postgres_rollup_place *place, struct ow_error *err)
{
	char sql[200];
	snprintf(sql, sizeof sql,
	         "SELECT period, start_ns FROM rollup_due WHERE (period, start_ns) >= (%" PRId64 ", %" PRId64
	         ") ORDER BY period, start_ns LIMIT 1",
	         place->period, place->start_ns);
	return each_row(w->postgres, sql, take_first, w, err);
}

/* If lanes of it are left, it is continued: w->ranges. */
static void move_on(struct ow_postgres_rollup_place *place, const struct work *w)
{
	bool same = place->period == w->period && place->start_ns == w->start_ns;
	place->period = w->period;
	place->start_ns = w->start_ns;
	place->steps = same ? place->steps + 1 : 1;
	if (!w->ranges || place->steps >= STEPS) {
		place->start_ns++;
		place->steps = 0;
	}
}

int ow_postgres_rollup_step(struct ow_postgres *p, struct ow_postgres_rollup_place *place, int64_t now_ns,
                            struct ow_error *err)
{
	struct work *w = calloc(1, sizeof *w);
	if (!w)
		return ow_error_set(err, ENOMEM, "%s: out of memory", ow_postgres_name(p));
	w->postgres = p;
	w->result = calloc(LANES, sizeof *w->result);
	int r = w->result ? look_for_due(p, now_ns, err) : no_memory(w, err);
	if (r == 0)
		r = choose_due(w, place, err);
	if (r == 0 && !w->ranges && (place->period || place->start_ns)) {
		*place = (struct ow_postgres_rollup_place){0};
		r = choose_due(w, place, err);
	}
	if (r == 0 && w->ranges) {
		r = do_work(w, err);
		if (r > 0)
			move_on(place, w);
	}
	free(w->result);
	free(w->range);
	free(w);
	return r;
}
