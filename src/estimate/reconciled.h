/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"

/*
 * Delays after reconciliation (formulas.md 3.1 to 3.3), whether it was complete or not. Both points keep (id, time) of
 * their packets. more_bytes counts what they then exchange:
 *
 *  complete    One sum of times a bucket (8 bytes; both know which packets it is over), and the times of the packets
 *              with the smallest ranks (synopsis/bottomk; their ids are not sent). The mean is exact, the standard
 *              deviation is centred over the buckets with a chi-squared interval, and quantiles come from the sample,
 *              calibrated to the exact mean. If there are so few packets that all their times are no more bytes, these
 *              are sent, and everything is exact.
 *  incomplete  Count, digest and sum of times a bucket (20 bytes), over a share of packets such that about one unknown
 *              difference is left a bucket; buckets whose count and digest agree have the same packets. Ranks and times
 *              of a sample.
 */
struct ow_reconciled_options {
	uint32_t buckets; /* standard deviation: relative error 0.71 / sqrt(buckets) */
	uint32_t sample;  /* packets whose delays give the quantiles */
	size_t bytes; /* all messages of a comparison may take so many: the sample takes what is left. 0 = no more */
	bool all;     /* the times of all packets are sent, however many there are, up to OW_RECONCILED_ALL */
};

#define OW_RECONCILED_BUCKETS 1024
#define OW_RECONCILED_SAMPLE  1000
#define OW_RECONCILED_ALL     (1u << 21)

/* What the points agree on before each makes its part. */
struct ow_reconciled_plan {
	bool complete;      /* both points have the same packets */
	uint32_t buckets;   /* 0 (only if complete): the sample is all packets */
	uint32_t sample;    /* packets */
	double differences; /* if not complete: about this many packets are at one point only */
};
/* The plan for `count` packets that both have. */
void ow_reconciled_plan(size_t count, const struct ow_reconciled_options *options, struct ow_reconciled_plan *ret_plan);

struct ow_reconciled_bucket {
	uint64_t time, digest, packets;
};

/* One point's part. A complete part is sent as sums of times and sample_ns only. */
struct ow_reconciled_part {
	uint64_t packets, digest; /* of all packets, whatever share the buckets take */
	struct ow_reconciled_bucket *bucket;
	uint32_t buckets;
	int64_t *sample_ns; /* if complete: times, the largest rank first */
	uint32_t samples;
	struct ow_synopsis *sample; /* if not complete: bottomk */
};

/* Makes the part of a point. 0 or -ENOMEM. */
int ow_reconciled_take(const struct ow_sighting *sightings, size_t count, uint64_t seed,
                       const struct ow_reconciled_plan *plan, struct ow_reconciled_part *ret_part);
/* The places of the packets in the order of sample_ns, if that has all. 0 or -ENOMEM. */
int ow_reconciled_order(const struct ow_sighting *sightings, size_t count, uint64_t seed, uint32_t *ret_place);
void ow_reconciled_part_done(struct ow_reconciled_part *part);
/* Depends on each sum and its bucket. */
uint64_t ow_reconciled_check(const struct ow_reconciled_part *part);
/*
 * The receiver's sums of times, of which only the lowest bits came: mine are those of the sender, of the same packets,
 * and delays are from least_ns on.
 */
void ow_reconciled_restore(struct ow_reconciled_part *part, const struct ow_reconciled_part *mine, unsigned bits,
                           int64_t least_ns);

/* Sorted delays of the sampled packets. */
struct ow_reconciled_delay {
	int64_t *ns; /* freed by the caller */
	size_t count;
};

/*
 * Sets mean_ns, stddev_ns, quantile_ns and useful. a: A's part, b: B's part, of the same plan and seed. common: packets
 * that both have, including those that were left out because their copies differ in number; if there are any, nothing
 * is exact. Unused if the plan is not complete. ret_delay may be NULL. -EBADMSG: the parts are not of the same packets
 * although the plan is complete, or not of this plan. -ENOMEM.
 */
int ow_reconciled_compare(const struct ow_reconciled_plan *plan, const struct ow_reconciled_part *a,
                          const struct ow_reconciled_part *b, uint64_t common, struct ow_estimate *estimate,
                          struct ow_reconciled_delay *ret_delay);

/* All steps for two points at once, with any plan; adds to more_bytes. 0, -EBADMSG, -ENOMEM. */
int ow_reconciled_delays(const struct ow_sighting *a, size_t as, const struct ow_sighting *b, size_t bs,
                         const struct ow_reconciled_plan *plan, uint64_t common, uint64_t seed,
                         struct ow_estimate *estimate);
