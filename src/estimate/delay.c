/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delay statistics of one direction and interval: exact integer moments and a log-linear histogram.
 *
 * Moments: with x = delay - origin (the first sample), S = sum x and S2 = sum x^2 are kept as integers, S2 in 192 bits,
 * so that nothing is rounded or overflows before the division at the end, whatever the clock offset. Below 2^62
 * samples.
 *
 * Histogram: 2^10 slots an octave (loglinear.h): values below 2048 ns exactly, others within 1/2048 = 0.049 %. All
 * slots are reserved at creation; the kernel backs only those touched.
 */
#include "estimate/delay.h"

#include "estimate/loglinear.h"
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BITS 10

typedef __int128 i128;
typedef unsigned __int128 u128;

struct ow_delays {
	uint64_t samples;
	int64_t min, max; /* as all below meaningless while there are no samples */
	int64_t origin;
	i128 sum;             /* S */
	u128 square;          /* S2 modulo 2^128 */
	uint64_t square_high; /* S2 / 2^128 */
	uint64_t slot[OW_LOGLINEAR_SLOTS(BITS)];
};

/* 256-bit two's complement, just enough of it for the variance and for moving the origin. */
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

/* Of a value that is not negative. */
static long double wide_value(struct wide a)
{
	long double value = 0;
	for (int i = 4; i-- > 0;)
		value = value * 0x1p64L + (long double)a.limb[i];
	return value;
}

static struct wide square_wide(const struct ow_delays *delays)
{
	return (struct wide){{(uint64_t)delays->square, (uint64_t)(delays->square >> 64), delays->square_high, 0}};
}

static int slot_of(int64_t delay_ns)
{
	return ow_loglinear_slot(delay_ns, BITS);
}

int ow_delays_create(struct ow_delays **ret_delays)
{
	struct ow_delays *delays = calloc(1, sizeof *delays);
	if (!delays)
		return -ENOMEM;
	*ret_delays = delays;
	return 0;
}

void ow_delays_free(struct ow_delays *delays)
{
	free(delays);
}

void ow_delays_reset(struct ow_delays *delays)
{
	if (!delays->samples)
		return;
	/* Only what is between min and max can be set: resetting costs what was used. */
	int first = slot_of(delays->min), last = slot_of(delays->max);
	memset(delays->slot + first, 0, (size_t)(last - first + 1) * sizeof *delays->slot);
	memset(delays, 0, offsetof(struct ow_delays, slot));
}

static void add_square(struct ow_delays *delays, u128 square)
{
	delays->square_high += __builtin_add_overflow(delays->square, square, &delays->square);
}

/* |x| < 2^64 always, so x^2 fits 128 bits; times x^2 may not. */
static void add_far(struct ow_delays *delays, i128 x, uint32_t times)
{
	uint64_t size = (uint64_t)(x < 0 ? -x : x);
	u128 square = (u128)size * size, high = (square >> 64) * times;
	delays->sum += x * times;
	add_square(delays, (u128)(uint64_t)square * times);
	add_square(delays, high << 64);
	delays->square_high += (uint64_t)(high >> 64);
}

void ow_delays_add(struct ow_delays *delays, int64_t delay_ns, uint32_t times)
{
	if (!times)
		return;
	if (!delays->samples)
		delays->origin = delays->min = delays->max = delay_ns;
	delays->samples += times;
	if (delay_ns < delays->min)
		delays->min = delay_ns;
	if (delay_ns > delays->max)
		delays->max = delay_ns;
	delays->slot[slot_of(delay_ns)] += times;

	int64_t x;
	if (times == 1 && !__builtin_sub_overflow(delay_ns, delays->origin, &x)) {
		delays->sum += x;
		add_square(delays, (u128)((i128)x * x));
	} else {
		add_far(delays, (i128)delay_ns - delays->origin, times);
	}
}

void ow_delays_add_many(struct ow_delays *delays, const int64_t *delay_ns, size_t count)
{
	if (!count)
		return;
	ow_delays_add(delays, delay_ns[0], 1); /* sets the origin if it is the first */
	int64_t min = delays->min, max = delays->max, origin = delays->origin;
	i128 sum = 0;
	for (size_t i = 1; i < count; i++) {
		int64_t d = delay_ns[i], x;
		min = d < min ? d : min;
		max = d > max ? d : max;
		delays->slot[slot_of(d)]++;
		if (__builtin_sub_overflow(d, origin, &x)) {
			add_far(delays, (i128)d - origin, 1);
			continue;
		}
		sum += x;
		add_square(delays, (u128)((i128)x * x));
	}
	delays->samples += count - 1;
	delays->min = min;
	delays->max = max;
	delays->sum += sum;
}

void ow_delays_merge(struct ow_delays *delays, const struct ow_delays *other)
{
	if (!other->samples)
		return;
	if (!delays->samples) {
		delays->origin = other->origin;
		delays->min = other->min;
		delays->max = other->max;
	}
	/* With x' = x + d: S' = S + n d and S2' = S2 + d (2 S + n d). */
	i128 d = (i128)other->origin - delays->origin, moved = (i128)other->samples * d;
	struct wide cross = wide_mul(wide_from(d), wide_add(wide_from(other->sum), wide_from(other->sum + moved)));
	struct wide square = wide_add(square_wide(delays), wide_add(square_wide(other), cross));
	delays->sum += other->sum + moved;
	delays->square = (u128)square.limb[1] << 64 | square.limb[0];
	delays->square_high = square.limb[2];

	delays->samples += other->samples;
	delays->min = other->min < delays->min ? other->min : delays->min;
	delays->max = other->max > delays->max ? other->max : delays->max;
	for (int i = slot_of(other->min), last = slot_of(other->max); i <= last; i++)
		delays->slot[i] += other->slot[i];
}

uint64_t ow_delays_samples(const struct ow_delays *delays)
{
	return delays->samples;
}

/* The smallest k with k / n >= q. Dividing decides, because q itself is a rounded decimal: 0.07 * 100 > 7. */
static uint64_t rank_of(double q, uint64_t n)
{
	double rank = ceil(q * (double)n);
	uint64_t k = rank <= 1 ? 1 : rank >= (double)n ? n : (uint64_t)rank;
	if (k > 1 && (double)(k - 1) / (double)n >= q)
		k--;
	else if (k < n && (double)k / (double)n < q)
		k++;
	return k;
}

double ow_delays_quantile(const struct ow_delays *delays, double q)
{
	uint64_t rank = rank_of(q, delays->samples), below = 0;
	int slot = slot_of(delays->min), last = slot_of(delays->max);
	while (slot < last && below + delays->slot[slot] < rank)
		below += delays->slot[slot++];
	/* The extremes are known exactly. */
	return fmin(fmax(ow_loglinear_value(slot, BITS), (double)delays->min), (double)delays->max);
}

void ow_delays_each(const struct ow_delays *delays, ow_delays_slot slot, void *arg)
{
	if (!delays->samples)
		return;
	for (int i = slot_of(delays->min), last = slot_of(delays->max); i <= last; i++) {
		if (delays->slot[i])
			slot(arg, ow_loglinear_value(i, BITS), delays->slot[i]);
	}
}

void ow_delays_summary(const struct ow_delays *delays, struct ow_delay *ret_delay)
{
	*ret_delay = (struct ow_delay){.samples = delays->samples};
	if (!delays->samples)
		return;
	/* variance = (n S2 - S^2) / n^2 */
	i128 n = delays->samples;
	struct wide sum = wide_from(delays->sum);
	struct wide spread = wide_sub(wide_mul(wide_from(n), square_wide(delays)), wide_mul(sum, sum));
	ret_delay->mean_ns = (double)((long double)(delays->origin * n + delays->sum) / (long double)n);
	ret_delay->stddev_ns = (double)(sqrtl(wide_value(spread)) / (long double)n);
	ret_delay->min_ns = delays->min;
	ret_delay->max_ns = delays->max;
	for (int i = 0; i < OW_QUANTILES; i++)
		ret_delay->quantile_ns[i] = ow_delays_quantile(delays, ow_quantile_level[i]);
}
