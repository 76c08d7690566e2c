/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/interval_shift.h"

#include "base/sort.h"
#include <math.h>

#define CLEARLY      0.9  /* a higher quantile is taken if it costs less than this share */
#define WORTH_IT     0.8  /* the shift changes if the new one costs less than this share */
#define EARLIER_MOST 0.25 /* of the interval's length, at a boundary */

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

int64_t ow_interval_shift(int64_t current_ns, int64_t length_ns, int64_t *delay_ns, size_t count)
{
	double cost;
	if (!count)
		return current_ns;
	ow_sort_times(delay_ns, count);
	int64_t best = best_of(delay_ns, count, &cost);
	if (cost >= WORTH_IT * cost_of(delay_ns, count, current_ns))
		return current_ns;
	double earliest = (double)current_ns - EARLIER_MOST * (double)length_ns;
	return (double)best < earliest ? (int64_t)earliest : best;
}
