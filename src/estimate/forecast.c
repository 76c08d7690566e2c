/* SPDX-License-Identifier: Apache-2.0 */
/* What the next interval is like: forecast.h. */
#include "estimate/forecast.h"

#include "estimate/low_bits.h"
#include "estimate/quantiles.h"
#include <math.h>

/* Extremes of earlier intervals are forgotten by this share in each interval. */
#define FORGET 16
/* Beyond what was seen, in each direction: at least this much. */
#define MARGIN_NS 1000

/* The quantile that has a target. The next sample is another one, so it aims for less. */
#define LEVEL 0.99
#define AIM   (0.9 * OW_FORECAST_ERROR)
#define LEAST 64
#define MOST  (1u << 20)

static unsigned bits_of(uint64_t width)
{
	return width < 2 ? 1 : 64 - (unsigned)__builtin_clzll(width - 1);
}

void ow_forecast_learn(struct ow_forecast *f, const int64_t *delay_ns, size_t count, bool surprised)
{
	if (!count)
		return;
	int64_t least = delay_ns[0], most = delay_ns[count - 1];
	if (f->known && !surprised) {
		int64_t kept_least = f->least_ns + (least - f->least_ns) / FORGET;
		int64_t kept_most = f->most_ns - (f->most_ns - most) / FORGET;
		least = kept_least < least ? kept_least : least;
		most = kept_most > most ? kept_most : most;
	}
	f->known = true;
	f->least_ns = least;
	f->most_ns = most;
}

/* Of sorted delays, the one with this share of them up to it. */
static double at_share(const int64_t *delay_ns, size_t count, double share)
{
	double rank = fmin(fmax(ceil(share * (double)count), 1), (double)count);
	return (double)delay_ns[(size_t)rank - 1];
}

/* Whether a sample of n of such delays would bound the quantile as wanted. */
static bool suffices(const int64_t *delay_ns, size_t count, uint64_t population, uint32_t n, int64_t added_ns)
{
	uint64_t low, high;
	ow_quantile_ranks(population, n, LEVEL, &low, &high);
	if (!low || high > n)
		return false;
	double value = at_share(delay_ns, count, LEVEL) + (double)added_ns;
	double width = at_share(delay_ns, count, (double)high / n) - at_share(delay_ns, count, (double)low / n);
	return width / 2 <= AIM * value;
}

void ow_forecast_learn_sample(struct ow_forecast *f, const int64_t *delay_ns, size_t count, uint64_t population,
                              int64_t added_ns)
{
	uint32_t n = LEAST;
	if (count < LEAST)
		return;
	while (n < MOST && n < population && !suffices(delay_ns, count, population, n, added_ns))
		n += n / 8;
	uint32_t kept = f->sample - f->sample / FORGET;
	f->sample = n > kept ? n : kept;
}

struct ow_delay_window ow_delay_window_of(int64_t least_ns, int64_t most_ns)
{
	unsigned bits = bits_of((uint64_t)most_ns - (uint64_t)least_ns + 1);
	return (struct ow_delay_window){least_ns, bits < OW_LOW_BITS_MAX ? bits : OW_LOW_BITS_MAX};
}

struct ow_delay_window ow_forecast_window(const struct ow_forecast *f, struct ow_delay_window any)
{
	if (!f->known)
		return any;
	/*
	 * The margin is small: one bit more for every packet costs more than the missing bits of the few intervals that
	 * have a delay beyond all of the last ones. What rounding to whole bits adds is above, where delays grow.
	 */
	int64_t margin = (f->most_ns - f->least_ns) / 32 + MARGIN_NS;
	struct ow_delay_window w = ow_delay_window_of(f->least_ns - margin, f->most_ns + margin);
	return w.bits < any.bits ? w : any;
}
