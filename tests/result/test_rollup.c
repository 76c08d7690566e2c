/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of results against the truth of all packets: counts are conserved, mean and standard deviation are those of all
 * delays, quantiles are within their intervals, and minutes of an hour give what its intervals give.
 */
#include "result/rollup.h"

#include "../effort.h"
#include "base/random.h"
#include "result/fields.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND    INT64_C(1000000000)
#define INTERVALS 3600
#define PACKETS   120 /* in an interval, at most */

/* An hour of intervals, and all delays of its packets. */
struct hour {
	struct ow_interval_result result[INTERVALS];
	int64_t *delay;
	size_t delays;
	uint64_t sent, lost, unknown, partial;
};

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int64_t draw(struct ow_random *r, int i)
{
	double queue = i / 600 % 2 ? 4e6 : 100e3; /* every other ten minutes are busy */
	return llrint(2e6 - queue * log(1 - ow_random_unit(r)));
}

static void fill_delays(struct ow_interval_result *r, const int64_t *delay, size_t count)
{
	struct ow_delays *delays;
	struct ow_delay d;
	assert_int_equal(ow_delays_create(&delays), 0);
	ow_delays_add_many(delays, delay, count);
	ow_delays_summary(delays, &d);
	ow_delay_histogram_of(delays, 1, &r->delays);
	ow_delays_free(delays);
	r->samples = count;
	r->mean_ns = count ? ow_value_exact(d.mean_ns) : ow_value_none(OW_REASON_NO_KNOWN_DELAY);
	r->stddev_ns = count ? ow_value_exact(d.stddev_ns) : ow_value_none(OW_REASON_NO_KNOWN_DELAY);
	r->min_ns = count ? ow_value_exact((double)d.min_ns) : ow_value_none(OW_REASON_NO_KNOWN_DELAY);
	r->max_ns = count ? ow_value_exact((double)d.max_ns) : ow_value_none(OW_REASON_NO_KNOWN_DELAY);
}

static void make_interval(struct ow_random *random, struct hour *h, int i)
{
	struct ow_interval_result *r = &h->result[i];
	ow_result_blank(i, i * SECOND, SECOND, r);
	snprintf(r->segment, sizeof r->segment, "wan");
	r->final = true;
	r->status = OW_RESULT_UNKNOWN;
	if (ow_random_below(random, 50) == 0) {
		snprintf(r->cause, sizeof r->cause, "no answer from paris");
		h->unknown++;
		return;
	}
	r->status = OW_RESULT_MEASURED;
	r->coverage = 1;
	r->exact = true;
	r->reordered = ow_random_below(random, 3);
	r->sent = r->total_sent = ow_random_below(random, PACKETS);
	for (uint64_t k = 0; k < r->sent; k++) {
		if (ow_random_below(random, 100) == 0)
			r->lost++;
		else
			h->delay[h->delays + r->matched++] = draw(random, i);
	}
	if (r->sent > 10 && ow_random_below(random, 40) == 0) {
		r->status = OW_RESULT_PARTIAL;
		r->pending = r->lost;
		r->lost = 0;
		snprintf(r->cause, sizeof r->cause, "%d packets undecided", (int)r->pending);
		h->partial++;
	}
	r->received = r->total_received = r->matched;
	r->loss_ratio = r->sent > r->pending ? ow_value_exact((double)r->lost / (double)(r->sent - r->pending))
	                                     : ow_value_none(OW_REASON_NO_KNOWN_FATE);
	ow_result_loss_undecided(&r->loss_ratio, (double)(r->sent - r->pending), (double)r->sent);
	fill_delays(r, h->delay + h->delays, r->matched);
	h->delays += r->matched;
	h->sent += r->sent;
	h->lost += r->lost;
}

static struct hour *make_hour(uint64_t seed)
{
	struct ow_random random;
	struct hour *h = calloc(1, sizeof *h);
	assert_non_null(h);
	h->delay = calloc((size_t)INTERVALS * PACKETS, sizeof *h->delay);
	assert_non_null(h->delay);
	ow_random_seed(&random, seed);
	for (int i = 0; i < INTERVALS; i++)
		make_interval(&random, h, i);
	qsort(h->delay, h->delays, sizeof *h->delay, by_value);
	return h;
}

static void free_hour(struct hour *h)
{
	free(h->delay);
	free(h);
}

static void add_up(const struct ow_interval_result *result, size_t count, int64_t start_ns, int64_t length_ns,
                   struct ow_interval_result *ret)
{
	struct ow_rollup *rollup;
	assert_int_equal(ow_rollup_create(&rollup), 0);
	ow_rollup_begin(rollup, start_ns, length_ns);
	for (size_t i = 0; i < count; i++)
		ow_rollup_add(rollup, &result[i]);
	ow_rollup_result(rollup, ret);
	ow_rollup_free(rollup);
}

static void add_minutes_up(const struct hour *h, struct ow_interval_result *ret)
{
	struct ow_interval_result minute[60];
	for (int i = 0; i < 60; i++)
		add_up(h->result + 60 * (size_t)i, 60, 60 * i * SECOND, 60 * SECOND, &minute[i]);
	add_up(minute, 60, 0, 3600 * SECOND, ret);
}

static void check_conserved(const struct ow_interval_result *r)
{
	assert_int_equal(r->sent, r->matched + r->late + r->lost + r->pending);
	assert_int_equal(r->received, r->matched + r->late_received + r->extra);
}

static void check_near(double value, double truth)
{
	if (value != truth && !(fabs(value - truth) <= 1e-9 * fabs(truth)))
		fail_msg("%.17g instead of %.17g", value, truth);
}

static void check_truth(const struct hour *h, const struct ow_interval_result *r)
{
	double mean = 0, square = 0;
	for (size_t i = 0; i < h->delays; i++)
		mean += (double)h->delay[i] / (double)h->delays;
	for (size_t i = 0; i < h->delays; i++)
		square += pow((double)h->delay[i] - mean, 2) / (double)h->delays;
	check_conserved(r);
	assert_int_equal(r->sent, h->sent);
	assert_int_equal(r->lost, h->lost);
	assert_int_equal(r->intervals, INTERVALS);
	assert_int_equal(r->intervals_unknown, h->unknown);
	assert_int_equal(r->intervals_partial, h->partial);
	assert_int_equal(r->delay_packets, h->delays);
	assert_int_equal(r->delays.packets, h->delays);
	check_near(r->mean_ns.value, mean);
	check_near(r->stddev_ns.value, sqrt(square));
	check_near(r->loss_ratio.value, (double)h->lost / (double)(h->sent - r->pending));
	assert_true(r->loss_ratio.low < r->loss_ratio.value && r->loss_ratio.value < r->loss_ratio.high);
	assert_true(r->min_ns.value == (double)h->delay[0]);
	assert_true(r->max_ns.value == (double)h->delay[h->delays - 1]);
	for (int q = 0; q < OW_QUANTILES; q++) {
		double truth = (double)h->delay[(size_t)ceil(ow_quantile_level[q] * (double)h->delays) - 1];
		const struct ow_value *v = &r->quantile_ns[q];
		assert_true(v->low <= truth && truth <= v->high);
		assert_true(v->high - v->low <= 2 * ow_delay_histogram_error(&r->delays) * v->low);
	}
	assert_int_equal(r->status, OW_RESULT_PARTIAL);
	assert_string_equal(r->segment, "wan");
	assert_non_null(strstr(r->cause, " intervals "));
}

static void of_all_packets(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= RUN_COUNT(3); seed++) {
		struct hour *h = make_hour(seed);
		struct ow_interval_result sum;
		add_up(h->result, INTERVALS, 0, 3600 * SECOND, &sum);
		check_truth(h, &sum);
		add_minutes_up(h, &sum);
		check_truth(h, &sum);
		free_hour(h);
	}
}

static void check_same(const struct ow_field *field, const struct ow_interval_result *a,
                       const struct ow_interval_result *b)
{
	const struct ow_value *x = ow_field_of(field, a), *y = ow_field_of(field, b);
	if (field->type == OW_FIELD_VALUE || field->type == OW_FIELD_QUANTILES) {
		for (size_t i = 0; i < field->size / sizeof *x; i++) {
			assert_int_equal(x[i].status, y[i].status);
			if (x[i].status == OW_VALUE_NONE)
				continue;
			check_near(x[i].value, y[i].value);
			check_near(x[i].low, y[i].low);
			check_near(x[i].high, y[i].high);
		}
	} else if (field->type == OW_FIELD_SHARE) {
		check_near(*(const double *)ow_field_of(field, a), *(const double *)ow_field_of(field, b));
	} else if (field->sum != OW_SUM_MEAN && field->size && memcmp(x, y, field->size) != 0) {
		fail_msg("%s differs", field->json);
	}
}

/* Bounds of clocks and of estimates, sampled intervals, some without delays or histogram. */
static void vary(struct hour *h, uint64_t seed)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (int i = 0; i < INTERVALS; i++) {
		struct ow_interval_result *r = &h->result[i];
		if (r->status == OW_RESULT_UNKNOWN)
			continue;
		double error_ns = (double)ow_random_below(&random, 100000);
		snprintf(r->clock_method, sizeof r->clock_method, "relative");
		r->clock_offset_ns = (struct ow_value){OW_VALUE_ESTIMATED, 500, 500 - error_ns, 600, OW_NO_REASON};
		if (r->mean_ns.status != OW_VALUE_NONE)
			r->mean_ns =
				(struct ow_value){OW_VALUE_ESTIMATED, r->mean_ns.value, r->mean_ns.value - error_ns - 7,
			                          r->mean_ns.value + 100 + 9, OW_NO_REASON};
		r->round_trip_mean_ns = r->above_min_ns = r->mean_ns;
		r->sample_shift = (uint32_t)ow_random_below(&random, 3);
		r->total_sent <<= r->sample_shift;
		r->coverage /= 1 << r->sample_shift;
		if (ow_random_below(&random, 10) == 0)
			r->delays = (struct ow_delay_histogram){0};
		if (ow_random_below(&random, 10) == 0)
			ow_result_clear_delays(r);
		if (ow_random_below(&random, 100) == 0)
			snprintf(r->clock_event, sizeof r->clock_event, "stepped at %d", i);
	}
}

static void minutes_give_what_intervals_give(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= RUN_COUNT(4); seed++) {
		struct hour *h = make_hour(seed);
		struct ow_interval_result direct, by_minute;
		if (seed > 1)
			vary(h, seed);
		add_up(h->result, INTERVALS, 0, 3600 * SECOND, &direct);
		add_minutes_up(h, &by_minute);
		check_conserved(&direct);
		for (size_t i = 0; i < ow_field_count; i++)
			check_same(&ow_fields[i], &direct, &by_minute);
		free_hour(h);
	}
}

/* One interval in five has raw delays of clocks that are half a second apart, as earlier versions stored them. */
static void lose_clocks(struct hour *h, uint64_t seed)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (int i = 0; i < INTERVALS; i++) {
		struct ow_interval_result *r = &h->result[i];
		if (r->status == OW_RESULT_UNKNOWN || ow_random_below(&random, 5))
			continue;
		snprintf(r->clock_method, sizeof r->clock_method, "none");
		r->clock_offset_ns = ow_value_none(OW_REASON_CLOCK_ONE_WAY);
		if (r->mean_ns.status == OW_VALUE_NONE)
			continue;
		r->mean_ns = r->min_ns = r->max_ns = ow_value_exact(-5e8);
	}
}

/* Delays that contain the difference of the clocks are in no sum; their packets are counted. */
static void delays_without_clocks(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= RUN_COUNT(3); seed++) {
		struct hour *h = make_hour(seed);
		struct ow_interval_result sum, by_minute;
		struct ow_delay_histogram delays = {0};
		double packets = 0, mean = 0, without = 0;
		vary(h, seed);
		lose_clocks(h, seed);
		for (int i = 0; i < INTERVALS; i++) {
			const struct ow_interval_result *r = &h->result[i];
			double here = ldexp((double)r->matched, (int)r->sample_shift);
			bool known = strcmp(r->clock_method, "none") != 0;
			without += known ? 0 : here;
			if (!known || r->mean_ns.status == OW_VALUE_NONE)
				continue;
			packets += here;
			mean += (r->mean_ns.value - mean) * here / packets;
			ow_delay_histogram_merge(&delays, &r->delays);
		}
		add_up(h->result, INTERVALS, 0, 3600 * SECOND, &sum);
		add_minutes_up(h, &by_minute);
		check_conserved(&sum);
		assert_true(without > 0 && (double)sum.without_clock == without);
		assert_true((double)sum.delay_packets == packets);
		assert_true(fabs(sum.mean_ns.value - mean) < 1e-9 * mean);
		assert_memory_equal(&sum.delays, &delays, sizeof delays);
		assert_string_equal(sum.clock_method, "relative");
		for (size_t i = 0; i < ow_field_count; i++)
			check_same(&ow_fields[i], &sum, &by_minute);
		free_hour(h);
	}
}

static void no_clocks_at_all(void **state)
{
	(void)state;
	struct ow_interval_result r[2], sum;
	for (int i = 0; i < 2; i++) {
		ow_result_blank(i, i * SECOND, SECOND, &r[i]);
		snprintf(r[i].clock_method, sizeof r[i].clock_method, "none");
		r[i].clock_offset_ns = ow_value_none(OW_REASON_CLOCK_ONE_WAY);
		r[i].sent = r[i].received = r[i].matched = 10;
		r[i].mean_ns = ow_value_exact(-5e8);
	}
	add_up(r, 2, 0, 60 * SECOND, &sum);
	assert_int_equal(sum.sent, 20);
	assert_int_equal(sum.without_clock, 20);
	assert_int_equal(sum.delay_packets, 0);
	assert_int_equal(sum.mean_ns.status, OW_VALUE_NONE);
	assert_int_equal(sum.mean_ns.reason, OW_REASON_CLOCK_ONE_WAY);
	assert_int_equal(sum.quantile_ns[OW_Q99].reason, OW_REASON_CLOCK_ONE_WAY);
	assert_string_equal(sum.clock_method, "none");
}

/* A packet of one in four counts as four: those lost and those sent. */
static void samples_count_as_packets(void **state)
{
	(void)state;
	struct ow_interval_result r[2] = {{.length_ns = SECOND, .sent = 100, .received = 100, .matched = 100}}, sum;
	r[0].loss_ratio = r[1].loss_ratio = ow_value_exact(0);
	r[1] = r[0];
	r[1].sample_shift = 2;
	r[1].matched = r[1].received = 90;
	r[1].lost = 10;
	r[1].loss_ratio = (struct ow_value){OW_VALUE_ESTIMATED, .1, .05, .15, OW_NO_REASON};
	add_up(r, 2, 0, 60 * SECOND, &sum);
	assert_int_equal(sum.sent, 500);
	assert_int_equal(sum.lost, 40);
	assert_int_equal(sum.sample_shift, 2);
	check_near(sum.loss_ratio.value, .08);
	check_near(sum.loss_ratio.high, (40 + 20) / 500.);
	check_conserved(&sum);
	/* A sum is not scaled again. */
	add_up(&sum, 1, 0, 3600 * SECOND, &r[0]);
	assert_int_equal(r[0].sent, 500);
}

/* Stores of earlier versions have no histograms. */
static void without_histograms(void **state)
{
	(void)state;
	struct hour *h = make_hour(9);
	struct ow_interval_result sum;
	for (int i = 0; i < INTERVALS; i++)
		h->result[i].delays = (struct ow_delay_histogram){0};
	add_up(h->result, INTERVALS, 0, 3600 * SECOND, &sum);
	assert_int_equal(sum.mean_ns.status, OW_VALUE_EXACT);
	for (int q = 0; q < OW_QUANTILES; q++) {
		assert_int_equal(sum.quantile_ns[q].status, OW_VALUE_NONE);
		assert_int_equal(sum.quantile_ns[q].reason, OW_REASON_DELAYS_ELSEWHERE);
	}
	free_hour(h);
}

/* Nothing, and nothing known. */
static void without_numbers(void **state)
{
	(void)state;
	struct ow_interval_result r[3], sum;
	add_up(r, 0, 120 * SECOND, 60 * SECOND, &sum);
	assert_int_equal(sum.intervals, 0);
	for (int i = 0; i < 3; i++) {
		ow_result_blank(i, i * SECOND, 600 * SECOND, &r[i]);
		r[i].status = OW_RESULT_UNKNOWN;
	}
	add_up(r, 3, 120 * SECOND, 60 * SECOND, &sum);
	assert_int_equal(sum.interval, 2);
	assert_int_equal(sum.length_ns, 600 * SECOND);
	assert_int_equal(sum.status, OW_RESULT_UNKNOWN);
	assert_int_equal(sum.intervals_unknown, 3);
	assert_int_equal(sum.mean_ns.status, OW_VALUE_NONE);
	assert_string_equal(sum.cause, "of 3 intervals 3 unknown");
}

/* Counts of intervals that cannot be, as somebody else may store or send them: a sum, and no division by zero. */
static void impossible_intervals(void **state)
{
	(void)state;
	static const uint64_t counts[] = {0, 1, 5, INT64_MAX - 1, INT64_MAX, UINT64_MAX / 2 + 2, UINT64_MAX};
	enum { COUNTS = sizeof counts / sizeof *counts };
	struct ow_interval_result r[3], sum;
	for (unsigned i = 0; i < COUNTS * COUNTS * COUNTS * 3; i++) {
		for (unsigned k = 0; k < 3; k++) {
			ow_result_blank(k, k * SECOND, SECOND, &r[k]);
			r[k].status = (enum ow_result_status)(i % 3);
			r[k].cost.ready_ns = k ? INT64_MIN : INT64_MAX;
			r[k].intervals = counts[i / 3 % COUNTS];
			r[k].intervals_partial = counts[i / 3 / COUNTS % COUNTS];
			r[k].intervals_unknown = counts[i / 3 / COUNTS / COUNTS];
		}
		add_up(r, 3, 0, 60 * SECOND, &sum);
		assert_in_range(sum.intervals, 1, INT64_MAX);
		assert_in_range(sum.intervals_unknown, 0, sum.intervals);
		assert_in_range(sum.intervals_partial, 0, sum.intervals);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays_without_clocks),    cmocka_unit_test(no_clocks_at_all),
		cmocka_unit_test(of_all_packets),           cmocka_unit_test(minutes_give_what_intervals_give),
		cmocka_unit_test(samples_count_as_packets), cmocka_unit_test(without_histograms),
		cmocka_unit_test(without_numbers),          cmocka_unit_test(impossible_intervals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
