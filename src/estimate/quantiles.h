/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"

/*
 * Quantiles from a uniform sample without replacement (synopsis/bottomk), formulas.md 3.3.
 *
 * The point estimate weights the sample so that its mean is the exact one, if that is known:
 *
 *   w_i = (1 + (mu - m)(x_i - m) / s^2) / k,   m and s^2 mean and variance of the sample of k.
 *
 * The interval comes from the order statistics of the unweighted sample and holds for any distribution. If even the
 * largest sample may be below the quantile, it has no upper bound: INFINITY.
 */

/* x: sorted ascending. population: number of packets that the sample is drawn from (at least count). mean_ns: NAN =
 * unknown. */
void ow_quantiles(const int64_t *x, size_t count, uint64_t population, double mean_ns,
                  struct ow_value ret_quantile[OW_QUANTILES]);

/*
 * For a sample of `count` from `population`: the 1-based ranks between which the population's q-quantile (the smallest
 * x with F(x) >= q) lies in at least 95 % of cases, 2.5 % on each side. *ret_low = 0, *ret_high = count + 1: not
 * bounded.
 */
void ow_quantile_ranks(uint64_t population, uint64_t count, double q, uint64_t *ret_low, uint64_t *ret_high);
