/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distribution of delays that adds up: sums do not depend on order or grouping, quantiles are within what is
 * stated, also those of samples, and any bytes are either refused or come back as they are.
 */
#include "estimate/delay_histogram.h"

#include "base/random.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PARTS 24

/* -- delays of networks ------------------------------------------------------------------------------------------- */

enum shape { NARROW, JITTER, TAIL, PEAKS, NEGATIVE, WILD, SHAPES };

static double normal(struct ow_random *r)
{
	return sqrt(-2 * log(1 - ow_random_unit(r))) * cos(6.283185307179586 * ow_random_unit(r));
}

static int64_t draw(struct ow_random *r, enum shape shape)
{
	switch (shape) {
	case NARROW: /* a long way without queues */
		return llrint(50e6 + 20e3 * normal(r));
	case JITTER: /* one peak, and queues */
		return llrint(4e6 - 400e3 * log(1 - ow_random_unit(r)));
	case TAIL: /* Pareto: microseconds to seconds */
		return llrint(fmin(20e3 * pow(1 - ow_random_unit(r), -1 / 1.2), 10e9));
	case PEAKS: /* two ways */
		return llrint((ow_random_below(r, 3) ? 2e6 : 30e6) + 100e3 * fabs(normal(r)));
	case NEGATIVE: /* the clocks differ by more than the delay */
		return llrint(-300e6 - 400e3 * log(1 - ow_random_unit(r)));
	default:
		return (int64_t)(ow_random_u64(r) >> ow_random_below(r, 64)) * (ow_random_below(r, 2) ? 1 : -1);
	}
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int64_t *draw_sorted(struct ow_random *r, enum shape shape, size_t count)
{
	int64_t *delay = calloc(count, sizeof *delay);
	assert_non_null(delay);
	for (size_t i = 0; i < count; i++)
		delay[i] = draw(r, shape);
	qsort(delay, count, sizeof *delay, by_value);
	return delay;
}

static void make(const int64_t *delay, size_t count, uint64_t weight, struct ow_delay_histogram *ret)
{
	struct ow_delays *delays;
	assert_int_equal(ow_delays_create(&delays), 0);
	ow_delays_add_many(delays, delay, count);
	ow_delay_histogram_of(delays, weight, ret);
	ow_delays_free(delays);
}

static void check_equal(const struct ow_delay_histogram *a, const struct ow_delay_histogram *b)
{
	uint8_t x[OW_DELAY_HISTOGRAM_BYTES], y[OW_DELAY_HISTOGRAM_BYTES];
	size_t size = ow_delay_histogram_encode(a, x);
	assert_int_equal(size, ow_delay_histogram_encode(b, y));
	assert_memory_equal(x, y, size);
	assert_int_equal(a->packets, b->packets);
}

static void check_comes_back(const struct ow_delay_histogram *h)
{
	uint8_t bytes[OW_DELAY_HISTOGRAM_BYTES];
	struct ow_delay_histogram back;
	size_t size = ow_delay_histogram_encode(h, bytes);
	assert_true(size <= OW_DELAY_HISTOGRAM_BYTES);
	assert_int_equal(ow_delay_histogram_decode(bytes, size, &back, NULL), 0);
	check_equal(h, &back);
	assert_int_equal(h->min_ns, back.min_ns);
	assert_int_equal(h->max_ns, back.max_ns);
}

/* -- sums --------------------------------------------------------------------------------------------------------- */

/* Parts of very different sizes and shapes, and the histogram of all their delays. */
static void make_parts(struct ow_random *r, struct ow_delay_histogram part[PARTS], struct ow_delay_histogram *ret_all)
{
	struct ow_delays *all;
	enum shape shape = (enum shape)ow_random_below(r, SHAPES);
	assert_int_equal(ow_delays_create(&all), 0);
	for (int i = 0; i < PARTS; i++) {
		size_t count = ow_random_below(r, UINT64_C(1) << ow_random_below(r, 12));
		if (ow_random_below(r, 8) == 0)
			shape = (enum shape)ow_random_below(r, SHAPES);
		int64_t *delay = draw_sorted(r, shape, count + 1);
		make(delay, count, 1, &part[i]);
		ow_delays_add_many(all, delay, count);
		free(delay);
	}
	ow_delay_histogram_of(all, 1, ret_all);
	ow_delays_free(all);
}

/* Adds two at random until one is left. */
static void add_up(struct ow_random *r, const struct ow_delay_histogram part[PARTS], struct ow_delay_histogram *ret)
{
	struct ow_delay_histogram left[PARTS];
	memcpy(left, part, sizeof left);
	for (size_t count = PARTS; count > 1; count--) {
		size_t to = ow_random_below(r, count - 1);
		struct ow_delay_histogram last = left[count - 1];
		if (ow_random_below(r, 2)) {
			ow_delay_histogram_merge(&left[to], &last);
		} else {
			ow_delay_histogram_merge(&last, &left[to]);
			left[to] = last;
		}
	}
	*ret = left[0];
}

/* From any of them on, as bytes, and some that are none. */
static void add_bytes(struct ow_random *r, const struct ow_delay_histogram part[PARTS], struct ow_delay_histogram *ret)
{
	struct ow_delay_histogram_sum sum = {0};
	uint8_t bytes[OW_DELAY_HISTOGRAM_BYTES];
	size_t first = ow_random_below(r, PARTS);
	for (size_t i = 0; i < PARTS; i++) {
		size_t size = ow_delay_histogram_encode(&part[(first + i) % PARTS], bytes);
		assert_int_equal(ow_delay_histogram_sum_add(&sum, bytes, size), 0);
		assert_true(!size || ow_delay_histogram_sum_add(&sum, bytes, size - 1) < 0);
	}
	ow_delay_histogram_sum_take(&sum, ret);
	ow_delay_histogram_sum_done(&sum);
}

/* With all room that it needs: it does not move. */
static void add_reserved(struct ow_random *r, const struct ow_delay_histogram part[PARTS],
                         struct ow_delay_histogram *ret)
{
	struct ow_delay_histogram_sum sum = {0};
	size_t first = ow_random_below(r, PARTS);
	assert_int_equal(ow_delay_histogram_sum_reserve(&sum), 0);
	const struct ow_delay_bucket *bucket = sum.bucket;
	for (size_t i = 0; i < PARTS; i++)
		assert_int_equal(ow_delay_histogram_sum_merge(&sum, &part[(first + i) % PARTS]), 0);
	assert_ptr_equal(sum.bucket, bucket);
	ow_delay_histogram_sum_take(&sum, ret);
	ow_delay_histogram_sum_done(&sum);
}

static void sums_are_those_of_all_delays(void **state)
{
	(void)state;
	struct ow_random r;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct ow_delay_histogram part[PARTS], all, sum;
		ow_random_seed(&r, seed);
		make_parts(&r, part, &all);
		check_comes_back(&all);
		for (int i = 0; i < 4; i++) {
			add_up(&r, part, &sum);
			check_equal(&sum, &all);
		}
		add_bytes(&r, part, &sum);
		check_equal(&sum, &all);
		add_reserved(&r, part, &sum);
		check_equal(&sum, &all);
		assert_int_equal(sum.min_ns, all.min_ns);
		assert_int_equal(sum.max_ns, all.max_ns);
	}
}

/* A million at the most, and a billion of them: counts that need many bits. */
static void sums_of_large_counts(void **state)
{
	(void)state;
	struct ow_random r;
	ow_random_seed(&r, 7);
	int64_t *delay = draw_sorted(&r, JITTER, 4000);
	struct ow_delay_histogram one, sum = {0}, once;
	make(delay, 4000, 1000000, &one);
	for (int i = 0; i < 1000; i++)
		ow_delay_histogram_merge(&sum, &one);
	make(delay, 4000, 1000000000, &once);
	assert_int_equal(sum.packets, 4000000000000);
	assert_int_equal(sum.packets, once.packets);
	assert_int_equal(sum.bits, once.bits);
	assert_memory_equal(sum.code, once.code, sizeof sum.code);
	/* What cannot be counted any more is the most that can be. */
	make(delay, 4000, UINT64_MAX, &one);
	ow_delay_histogram_merge(&one, &sum);
	assert_true(one.packets == UINT64_MAX);
	check_comes_back(&one);
	free(delay);
}

/* -- quantiles ---------------------------------------------------------------------------------------------------- */

static void check_quantile(const struct ow_delay_histogram *h, const int64_t *delay, size_t count, double q)
{
	size_t rank = (size_t)fmax(1, ceil(q * (double)count - 1e-9));
	double truth = (double)delay[rank - 1];
	struct ow_value v = ow_delay_histogram_quantile(h, q, 0);
	assert_true(v.low <= truth && truth <= v.high && v.low <= v.value && v.value <= v.high);
	/* From one end of the bucket to the other it is twice the error. */
	assert_true(fabs(v.value - truth) <= 2 * ow_delay_histogram_error(h) * fabs(truth) + 1);
}

static void quantiles_are_within_the_bound(void **state)
{
	(void)state;
	struct ow_random r;
	const size_t counts[] = {1, 2, 99, 1000, 10000, 60000};
	/* What 60,000 packets of such networks leave room for. */
	const double error[SHAPES] = {1. / 2048, 1. / 64, 1. / 8, 1. / 64, 1. / 2048, 10};
	ow_random_seed(&r, 3);
	for (int shape = 0; shape < SHAPES; shape++) {
		for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
			int64_t *delay = draw_sorted(&r, (enum shape)shape, counts[i]);
			struct ow_delay_histogram h;
			make(delay, counts[i], 1, &h);
			assert_true(ow_delay_histogram_error(&h) <= error[shape]);
			for (int q = 0; q < OW_QUANTILES; q++)
				check_quantile(&h, delay, counts[i], ow_quantile_level[q]);
			check_quantile(&h, delay, counts[i], 1);
			check_quantile(&h, delay, counts[i], 1e-9);
			free(delay);
		}
	}
}

/* In about 95 % of all samples the interval has the true quantile. The bucket makes it more. */
static void samples_have_an_interval(void **state)
{
	(void)state;
	struct ow_random r;
	ow_random_seed(&r, 11);
	const size_t count = 20000, drawn = 500;
	int64_t *delay = draw_sorted(&r, JITTER, count), sample[500];
	int held = 0, trials = 400;
	for (int i = 0; i < trials; i++) {
		struct ow_delay_histogram h;
		for (size_t k = 0; k < drawn; k++)
			sample[k] = delay[ow_random_below(&r, count)];
		qsort(sample, drawn, sizeof *sample, by_value);
		ow_delay_histogram_sample(sample, drawn, count, &h);
		assert_int_equal(h.packets, count);
		assert_int_equal(h.samples, drawn);
		assert_int_equal(h.weight, count / drawn);
		check_comes_back(&h);
		struct ow_value v = ow_delay_histogram_quantile(&h, .9, 0);
		double truth = (double)delay[count / 10 * 9 - 1];
		held += v.low <= truth && truth <= v.high;
		/* Of so few, the highest does not bound the p99.9. */
		assert_true(isinf(ow_delay_histogram_quantile(&h, .999, 0).high));
	}
	/* Binomial: 95 % of 400 less four standard deviations. */
	assert_true(held >= 380 - 18);
	free(delay);
}

/* Whatever the delays of the missing packets are, the quantile of all is between the ends. */
static void missing_packets_widen(void **state)
{
	(void)state;
	struct ow_random r;
	ow_random_seed(&r, 5);
	int64_t *delay = draw_sorted(&r, JITTER, 10000), *all = calloc(10100, sizeof *all);
	struct ow_delay_histogram h;
	make(delay, 10000, 1, &h);
	for (size_t below = 0; below <= 100; below += 50) {
		memcpy(all + below, delay, 10000 * sizeof *all);
		for (size_t i = 0; i < 100; i++)
			all[i < below ? i : 10000 + i] = i < below ? INT64_MIN : INT64_MAX;
		for (int q = 0; q < 3; q++) {
			struct ow_value v = ow_delay_histogram_quantile(&h, ow_quantile_level[q], 100);
			double truth = (double)all[(size_t)ceil(ow_quantile_level[q] * 10100) - 1];
			assert_true(v.low <= truth && truth <= v.high && isfinite(v.low) && isfinite(v.high));
		}
	}
	assert_true(isinf(ow_delay_histogram_quantile(&h, .999, 100).high));
	assert_int_equal(ow_delay_histogram_quantile(&h, .5, 20000).status, OW_VALUE_NONE);
	h = (struct ow_delay_histogram){0};
	assert_int_equal(ow_delay_histogram_quantile(&h, .5, 0).status, OW_VALUE_NONE);
	free(delay);
	free(all);
}

/* -- limits ------------------------------------------------------------------------------------------------------- */

static void extremes(void **state)
{
	(void)state;
	const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
	struct ow_delay_histogram h, one;
	uint8_t bytes[OW_DELAY_HISTOGRAM_BYTES];
	make(ends, 7, 1, &h);
	check_comes_back(&h);
	assert_int_equal(h.min_ns, INT64_MIN);
	assert_int_equal(h.max_ns, INT64_MAX);
	for (int i = 0; i < 7; i++) {
		make(&ends[i], 1, 1, &one);
		check_comes_back(&one);
		struct ow_value v = ow_delay_histogram_quantile(&one, .99, 0);
		assert_int_equal(v.status, OW_VALUE_EXACT);
		assert_true(v.value == (double)ends[i]);
	}
	make(ends, 0, 1, &h);
	assert_int_equal(ow_delay_histogram_encode(&h, bytes), 0);
	check_comes_back(&h);
	/* Every octave on both sides, each with as many packets as can be: it is coarse, but it fits. */
	struct ow_delay_histogram sum = {0};
	for (int i = 0; i < 63; i++) {
		const int64_t both[] = {-(INT64_C(1) << i), INT64_C(1) << i};
		make(both, 2, UINT64_C(1) << 56, &one);
		ow_delay_histogram_merge(&sum, &one);
	}
	check_comes_back(&sum);
	assert_true(sum.bits < 0);
}

/* Bytes that are cut, changed or made up. */
static void hostile_bytes(void **state)
{
	(void)state;
	struct ow_random r;
	ow_random_seed(&r, 13);
	int64_t *delay = draw_sorted(&r, PEAKS, 3000);
	struct ow_delay_histogram h, back;
	uint8_t good[OW_DELAY_HISTOGRAM_BYTES], bad[2 * OW_DELAY_HISTOGRAM_BYTES];
	make(delay, 3000, 3, &h);
	size_t size = ow_delay_histogram_encode(&h, good);
	unsigned decoded = 0;
	for (int i = 0; i < 30000; i++) {
		size_t length = i % 2 ? size : ow_random_below(&r, sizeof bad + 1);
		for (size_t k = 0; k < length; k++)
			bad[k] = k < size && (i % 3 || k < 2) ? good[k] : (uint8_t)ow_random_u64(&r);
		if (length)
			bad[ow_random_below(&r, length)] ^= (uint8_t)(1 << ow_random_below(&r, 8));
		struct ow_error err = {""};
		if (ow_delay_histogram_decode(bad, length, &back, &err) < 0) {
			assert_true(err.text[0] && !back.packets && !back.used);
			continue;
		}
		decoded += back.packets > 0;
		uint8_t again[OW_DELAY_HISTOGRAM_BYTES];
		assert_int_equal(ow_delay_histogram_encode(&back, again), length);
		assert_memory_equal(again, bad, length);
		ow_delay_histogram_merge(&back, &h);
		check_comes_back(&back);
	}
	assert_true(decoded > 100);
	free(delay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_those_of_all_delays),
		cmocka_unit_test(sums_of_large_counts),
		cmocka_unit_test(quantiles_are_within_the_bound),
		cmocka_unit_test(samples_have_an_interval),
		cmocka_unit_test(missing_packets_widen),
		cmocka_unit_test(extremes),
		cmocka_unit_test(hostile_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
