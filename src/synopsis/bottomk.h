/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/synopsis.h"

/*
 * A coordinated bottom-k sample (Cohen, Kaplan 2007; formulas.md 3.3; the papers that we implement have no quantiles):
 * the k packets with the smallest keyed hash ("rank"), with their times. Both points use the same ranks, so they keep
 * the same packets if they saw the same, and their times give k uniformly drawn delays. A packet with a rank below the
 * other point's largest rank that the other point does not have is lost or extra: so this is also a sample of the
 * losses.
 *
 * It costs a hash and a comparison for each packet; only k (1 + ln(n / k)) of n packets enter the heap. Packets cannot
 * be removed again, and two samples cannot be subtracted.
 *
 * The encoding, after the common header (little-endian; numbers in 7 bits a byte, the lowest first, the top bit set on
 * all bytes but the last, no more bytes than needed):
 *    0  k (4), packets that follow (4), at most k
 *    8  for each packet in order of (rank, time): rank less the one before, time (zigzag: 0, -1, 1 are 0, 1, 2)
 * About 12 bytes a packet at 1e6 packets a second.
 *
 * Example: k = 2, ranks 5, 9, 7 with times 100, 101, 102: the sample is (5, 100), (7, 102); its bytes are 2 0 0 0  2 0
 * 0 0  5 200 1  2 204 1.
 */
#define OW_BOTTOMK_MAX (1u << 21) /* an entry takes at most 20 bytes: below OW_SYNOPSIS_BYTES_MAX */

struct ow_bottomk_entry {
	uint64_t rank;
	int64_t time_ns;
};

struct ow_bottomk {
	struct ow_synopsis synopsis;
	uint32_t k, count;
	uint64_t key;
	bool sorted;                    /* entries are in descending order, which is also a heap */
	struct ow_bottomk_entry *entry; /* a heap with the largest (rank, time) on top */
};

extern const struct ow_synopsis_ops ow_bottomk_ops;

/* 1 <= k <= OW_BOTTOMK_MAX, else -EINVAL; -ENOMEM. */
int ow_bottomk_create(uint32_t k, uint64_t seed, struct ow_synopsis **ret_synopsis);
/* The k for which the quantile q is within `error` of its rank (0.001: between q - 0.001 and q + 0.001) in 95 % of
 * cases. */
uint32_t ow_bottomk_size(double q, double error);
/* Uses as many entries as fit into the memory, but not more than packets. */
int ow_bottomk_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                          struct ow_synopsis **ret_synopsis);

/*
 * Returns the entries, the largest (rank, time) first. It sorts in place: as with encoding, two threads must not call
 * it at once, and the next add moves the entries.
 */
const struct ow_bottomk_entry *ow_bottomk_entries(const struct ow_synopsis *synopsis, uint32_t *ret_count);
