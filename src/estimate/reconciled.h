/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ESTIMATE_RECONCILED_H
#define OW_ESTIMATE_RECONCILED_H

#include "estimate/estimate.h"

/*
 * Delays after two points have found out which packets they share (formulas.md 3.1 to 3.3), and when they could not.
 * Both keep (id, time) of their packets; what they then exchange is counted in more_bytes:
 *
 *  complete    One sum of times a bucket (8 bytes; both know which packets it is over), and the times of the packets
 *              with the smallest ranks (synopsis/bottomk; their ids need not travel). The mean is exact, the standard
 *              deviation centred over the buckets with a chi-squared interval, quantiles come from the sample,
 * calibrated to the exact mean. If there are so few packets that all their times are no more bytes, these are sent, and
 *              everything is exact.
 *  incomplete  Count, digest and sum of times a bucket (20 bytes), over a share of packets such that about one unknown
 *              difference is left a bucket; buckets whose count and digest agree hold the same packets. Ranks and times
 *              of a sample.
 */
struct ow_reconciled_options {
	uint32_t buckets; /* standard deviation: relative error 0.71 / sqrt(buckets) */
	uint32_t sample;  /* packets whose delays give the quantiles */
};

#define OW_RECONCILED_BUCKETS 1024
#define OW_RECONCILED_SAMPLE  1000

/*
 * Fills mean_ns, stddev_ns, quantile_ns and useful, adds to more_bytes. a, b: the same `count` ids in any order, with
 * the times of each point. common: packets that both have, those included that were left out because their copies
 * differ in number; if there are any, nothing is exact. 0 or -ENOMEM.
 */
int ow_reconciled_delays(const struct ow_stamp *a, const struct ow_stamp *b, size_t count, uint64_t common,
                         uint64_t seed, const struct ow_reconciled_options *options, struct ow_estimate *estimate);

/* Likewise, where about `differences` of the packets, unknown which, are only at one point. */
int ow_unreconciled_delays(const struct ow_stamp *a, size_t as, const struct ow_stamp *b, size_t bs, double differences,
                           uint64_t seed, const struct ow_reconciled_options *options, struct ow_estimate *estimate);

#endif
