/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "estimate/delay.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define SAMPLES_MAX     20000
#define HISTOGRAM_ERROR (1 / 2048.)

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* RFC 2330, literally: the smallest x with F(x) >= q. */
static int64_t exact_quantile(const int64_t *sorted, size_t n, double q)
{
	size_t k = 1;
	while (k < n && (double)k / (double)n < q)
		k++;
	return sorted[k - 1];
}

/* Compares with the definitions, evaluated over the sorted samples. */
static void check(const struct ow_delays *delays, int64_t *values, size_t n)
{
	struct ow_delay got;
	ow_delays_summary(delays, &got);
	qsort(values, n, sizeof *values, by_value);
	assert_int_equal(got.samples, n);
	assert_int_equal(ow_delays_samples(delays), n);
	assert_int_equal(got.min_ns, values[0]);
	assert_int_equal(got.max_ns, values[n - 1]);

	__int128 sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += values[i];
	long double mean = (long double)sum / (long double)n, square = 0;
	/* The distance to the integer part of the mean is exact; only its square is rounded, at 64 bits. */
	__int128 whole = sum / (__int128)n;
	long double rest = (long double)(sum - whole * (__int128)n) / (long double)n;
	for (size_t i = 0; i < n; i++) {
		long double x = (long double)(values[i] - whole) - rest;
		square += x * x;
	}
	long double stddev = sqrtl(square / (long double)n);
	assert_true(fabsl(got.mean_ns - mean) <= fabsl(mean) * 0x1p-52L);
	assert_true(fabsl(got.stddev_ns - stddev) <= stddev * 0x1p-50L);

	for (int i = 0; i < OW_QUANTILES; i++) {
		double exact = (double)exact_quantile(values, n, ow_quantile_level[i]);
		assert_true(fabs(got.quantile_ns[i] - exact) <= fabs(exact) * HISTOGRAM_ERROR);
		if (fabs(exact) < 2048)
			assert_true(got.quantile_ns[i] == exact);
	}
	double median = got.quantile_ns[OW_Q50], q95 = got.quantile_ns[OW_Q95];
	double jitter = (double)exact_quantile(values, n, 0.95) - (double)exact_quantile(values, n, 0.5);
	assert_true(fabs(q95 - median - jitter) <= ow_delay_jitter_error(median, q95) + jitter * 0x1p-50);
	assert_true(ow_delays_quantile(delays, 1) >= (double)values[n - 1] * (1 - HISTOGRAM_ERROR) ||
	            values[n - 1] < 0);
}

static struct ow_delays *create(void)
{
	struct ow_delays *delays = NULL;
	assert_int_equal(ow_delays_create(&delays), 0);
	return delays;
}

static void no_samples(void **state)
{
	(void)state;
	struct ow_delays *delays = create(), *other = create();
	struct ow_delay got;
	ow_delays_add(delays, 5, 0);
	ow_delays_merge(delays, other);
	ow_delays_reset(delays);
	ow_delays_summary(delays, &got);
	assert_int_equal(got.samples, 0);
	ow_delays_free(delays);
	ow_delays_free(other);
	ow_delays_free(NULL);
}

/* Every sequence of up to 5 delays out of 5 values; also merged from every split. */
static void exhaustive_small(void **state)
{
	(void)state;
	static const int64_t set[] = {-3, 0, 1, 7, 2047};
	struct ow_delays *all = create(), *left = create(), *right = create();
	for (size_t n = 1; n <= 5; n++) {
		size_t sequences = (size_t)pow(5, (double)n);
		for (size_t code = 0; code < sequences; code++) {
			int64_t values[5];
			for (size_t i = 0, c = code; i < n; i++, c /= 5)
				values[i] = set[c % 5];
			size_t split = code % (n + 1);
			ow_delays_reset(all);
			ow_delays_reset(left);
			ow_delays_reset(right);
			for (size_t i = 0; i < n; i++) {
				ow_delays_add(all, values[i], 1);
				ow_delays_add(i < split ? left : right, values[i], 1);
			}
			ow_delays_merge(left, right);
			check(all, values, n);
			check(left, values, n);
		}
	}
	ow_delays_free(all);
	ow_delays_free(left);
	ow_delays_free(right);
}

/* Each neighbourhood of a power of two: slots neither overlap nor leave a gap, and the error bound holds. */
static void every_octave(void **state)
{
	(void)state;
	struct ow_delays *delays = create();
	for (int bit = 0; bit < 63; bit++) {
		for (int64_t near = -2; near <= 2; near++) {
			for (int sign = -1; sign <= 1; sign += 2) {
				int64_t value = sign * ((INT64_C(1) << bit) + near),
					values[] = {value, INT64_MIN, INT64_MAX};
				ow_delays_reset(delays);
				ow_delays_add(delays, value, 1);
				check(delays, values, 1);
				/* Between the extremes clamping cannot help. */
				ow_delays_add(delays, INT64_MIN, 1);
				ow_delays_add(delays, INT64_MAX, 1);
				check(delays, values, 3);
			}
		}
	}
	ow_delays_free(delays);
}

/* Distributions with offsets as unsynchronised clocks make them; merge of parts equals adding all. */
static void random_samples(void **state)
{
	(void)state;
	static const struct {
		int64_t offset;
		double scale;
	} cases[] = {
		{0, 100},
		{4500, 50},
		{0, 1e6},
		{-1000, 1e3},
		{37000000000, 1e3},
		{-37000000000, 1e7},
		{INT64_C(1700000000000000000), 1e4},
		{INT64_MIN / 2, 1e9},
		{0, 1e17},
		{INT64_C(172800000000000), 3},
	};
	int64_t *values = malloc(SAMPLES_MAX * sizeof *values);
	struct ow_delays *all = create(), *part[3] = {create(), create(), create()};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct ow_random random;
		ow_random_seed(&random, c + 1);
		ow_delays_reset(all);
		for (int p = 0; p < 3; p++)
			ow_delays_reset(part[p]);
		for (size_t i = 0; i < SAMPLES_MAX; i++) {
			/* Exponential, long tail */
			values[i] = cases[c].offset + (int64_t)(-log(1 - ow_random_unit(&random)) * cases[c].scale);
			ow_delays_add(all, values[i], 1);
			ow_delays_add(part[ow_random_below(&random, 3)], values[i], 1);
		}
		for (int p = 1; p < 3; p++)
			ow_delays_merge(part[0], part[p]);
		struct ow_delay a, b;
		ow_delays_summary(all, &a);
		ow_delays_summary(part[0], &b);
		assert_memory_equal(&a, &b, sizeof a);
		check(all, values, SAMPLES_MAX);
	}
	ow_delays_free(all);
	for (int p = 0; p < 3; p++)
		ow_delays_free(part[p]);
	free(values);
}

/* add(x, k) is k times add(x, 1), also where x^2 k needs more than 128 bits. */
static void repeats(void **state)
{
	(void)state;
	static const int64_t values[] = {INT64_MIN, INT64_MAX, -5, 1000000, INT64_MIN + 1, 12345678901234567};
	struct ow_delays *once = create(), *times = create();
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		ow_delays_add(times, values[i], 1000);
		for (int k = 0; k < 1000; k++)
			ow_delays_add(once, values[i], 1);
	}
	struct ow_delay a, b;
	ow_delays_summary(once, &a);
	ow_delays_summary(times, &b);
	assert_memory_equal(&a, &b, sizeof a);
	/* Half the samples at each end of the range: mean -0.5, stddev 2^63 - 0.5, 2^32 samples. */
	ow_delays_reset(times);
	ow_delays_add(times, INT64_MIN, UINT32_MAX);
	ow_delays_add(times, INT64_MAX, UINT32_MAX);
	ow_delays_summary(times, &a);
	assert_true(a.mean_ns == -0.5);
	assert_true(a.stddev_ns == 0x1p63);
	ow_delays_free(once);
	ow_delays_free(times);
}

/* An outlier as first sample must not spoil a spread of 1 ns. */
static void spread_beside_outlier(void **state)
{
	(void)state;
	struct ow_delays *delays = create(), *outlier = create();
	ow_delays_add(outlier, -INT64_C(1700000000000000000), 1);
	for (int i = 0; i < 1000; i++)
		ow_delays_add(delays, INT64_C(37000000000) + i % 2, 1);
	struct ow_delay got;
	ow_delays_summary(delays, &got);
	assert_true(got.stddev_ns == 0.5);
	assert_true(got.mean_ns == 37000000000.5);
	ow_delays_merge(outlier, delays);
	ow_delays_summary(outlier, &got);
	/* d sqrt(p (1 - p)) with p = 1/1001 */
	double d = 1700000000000000000. + 37000000000.5;
	assert_true(fabs(got.stddev_ns / (d * sqrt(1000. / 1001 / 1001)) - 1) < 1e-15);
	ow_delays_free(delays);
	ow_delays_free(outlier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_samples),   cmocka_unit_test(exhaustive_small),
		cmocka_unit_test(every_octave), cmocka_unit_test(random_samples),
		cmocka_unit_test(repeats),      cmocka_unit_test(spread_beside_outlier),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
