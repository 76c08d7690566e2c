/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/interval_shift.h"

#include "base/sort.h"
#include <math.h>

#define CLEARLY      0.9  /* a higher quantile is taken if it costs less than this share */
#define WORTH_IT     0.8  /* the shift changes if the new one costs less than this share */
#define EARLIER_MOST 0.25 /* of the interval's length, at a boundary */
#define LATER_MOST   0.5  /* the same; or, if that is more, */
#define LATER_WAY    8    /* a part of the way */

/* Packets a boundary in another interval, for 1 packet a nanosecond: the mean of |d - shift|. */
static double cost_of(const int64_t *delay_ns, size_t count, int64_t shift_ns)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += fabs((double)delay_ns[i] - (double)shift_ns);
	return count ? sum / (double)count : 0;
}

/* The quantile that the shift should be, and its cost. */
static int64_t best_of(const int64_t *sorted, size_t count, double *ret_cost)
{
	static const double quantiles[] = {0.1, 0.25, 0.5};
	int64_t best = 0;
	double least = INFINITY;
	for (size_t q = 0; q < sizeof quantiles / sizeof *quantiles; q++) {
		int64_t shift = sorted[(size_t)(quantiles[q] * (double)(count - 1))];
		double cost = cost_of(sorted, count, shift);
		if (cost >= CLEARLY * least)
			continue;
		best = shift;
		least = cost;
	}
	*ret_cost = least;
	return best;
}

static double most_of(double current, double length, double best)
{
	return fmin(best, current + fmax(LATER_MOST * length, (best - current) / LATER_WAY));
}

int64_t ow_interval_shift(int64_t current_ns, int64_t length_ns, int64_t least_ns, int64_t *delay_ns, size_t count)
{
	double cost, current = (double)current_ns, earliest = current - EARLIER_MOST * (double)length_ns;
	if (!count)
		return least_ns >= current_ns ? current_ns : (double)least_ns < earliest ? (int64_t)earliest : least_ns;
	ow_sort_times(delay_ns, count);
	int64_t best = best_of(delay_ns, count, &cost);
	if (cost >= WORTH_IT * cost_of(delay_ns, count, current_ns))
		return current_ns;
	if (best > current_ns && least_ns != OW_INTERVAL_SHIFT_FIRST)
		return (int64_t)most_of(current, (double)length_ns, (double)best);
	return (double)best < earliest ? (int64_t)earliest : best;
}
