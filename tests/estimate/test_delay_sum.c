/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/delay_sum.h"
#include "base/random.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SEED 3

static void near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("%.17g is not %.17g (seed %d)", got, want, SEED);
}

/* Around any offset of the clocks, the moments are those of the delays without it: exact to the last division. */
static void offsets(void **state)
{
	(void)state;
	static const int64_t offset[] = {0, 1000000007, -1000000007, INT64_MAX - 2000, INT64_MIN + 2000};
	for (size_t k = 0; k < sizeof offset / sizeof *offset; k++) {
		struct ow_random random;
		struct ow_delay_sum sum = {0};
		int64_t total = 0, squares = 0, least = INT64_MAX, most = INT64_MIN;
		enum { N = 1000 };
		ow_random_seed(&random, SEED);
		for (int i = 0; i < N; i++) {
			int64_t x = (int64_t)ow_random_below(&random, 2001) - 1000;
			ow_delay_sum_add(&sum, offset[k] + x, 1);
			total += x;
			squares += x * x;
			least = x < least ? x : least;
			most = x > most ? x : most;
		}
		double mean, stddev, m = (double)total / N;
		ow_delay_sum_moments(&sum, &mean, &stddev);
		assert_int_equal(sum.samples, N);
		assert_true(sum.min == offset[k] + least && sum.max == offset[k] + most);
		near(mean, (double)offset[k] + m, fabs((double)offset[k]) * 0x1p-52 + 1e-9);
		near(stddev, sqrt((double)squares / N - m * m), 1e-9 * stddev);
	}
}

/* Delays at both ends of the type: squares of 2^64 in 192 bits. n at each end: mean -1/2, deviation 2^63 - 1/2. */
static void extremes(void **state)
{
	(void)state;
	struct ow_delay_sum sum = {0};
	double mean, stddev;
	ow_delay_sum_add(&sum, INT64_MIN, UINT32_MAX);
	ow_delay_sum_add(&sum, INT64_MAX, UINT32_MAX);
	ow_delay_sum_moments(&sum, &mean, &stddev);
	near(mean, -0.5, 1e-9);
	near(stddev, 0x1p63, 0x1p63 * 1e-12);
	/* One delay, many times: no rounding makes a deviation. */
	sum = (struct ow_delay_sum){0};
	for (int i = 0; i < 1000; i++)
		ow_delay_sum_add(&sum, INT64_MAX - 1, 3);
	ow_delay_sum_moments(&sum, &mean, &stddev);
	assert_true(stddev == 0 && mean == (double)(INT64_MAX - 1) && sum.samples == 3000);
}

/* Parts merged in any order, with other origins, give what one sum gives; `times` is that many additions. */
static void merging(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (int run = 0; run < 100; run++) {
		struct ow_delay_sum all = {0}, part[3] = {{0}}, merged = {0};
		for (int i = 0; i < 60; i++) {
			int64_t delay = (int64_t)(ow_random_u64(&random) >> ow_random_below(&random, 60));
			uint32_t times = 1 + (uint32_t)ow_random_below(&random, 3);
			for (uint32_t t = 0; t < times; t++)
				ow_delay_sum_add(&all, delay, 1);
			ow_delay_sum_add(&part[i < 3 ? i : (int)ow_random_below(&random, 3)], delay, times);
		}
		for (int i = 2; i >= 0; i--)
			ow_delay_sum_merge(&merged, &part[i]);
		double mean[2], stddev[2];
		ow_delay_sum_moments(&all, &mean[0], &stddev[0]);
		ow_delay_sum_moments(&merged, &mean[1], &stddev[1]);
		assert_true(all.samples == merged.samples && all.min == merged.min && all.max == merged.max);
		near(mean[1], mean[0], fabs(mean[0]) * 1e-14);
		near(stddev[1], stddev[0], stddev[0] * 1e-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(offsets), cmocka_unit_test(extremes),
	                                   cmocka_unit_test(merging)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
