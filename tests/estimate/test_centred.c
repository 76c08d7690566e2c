/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/centred.h"
#include "base/random.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SEED    41
#define BUCKETS 200

static void near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("%.17g is not %.17g (seed %d)", got, want, SEED);
}

/* Buckets with 1 to 9 packets, whose delays are uniform in 0 .. 2000 around an offset: mean 1000, sigma 577.9. */
static double fill(struct ow_random *random, int64_t offset, struct ow_clean_bucket *bucket)
{
	double packets = 0;
	for (int i = 0; i < BUCKETS; i++) {
		bucket[i] = (struct ow_clean_bucket){0, 1 + ow_random_below(random, 9)};
		for (uint64_t k = 0; k < bucket[i].packets; k++)
			bucket[i].delay_ns += offset + (int64_t)ow_random_below(random, 2001);
		packets += (double)bucket[i].packets;
	}
	return packets;
}

/* The mean follows the offset of the clocks exactly, the deviation does not see it. */
static void offsets(void **state)
{
	(void)state;
	static const int64_t offset[] = {0, 37000000000, -37000000000, INT64_C(1) << 59};
	struct ow_clean_bucket bucket[BUCKETS];
	struct ow_centred at_zero, fit;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	fill(&random, 0, bucket);
	ow_centred_fit(bucket, BUCKETS, 1, &at_zero);
	for (size_t k = 0; k < sizeof offset / sizeof *offset; k++) {
		ow_random_seed(&random, SEED);
		double packets = fill(&random, offset[k], bucket);
		ow_centred_fit(bucket, BUCKETS, 1, &fit);
		assert_true(fit.samples == packets && fit.buckets == BUCKETS && fit.freedom == BUCKETS - 1);
		near(fit.mean_ns - (double)offset[k], at_zero.mean_ns, 1e-6 + fabs((double)offset[k]) * 0x1p-52);
		near(fit.variance_ns2, at_zero.variance_ns2, 1e-9 * at_zero.variance_ns2);
	}
}

/* Over 500 runs: both without bias (5 sigma), and intervals of 95 % that hold the truth in 91 % at least (4 sigma). */
static void intervals(void **state)
{
	(void)state;
	enum { RUNS = 500 };
	const double sigma = sqrt((2001.0 * 2001 - 1) / 12);
	struct ow_clean_bucket bucket[BUCKETS];
	struct ow_random random;
	double means = 0, variances = 0;
	unsigned mean_held = 0, stddev_held = 0;
	ow_random_seed(&random, SEED);
	for (int run = 0; run < RUNS; run++) {
		struct ow_centred fit;
		struct ow_value mean, stddev;
		fill(&random, 0, bucket);
		ow_centred_fit(bucket, BUCKETS, 1, &fit);
		/* A sample of very many packets. */
		ow_centred_mean(&fit, 1e9, false, &mean);
		ow_centred_stddev(&fit, 1e9, false, &stddev);
		means += fit.mean_ns;
		variances += fit.variance_ns2;
		mean_held += mean.low <= 1000 && 1000 <= mean.high;
		stddev_held += stddev.low <= sigma && sigma <= stddev.high;
	}
	near(means / RUNS, 1000, 5 * sigma / sqrt(RUNS * BUCKETS * 5.0));
	near(variances / RUNS, sigma * sigma, 5 * sigma * sigma * sqrt(2.0 / BUCKETS / RUNS));
	assert_true(mean_held >= 0.91 * RUNS && stddev_held >= 0.91 * RUNS);
}

/* All common packets: the mean is exact. No packets, or as many buckets as banks: a reason instead of a number. */
static void limits(void **state)
{
	(void)state;
	struct ow_clean_bucket bucket[] = {{300, 3}, {0, 0}, {77, UINT64_MAX}};
	struct ow_centred fit;
	struct ow_value value;
	ow_centred_fit(bucket, 3, 1, &fit);
	assert_true(fit.buckets == 1 && fit.mean_ns == 100);
	ow_centred_mean(&fit, 3, true, &value);
	assert_true(value.status == OW_VALUE_EXACT && value.value == 100);
	ow_centred_stddev(&fit, 3, true, &value);
	assert_true(value.status == OW_VALUE_NONE && value.reason != OW_NO_REASON);
	ow_centred_fit(bucket + 1, 2, 1, &fit);
	assert_int_equal(fit.buckets, 0);
	ow_centred_mean(&fit, 3, false, &value);
	assert_true(value.status == OW_VALUE_NONE && value.reason != OW_NO_REASON);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(offsets), cmocka_unit_test(intervals),
	                                   cmocka_unit_test(limits)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
