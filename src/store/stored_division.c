/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides a time into days, hours, minutes and intervals. A minute is there when its lane has a later final result, and
 * hours and days have all minutes that are there. So what no minute has yet is the end of each lane.
 */
#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/time.h"
#include "store/stored_file.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define MINUTE_NS (60 * OW_NS_PER_S)

struct times {
	int64_t first[OW_PERIODS], last[OW_PERIODS]; /* starts of rows; INT64_MAX: there is none */
	int64_t done_ns;                             /* the end of the newest minute */
	enum ow_period least;
};

static int64_t down(int64_t ns, enum ow_period period)
{
	int64_t length_ns = ow_periods[period].length_ns, below;
	/* The first period of all begins before the first time of all. */
	return __builtin_mul_overflow(ow_floor_div(ns, length_ns), length_ns, &below) ? INT64_MIN : below;
}

static int64_t up(int64_t ns, enum ow_period period)
{
	int64_t below = down(ns, period);
	return below == ns ? ns : ow_time_later(below, ow_periods[period].length_ns);
}

static int64_t least_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int find_times(struct ow_stored *stored, enum ow_period least, struct times *t, struct ow_error *err)
{
	enum ow_period keep = stored->filter.period;
	int r = 0;
	*t = (struct times){.least = least};
	for (int p = 0; p < OW_PERIODS; p++) {
		t->first[p] = t->last[p] = INT64_MAX;
		stored->filter.period = (enum ow_period)p;
		if (r == 0 && (p == OW_PERIOD_INTERVAL || ow_stored_has_periods(stored)))
			r = ow_stored_span(stored, &t->first[p], &t->last[p], err);
		r = r == -ENODATA ? 0 : r;
	}
	stored->filter.period = keep;
	t->done_ns = t->last[OW_PERIOD_MINUTE] == INT64_MAX ? INT64_MIN
	                                                    : ow_time_later(t->last[OW_PERIOD_MINUTE], MINUTE_NS);
	return r;
}

static int add(struct ow_stored_division *d, const struct ow_stored_part *part)
{
	if (part->since_ns >= part->until_ns)
		return 0;
	if (OW_GROW(d->part, d->room, d->count + 1) < 0)
		return -ENOMEM;
	d->part[d->count++] = *part;
	if (part->period > d->longest)
		d->longest = part->period;
	return 0;
}

/* Divides since to until into whole times of this period, and shorter ones before and behind them. */
static int cover(struct ow_stored_division *d, const struct times *t, int p, int64_t since, int64_t until)
{
	if (p <= (int)t->least)
		return add(d, &(struct ow_stored_part){t->least, since, until, 0});
	enum ow_period period = (enum ow_period)p;
	int64_t finer = t->first[p - 1], from = up(since, period), to = down(until, period);
	/* Of a time before the first finer row only this one is left: all that begins in the selected time. */
	bool is_only = t->first[p] != INT64_MAX && t->first[p] < down(finer, period);
	if (is_only && finer > since)
		from = down(since, period);
	if (is_only && finer >= until)
		to = until;
	else
		to = least_of(to, down(t->done_ns, period));
	if (!is_only && t->first[p] > from)
		from = t->first[p];
	if (from >= to)
		return cover(d, t, p - 1, since, until);
	int r = from > since ? cover(d, t, p - 1, since, from) : 0;
	if (r == 0)
		r = add(d, &(struct ow_stored_part){period, from, to, 0});
	return r == 0 && to < until ? cover(d, t, p - 1, to, until) : r;
}

static int out_of_memory(const struct ow_stored *stored, struct ow_error *err)
{
	return ow_error_set(err, ENOMEM, "%s: out of memory", stored->source.name);
}

/* "SELECT id, first and last of each period, length FROM lane" */
static char *lane_times_sql(const struct ow_stored *stored)
{
	struct ow_text sql;
	FILE *out = ow_text_open(&sql);
	if (!out)
		return NULL;
	fputs("SELECT l.id", out);
	for (int p = 0; p < OW_PERIODS; p++) {
		bool is_there = p == OW_PERIOD_INTERVAL || ow_stored_has_periods(stored);
		for (int i = 0; i < 2; i++)
			fprintf(out, is_there ? ", (SELECT %s(r.start_ns) FROM %s r WHERE r.lane = l.id)" : ", NULL",
			        i ? "max" : "min", ow_periods[p].table);
	}
	/* The longest of some: the last one of a run ends with it. */
	fputs(", (SELECT max(n.length_ns) FROM (SELECT r.length_ns FROM result r WHERE r.lane = l.id "
	      "ORDER BY r.start_ns DESC LIMIT 8) n) FROM lane l",
	      out);
	for (size_t i = 0; stored->chosen == 1 && i < stored->lanes; i++) {
		if (stored->lane[i].chosen)
			fprintf(out, " WHERE l.id = %" PRId64, stored->lane[i].id);
	}
	return ow_text_close(&sql);
}

static void read_times(const struct ow_stored *stored, const struct ow_statement *row,
                       struct ow_stored_lane_times *times)
{
	const struct ow_stored_lane *lane = ow_stored_lane(stored, ow_column_integer(row, 0));
	if (!lane)
		return;
	struct ow_stored_lane_times *t = &times[lane - stored->lane];
	for (int p = 0; p < OW_PERIODS; p++) {
		int at = 1 + 2 * p;
		bool is_there = !ow_column_is_null(row, at);
		t->first_ns[p] = is_there ? ow_column_integer(row, at) : INT64_MAX;
		t->last_ns[p] = is_there ? ow_column_integer(row, at + 1) : INT64_MAX;
	}
	t->length_ns = ow_column_integer(row, 1 + 2 * OW_PERIODS);
}

int64_t ow_stored_lane_first(const struct ow_stored_lane_times *times)
{
	int64_t first_ns = INT64_MAX;
	for (int p = 0; p < OW_PERIODS; p++) {
		int64_t length_ns = p == OW_PERIOD_INTERVAL ? 0 : ow_periods[p].length_ns;
		if (times->first_ns[p] != INT64_MAX && ow_time_later(times->first_ns[p], length_ns) <= first_ns)
			first_ns = times->first_ns[p];
	}
	return first_ns;
}

int64_t ow_stored_lane_last(const struct ow_stored_lane_times *times)
{
	int64_t last_ns = INT64_MIN;
	for (int p = 0; p < OW_PERIODS; p++) {
		if (times->first_ns[p] != INT64_MAX && times->last_ns[p] > last_ns)
			last_ns = times->last_ns[p];
	}
	return last_ns;
}

int ow_stored_lane_times(struct ow_stored *stored, struct ow_stored_lane_times **ret_times, struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	enum ow_step step = OW_STEP_DONE;
	struct ow_stored_lane_times *times = calloc(stored->lanes + 1, sizeof *times);
	char *sql = lane_times_sql(stored);
	int r = times && sql ? ow_stored_source_prepare(&stored->source, sql, &statement, err)
	                     : out_of_memory(stored, err);
	free(sql);
	for (size_t i = 0; r == 0 && i < stored->lanes; i++) {
		for (int p = 0; p < OW_PERIODS; p++)
			times[i].first_ns[p] = times[i].last_ns[p] = INT64_MAX;
	}
	while (r == 0 && (step = ow_step(statement)) == OW_STEP_ROW)
		read_times(stored, statement, times);
	if (r == 0 && step == OW_STEP_FAILED)
		r = ow_stored_source_fail(&stored->source, err);
	ow_statement_free(statement);
	if (r == 0)
		*ret_times = times;
	else
		free(times);
	return r;
}

/*
 * The end of a lane that ended earlier than others: its last minute was never added up. until: from there on intervals are
 * read anyway.
 */
static int add_end(const struct ow_stored *stored, struct ow_stored_division *d, int64_t lane,
                   const struct ow_stored_lane_times *t, int64_t until)
{
	int64_t last = t->last_ns[OW_PERIOD_INTERVAL], minute = t->last_ns[OW_PERIOD_MINUTE];
	int64_t since = minute == INT64_MAX ? INT64_MIN : ow_time_later(minute, MINUTE_NS);
	if (since < stored->filter.since_ns)
		since = stored->filter.since_ns;
	if (d->part[0].period == OW_PERIOD_INTERVAL && since < d->part[0].until_ns)
		since = d->part[0].until_ns;
	if (last == INT64_MAX || last < since)
		return 0;
	return add(d, &(struct ow_stored_part){OW_PERIOD_INTERVAL, since, until, lane});
}

static int add_ends(struct ow_stored *stored, struct ow_stored_division *d, struct ow_error *err)
{
	const struct ow_stored_part *last = &d->part[d->count - 1];
	int64_t until = last->period == OW_PERIOD_INTERVAL ? last->since_ns : last->until_ns;
	struct ow_stored_lane_times *times;
	int r = ow_stored_lane_times(stored, &times, err);
	if (r != 0)
		return r;
	for (size_t i = 0; r == 0 && i < stored->lanes; i++) {
		if (stored->lane[i].chosen)
			r = add_end(stored, d, stored->lane[i].id, &times[i], until);
	}
	free(times);
	return r < 0 ? out_of_memory(stored, err) : 0;
}

int ow_stored_divide(struct ow_stored *stored, enum ow_period least, enum ow_period most,
                     struct ow_stored_division *ret_division, struct ow_error *err)
{
	struct ow_stored_division d = {.longest = least};
	struct times t;
	int64_t first = INT64_MAX, last = INT64_MIN;
	int r = find_times(stored, least, &t, err);
	for (int p = 0; r == 0 && p < OW_PERIODS; p++) {
		first = least_of(first, t.first[p]);
		if (t.last[p] != INT64_MAX && t.last[p] >= last)
			last = ow_time_later(t.last[p], 1);
	}
	int64_t since = stored->filter.since_ns > first ? stored->filter.since_ns : first;
	int64_t until = least_of(stored->filter.until_ns, last);
	if (r == 0 && since < until && cover(&d, &t, most, since, until) < 0)
		r = out_of_memory(stored, err);
	if (r == 0 && stored->chosen > 1 && d.longest > least && least == OW_PERIOD_INTERVAL)
		r = add_ends(stored, &d, err);
	if (r < 0)
		ow_stored_division_done(&d);
	else
		*ret_division = d;
	return r;
}

void ow_stored_division_done(struct ow_stored_division *division)
{
	free(division->part);
	*division = (struct ow_stored_division){0};
}

static int is_late(void *arg)
{
	const int64_t *end_ns = arg;
	return ow_clock_steady_ns() > *end_ns;
}

int ow_stored_end_at(struct ow_stored *stored, int64_t steady_ns, struct ow_error *err)
{
	char sql[60];
	int64_t left_ms = (steady_ns - ow_clock_steady_ns()) / 1000000;
	stored->end_ns = steady_ns;
	if (!stored->source.server) {
		sqlite3_progress_handler(stored->source.file.db, 10000, is_late, &stored->end_ns);
		return 0;
	}
	snprintf(sql, sizeof sql, "SET statement_timeout = %lld", (long long)(left_ms > 1 ? left_ms : 1));
	return ow_postgres_run(stored->source.server, sql, err);
}
