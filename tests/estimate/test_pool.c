/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of delays as one: moments against the plain sums, quantiles and their intervals against the population. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "estimate/pool.h"
#include <math.h>
#include <stdlib.h>

static struct ow_value exactly(double value)
{
	return (struct ow_value){OW_VALUE_EXACT, value, value, value, OW_NO_REASON};
}

/* Two groups known in full, one with a large clock offset, are what their union is. */
static void test_exact(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 41);
	struct ow_pool *pool;
	struct ow_delays *one, *two, *all;
	assert_int_equal(ow_pool_create(&pool), 0);
	assert_int_equal(ow_delays_create(&one), 0);
	assert_int_equal(ow_delays_create(&two), 0);
	assert_int_equal(ow_delays_create(&all), 0);
	for (int i = 0; i < 5000; i++) {
		int64_t offset = i % 3 ? 0 : INT64_C(37000000000),
			x = offset + (int64_t)ow_random_below(&random, 100000);
		ow_delays_add(i % 3 ? one : two, x, 1);
		ow_delays_add(all, x, 1);
	}
	for (int again = 0; again < 2; again++) {
		struct ow_value mean, stddev, quantile[OW_QUANTILES];
		struct ow_delay truth;
		ow_pool_add_delays(pool, one, 1);
		ow_pool_add_delays(pool, two, 1);
		ow_pool_values(pool, &mean, &stddev, quantile);
		ow_delays_summary(all, &truth);
		assert_true(mean.status == OW_VALUE_EXACT && stddev.status == OW_VALUE_EXACT);
		assert_true(fabs(mean.value / truth.mean_ns - 1) < 1e-12);
		assert_true(fabs(stddev.value / truth.stddev_ns - 1) < 1e-9);
		for (int q = 0; q < OW_QUANTILES; q++) {
			assert_int_equal(quantile[q].status, OW_VALUE_EXACT);
			assert_true(fabs(quantile[q].value / truth.quantile_ns[q] - 1) < 1e-3);
		}
		assert_true(ow_pool_packets(pool) == 5000);
		/* Empty again, and a copy is the same. */
		struct ow_pool *copy;
		assert_int_equal(ow_pool_create(&copy), 0);
		ow_pool_copy(copy, pool);
		ow_pool_reset(pool);
		struct ow_value nothing;
		ow_pool_values(pool, &nothing, &stddev, quantile);
		assert_int_equal(nothing.status, OW_VALUE_NONE);
		ow_pool_values(copy, &mean, &stddev, quantile);
		assert_true(fabs(mean.value / truth.mean_ns - 1) < 1e-12);
		ow_pool_free(copy);
	}
	ow_pool_free(pool);
	ow_delays_free(one);
	ow_delays_free(two);
	ow_delays_free(all);
}

/* Intervals: two equal groups that err independently err less together, by the root of two. */
static void test_intervals(void **state)
{
	(void)state;
	struct ow_pool *pool;
	struct ow_value mean, stddev, quantile[OW_QUANTILES];
	assert_int_equal(ow_pool_create(&pool), 0);
	struct ow_pool_group group = {100, {OW_VALUE_ESTIMATED, 50, 48, 52, OW_NO_REASON}, exactly(7), NULL, 0};
	ow_pool_add(pool, &group);
	ow_pool_add(pool, &group);
	ow_pool_values(pool, &mean, &stddev, quantile);
	assert_true(mean.value == 50 && fabs(mean.high - 50 - sqrt(2)) < 1e-12 &&
	            fabs(50 - mean.low - sqrt(2)) < 1e-12);
	assert_true(stddev.status == OW_VALUE_EXACT && fabs(stddev.value - 7) < 1e-12);
	assert_int_equal(quantile[0].status, OW_VALUE_NONE);
	/* What has no mean adds nothing; without a standard deviation there is none of all. */
	struct ow_value none = {.status = OW_VALUE_NONE, .reason = OW_REASON_OTHER};
	ow_pool_add(pool, &(struct ow_pool_group){1000, none, none, NULL, 0});
	assert_true(ow_pool_packets(pool) == 200);
	ow_pool_add(pool, &(struct ow_pool_group){100, exactly(80), none, NULL, 0});
	ow_pool_values(pool, &mean, &stddev, quantile);
	assert_true(mean.value == 60 && stddev.status == OW_VALUE_NONE);
	assert_int_equal(stddev.reason, OW_REASON_OTHER);
	ow_pool_free(pool);
}

/* The ends of the range, as a peer could say them. */
static void test_extremes(void **state)
{
	(void)state;
	const int64_t sample[] = {INT64_MIN, INT64_MAX};
	struct ow_pool *pool;
	struct ow_value mean, stddev, quantile[OW_QUANTILES];
	assert_int_equal(ow_pool_create(&pool), 0);
	ow_pool_add(pool, &(struct ow_pool_group){2, exactly(0), exactly(0x1p63), sample, 2});
	ow_pool_values(pool, &mean, &stddev, quantile);
	assert_true(quantile[OW_Q50].value < -1e18 && quantile[OW_Q99].value > 1e18);
	ow_pool_free(pool);
	ow_pool_free(NULL);
}

/* The mean has few slow packets that the sample has missed: the quantiles are still those of the others. */
static void test_missed_outliers(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_pool *pool;
	struct ow_value mean, stddev, quantile[OW_QUANTILES];
	int64_t sample[400];
	ow_random_seed(&random, 44);
	assert_int_equal(ow_pool_create(&pool), 0);
	for (int i = 0; i < 400; i++)
		sample[i] = 1000000 + (int64_t)(-5000 * log(1 - ow_random_unit(&random)));
	/* Of 20,000 packets two took 200 ms. */
	struct ow_pool_group group = {.packets = 20000,
	                              .mean_ns = exactly(1025000),
	                              .stddev_ns = exactly(2e6),
	                              .delay_ns = sample,
	                              .delays = 400};
	ow_pool_add(pool, &group);
	ow_pool_values(pool, &mean, &stddev, quantile);
	const double median = 1000000 + 5000 * log(2);
	assert_true(quantile[OW_Q50].low <= median && median <= quantile[OW_Q50].high);
	ow_pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact), cmocka_unit_test(test_intervals),
	                                   cmocka_unit_test(test_extremes), cmocka_unit_test(test_missed_outliers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
