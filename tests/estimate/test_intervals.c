/* SPDX-License-Identifier: Apache-2.0 */
/* Results by interval: the intervals have the right times, add up to the whole, and stay within their bounds. */
#include "base/random.h"
#include "base/time.h"
#include "estimate/delay.h"
#include "estimate/intervals.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static struct ow_intervals *create(int64_t length_ns, int64_t window_ns, int64_t start_ns)
{
	struct ow_intervals *s;
	assert_int_equal(ow_intervals_create(length_ns, window_ns, start_ns, &s), 0);
	return s;
}

static size_t finish(struct ow_intervals *s, const struct ow_interval **ret)
{
	size_t n;
	assert_int_equal(ow_intervals_finish(s, ret, &n), 0);
	return n;
}

static void packet(struct ow_intervals *s, enum ow_direction way, int64_t sent_ns, int64_t delay_ns)
{
	assert_int_equal(ow_intervals_match(s, way, sent_ns, 1, false), 0);
	assert_int_equal(ow_intervals_delay(s, way, sent_ns, &(struct ow_interval_delay){.delay_ns = delay_ns}, 1), 0);
}

static void no_packets_no_intervals(void **state)
{
	(void)state;
	const struct ow_interval *interval;
	struct ow_intervals *s = create(OW_NS_PER_S, OW_NS_PER_S, 12345);
	assert_int_equal(finish(s, &interval), 0);
	ow_intervals_free(s);
	ow_intervals_free(NULL);
}

/* They begin at multiples of their length, also before 1970, and the end belongs to the next. */
static void boundaries(void **state)
{
	(void)state;
	static const int64_t starts[] = {0, 1700000000 * OW_NS_PER_S + 300000000, -5 * OW_NS_PER_S - 1};
	for (unsigned k = 0; k < 3; k++) {
		const struct ow_interval *interval;
		struct ow_intervals *s = create(OW_NS_PER_S, OW_NS_PER_S, starts[k]);
		int64_t first = (int64_t)floor((double)starts[k] / 1e9) * OW_NS_PER_S;
		packet(s, OW_A_TO_B, first + OW_NS_PER_S - 1, 10);
		packet(s, OW_A_TO_B, first + OW_NS_PER_S, 20);
		packet(s, OW_A_TO_B, first + 3 * OW_NS_PER_S, 30); /* with an empty one before it */
		assert_int_equal(finish(s, &interval), 4);
		for (int i = 0; i < 4; i++) {
			assert_int_equal(interval[i].start_ns, first + i * OW_NS_PER_S);
			assert_int_equal(interval[i].direction[OW_A_TO_B].matched, i != 2);
			assert_int_equal(interval[i].direction[OW_B_TO_A].sent, 0);
			assert_true(interval[i].direction[OW_A_TO_B].exact);
		}
		assert_int_equal(interval[0].direction[OW_A_TO_B].delay.min_ns, 10);
		assert_int_equal(interval[1].direction[OW_A_TO_B].delay.min_ns, 20);
		assert_int_equal(interval[2].direction[OW_A_TO_B].delay.samples, 0);
		ow_intervals_free(s);
	}
}

static void empty_ones_at_the_start_are_left_out(void **state)
{
	(void)state;
	const struct ow_interval *interval;
	struct ow_intervals *s = create(10, 100, 0);
	packet(s, OW_B_TO_A, 1005, 1);
	assert_int_equal(finish(s, &interval), 1);
	assert_int_equal(interval[0].start_ns, 1000);
	ow_intervals_free(s);
}

static void the_fates_land_where_they_belong(void **state)
{
	(void)state;
	const struct ow_interval *interval;
	struct ow_intervals *s = create(100, 1000, 0);
	assert_int_equal(ow_intervals_match(s, OW_A_TO_B, 50, 3, true), 0);
	assert_int_equal(ow_intervals_delay(s, OW_A_TO_B, 50, &(struct ow_interval_delay){.delay_ns = 7}, 2), 0);
	assert_int_equal(ow_intervals_delay(s, OW_A_TO_B, 50, NULL, 1), 0);
	assert_int_equal(ow_intervals_lost(s, OW_A_TO_B, 60, 4), 0);
	assert_int_equal(ow_intervals_extra(s, OW_A_TO_B, 150, 5, false), 0);
	assert_int_equal(ow_intervals_extra(s, OW_A_TO_B, 150, 6, true), 0);
	assert_int_equal(ow_intervals_lost(s, OW_B_TO_A, 160, 1), 0);
	assert_int_equal(finish(s, &interval), 2);
	const struct ow_result *r = &interval[0].direction[OW_A_TO_B];
	assert_true(r->matched == 3 && r->reordered == 3 && r->ambiguous == 1 && r->lost == 4 && r->sent == 7);
	assert_true(r->received == 3 && r->delay.samples == 2 && r->delay.mean_ns == 7);
	r = &interval[1].direction[OW_A_TO_B];
	assert_true(r->extra == 11 && r->duplicated == 6 && r->received == 11 && r->sent == 0);
	assert_true(interval[1].direction[OW_B_TO_A].lost == 1 && interval[1].direction[OW_B_TO_A].sent == 1);
	ow_intervals_free(s);
}

static void bounds(void **state)
{
	(void)state;
	struct ow_intervals *s = create(10, 100, 1000);
	assert_int_equal(ow_intervals_match(s, OW_A_TO_B, 999, 1, false), 0); /* disorder: into the first */
	assert_int_equal(ow_intervals_match(s, OW_A_TO_B, INT64_MIN / 2, 1, false), 0);
	assert_int_equal(ow_intervals_match(s, OW_A_TO_B, 1000, 1, false), 0);
	assert_int_equal(ow_intervals_lost(s, OW_A_TO_B, 1000 + 10 * (int64_t)OW_INTERVALS_MAX - 1, 1), 0);
	assert_int_equal(ow_intervals_lost(s, OW_A_TO_B, 1000 + 10 * (int64_t)OW_INTERVALS_MAX, 1), -ERANGE);
	assert_int_equal(ow_intervals_extra(s, OW_A_TO_B, INT64_MAX, 1, false), -ERANGE);
	const struct ow_interval *interval;
	assert_int_equal(finish(s, &interval), OW_INTERVALS_MAX);
	assert_int_equal(interval[0].direction[OW_A_TO_B].matched, 3);
	ow_intervals_free(s);
}

/* Random packets, slightly out of order as matching reports them: the intervals add up to one accumulator of all. */
static void intervals_add_up(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct ow_random random;
		ow_random_seed(&random, seed);
		int64_t length = 1 + (int64_t)ow_random_below(&random, 5000),
			window = 1 + (int64_t)ow_random_below(&random, 20000);
		struct ow_intervals *s = create(length, window, 0);
		double sum = 0;
		uint64_t matched = 0, reordered = 0;
		for (int i = 0; i < 20000; i++) {
			int64_t sent = i * 10 + window - (int64_t)ow_random_below(&random, (uint64_t)window);
			int64_t delay = (int64_t)ow_random_below(&random, 1000);
			bool late = ow_random_below(&random, 10) == 0;
			assert_int_equal(ow_intervals_match(s, OW_B_TO_A, sent, 1, late), 0);
			assert_int_equal(ow_intervals_delay(s, OW_B_TO_A, sent,
			                                    &(struct ow_interval_delay){.delay_ns = delay}, 1),
			                 0);
			sum += (double)delay;
			matched++;
			reordered += late;
		}
		const struct ow_interval *interval;
		size_t n = finish(s, &interval);
		double sum_back = 0;
		uint64_t matched_back = 0, reordered_back = 0, samples = 0, ambiguous = 0;
		for (size_t i = 0; i < n; i++) {
			const struct ow_result *r = &interval[i].direction[OW_B_TO_A];
			assert_int_equal(interval[i].start_ns, interval[0].start_ns + (int64_t)i * length);
			assert_int_equal(r->matched, r->delay.samples + r->ambiguous);
			matched_back += r->matched;
			reordered_back += r->reordered;
			samples += r->delay.samples;
			ambiguous += r->ambiguous;
			sum_back += r->delay.samples ? r->delay.mean_ns * (double)r->delay.samples : 0;
		}
		print_message("seed %u: %u intervals\n", (unsigned)seed, (unsigned)n);
		assert_int_equal(matched_back, matched);
		assert_int_equal(reordered_back, reordered);
		assert_int_equal(samples, matched);
		assert_int_equal(ambiguous, 0);
		assert_true(fabs(sum_back - sum) <= 1e-9 * sum);
		ow_intervals_free(s);
	}
}

/* Of each interval and direction, also after empty ones at the start, and of those that are summed up early. */
static void percentiles(void **state)
{
	(void)state;
	static const double percent[] = {25, 80};
	const struct ow_interval *interval;
	struct ow_intervals *s = create(OW_NS_PER_MS, OW_NS_PER_MS, 0);
	assert_int_equal(ow_intervals_want(s, percent, 2), 0);
	for (int64_t i = 3; i < 40; i++) {
		for (int64_t k = 1; k <= 100; k++)
			packet(s, i % 2 ? OW_A_TO_B : OW_B_TO_A, i * OW_NS_PER_MS + k, i * 1000 + k);
	}
	size_t n = finish(s, &interval);
	const struct ow_percentile *p = ow_intervals_percentiles(s);
	assert_int_equal(n, 37);
	for (size_t i = 0; i < n; i++) {
		unsigned d = (i + 3) % 2 ? OW_A_TO_B : OW_B_TO_A;
		for (unsigned k = 0; k < 2; k++) {
			const struct ow_percentile *found = &p[(i * OW_DIRECTIONS + d) * 2 + k];
			double expected = (double)(i + 3) * 1000 + percent[k];
			assert_true(found->percent == percent[k]);
			assert_true(fabs(found->delay_ns - expected) <= 2 + 0.001 * expected);
			assert_true(found->low_ns == found->delay_ns && found->high_ns == found->delay_ns);
		}
		assert_int_equal(interval[i].direction[!d].delay.samples, 0);
	}
	ow_intervals_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_packets_no_intervals),
		cmocka_unit_test(boundaries),
		cmocka_unit_test(empty_ones_at_the_start_are_left_out),
		cmocka_unit_test(the_fates_land_where_they_belong),
		cmocka_unit_test(bounds),
		cmocka_unit_test(intervals_add_up),
		cmocka_unit_test(percentiles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
