/* SPDX-License-Identifier: Apache-2.0 */
/* COLATE's theorems 2 to 4 (section 4 of the paper), with the closed forms of formulas 1. */
#include "flows/colate_theorems.h"

#include "synopsis/colate.h"
#include <assert.h>

double ow_colate_flow_sum(double n, double m, double counters_sum, double all_sum)
{
	return (n * counters_sum - m * all_sum) / (n - m);
}

double ow_colate_squares(const double *d, uint32_t m, uint32_t repetitions, struct ow_random *random)
{
	double order[OW_COLATE_SPREAD_MAX], sum = 0;
	assert(m >= 2 && m <= OW_COLATE_SPREAD_MAX && repetitions);
	for (uint32_t j = 0; j < m; j++)
		order[j] = d[j];
	for (uint32_t r = 0; r < repetitions; r++) {
		for (uint32_t j = m - 1; j > 0; j--) {
			uint32_t k = (uint32_t)ow_random_below(random, j + 1);
			double swap = order[j];
			order[j] = order[k];
			order[k] = swap;
		}
		/* (9), (10): pairs of counters, one with the sign +, one with -. */
		for (uint32_t l = 0; l + 1 < m; l += 2)
			sum += (order[l + 1] - order[l]) * (order[l + 1] - order[l]);
	}
	return sum / repetitions * m / (m - m % 2);
}

double ow_colate_squares_closed(const double *d, uint32_t m)
{
	double mean = 0, sum = 0;
	assert(m >= 2);
	for (uint32_t j = 0; j < m; j++)
		mean += d[j] / m;
	for (uint32_t j = 0; j < m; j++)
		sum += (d[j] - mean) * (d[j] - mean);
	return sum * m / (m - 1);
}
