/* SPDX-License-Identifier: Apache-2.0 */
/* COLATE's theorems 2 to 4 (section 4 of the paper), with the closed forms of formulas 1. */
#include "flows/colate_theorems.h"

#include "synopsis/colate.h"
#include <assert.h>
#include <math.h>

double ow_colate_flow_sum(double n, double m, double counters_sum, double all_sum)
{
	return (n * counters_sum - m * all_sum) / (n - m);
}

/* Abramowitz and Stegun 6.3.5 and 6.3.18; x > 0. */
static double digamma(double x)
{
	double sum = 0;
	while (x < 10)
		sum -= 1 / x++;
	double y = 1 / (x * x);
	return sum + log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y / 240)));
}

double ow_colate_own_part(double n, double S, double tau)
{
	/* xi = S - w: psi(tau - xi + 1) - psi(xi + 1) falls from +infinity to -infinity in -1 < xi < tau + 1. */
	double low = -1, high = tau + 1, want = log(n - 1);
	for (int i = 0; i < 200; i++) {
		double xi = (low + high) / 2;
		if (xi <= low || xi >= high)
			break;
		*(digamma(tau - xi + 1) - digamma(xi + 1) > want ? &low : &high) = xi;
	}
	return S - (low + high) / 2;
}

double ow_colate_own_part_closed(double n, double S, double tau)
{
	return S - ((tau + 1) / n - 0.5);
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
