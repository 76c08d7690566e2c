/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates quantiles of a population from a sample: quantiles.h has the method. */
#include "estimate/quantiles.h"

#include <math.h>

#define TAIL 0.025
/* Beyond this many standard deviations from the mean probabilities are negligible: 1e-30. */
#define DEVIATIONS 12

/* log of the binomial coefficient N over K */
static double log_choose(double n, double k)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/*
 * The smallest j with P(J <= j) > p, where J is the number of marked items among `count` drawn from `population`, which
 * has `marked` marked items (hypergeometric; binomial as the population grows).
 */
static uint64_t hypergeometric_above(double population, double marked, double count, double p)
{
	double share = marked / population, mean = count * share;
	double deviation = sqrt(mean * (1 - share) * (1 - count / population) * population / fmax(population - 1, 1));
	double least = fmax(0, count + marked - population), most = fmin(count, marked);
	double j = fmax(least, floor(mean - DEVIATIONS * deviation - DEVIATIONS));
	double probability =
		exp(log_choose(marked, j) + log_choose(population - marked, count - j) - log_choose(population, count));
	double sum = probability;
	while (sum <= p && j < most) {
		probability *= (marked - j) * (count - j) / ((j + 1) * (population - marked - count + j + 1));
		sum += probability;
		j++;
	}
	return (uint64_t)j;
}

/*
 * The quantile is the K-th smallest of the population, K = ceil(q N). The l-th smallest of the sample is not above it
 * if at least l of the K smallest were drawn; the u-th is not below it if fewer than u of the K - 1 smallest were
 * drawn.
 */
void ow_quantile_ranks(uint64_t population, uint64_t count, double q, uint64_t *ret_low, uint64_t *ret_high)
{
	double size = (double)population, drawn = (double)count, below = fmin(fmax(ceil(q * size), 1), size);
	/* P(J < l) <= 2.5 %: the largest such l is the smallest j with P(J <= j) > 2.5 %. */
	*ret_low = hypergeometric_above(size, below, drawn, TAIL);
	/* P(J' <= u - 1) >= 97.5 %: the smallest such u. */
	*ret_high = hypergeometric_above(size, below - 1, drawn, 1 - TAIL) + 1;
}

/* Computes relative to the first value, so that a clock offset does not cost precision. */
static void moments(const int64_t *x, size_t count, double *ret_mean, double *ret_variance)
{
	double sum = 0, squares = 0;
	for (size_t i = 0; i < count; i++)
		sum += (double)(x[i] - x[0]);
	double mean = sum / (double)count;
	for (size_t i = 0; i < count; i++) {
		double e = (double)(x[i] - x[0]) - mean;
		squares += e * e;
	}
	*ret_mean = (double)x[0] + mean;
	*ret_variance = squares / (double)count;
}

/* The smallest x for which the weights up to x add up to q, for all q in one pass. */
static void weighted(const int64_t *x, size_t count, double mean_ns, struct ow_value *quantile)
{
	double m, variance, sum = 0, k = (double)count, slope = 0;
	moments(x, count, &m, &variance);
	if (!isnan(mean_ns) && variance > 0)
		slope = (mean_ns - m) / variance;
	int q = 0;
	for (size_t i = 0; i < count && q < OW_QUANTILES; i++) {
		sum += (1 + slope * ((double)x[i] - m)) / k;
		/* Tolerates rounding in the last digits: 0.9 of 10 is the ninth. */
		while (q < OW_QUANTILES && sum >= ow_quantile_level[q] - 1e-9)
			quantile[q++].value = (double)x[i];
	}
	while (q < OW_QUANTILES)
		quantile[q++].value = (double)x[count - 1];
}

static void bound(const int64_t *x, size_t count, uint64_t population, double level, struct ow_value *quantile)
{
	uint64_t low, high;
	if (population <= count) {
		size_t rank = (size_t)fmax(ceil(level * (double)count - 1e-9), 1);
		double exact = (double)x[rank - 1];
		*quantile = ow_value_exact(exact);
		return;
	}
	ow_quantile_ranks(population, count, level, &low, &high);
	quantile->status = OW_VALUE_ESTIMATED;
	quantile->low = low ? (double)x[low - 1] : -INFINITY;
	quantile->high = high <= count ? (double)x[high - 1] : INFINITY;
	quantile->value = fmin(fmax(quantile->value, quantile->low), quantile->high);
}

void ow_quantiles(const int64_t *x, size_t count, uint64_t population, double mean_ns,
                  struct ow_value ret_quantile[OW_QUANTILES])
{
	for (int q = 0; q < OW_QUANTILES; q++)
		ret_quantile[q] = (struct ow_value){.status = OW_VALUE_NONE, .reason = OW_REASON_NO_COMMON_SAMPLE};
	if (count == 0)
		return;
	weighted(x, count, mean_ns, ret_quantile);
	for (int q = 0; q < OW_QUANTILES; q++) {
		ret_quantile[q].reason = OW_NO_REASON;
		bound(x, count, population, ow_quantile_level[q], &ret_quantile[q]);
	}
}
