/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/delay.h"
#include "estimate/estimate.h"

/*
 * Combines the delays of several groups of packets: packets that arrived in time and late ones, or the intervals of a
 * run. For each group either all delays are known, or its mean and standard deviation with their intervals and a
 * sample.
 *
 *   mean      sum of n_i mu_i over n; its interval from those of the groups, whose errors are independent
 *   stddev    sigma^2 = sum of n_i (sigma_i^2 + (mu_i - mu)^2) over n; likewise
 *   quantiles of all samples, each weighted by the packets it stands for (calibrated to the mean of its group,
 *             formulas.md 3.3). The interval is that of order statistics for a sample of
 *             k = n^2 / sum of (n_i^2 / k_i)(1 - k_i / n_i) packets: groups that are known in full add no error.
 */
struct ow_pool;

int ow_pool_create(struct ow_pool **ret_pool);
void ow_pool_free(struct ow_pool *pool);
void ow_pool_reset(struct ow_pool *pool);
void ow_pool_copy(struct ow_pool *pool, const struct ow_pool *from);

struct ow_pool_group {
	double packets;                     /* packets that it stands for */
	struct ow_value mean_ns, stddev_ns; /* a group whose mean is NONE is ignored */
	const int64_t *delay_ns;            /* a uniform sample of the group */
	size_t delays;
};
void ow_pool_add(struct ow_pool *pool, const struct ow_pool_group *group);
/* Adds a group where each known delay stands for `weight` packets; 1 = all are known. */
void ow_pool_add_delays(struct ow_pool *pool, const struct ow_delays *delays, double weight);

double ow_pool_packets(const struct ow_pool *pool);
/* NONE without packets. EXACT if all groups are exact. */
void ow_pool_values(const struct ow_pool *pool, struct ow_value *ret_mean_ns, struct ow_value *ret_stddev_ns,
                    struct ow_value ret_quantile_ns[OW_QUANTILES]);
