/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delay statistics of one direction and interval: exact integer moments (delay_sum.h) and a log-linear histogram.
 *
 * Histogram: 2^10 slots an octave (loglinear.h): values below 2048 ns exactly, others within 1/2048 = 0.049 %. All
 * slots are reserved at creation; the kernel allocates only the pages that are used.
 */
#include "estimate/delay.h"

#include "estimate/delay_sum.h"
#include "estimate/loglinear.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BITS 10

struct ow_delays {
	struct ow_delay_sum sum; /* samples, min and max also describe the slots */
	uint64_t slot[OW_LOGLINEAR_SLOTS(BITS)];
};

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
	if (!delays->sum.samples)
		return;
	/* Only slots between min and max can be set, so the cost of a reset depends on the range used. */
	int first = slot_of(delays->sum.min), last = slot_of(delays->sum.max);
	memset(delays->slot + first, 0, (size_t)(last - first + 1) * sizeof *delays->slot);
	delays->sum = (struct ow_delay_sum){0};
}

void ow_delays_add(struct ow_delays *delays, int64_t delay_ns, uint32_t times)
{
	if (!times)
		return;
	ow_delay_sum_add(&delays->sum, delay_ns, times);
	delays->slot[slot_of(delay_ns)] += times;
}

void ow_delays_add_many(struct ow_delays *delays, const int64_t *delay_ns, size_t count)
{
	if (!count)
		return;
	ow_delays_add(delays, delay_ns[0], 1); /* sets the origin if it is the first */
	struct ow_delay_sum *total = &delays->sum;
	int64_t min = total->min, max = total->max, origin = total->origin;
	__int128 sum = 0;
	for (size_t i = 1; i < count; i++) {
		int64_t d = delay_ns[i], x;
		min = d < min ? d : min;
		max = d > max ? d : max;
		delays->slot[slot_of(d)]++;
		if (__builtin_sub_overflow(d, origin, &x)) {
			ow_delay_sum_add_far(total, (__int128)d - origin, 1);
			continue;
		}
		sum += x;
		ow_delay_sum_add_square(total, (unsigned __int128)((__int128)x * x));
	}
	total->samples += count - 1;
	total->min = min;
	total->max = max;
	total->sum += sum;
}

void ow_delays_merge(struct ow_delays *delays, const struct ow_delays *other)
{
	if (!other->sum.samples)
		return;
	ow_delay_sum_merge(&delays->sum, &other->sum);
	for (int i = slot_of(other->sum.min), last = slot_of(other->sum.max); i <= last; i++)
		delays->slot[i] += other->slot[i];
}

uint64_t ow_delays_samples(const struct ow_delays *delays)
{
	return delays->sum.samples;
}

void ow_delays_range(const struct ow_delays *delays, int64_t *ret_min_ns, int64_t *ret_max_ns)
{
	*ret_min_ns = delays->sum.min;
	*ret_max_ns = delays->sum.max;
}

/* The smallest k with k / n >= q. Compares quotients, because q is a rounded decimal: 0.07 * 100 > 7. */
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
	uint64_t rank = rank_of(q, delays->sum.samples), below = 0;
	int slot = slot_of(delays->sum.min), last = slot_of(delays->sum.max);
	while (slot < last && below + delays->slot[slot] < rank)
		below += delays->slot[slot++];
	/* Minimum and maximum are exact. */
	return fmin(fmax(ow_loglinear_value(slot, BITS), (double)delays->sum.min), (double)delays->sum.max);
}

/* Half of the width of the slot: how far a delay may be from the middle. */
static double error_of(double delay_ns)
{
	int shift = fabs(delay_ns) < 2 << BITS ? 0 : ilogb(delay_ns) - BITS;
	return (ldexp(1, shift) - 1) / 2;
}

double ow_delay_jitter_error(double median_ns, double q95_ns)
{
	return error_of(median_ns) + error_of(q95_ns);
}

void ow_delays_each(const struct ow_delays *delays, ow_delays_slot slot, void *arg)
{
	if (!delays->sum.samples)
		return;
	for (int i = slot_of(delays->sum.min), last = slot_of(delays->sum.max); i <= last; i++) {
		if (delays->slot[i])
			slot(arg, ow_loglinear_value(i, BITS), delays->slot[i]);
	}
}

void ow_delays_summary(const struct ow_delays *delays, struct ow_delay *ret_delay)
{
	*ret_delay = (struct ow_delay){.samples = delays->sum.samples};
	if (!delays->sum.samples)
		return;
	ow_delay_sum_moments(&delays->sum, &ret_delay->mean_ns, &ret_delay->stddev_ns);
	ret_delay->min_ns = delays->sum.min;
	ret_delay->max_ns = delays->sum.max;
	for (int i = 0; i < OW_QUANTILES; i++)
		ret_delay->quantile_ns[i] = ow_delays_quantile(delays, ow_quantile_level[i]);
}
