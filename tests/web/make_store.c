/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a store: make_store FILE [NAME=NUMBER]...
 *
 *   segments=100     with two lanes each, between points of a ring with chords
 *   seconds=3600     results of seconds, stored as a point does
 *   minutes=2880     sums of minutes before them
 *   hours=2160       sums of hours before these, and of the days that they are
 *   days=0           sums of days before these
 *   end=NOW          the end of the last second, in seconds since 1970
 *
 * Hours that have minutes are their sums, and days those of their hours. The first
 * segment loses packets in the last 10 minutes, the second is slower; the third is not measured for five minutes.
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

#define SAMPLES   64
#define VARIANTS  8
#define MINUTE_NS (60 * OW_NS_PER_S)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)

struct lane {
	struct ow_interval_result names;
	double base_ns; /* the least delay */
	struct ow_delay_histogram delays[VARIANTS];
	double mean_ns[VARIANTS], stddev_ns[VARIANTS];
};

struct maker {
	const char *path;
	int64_t segments, end_ns;
	int64_t seconds_ns, minutes_ns, hours_ns, days_ns; /* since when there are seconds, minutes, hours, days */
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

/* Of long ago: from two results. */
static void make_half(const struct maker *m, struct ow_rollup *rollup, int64_t lane, int64_t at_ns, int64_t length_ns)
{
	struct ow_interval_result r;
	ow_rollup_begin(rollup, at_ns, length_ns);
	for (int half = 0; half < 2; half++) {
		make_result(m, lane, at_ns + half * length_ns / 2, length_ns / 2, &r);
		ow_rollup_add(rollup, &r);
	}
}

/* The minutes of an hour, up to the first second. */
static int make_minutes(const struct maker *m, struct tables *t, int64_t lane, int64_t hour_ns, struct ow_error *err)
{
	struct ow_interval_result r, sum;
	int e = 0;
	ow_rollup_begin(t->hour, hour_ns, HOUR_NS);
	for (int64_t at = hour_ns; e == 0 && at < hour_ns + HOUR_NS && at < m->seconds_ns; at += MINUTE_NS) {
		ow_rollup_begin(t->minute, at, MINUTE_NS);
		make_result(m, lane, at, MINUTE_NS, &r);
		ow_rollup_add(t->minute, &r);
		e = insert(t, OW_PERIOD_MINUTE, lane, t->minute, &sum, err);
		ow_rollup_add(t->hour, &sum);
	}
	return e;
}

/* The store itself adds up hours and days in which there are seconds. */
static int make_hour(const struct maker *m, struct tables *t, int64_t lane, int64_t hour_ns, struct ow_error *err)
{
	struct ow_interval_result sum;
	int e = 0;
	if (hour_ns < m->minutes_ns)
		make_half(m, t->hour, lane, hour_ns, HOUR_NS);
	else
		e = make_minutes(m, t, lane, hour_ns, err);
	if (e == 0 && hour_ns + HOUR_NS <= m->seconds_ns) {
		e = insert(t, OW_PERIOD_HOUR, lane, t->hour, &sum, err);
		ow_rollup_add(t->day, &sum);
	}
	return e;
}

static int make_day(const struct maker *m, struct tables *t, int64_t lane, int64_t day_ns, struct ow_error *err)
{
	struct ow_interval_result sum;
	int r = 0;
	if (day_ns < m->hours_ns)
		make_half(m, t->day, lane, day_ns, DAY_NS);
	else
		ow_rollup_begin(t->day, day_ns, DAY_NS);
	for (int64_t hour = day_ns; r == 0 && hour < day_ns + DAY_NS && hour < m->seconds_ns; hour += HOUR_NS) {
		if (hour >= m->hours_ns)
			r = make_hour(m, t, lane, hour, err);
	}
	return r < 0 || day_ns < m->days_ns || day_ns + DAY_NS > m->seconds_ns
	               ? r
	               : insert(t, OW_PERIOD_DAY, lane, t->day, &sum, err);
}

static int make_history(const struct maker *m, struct tables *t, int64_t lane, struct ow_error *err)
{
	int r = 0;
	for (int64_t day = m->days_ns / DAY_NS * DAY_NS; r == 0 && day < m->seconds_ns; day += DAY_NS)
		r = make_day(m, t, lane, day, err);
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

/* -- arguments ---------------------------------------------------------------------------------------------------- */

enum { SEGMENTS, SECONDS, MINUTES, HOURS, DAYS, END, NUMBERS };
static const char *const number_name[NUMBERS] = {"segments", "seconds", "minutes", "hours", "days", "end"};

/* NAME=NUMBER */
static bool take(const char *word, int64_t number[NUMBERS])
{
	const char *value = strchr(word, '=');
	for (int i = 0; value && i < NUMBERS; i++) {
		size_t length = strlen(number_name[i]);
		char *end;
		if (length != (size_t)(value - word) || strncmp(word, number_name[i], length) != 0)
			continue;
		errno = 0;
		number[i] = strtoll(value + 1, &end, 10);
		return end > value + 1 && !*end && !errno && number[i] >= 0 && number[i] < INT64_C(10000000000);
	}
	return false;
}

static bool take_all(int argc, char **argv, struct maker *m)
{
	int64_t number[NUMBERS] = {100, 3600, 2880, 2160, 0, ow_clock_real_ns() / OW_NS_PER_S};
	if (argc < 2 || argv[1][0] == '-')
		return false;
	for (int i = 2; i < argc; i++) {
		if (!take(argv[i], number))
			return false;
	}
	m->path = argv[1];
	m->segments = number[SEGMENTS];
	m->end_ns = number[END] * OW_NS_PER_S;
	/* Minutes begin with an hour, and hours with a day. */
	int64_t whole = !number[MINUTES] && number[HOURS] ? HOUR_NS : MINUTE_NS;
	m->seconds_ns = (m->end_ns - number[SECONDS] * OW_NS_PER_S) / whole * whole;
	whole = number[MINUTES] ? HOUR_NS : MINUTE_NS;
	m->minutes_ns = (m->seconds_ns - number[MINUTES] * MINUTE_NS) / whole * whole;
	whole = number[HOURS] ? DAY_NS : MINUTE_NS;
	m->hours_ns = (m->minutes_ns - number[HOURS] * HOUR_NS) / whole * whole;
	m->days_ns = m->hours_ns - number[DAYS] * DAY_NS;
	return m->segments >= 1 && m->segments <= 999 && (number[HOURS] || !number[DAYS]);
}

int main(int argc, char **argv)
{
	struct ow_error err = {""};
	struct maker m;
	if (!take_all(argc, argv, &m)) {
		fputs("usage: make_store FILE [segments=100] [seconds=3600] [minutes=2880] [hours=2160] [days=0] "
		      "[end=NOW]\n",
		      stderr);
		return 2;
	}
	m.lane = calloc((size_t)(2 * m.segments), sizeof *m.lane);
	if (!m.lane)
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
