/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Exact moments of delays in 96 bytes: with x = delay - origin (the first sample), S = sum x and S2 = sum x^2 are
 * integers, S2 of 192 bits. So nothing is rounded or overflows before the division at the end, for any clock offset. At
 * most 2^62 samples. All zero is empty.
 */
struct ow_delay_sum {
	uint64_t samples;
	int64_t min, max; /* these and all below are undefined without samples */
	int64_t origin;
	__int128 sum;             /* S */
	unsigned __int128 square; /* S2 modulo 2^128 */
	uint64_t square_high;     /* S2 / 2^128 */
};

static inline void ow_delay_sum_add_square(struct ow_delay_sum *sum, unsigned __int128 square)
{
	sum->square_high += __builtin_add_overflow(sum->square, square, &sum->square);
}

/* Updates only S and S2, for `times` samples at distance x from the origin, for any x. */
void ow_delay_sum_add_far(struct ow_delay_sum *sum, __int128 x, uint32_t times);

/* Adds `times` samples of the same delay; times > 0. */
static inline void ow_delay_sum_add(struct ow_delay_sum *sum, int64_t delay_ns, uint32_t times)
{
	if (!sum->samples)
		sum->origin = sum->min = sum->max = delay_ns;
	sum->samples += times;
	sum->min = delay_ns < sum->min ? delay_ns : sum->min;
	sum->max = delay_ns > sum->max ? delay_ns : sum->max;
	int64_t x;
	if (times == 1 && !__builtin_sub_overflow(delay_ns, sum->origin, &x)) {
		sum->sum += x;
		ow_delay_sum_add_square(sum, (unsigned __int128)((__int128)x * x));
	} else {
		ow_delay_sum_add_far(sum, (__int128)delay_ns - sum->origin, times);
	}
}

/* this += other, which is not empty. */
void ow_delay_sum_merge(struct ow_delay_sum *sum, const struct ow_delay_sum *other);

/* Mean and population standard deviation; not for an empty sum. */
void ow_delay_sum_moments(const struct ow_delay_sum *sum, double *ret_mean_ns, double *ret_stddev_ns);
