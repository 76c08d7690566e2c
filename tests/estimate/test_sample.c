/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals of random samples: coverage over many seeds, and the binomial ranks against known ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "estimate/sample.h"
#include <math.h>
#include <stdlib.h>

#define RUNS 1000
/* Less than 92 % or more than 99 % is outside what 1000 runs of a true 95 % give (4 standard deviations: 2.8 %). */
#define COVERED_MIN 920
#define COVERED_MAX 990

/* Known from tables of nonparametric intervals: the 95 % interval of the median of 20 is from the 6th to the 15th. */
static void test_ranks(void **state)
{
	(void)state;
	double low, high;
	ow_sample_ranks(20, 0.5, &low, &high);
	assert_true(low == 5 && high == 14);
	/* 0.95^59 = 0.0485: 5 samples can not bound the median from either side at 2.5 % (2^-5 = 3.1 %), 6 can. */
	ow_sample_ranks(5, 0.5, &low, &high);
	assert_true(low == -1 && high == 5);
	ow_sample_ranks(6, 0.5, &low, &high);
	assert_true(low == 0 && high == 5);
	/* 0.99^n <= 0.025 from n = 368 on. */
	ow_sample_ranks(367, 0.99, &low, &high);
	assert_true(high == 367);
	ow_sample_ranks(368, 0.99, &low, &high);
	assert_true(high == 367);
	/* A million: as the normal approximation, within a rank or two. */
	ow_sample_ranks(1000000, 0.5, &low, &high);
	assert_true(fabs(low - (500000 - 980)) < 3 && fabs(high - (500000 + 979)) < 3);
}

static void test_coverage(void **state)
{
	(void)state;
	const double mean = 50000, truth_median = mean * 0.6931471805599453;
	int covered_mean = 0, covered_stddev = 0, covered_median = 0;
	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct ow_random random;
		int64_t delay[1000];
		ow_random_seed(&random, seed);
		for (int i = 0; i < 1000; i++)
			delay[i] = llrint(-mean * log1p(-ow_random_unit(&random)));
		struct ow_estimate e;
		ow_estimate_none(&e, OW_NO_REASON);
		ow_sample_delays(delay, 1000, 1e9, &e);
		covered_mean += e.mean_ns.low <= mean && mean <= e.mean_ns.high;
		covered_stddev += e.stddev_ns.low <= mean && mean <= e.stddev_ns.high; /* exponential: the same */
		covered_median +=
			e.quantile_ns[OW_Q50].low <= truth_median && truth_median <= e.quantile_ns[OW_Q50].high;
		assert_int_equal(e.useful, 1000);
		assert_true(isinf(e.quantile_ns[OW_Q999].high)); /* 1000 samples do not bound it */
	}
	assert_in_range(covered_mean, COVERED_MIN, COVERED_MAX);
	assert_in_range(covered_stddev, COVERED_MIN, COVERED_MAX);
	assert_in_range(covered_median, COVERED_MIN, COVERED_MAX);
}

/* Half of the packets: the interval is narrower, and still right. */
static void test_coverage_of_a_large_part(void **state)
{
	(void)state;
	int covered = 0;
	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct ow_random random;
		int64_t all[400], sum = 0;
		ow_random_seed(&random, seed);
		for (int i = 0; i < 400; i++)
			sum += all[i] = (int64_t)ow_random_below(&random, 1000000);
		struct ow_estimate e;
		ow_estimate_none(&e, OW_NO_REASON);
		ow_sample_delays(all, 200, 400, &e);
		double mean = (double)sum / 400;
		covered += e.mean_ns.low <= mean && mean <= e.mean_ns.high;
	}
	assert_in_range(covered, COVERED_MIN, COVERED_MAX);
}

static void test_loss_coverage(void **state)
{
	(void)state;
	int covered = 0;
	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct ow_random random;
		ow_random_seed(&random, seed);
		uint64_t lost = 0;
		for (int i = 0; i < 2000; i++)
			lost += ow_random_unit(&random) < 0.05;
		struct ow_estimate e;
		ow_estimate_none(&e, OW_NO_REASON);
		ow_sample_loss(lost, 2000, 1e6, 1e6, &e);
		covered += e.loss_ratio.low <= 0.05 && 0.05 <= e.loss_ratio.high;
		assert_true(e.lost.value == e.loss_ratio.value * 1e6 && e.extra.value == e.lost.value);
	}
	assert_in_range(covered, COVERED_MIN, COVERED_MAX);
}

static void test_edges(void **state)
{
	(void)state;
	struct ow_estimate e;
	int64_t one[] = {7}, all[] = {5, 1, 3};
	ow_estimate_none(&e, OW_NO_REASON);
	ow_sample_delays(one, 1, 10, &e);
	assert_int_equal(e.mean_ns.status, OW_VALUE_NONE);
	assert_true(e.stddev_ns.reason);
	ow_sample_delays(one, 1, 1, &e);
	assert_int_equal(e.mean_ns.status, OW_VALUE_EXACT);
	assert_true(e.mean_ns.value == 7 && e.stddev_ns.value == 0);
	ow_sample_delays(all, 3, 3, &e);
	assert_true(e.mean_ns.value == 3 && fabs(e.stddev_ns.value - sqrt(8. / 3)) < 1e-12);
	assert_true(e.quantile_ns[OW_Q50].value == 3 && e.quantile_ns[OW_Q99].value == 5);
	ow_sample_loss(0, 0, 10, 10, &e);
	assert_int_equal(e.lost.status, OW_VALUE_NONE);
	/* What the counters prove: 30 of 100 are missing. */
	ow_sample_loss(0, 10, 100, 70, &e);
	assert_true(e.lost.value == 30 && e.lost.low == 30 && e.lost.high >= 30 && e.extra.value == 0);
	ow_sample_loss(5, 100, 100, 96, &e);
	assert_int_equal(e.lost.status, OW_VALUE_EXACT);
	assert_true(e.lost.value == 5 && e.extra.value == 1);
	ow_sample_loss(5, 50, 100, NAN, &e);
	assert_int_equal(e.extra.status, OW_VALUE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_coverage),
		cmocka_unit_test(test_coverage_of_a_large_part),
		cmocka_unit_test(test_loss_coverage),
		cmocka_unit_test(test_edges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
