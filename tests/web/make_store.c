/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a store quickly: make_store FILE [SEGMENTS [SECONDS [MINUTE_DAYS [DAYS [END]]]]]
 *
 * SEGMENTS (100) with two lanes each between points of a ring with chords; results of seconds for the last SECONDS (3600),
 * stored as a point does; minutes for MINUTE_DAYS (2) before them, hours and days for DAYS (90). END: the end of the last
 * second, seconds since 1970 (now). Hours that have minutes are their sums, and days those of their hours. The first segment
 * loses packets in the last 10 minutes, the second is slower; the third is not measured for five minutes.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/time.h"
#include "result/rollup.h"
#include "store/database.h"
#include "store/row.h"
#include "store/store.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES  64
#define VARIANTS 8
#define HOUR_NS  (3600 * OW_NS_PER_S)
#define DAY_NS   (24 * HOUR_NS)

struct lane {
	struct ow_interval_result names;
	double base_ns; /* the least delay */
	struct ow_delay_histogram delays[VARIANTS];
	double mean_ns[VARIANTS], stddev_ns[VARIANTS];
};

struct maker {
	const char *path;
	int64_t segments, end_ns, seconds_ns, minutes_ns, hours_ns; /* since when there are seconds, minutes, hours */
	struct lane *lane;
};

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* A base delay and exponential queues; the last variant has longer ones. */
static void make_delays(struct lane *lane, uint64_t seed)
{
	for (int v = 0; v < VARIANTS; v++) {
		int64_t delay[SAMPLES];
		double sum = 0, squares = 0, queue_ns = lane->base_ns * (v == VARIANTS - 1 ? 1 : 0.02 * (v + 1));
		for (int i = 0; i < SAMPLES; i++) {
			double u = (double)(ow_mix64(seed * 1000 + (uint64_t)(v * SAMPLES + i)) >> 11) * 0x1p-53;
			delay[i] = (int64_t)(lane->base_ns - queue_ns * log(1 - u));
			sum += (double)delay[i];
		}
		lane->mean_ns[v] = sum / SAMPLES;
		for (int i = 0; i < SAMPLES; i++)
			squares += ((double)delay[i] - lane->mean_ns[v]) * ((double)delay[i] - lane->mean_ns[v]);
		lane->stddev_ns[v] = sqrt(squares / SAMPLES);
		qsort(delay, SAMPLES, sizeof *delay, by_value);
		ow_delay_histogram_sample(delay, SAMPLES, SAMPLES, &lane->delays[v]);
	}
}

static void make_lanes(struct maker *m)
{
	int64_t points = m->segments > 60 ? m->segments * 3 / 5 : m->segments;
	for (int64_t i = 0; i < 2 * m->segments; i++) {
		struct lane *lane = &m->lane[i];
		struct ow_interval_result *n = &lane->names;
		int64_t segment = i / 2, a = segment % points;
		int64_t b = segment < points ? (a + 1) % points : (a + 2 + segment % (points / 2)) % points;
		char from[32], to[32];
		snprintf(from, sizeof from, "p%03lld", (long long)(i % 2 ? b : a));
		snprintf(to, sizeof to, "p%03lld", (long long)(i % 2 ? a : b));
		snprintf(n->segment, sizeof n->segment, "s%03lld", (long long)segment);
		snprintf(n->class_name, sizeof n->class_name, "all");
		snprintf(n->from, sizeof n->from, "%s", from);
		snprintf(n->to, sizeof n->to, "%s", to);
		lane->base_ns = 1e6 * (double)(2 + ow_mix64((uint64_t)segment) % 30);
		make_delays(lane, (uint64_t)i + 1);
	}
}

static struct ow_value exactly(double value)
{
	return (struct ow_value){OW_VALUE_EXACT, value, value, value, OW_NO_REASON};
}

/* A result of one interval: 64 packets, some of them lost. */
static void make_result(const struct maker *m, int64_t lane, int64_t start_ns, int64_t length_ns,
                        struct ow_interval_result *r)
{
	const struct lane *l = &m->lane[lane];
	uint64_t dice = ow_mix64((uint64_t)start_ns + (uint64_t)lane);
	int64_t left_ns = m->end_ns - start_ns;
	bool slow = lane / 2 == 1 && left_ns <= 600 * OW_NS_PER_S;
	int v = slow ? VARIANTS - 1 : (int)(dice % (VARIANTS - 1));
	ow_result_blank(start_ns / length_ns, start_ns, length_ns, r);
	ow_result_name_like(r, &l->names);
	r->final = true;
	r->exact = true;
	snprintf(r->clock_method, sizeof r->clock_method, "trusted");
	r->clock_from = r->clock_to = (struct ow_clock_state){.synchronised = true, .error_ns = 20000};
	r->clock_offset_ns = exactly(0);
	r->clock_offset_ns.low = -40000;
	r->clock_offset_ns.high = 40000;
	if (lane / 2 == 2 && left_ns > 900 * OW_NS_PER_S && left_ns <= 1200 * OW_NS_PER_S) {
		r->status = OW_RESULT_UNKNOWN;
		snprintf(r->cause, sizeof r->cause, "%s does not answer", r->to);
		return;
	}
	r->status = OW_RESULT_MEASURED;
	r->lost = lane == 0 && left_ns <= 600 * OW_NS_PER_S ? 4 + dice % 4 : dice % 997 == 0;
	r->matched = r->received = r->samples = SAMPLES;
	r->sent = r->matched + r->lost;
	r->total_sent = r->sent;
	r->total_received = r->received;
	r->coverage = 1;
	r->bytes = r->sent * 800;
	r->mean_ns = exactly(l->mean_ns[v]);
	r->stddev_ns = exactly(l->stddev_ns[v]);
	r->delays = l->delays[v];
	r->min_ns = exactly((double)r->delays.min_ns);
	r->max_ns = exactly((double)r->delays.max_ns);
	for (int q = 0; q < OW_QUANTILES; q++)
		r->quantile_ns[q] = ow_delay_histogram_quantile(&r->delays, ow_quantile_level[q], 0);
	r->loss_ratio = exactly((double)r->lost / (double)r->sent);
	snprintf(r->synopsis, sizeof r->synopsis, "exact");
}

/* -- minutes, hours, days ----------------------------------------------------------------------------------------- */

struct tables {
	struct ow_database database;
	sqlite3_stmt *insert[OW_PERIODS];
	struct ow_rollup *minute, *hour, *day;
};

static int insert(struct tables *t, enum ow_period period, int64_t lane, struct ow_rollup *rollup,
                  struct ow_interval_result *r, struct ow_error *err)
{
	sqlite3_stmt *statement = t->insert[period];
	ow_rollup_result(rollup, r);
	ow_row_bind(OW_STATEMENT_SQLITE(statement), lane + 1, r);
	int code = sqlite3_step(statement);
	sqlite3_reset(statement);
	return code == SQLITE_DONE ? 0 : ow_database_fail(&t->database, err);
}

/* An hour from its minutes, or, of long ago, from two results. */
static int make_hour(const struct maker *m, struct tables *t, int64_t lane, int64_t hour_ns, struct ow_error *err)
{
	struct ow_interval_result r, sum;
	bool has_minutes = hour_ns >= m->minutes_ns;
	int64_t step_ns = (has_minutes ? 60 : 1800) * OW_NS_PER_S;
	int e = 0;
	ow_rollup_begin(t->hour, hour_ns, HOUR_NS);
	for (int64_t at = hour_ns; e == 0 && at < hour_ns + HOUR_NS; at += step_ns) {
		ow_rollup_begin(t->minute, at, 60 * OW_NS_PER_S);
		make_result(m, lane, at, step_ns, &r);
		ow_rollup_add(t->minute, &r);
		if (has_minutes)
			e = insert(t, OW_PERIOD_MINUTE, lane, t->minute, &sum, err);
		else
			ow_rollup_result(t->minute, &sum);
		ow_rollup_add(t->hour, &sum);
	}
	if (e == 0)
		e = insert(t, OW_PERIOD_HOUR, lane, t->hour, &sum, err);
	ow_rollup_add(t->day, &sum);
	return e;
}

static int make_history(const struct maker *m, struct tables *t, int64_t lane, struct ow_error *err)
{
	struct ow_interval_result sum;
	int r = 0;
	for (int64_t day = m->hours_ns; r == 0 && day < m->seconds_ns; day += DAY_NS) {
		ow_rollup_begin(t->day, day, DAY_NS);
		for (int64_t hour = day; r == 0 && hour < day + DAY_NS && hour < m->seconds_ns; hour += HOUR_NS)
			r = make_hour(m, t, lane, hour, err);
		/* The store adds the last day up itself. */
		if (r == 0 && day + DAY_NS <= m->seconds_ns)
			r = insert(t, OW_PERIOD_DAY, lane, t->day, &sum, err);
	}
	return r;
}

static int prepare(struct tables *t, struct ow_error *err)
{
	int r = 0;
	for (int p = OW_PERIOD_MINUTE; r == 0 && p < OW_PERIODS; p++) {
		char *sql = NULL;
		size_t size;
		FILE *out = open_memstream(&sql, &size);
		ow_row_insert(out, ow_periods[p].table);
		fclose(out);
		r = ow_database_prepare(&t->database, sql, &t->insert[p], err);
		free(sql);
	}
	if (r == 0 &&
	    (ow_rollup_create(&t->minute) < 0 || ow_rollup_create(&t->hour) < 0 || ow_rollup_create(&t->day) < 0))
		r = ow_error_set(err, ENOMEM, "not enough memory");
	return r;
}

static int make_tables(const struct maker *m, struct ow_error *err)
{
	struct tables t = {0};
	char sql[400];
	int r = ow_database_open(m->path, &t.database, err);
	if (r == 0)
		r = ow_database_run(&t.database, "PRAGMA synchronous = OFF; BEGIN", err);
	if (r == 0)
		r = prepare(&t, err);
	for (int64_t i = 0; r == 0 && i < 2 * m->segments; i++) {
		const struct ow_interval_result *n = &m->lane[i].names;
		snprintf(sql, sizeof sql, "INSERT INTO lane VALUES (%lld, '%s', '%s', '%s', '%s')", (long long)i + 1,
		         n->segment, n->class_name, n->from, n->to);
		r = ow_database_run(&t.database, sql, err);
		if (r == 0)
			r = make_history(m, &t, i, err);
	}
	if (r == 0)
		r = ow_database_run(&t.database, "COMMIT", err);
	for (int p = 0; p < OW_PERIODS; p++)
		sqlite3_finalize(t.insert[p]);
	ow_rollup_free(t.minute);
	ow_rollup_free(t.hour);
	ow_rollup_free(t.day);
	ow_database_close(&t.database);
	return r;
}

/* -- seconds ------------------------------------------------------------------------------------------------------ */

static int make_seconds(const struct maker *m, struct ow_error *err)
{
	struct ow_store *store;
	struct ow_interval_result result;
	int r = ow_store_open(m->path, &store, err);
	if (r < 0)
		return r;
	ow_store_since(store, m->seconds_ns);
	for (int64_t at = m->seconds_ns; r == 0 && at < m->end_ns; at += OW_NS_PER_S) {
		for (int64_t lane = 0; r == 0 && lane < 2 * m->segments; lane++) {
			make_result(m, lane, at, OW_NS_PER_S, &result);
			r = ow_store_add(store, &result, err);
		}
	}
	if (r == 0)
		r = ow_store_commit(store, err);
	ow_store_close(store);
	return r;
}

static int64_t argument(int argc, char **argv, int at, int64_t otherwise)
{
	return argc > at ? strtoll(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	struct ow_error err = {""};
	if (argc < 2) {
		fputs("usage: make_store FILE [SEGMENTS [SECONDS [MINUTE_DAYS [DAYS [END]]]]]\n", stderr);
		return 2;
	}
	struct maker m = {.path = argv[1], .segments = argument(argc, argv, 2, 100)};
	m.end_ns = argument(argc, argv, 6, ow_clock_real_ns() / OW_NS_PER_S) * OW_NS_PER_S;
	/* Before the hour in which seconds begin there are minutes, and hours before them. */
	m.seconds_ns = (m.end_ns - argument(argc, argv, 3, 3600) * OW_NS_PER_S) / HOUR_NS * HOUR_NS;
	m.minutes_ns = m.seconds_ns - argument(argc, argv, 4, 2) * DAY_NS;
	m.hours_ns = (m.seconds_ns - argument(argc, argv, 5, 90) * DAY_NS) / DAY_NS * DAY_NS;
	m.lane = calloc((size_t)(2 * m.segments), sizeof *m.lane);
	if (!m.lane || m.segments < 1 || m.segments > 999)
		return 2;
	make_lanes(&m);
	int64_t start = ow_clock_steady_ns();
	int r = make_tables(&m, &err);
	if (r == 0)
		r = make_seconds(&m, &err);
	if (r < 0)
		fprintf(stderr, "make_store: %s\n", err.text);
	else
		printf("made in %.1f s\n", (double)(ow_clock_steady_ns() - start) / 1e9);
	free(m.lane);
	return r < 0;
}
