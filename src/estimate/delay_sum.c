/* SPDX-License-Identifier: Apache-2.0 */
/* Wide arithmetic for exact moments; used rarely. */
#include "estimate/delay_sum.h"

#include <math.h>

typedef __int128 i128;
typedef unsigned __int128 u128;

/* 256-bit two's complement, with only the operations for the variance and for moving the origin. */
struct wide {
	uint64_t limb[4]; /* least significant first */
};

static struct wide wide_from(i128 value)
{
	uint64_t sign = value < 0 ? UINT64_MAX : 0;
	return (struct wide){{(uint64_t)value, (uint64_t)(value >> 64), sign, sign}};
}

static struct wide wide_add(struct wide a, struct wide b)
{
	u128 carry = 0;
	for (int i = 0; i < 4; i++) {
		carry += (u128)a.limb[i] + b.limb[i];
		a.limb[i] = (uint64_t)carry;
		carry >>= 64;
	}
	return a;
}

static struct wide wide_sub(struct wide a, struct wide b)
{
	for (int i = 0; i < 4; i++)
		b.limb[i] = ~b.limb[i];
	return wide_add(wide_add(a, b), wide_from(1));
}

static struct wide wide_mul(struct wide a, struct wide b)
{
	struct wide product = {{0}};
	for (int i = 0; i < 4; i++) {
		u128 carry = 0;
		for (int j = 0; i + j < 4; j++) {
			carry += (u128)a.limb[i] * b.limb[j] + product.limb[i + j];
			product.limb[i + j] = (uint64_t)carry;
			carry >>= 64;
		}
	}
	return product;
}

/* For a value that is not negative. */
static long double wide_value(struct wide a)
{
	long double value = 0;
	for (int i = 4; i-- > 0;)
		value = value * 0x1p64L + (long double)a.limb[i];
	return value;
}

static struct wide square_wide(const struct ow_delay_sum *sum)
{
	return (struct wide){{(uint64_t)sum->square, (uint64_t)(sum->square >> 64), sum->square_high, 0}};
}

/* |x| < 2^64 always, so x^2 fits into 128 bits; times x^2 may not. */
void ow_delay_sum_add_far(struct ow_delay_sum *sum, i128 x, uint32_t times)
{
	uint64_t size = (uint64_t)(x < 0 ? -x : x);
	u128 square = (u128)size * size, high = (square >> 64) * times;
	sum->sum += x * times;
	ow_delay_sum_add_square(sum, (u128)(uint64_t)square * times);
	ow_delay_sum_add_square(sum, high << 64);
	sum->square_high += (uint64_t)(high >> 64);
}

void ow_delay_sum_merge(struct ow_delay_sum *sum, const struct ow_delay_sum *other)
{
	if (!sum->samples) {
		*sum = *other;
		return;
	}
	/* With x' = x + d: S' = S + n d and S2' = S2 + d (2 S + n d). */
	i128 d = (i128)other->origin - sum->origin, moved = (i128)other->samples * d;
	struct wide cross = wide_mul(wide_from(d), wide_add(wide_from(other->sum), wide_from(other->sum + moved)));
	struct wide square = wide_add(square_wide(sum), wide_add(square_wide(other), cross));
	sum->sum += other->sum + moved;
	sum->square = (u128)square.limb[1] << 64 | square.limb[0];
	sum->square_high = square.limb[2];
	sum->samples += other->samples;
	sum->min = other->min < sum->min ? other->min : sum->min;
	sum->max = other->max > sum->max ? other->max : sum->max;
}

void ow_delay_sum_moments(const struct ow_delay_sum *sum, double *ret_mean_ns, double *ret_stddev_ns)
{
	/* variance = (n S2 - S^2) / n^2 */
	i128 n = sum->samples;
	struct wide s = wide_from(sum->sum);
	struct wide spread = wide_sub(wide_mul(wide_from(n), square_wide(sum)), wide_mul(s, s));
	*ret_mean_ns = (double)((long double)(sum->origin * n + sum->sum) / (long double)n);
	*ret_stddev_ns = (double)(sqrtl(wide_value(spread)) / (long double)n);
}
