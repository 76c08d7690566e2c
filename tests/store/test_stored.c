/* SPDX-License-Identifier: Apache-2.0 */
/* What comes out of a store is what went in; sums against sums of all packets; plans of the queries. */
#include "../result/interval_sample.h"
#include "base/random.h"
#include "result/result_json.h"
#include "store/stored.h"
#include "store/stored_seconds.h"
#include "store/stored_sum.h"
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "store_file.h"

static struct ow_stored *look(void)
{
	struct ow_stored *stored = NULL;
	struct ow_error err = {""};
	if (ow_stored_open(store_path, &stored, &err) < 0)
		fail_msg("%s", err.text);
	return stored;
}

static const struct ow_stored_filter all = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};

static void choose(struct ow_stored *stored, const struct ow_stored_filter *filter)
{
	struct ow_error err = {""};
	if (ow_stored_choose(stored, filter, &err) < 0)
		fail_msg("%s", err.text);
}

/* -- what went in ------------------------------------------------------------------------------------------------- */

static char *json_of(const struct ow_interval_result *r)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	ow_result_json(out, r);
	fclose(out);
	return text;
}

static int compare_json(void *arg, const struct ow_interval_result *r)
{
	const struct ow_interval_result **want = arg;
	char *a = json_of((*want)++), *b = json_of(r);
	assert_string_equal(b, a);
	free(a);
	free(b);
	return 0;
}

static void round_trip(void **state)
{
	(void)state;
	struct ow_interval_result r[4] = {sample_live(1), sample_provisional(2), sample_unknown(3), sample_live(4)};
	r[3].exact = true;
	r[3].reordered = 17;
	r[3].min_ns = sample_value(OW_VALUE_EXACT, -12345.5, 0);
	r[3].mean_ns = sample_none(OW_REASON_FEW_DELAYS);
	r[3].status = OW_RESULT_PARTIAL;
	r[3].sample_shift = 3;
	r[3].clock_to = (struct ow_clock_state){true, 0};
	snprintf(r[3].cause, sizeof r[3].cause, "ring of paris lost 17 frames");
	/* The store has no column for these. */
	r[2].clock_from = r[2].clock_to = r[0].clock_to;
	struct ow_store *store = store_open();
	for (int i = 0; i < 4; i++)
		store_add(store, &r[i]);
	ow_store_close(store);
	struct ow_stored *stored = look();
	const struct ow_interval_result *want = r;
	struct ow_error err;
	assert_int_equal(ow_stored_list(stored, 0, compare_json, &want, &err), 0);
	assert_ptr_equal(want, r + 4);
	assert_false(ow_stored_caveat(stored, &err));
	ow_stored_close(stored);
}

/* -- choosing ----------------------------------------------------------------------------------------------------- */

struct seen {
	uint64_t count;
	int64_t first, last, key;
	uint64_t stop_after;
};

/* In order, each once. */
static int see(void *arg, const struct ow_interval_result *r)
{
	struct seen *seen = arg;
	int lane = (*r->from == 'p') * 2 + (*r->class_name == 'v');
	int64_t key = r->interval * 4 + lane;
	if (seen->count++)
		assert_true(key > seen->key);
	else
		seen->first = r->interval;
	seen->last = r->interval;
	seen->key = key;
	return seen->stop_after == seen->count ? 7 : 0;
}

static struct seen list(struct ow_stored *stored, const struct ow_stored_filter *filter, uint64_t limit)
{
	struct seen seen = {0};
	choose(stored, filter);
	assert_int_equal(ow_stored_list(stored, limit, see, &seen, NULL), 0);
	return seen;
}

static struct ow_interval_result of_lane(int64_t interval, int lane)
{
	struct ow_interval_result r = interval % 10 == 3   ? sample_unknown(interval)
	                              : interval % 10 == 7 ? sample_provisional(interval)
	                                                   : sample_live(interval);
	snprintf(r.class_name, sizeof r.class_name, "%s", lane & 1 ? "voice" : "all");
	snprintf(r.from, sizeof r.from, "%s", lane & 2 ? "paris" : "london");
	snprintf(r.to, sizeof r.to, "%s", lane & 2 ? "london" : "paris");
	return r;
}

static void fill(int64_t intervals)
{
	struct ow_store *store = store_open();
	for (int64_t i = 0; i < intervals; i++) {
		for (int lane = 0; lane < 4; lane++) {
			struct ow_interval_result r = of_lane(i, lane);
			store_add(store, &r);
		}
	}
	ow_store_close(store);
}

static void choosing(void **state)
{
	(void)state;
	fill(1000);
	struct ow_stored *stored = look();
	struct ow_stored_filter f = all;
	assert_int_equal(list(stored, &f, 0).count, 4000);
	f.class_name = "voice";
	assert_int_equal(list(stored, &f, 0).count, 2000);
	f.from = "paris";
	assert_int_equal(list(stored, &f, 0).count, 1000);
	f.since_ns = sample_live(100).start_ns;
	f.until_ns = sample_live(900).start_ns;
	struct seen seen = list(stored, &f, 0);
	assert_true(seen.count == 800 && seen.first == 100 && seen.last == 899);
	f.final = true;
	assert_int_equal(list(stored, &f, 0).count, 720);
	f.statuses = 1u << OW_RESULT_UNKNOWN;
	assert_int_equal(list(stored, &f, 0).count, 80);
	f.statuses |= 1u << OW_RESULT_MEASURED;
	assert_int_equal(list(stored, &f, 0).count, 720);
	/* The newest, also over the ends of portions and of intervals. */
	static const uint64_t limits[] = {1, 2, 5, 255, 256, 257, 3999, 4000, 4001};
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		seen = list(stored, &all, limits[i]);
		assert_int_equal(seen.count, limits[i] < 4000 ? limits[i] : 4000);
		assert_int_equal(seen.last, 999);
	}
	seen = (struct seen){.stop_after = 300};
	assert_int_equal(ow_stored_list(stored, 0, see, &seen, NULL), 7);
	assert_int_equal(seen.count, 300);
	int64_t first, last;
	assert_int_equal(ow_stored_span(stored, &first, &last, NULL), 0);
	assert_true(first == sample_live(0).start_ns && last == sample_live(999).start_ns);
	ow_stored_close(stored);
}

static void refused(struct ow_stored *stored, const struct ow_stored_filter *f, const char *say)
{
	struct ow_error err = {""};
	assert_int_equal(ow_stored_choose(stored, f, &err), -ENOENT);
	if (!strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
}

static void names(void **state)
{
	(void)state;
	fill(1);
	struct ow_stored *stored = look();
	struct ow_stored_filter f = all;
	f.segment = "london-pariss";
	refused(stored, &f, "no segment 'london-pariss', did you mean 'london-paris'?");
	f.segment = "x";
	refused(stored, &f, "no segment 'x', there is: london-paris");
	f = all;
	f.class_name = "video-conference";
	refused(stored, &f, "there is: all, voice");
	f = all;
	f.from = f.to = "paris";
	refused(stored, &f, "no results of these names together");
	ow_stored_close(stored);
}

static int note_loss(void *arg, const struct ow_interval_result *r)
{
	double *last = arg;
	assert_true(r->loss_ratio.value <= *last);
	*last = r->loss_ratio.value;
	return 0;
}

static void worst(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	for (int64_t i = 0; i < 500; i++) {
		struct ow_interval_result r = sample_live(i);
		r.loss_ratio.value = r.loss_ratio.low = r.loss_ratio.high = (double)(i * 7919 % 500) / 500;
		r.quantile_ns[OW_Q99].value = (double)i;
		store_add(store, &r);
	}
	ow_store_close(store);
	struct ow_stored *stored = look();
	double last = 1;
	assert_int_equal(ow_stored_worst(stored, OW_STORED_LOSS, 10, note_loss, &last, NULL), 0);
	assert_float_equal(last, 490.0 / 500, 1e-12);
	struct seen seen = {.stop_after = 1};
	assert_int_equal(ow_stored_worst(stored, OW_STORED_P99, 10, see, &seen, NULL), 7);
	assert_int_equal(seen.first, 499);
	ow_stored_close(stored);
}

/* -- sums --------------------------------------------------------------------------------------------------------- */

/* Packets one by one, cut into intervals, against the sum of the intervals. */
static void pooled(void **state)
{
	(void)state;
	enum { INTERVALS = 200 };
	struct ow_random random;
	const uint64_t seed = 4711;
	print_message("seed %llu\n", (unsigned long long)seed);
	ow_random_seed(&random, seed);
	struct ow_store *store = store_open();
	double n = 0, sum = 0, squares = 0, low = INFINITY, high = -INFINITY;
	uint64_t sent = 0, lost = 0;
	for (int64_t i = 0; i < INTERVALS; i++) {
		struct ow_interval_result r = sample_live(i);
		uint64_t packets = 1 + ow_random_u64(&random) % 300;
		double s = 0, q = 0, level = 1e6 * (double)(i % 7);
		for (uint64_t k = 0; k < packets; k++) {
			double delay = level + (double)(ow_random_u64(&random) % 1000000);
			s += delay;
			q += delay * delay;
		}
		double mean = s / (double)packets;
		r.matched = packets;
		r.late = r.late_received = r.ambiguous = r.extra = r.duplicated = 0;
		r.lost = (uint64_t)i % 3;
		r.sent = r.matched + r.lost;
		r.received = r.matched;
		r.mean_ns = sample_value(OW_VALUE_EXACT, mean, 0);
		r.stddev_ns = sample_value(OW_VALUE_EXACT, sqrt(q / (double)packets - mean * mean), 0);
		r.quantile_ns[OW_Q99] = sample_value(OW_VALUE_EXACT, level + (double)i, 0);
		/* Neither clock is synchronised, but their difference is known. */
		r.clock_from = r.clock_to = (struct ow_clock_state){false, OW_CLOCK_UNKNOWN};
		snprintf(r.clock_method, sizeof r.clock_method, "relative");
		r.clock_offset_ns = (struct ow_value){OW_VALUE_ESTIMATED, 5000, 4000 - i, 5500, OW_NO_REASON};
		store_add(store, &r);
		n += (double)packets;
		sum += s;
		squares += q;
		sent += r.sent;
		lost += r.lost;
		low = fmin(low, level + (double)i);
		high = fmax(high, level + (double)i);
	}
	ow_store_close(store);
	struct ow_stored *stored = look();
	struct ow_stored_sums sums;
	struct ow_stored_sum_options o = {.group = OW_STORED_LANE, .p99_limit_ns = 6000000};
	assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
	assert_int_equal(sums.count, 1);
	const struct ow_stored_sum *total = &sums.sum[0];
	double mean = sum / n, stddev = sqrt(squares / n - mean * mean);
	/* Rounding of sums of squares: about 1e-16 of them, some hundred times. */
	assert_true(fabs(ow_stored_sum_mean(total) - mean) < 1e-9 * mean);
	assert_true(fabs(ow_stored_sum_stddev(total) - stddev) < 1e-9 * stddev);
	struct ow_interval_result counts;
	ow_stored_sum_counts(total, &counts);
	assert_true(counts.sent == sent && counts.lost == lost);
	assert_true(fabs(ow_stored_sum_loss(total) - (double)lost / (double)sent) < 1e-15);
	assert_true(total->p99_ns.low == low && total->p99_ns.high == high && total->p99_ns.count == INTERVALS);
	unsigned above = 0;
	for (int i = 0; i < INTERVALS; i++)
		above += 1000000 * (i % 7) + i > 6000000;
	assert_int_equal(total->above_p99, above);
	assert_int_equal(total->clock_unknown, 0);
	assert_int_equal(total->clock_error_ns, 1000 + INTERVALS - 1);
	assert_true(total->missing == 0 && ow_stored_sum_availability(total) == 1);
	ow_stored_sums_done(&sums);
	ow_stored_close(stored);
}

/* Results of versions before 9 have delays of clocks whose difference was not known: they are in no sum. */
static void without_clocks(void **state)
{
	(void)state;
	enum { INTERVALS = 240 };
	static const enum ow_period periods[] = {OW_PERIOD_INTERVAL, OW_PERIOD_MINUTE};
	struct ow_store *store = store_open();
	for (int64_t i = 0; i < INTERVALS; i++) {
		struct ow_interval_result r = sample_live(i);
		if (i % 60 == 0) {
			snprintf(r.clock_method, sizeof r.clock_method, "none");
			r.mean_ns = r.quantile_ns[OW_Q99] = sample_value(OW_VALUE_EXACT, -5e8, 0);
		}
		store_add(store, &r);
	}
	ow_store_close(store);
	struct ow_stored *stored = look();
	for (int p = 0; p < 2; p++) {
		struct ow_stored_filter filter = {.since_ns = INT64_MIN, .until_ns = INT64_MAX, .period = periods[p]};
		struct ow_stored_sums sums;
		struct ow_stored_sum_options o = {.group = OW_STORED_LANE};
		struct ow_interval_result counts;
		choose(stored, &filter);
		assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
		assert_int_equal(sums.count, 1);
		const struct ow_stored_sum *sum = &sums.sum[0];
		uint64_t clockless = (sum->intervals + 59) / 60;
		ow_stored_sum_counts(sum, &counts);
		assert_int_equal(counts.sent, 100000 * sum->intervals);
		assert_int_equal(counts.without_clock, clockless * (99700 + 40 - 12));
		assert_int_equal(sum->samples, (sum->intervals - clockless) * (99700 + 40 - 12));
		assert_true(fabs(ow_stored_sum_mean(sum) - 50123.5) < 1e-6);
		assert_true(sum->mean.low > 0 && (p || sum->p99_ns.low > 0));
		ow_stored_sums_done(&sums);
	}
	ow_stored_close(stored);
}

/* A database of a fleet has minutes, and intervals of some of them. */
static void lacking(void **state)
{
	(void)state;
	enum { INTERVALS = 600 };
	struct ow_stored_lack lack;
	struct ow_error err;
	uint64_t rows = 0;
	struct ow_store *store = store_open();
	for (int64_t i = 0; i < INTERVALS; i++) {
		struct ow_interval_result r = sample_live(i);
		store_add(store, &r);
	}
	ow_store_close(store);
	int64_t first = sample_live(0).start_ns, minute = INT64_C(60000000000), since = first / minute * minute;
	int64_t newest = (first + (INTERVALS - 1) * INT64_C(1000000000)) / minute * minute;
	struct ow_stored *stored = look();
	size_t lanes;
	const struct ow_stored_lane *lane = ow_stored_lanes(stored, &lanes);
	assert_int_equal(ow_stored_lack(stored, lane, first, newest, &lack, &err), 0);
	assert_int_equal(ow_stored_count(stored, lane, first, newest + minute, &rows, &err), 0);
	assert_int_equal(rows, INTERVALS);
	/* The last minute is not added up. */
	assert_int_equal(ow_stored_lack(stored, lane, first, newest + 5, &lack, &err), 1);
	assert_true(lack.since_ns == newest && lack.until_ns == newest + 5 && !lack.certain);
	ow_stored_close(stored);
	char sql[160];
	sqlite3 *db;
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	snprintf(sql, sizeof sql, "DELETE FROM result WHERE start_ns >= %jd AND start_ns < %jd",
	         (intmax_t)since + 3 * minute + 7, (intmax_t)since + 4 * minute);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	stored = look();
	lane = ow_stored_lanes(stored, &lanes);
	assert_int_equal(ow_stored_lack(stored, lane, first, newest, &lack, &err), 1);
	assert_true(lack.since_ns == since + 3 * minute && lack.until_ns == since + 4 * minute && lack.certain);
	assert_int_equal(ow_stored_lack(stored, lane, since + 4 * minute, newest, &lack, &err), 0);
	ow_stored_close(stored);
}

/* Whatever the groups: every interval is in one of them, and counts balance. */
static void conserved(void **state)
{
	(void)state;
	fill(8000);
	struct ow_stored *stored = look();
	static const size_t groups[] = {[OW_STORED_LANE] = 4,
	                                [OW_STORED_SEGMENT] = 1,
	                                [OW_STORED_HOUR] = 12,
	                                [OW_STORED_DAY] = 8,
	                                [OW_STORED_BIN] = 4 * 80};
	for (int group = OW_STORED_LANE; group <= OW_STORED_BIN; group++) {
		struct ow_stored_sum_options o = {.group = (enum ow_stored_group)group,
		                                  .bin_ns = 100 * INT64_C(1000000000)};
		struct ow_stored_sums sums;
		assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
		struct ow_stored_sum all_of = {0};
		uint64_t all_sent = 0;
		for (size_t i = 0; i < sums.count; i++) {
			const struct ow_stored_sum *s = &sums.sum[i];
			assert_int_equal(s->intervals, s->measured + s->partial + s->unknown);
			struct ow_interval_result c;
			ow_stored_sum_counts(s, &c);
			assert_int_equal(c.sent, c.matched + c.late + c.lost + c.pending);
			assert_int_equal(c.received, c.matched + c.late_received + c.extra);
			all_of.intervals += s->intervals;
			all_of.unknown += s->unknown;
			all_of.provisional += s->provisional;
			all_sent += c.sent;
			all_of.missing += s->missing;
		}
		/* 22:13:20 UTC and 8000 s more: three hours, two days, 80 bins. */
		assert_int_equal(sums.count, groups[group]);
		assert_int_equal(all_of.intervals, 32000);
		assert_int_equal(all_of.intervals, sums.intervals);
		assert_int_equal(all_of.unknown, 3200);
		assert_int_equal(all_of.provisional, 3200);
		assert_int_equal(all_of.missing, 0);
		assert_int_equal(all_sent, UINT64_C(28800) * 100000);
		assert_int_equal(sums.causes, 1);
		assert_true(sums.cause[0].intervals == 3200 && sums.cause[0].status == OW_RESULT_UNKNOWN);
		assert_string_equal(sums.cause[0].text, "paris does not answer");
		ow_stored_sums_done(&sums);
	}
	ow_stored_close(stored);
}

/* Causes that differ in numbers are one; those that name other interfaces are not. */
/* A packet to several peers is in the lane to one of them and in that to all: in the sum of the segment it counts once. */
static void several_peers(void **state)
{
	(void)state;
	static const char *const to[] = {"b1", "b2", "b1+b2"};
	struct ow_store *store = store_open();
	for (int64_t i = 0; i < 30; i++) {
		struct ow_interval_result r = sample_live(i);
		bool all_peers = i % 3 == 2;
		r.start_ns -= i % 3 * r.length_ns;
		snprintf(r.to, sizeof r.to, "%s", to[i % 3]);
		r.lost = all_peers ? 10 : 0;
		r.late = r.pending = r.late_received = r.extra = r.duplicated = r.ambiguous = r.lost_whole_flows = 0;
		r.matched = r.received = all_peers ? 90 : 45;
		r.sent = r.matched + r.lost;
		r.loss_ratio = all_peers ? ow_value_exact(.1) : ow_value_none(OW_REASON_OTHER_PEERS);
		store_add(store, &r);
	}
	ow_store_close(store);
	struct ow_stored *stored = look();
	for (int group = OW_STORED_LANE; group <= OW_STORED_SEGMENT; group++) {
		struct ow_stored_sum_options o = {.group = (enum ow_stored_group)group};
		struct ow_stored_sums sums;
		assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
		assert_int_equal(sums.count, group == OW_STORED_LANE ? 3 : 1);
		for (size_t i = 0; i < sums.count; i++) {
			struct ow_interval_result c;
			ow_stored_sum_counts(&sums.sum[i], &c);
			bool part = sums.count > 1 && i < 2;
			assert_int_equal(c.sent, part ? 450 : 1000);
			assert_int_equal(isnan(ow_stored_sum_loss(&sums.sum[i])), part);
			assert_true(part || fabs(ow_stored_sum_loss(&sums.sum[i]) - .1) < 1e-9);
		}
		ow_stored_sums_done(&sums);
	}
	ow_stored_close(stored);
}

static void causes_are_grouped(void **state)
{
	(void)state;
	static const char *const causes[] = {"paris: eth0 was removed",   "paris: eth1 was removed",
	                                     "clock stepped by +1.5 s",   "clock stepped by +20.25 s",
	                                     "ring of h2 lost 17 frames", "ring of h2 lost 3 frames"};
	static const char *const want[] = {"paris: eth0 was removed", "paris: eth1 was removed",
	                                   "clock stepped by +N.N s", "ring of h2 lost N frames"};
	struct ow_store *store = store_open();
	for (int i = 0; i < 6; i++) {
		struct ow_interval_result r = sample_unknown(i);
		snprintf(r.cause, sizeof r.cause, "%s", causes[i]);
		store_add(store, &r);
	}
	ow_store_close(store);
	struct ow_stored *stored = look();
	struct ow_stored_sums sums;
	struct ow_stored_sum_options o = {.group = OW_STORED_LANE};
	assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
	assert_int_equal(sums.causes, 4);
	for (size_t i = 0; i < 4; i++) {
		size_t found = 0;
		while (found < sums.causes && strcmp(sums.cause[found].text, want[i]) != 0)
			found++;
		assert_true(found < sums.causes);
	}
	ow_stored_sums_done(&sums);
	ow_stored_close(stored);
}

/* Intervals that nobody stored count as not measured, in the hour that they were of. */
static void gaps(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	for (int64_t i = 0; i < 100; i++) {
		struct ow_interval_result r = sample_live(i < 50 ? i : i + 25);
		store_add(store, &r);
	}
	/* And one two hours later. */
	struct ow_interval_result r = sample_live(7325);
	store_add(store, &r);
	ow_store_close(store);
	/* The store has filled the gaps; older versions did not, and very long ones are not filled. */
	sqlite3 *db;
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "DELETE FROM result WHERE status = 'unknown'", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_changes(db), 25 + 7200);
	sqlite3_close(db);
	struct ow_stored *stored = look();
	struct ow_stored_sums sums;
	struct ow_stored_sum_options o = {.group = OW_STORED_LANE};
	assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
	assert_int_equal(sums.sum[0].missing, 25 + 7200);
	assert_float_equal(ow_stored_sum_availability(&sums.sum[0]), 101.0 / 7326, 1e-12);
	ow_stored_sums_done(&sums);
	o.group = OW_STORED_HOUR;
	assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
	assert_int_equal(sums.count, 2);
	/* From 22:13:20.25 to 22:15:25.25, then to the end of the hour; from 00:00 to 00:15:25.25. */
	assert_int_equal(sums.sum[0].missing, 25 + 2674);
	assert_int_equal(sums.sum[1].missing, 925);
	ow_stored_sums_done(&sums);
	/* What the filter left out is not missing. */
	struct ow_stored_filter f = all;
	f.statuses = 1u << OW_RESULT_MEASURED;
	choose(stored, &f);
	o.group = OW_STORED_LANE;
	assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
	assert_int_equal(sums.sum[0].missing, 0);
	ow_stored_sums_done(&sums);
	ow_stored_close(stored);
}

/* Intervals of other lengths than the bins: each bin says what time its intervals cover, without gap or overlap. */
static void lengths(void **state)
{
	(void)state;
	static const int64_t seconds[] = {1, 1, 10, 10, 1, 5, 1, 1};
	int64_t start = 0;
	struct ow_store *store = store_open();
	for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
		struct ow_interval_result r = sample_live((int64_t)i);
		start = i ? start : r.start_ns;
		r.start_ns = start;
		r.length_ns = seconds[i] * INT64_C(1000000000);
		start += r.length_ns;
		store_add(store, &r);
	}
	ow_store_close(store);
	struct ow_stored *stored = look();
	for (int64_t bin = 1; bin <= 4; bin += 3) {
		struct ow_stored_sum_options o = {.group = OW_STORED_BIN, .bin_ns = bin * INT64_C(1000000000)};
		struct ow_stored_sums sums;
		uint64_t intervals = 0;
		assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
		for (size_t i = 0; i < sums.count; i++) {
			assert_true(sums.sum[i].first_ns < sums.sum[i].last_ns);
			assert_true(i == 0 || sums.sum[i].first_ns == sums.sum[i - 1].last_ns);
			intervals += sums.sum[i].intervals;
		}
		assert_int_equal(sums.sum[sums.count - 1].last_ns, start);
		assert_int_equal(intervals, sizeof seconds / sizeof *seconds);
		ow_stored_sums_done(&sums);
	}
	ow_stored_close(stored);
}

/* A day of 25 hours, and a zone that is half an hour off. */
static void time_zones(void **state)
{
	(void)state;
	const int64_t midnight = INT64_C(1792879200); /* 2026-10-25 00:00 in Berlin, summer time */
	struct ow_store *store = store_open();
	for (int64_t i = 0; i < 3 * 24; i++) {
		struct ow_interval_result r = sample_live(i);
		r.start_ns = (midnight + (i - 24) * 3600 + 1) * 1000000000;
		r.length_ns = INT64_C(3600) * 1000000000;
		store_add(store, &r);
	}
	ow_store_close(store);
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	struct ow_stored *stored = look();
	struct ow_stored_sums sums;
	struct ow_stored_sum_options o = {.group = OW_STORED_DAY};
	assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
	assert_int_equal(sums.count, 3);
	assert_int_equal(sums.sum[0].intervals, 24);
	assert_int_equal(sums.sum[1].intervals, 25);
	assert_int_equal(sums.sum[1].start_ns, midnight * 1000000000);
	ow_stored_sums_done(&sums);
	setenv("TZ", "Asia/Kolkata", 1);
	tzset();
	o.group = OW_STORED_HOUR;
	assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
	assert_int_equal(sums.count, 72);
	assert_int_equal(sums.sum[0].start_ns, (midnight - 24 * 3600 - 1800) * INT64_C(1000000000));
	ow_stored_sums_done(&sums);
	setenv("TZ", "UTC", 1);
	tzset();
	ow_stored_close(stored);
}

/* -- plans -------------------------------------------------------------------------------------------------------- */

static void plan_of(struct ow_stored *stored, const struct ow_stored_filter *filter, int which, const char *index)
{
	sqlite3 *db;
	sqlite3_stmt *statement;
	char *query, *sql, plan[1000] = "";
	choose(stored, filter);
	query = which == 3 ? ow_stored_sum_sql(stored) : ow_stored_sql(stored, which);
	assert_true(asprintf(&sql, "EXPLAIN QUERY PLAN %s", query) > 0);
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		size_t used = strlen(plan);
		snprintf(plan + used, sizeof plan - used, "%s\n", (const char *)sqlite3_column_text(statement, 3));
	}
	sqlite3_finalize(statement);
	sqlite3_close(db);
	/* A range of the index, no pass over the table; sorting is for the worst alone. */
	if (!strstr(plan, index) || !strstr(plan, "SEARCH") || strstr(plan, "SCAN") ||
	    (which != 1 && strstr(plan, "TEMP B-TREE")))
		fail_msg("%s: %s", query, plan);
	free(query);
	free(sql);
}

static void plans(void **state)
{
	(void)state;
	fill(10);
	struct ow_stored *stored = look();
	struct ow_stored_filter one = all, some = all, status = all;
	one.class_name = "voice";
	one.from = "paris";
	some.class_name = "voice";
	status.statuses = 1u << OW_RESULT_UNKNOWN;
	status.final = true;
	for (int which = 0; which < 4; which++) {
		plan_of(stored, &all, which, "INDEX result_time (");
		plan_of(stored, &some, which, "INDEX result_time (");
		plan_of(stored, &status, which, "INDEX result_time (");
		plan_of(stored, &one, which, "(lane=? AND start_ns");
	}
	ow_stored_close(stored);
}

/* -- files -------------------------------------------------------------------------------------------------------- */

static void csv(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	for (int64_t i = 0; i < 600; i++) {
		struct ow_interval_result r = sample_live(i);
		snprintf(r.class_name, sizeof r.class_name, "a,\"b\"");
		store_add(store, &r);
	}
	ow_store_close(store);
	struct ow_stored *stored = look();
	char *text = NULL, *at;
	size_t size;
	uint64_t rows;
	FILE *out = open_memstream(&text, &size);
	assert_int_equal(ow_stored_csv(stored, 0, out, &rows, NULL), 0);
	fclose(out);
	assert_int_equal(rows, 600);
	unsigned lines = 0;
	for (at = text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 601);
	assert_ptr_equal(strstr(text, "segment,class,from_point,to_point,start_ns,"), text);
	assert_non_null(
		strstr(text, "\nlondon-paris,\"a,\"\"b\"\"\",london,paris,1700000599250000000,1000000000,599,1,"));
	assert_non_null(strstr(text, ",start_utc\n"));
	assert_string_equal(text + size - strlen(",2023-11-14T22:23:19.250\n"), ",2023-11-14T22:23:19.250\n");
	free(text);
	ow_stored_close(stored);
}

/* A store of schema 1, as a point of an earlier version goes on to write it. */
static void older_schema(void **state)
{
	(void)state;
	fill(300);
	sqlite3 *db;
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	assert_int_equal(store_to_first_schema(db), SQLITE_OK);
	sqlite3_close(db);
	struct ow_stored *stored = look();
	assert_int_equal(list(stored, &all, 0).count, 1200);
	assert_int_equal(list(stored, &all, 7).count, 7);
	struct ow_stored_sum_options o = {.group = OW_STORED_SEGMENT};
	struct ow_stored_sums sums;
	assert_int_equal(ow_stored_summarise(stored, &o, &sums, NULL), 0);
	assert_int_equal(sums.intervals, 1200);
	ow_stored_sums_done(&sums);
	ow_stored_close(stored);
}

/* -- events ------------------------------------------------------------------------------------------------------- */

struct told {
	size_t count;
	char text[8][OW_FLOW_EVENT_TEXT];
	char *json;
};

static int note_event(void *arg, const struct ow_flow_event *event)
{
	struct told *told = arg;
	size_t size;
	free(told->json);
	FILE *out = open_memstream(&told->json, &size);
	ow_flow_event_json(out, event);
	fclose(out);
	if (told->count < 8)
		ow_flow_event_text(event, told->text[told->count]);
	told->count++;
	return 0;
}

static size_t events_in(struct ow_stored *stored, int64_t since_ns, uint64_t limit, struct told *ret_told)
{
	struct ow_error err = {""};
	*ret_told = (struct told){0};
	choose(stored, &(struct ow_stored_filter){.since_ns = since_ns, .until_ns = INT64_MAX});
	if (ow_stored_events(stored, limit, note_event, ret_told, &err) < 0)
		fail_msg("%s", err.text);
	return ret_told->count;
}

/* Of every kind, a second apart, beginning with the second interval. */
static struct ow_flow_event sample_event(int i)
{
	static const enum ow_scope_event_kind kinds[] = {OW_SCOPE_STOPPED, OW_SCOPE_BACK, OW_SCOPE_REROUTED,
	                                                 OW_SCOPE_SPRAYED, OW_SCOPE_MISSING};
	struct ow_interval_result r = sample_live(60 * (1 + i));
	struct ow_flow_event event = {.start_ns = r.start_ns + 5,
	                              .omitted = i == 1 ? 3 : 0,
	                              .scope = {.kind = kinds[i],
	                                        .interval = 1 + i,
	                                        .flows = 17,
	                                        .share = i >= 3 ? .25 : 0,
	                                        .ttl_change = i == 2 ? -3 : 0}};
	memcpy(event.segment, r.segment, sizeof event.segment);
	memcpy(event.class_name, r.class_name, sizeof event.class_name);
	memcpy(event.from, r.from, sizeof event.from);
	memcpy(event.to, r.to, sizeof event.to);
	assert_true(ow_flow_event_set_network(&event, i == 4 ? "" : i == 2 ? "2001:db8::/32" : "10.1.0.0/16"));
	return event;
}

static void edit_file(const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* What was told live is told again. */
static void events(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	struct ow_error err = {""};
	struct told live = {0}, told;
	for (int i = 0; i < 5; i++) {
		struct ow_interval_result r = sample_live(60 * (1 + i));
		struct ow_flow_event event = sample_event(i);
		store_add(store, &r);
		assert_int_equal(ow_store_add_event(store, &event, &err), 0);
		note_event(&live, &event);
	}
	assert_int_equal(ow_store_commit(store, &err), 0);
	struct ow_stored *stored = look();
	assert_int_equal(events_in(stored, INT64_MIN, 0, &told), 5);
	for (int i = 0; i < 5; i++)
		assert_string_equal(told.text[i], live.text[i]);
	assert_string_equal(told.json, live.json);
	free(told.json);
	free(live.json);
	assert_int_equal(events_in(stored, INT64_MIN, 2, &told), 2);
	assert_string_equal(told.text[0], live.text[3]);
	free(told.json);
	assert_int_equal(events_in(stored, sample_event(2).start_ns, 0, &told), 3);
	free(told.json);
	ow_stored_close(stored);
	/* Events go with the results of their time, the last of them with the last result. */
	struct ow_store_limits limits = {.retention_ns = {1}};
	assert_int_equal(ow_store_trim(store, &limits, sample_live(60 * 3).start_ns + 1, &err), 1);
	stored = look();
	assert_int_equal(events_in(stored, INT64_MIN, 0, &told), 3);
	free(told.json);
	/* Rows that this program did not write. */
	edit_file("UPDATE event SET kind = 'x' WHERE id = 4; UPDATE event SET network = '10.0.0.0/99' WHERE id = 3;"
	          "UPDATE event SET flows = -1, share = 9e999, network = NULL WHERE id = 5");
	assert_int_equal(events_in(stored, INT64_MIN, 0, &told), 1);
	free(told.json);
	ow_stored_close(stored);
	assert_int_equal(ow_store_trim(store, &limits, INT64_MAX, &err), 1);
	ow_store_close(store);
	stored = look();
	assert_int_equal(events_in(stored, INT64_MIN, 0, &told), 0);
	ow_stored_close(stored);
	/* A store of an earlier version. */
	edit_file("DROP TABLE event; PRAGMA user_version = 5");
	stored = look();
	assert_int_equal(events_in(stored, INT64_MIN, 0, &told), 0);
	ow_stored_close(stored);
}

static void no_store(const char *say, int code)
{
	struct ow_stored *stored = NULL;
	struct ow_error err = {""};
	assert_int_equal(ow_stored_open(store_path, &stored, &err), -code);
	assert_null(stored);
	if (!strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
}

static void other_files(void **state)
{
	(void)state;
	no_store("no such store", ENOENT);
	FILE *file = fopen(store_path, "w");
	fclose(file);
	no_store("empty", ENODATA);
	file = fopen(store_path, "w");
	for (int i = 0; i < 100; i++)
		fputs("no database at all\n", file);
	fclose(file);
	no_store("not an SQLite database", EINVAL);
	store_fresh(NULL);
	ow_store_close(store_open());
	struct ow_stored *stored = look();
	int64_t first, last;
	struct ow_error err;
	assert_int_equal(ow_stored_span(stored, &first, &last, &err), -ENODATA);
	assert_non_null(strstr(err.text, "no results are stored"));
	struct ow_stored_filter hours = {.since_ns = INT64_MIN, .until_ns = INT64_MAX, .period = OW_PERIOD_HOUR};
	assert_int_equal(ow_stored_choose(stored, &hours, &err), 0);
	assert_int_equal(ow_stored_span(stored, &first, &last, &err), -ENODATA);
	assert_non_null(strstr(err.text, "no hours are stored"));
	ow_stored_close(stored);
}

/* While somebody writes, and while results are handed on for long: no lock, and the log can be emptied. */
static void while_writing(void **state)
{
	(void)state;
	fill(1000);
	struct ow_store *store = store_open();
	struct ow_stored *stored = look();
	struct seen seen = {0};
	struct ow_interval_result r = of_lane(1000, 0);
	store_add(store, &r); /* not committed */
	assert_int_equal(ow_stored_list(stored, 0, see, &seen, NULL), 0);
	assert_int_equal(seen.count, 4000);
	assert_int_equal(ow_store_commit(store, NULL), 0);
	seen = (struct seen){0};
	assert_int_equal(ow_stored_list(stored, 0, see, &seen, NULL), 0);
	assert_int_equal(seen.count, 4001);
	sqlite3 *db;
	char log[80];
	struct stat info;
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL), SQLITE_OK);
	snprintf(log, sizeof log, "%s-wal", store_path);
	assert_int_equal(stat(log, &info), 0);
	assert_int_equal(info.st_size, 0);
	sqlite3_close(db);
	ow_stored_close(stored);
	ow_store_close(store);
}

/* A copy on a medium that cannot be written, without its log and with it. */
static void read_only_medium(void **state)
{
	(void)state;
	char target[96], command[300];
	snprintf(target, sizeof target, "%s/ro", store_folder);
	fill(10);
	if (mkdir(target, 0700) != 0 || unshare(CLONE_NEWNS) != 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", target, "tmpfs", 0, "size=4m") != 0) {
		print_message("no mount namespace: %s\n", strerror(errno));
		rmdir(target);
		skip();
	}
	snprintf(command, sizeof command, "cp %s %s/results.db", store_path, target);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
	assert_int_equal(mount(NULL, target, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	char keep[64];
	memcpy(keep, store_path, sizeof keep);
	snprintf(store_path, sizeof store_path, "%.40s/results.db", target);
	struct ow_stored *stored = look();
	struct ow_error caveat;
	assert_int_equal(list(stored, &all, 0).count, 40);
	assert_false(ow_stored_caveat(stored, &caveat));
	ow_stored_close(stored);
	assert_int_equal(mount(NULL, target, NULL, MS_REMOUNT, NULL), 0);
	snprintf(command, sizeof command, "echo some frames >%s-wal", store_path);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
	assert_int_equal(mount(NULL, target, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	stored = look();
	assert_int_equal(list(stored, &all, 0).count, 40);
	assert_true(ow_stored_caveat(stored, &caveat));
	assert_non_null(strstr(caveat.text, "log, which cannot be read"));
	ow_stored_close(stored);
	memcpy(store_path, keep, sizeof keep);
	assert_int_equal(umount(target), 0);
	rmdir(target);
}

int main(void)
{
	if (store_make() < 0)
		return 1;
	setenv("TZ", "UTC", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(round_trip, store_fresh),
		cmocka_unit_test_setup(choosing, store_fresh),
		cmocka_unit_test_setup(names, store_fresh),
		cmocka_unit_test_setup(worst, store_fresh),
		cmocka_unit_test_setup(pooled, store_fresh),
		cmocka_unit_test_setup(without_clocks, store_fresh),
		cmocka_unit_test_setup(lacking, store_fresh),
		cmocka_unit_test_setup(conserved, store_fresh),
		cmocka_unit_test_setup(several_peers, store_fresh),
		cmocka_unit_test_setup(causes_are_grouped, store_fresh),
		cmocka_unit_test_setup(gaps, store_fresh),
		cmocka_unit_test_setup(lengths, store_fresh),
		cmocka_unit_test_setup(time_zones, store_fresh),
		cmocka_unit_test_setup(plans, store_fresh),
		cmocka_unit_test_setup(csv, store_fresh),
		cmocka_unit_test_setup(events, store_fresh),
		cmocka_unit_test_setup(older_schema, store_fresh),
		cmocka_unit_test_setup(other_files, store_fresh),
		cmocka_unit_test_setup(while_writing, store_fresh),
		cmocka_unit_test_setup(read_only_medium, store_fresh),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	store_done();
	return failed;
}
