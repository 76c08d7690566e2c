/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"

/*
 * Estimates lost and extra packets from the differences of counters d_j = C_A - C_B of buckets that were chosen by
 * hash. A bucket has l_j lost and x_j extra packets, both Poisson: sum d_j = l - x, and the variance of d_j estimates
 * (l + x)/m. So x = (m var(d) - sum d)/2, with variance m (v^2/2) + x, v = var(d). The difference l - x of all packets
 * is known without sampling, so x is the only unknown. Banks are averaged by the inverse of their variance.
 */
struct ow_losses {
	bool surplus;            /* some bucket has more packets at B: there are certainly extra packets */
	double weight, weighted; /* sums over banks of 1/variance, and of the estimate times that */
	double sampled;          /* share of the packets that all banks take together */
	double buckets;
	double known; /* extra packets in the differences that are counted elsewhere */
};

/* Share of the buckets with equal counters that hold different packets nevertheless: l_j = x_j > 0. */
double ow_losses_mixed(double lost_per_bucket, double extra_per_bucket);
/* Whether there is evidence of extra packets beyond the difference of the counts. */
bool ow_losses_disordered(const struct ow_losses *losses, double sent, double received);

/* difference: d_j of the buckets of a bank; share: of the packets that the bank takes, > 0. */
void ow_losses_add_bank(struct ow_losses *losses, const int64_t *difference, size_t buckets, double share);

/* The estimate of all extra packets, including known ones; without buckets its variance is INFINITY. */
double ow_losses_extra(const struct ow_losses *losses, double *ret_variance);
/* sent, received: all packets that the points saw. Fills lost, extra, loss_ratio. */
void ow_losses_values(const struct ow_losses *losses, double sent, double received, struct ow_estimate *estimate);
