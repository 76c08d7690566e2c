/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"
#include "synopsis/moments.h"

/*
 * Exact mean and centred standard deviation from sums over the same packets at both points, after reconciliation.
 * counts: the packets of each bucket (ow_moments_count over the shared packets). -ENOMEM.
 */
int ow_moments_values(const struct ow_moments *a, const struct ow_moments *b, const uint32_t *counts,
                      struct ow_value *ret_mean, struct ow_value *ret_stddev);

/*
 * Takes the counts from the cache of either point. Estimates only if both points saw the same number of packets; with
 * sums alone nothing more can be checked.
 */
int ow_moments_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate);
