/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/finecomb.h"

/*
 * Repairs B's buckets with B's stash: for a bucket that differs from A's, finds the stash entries whose XOR is the
 * difference of the digests and whose signed number (entries to add minus entries to remove) is the difference of the
 * counters. The paper tries all 2^s subsets; the XOR is a linear system over GF(2), so s entries need s^2 steps.
 */
struct ow_recovered_bucket {
	bool clean;         /* the same packets at both points, possibly after repair */
	uint64_t packets;   /* of A; all of them are at B if clean */
	int64_t delay_ns;   /* sum of the delays, if clean */
	int64_t difference; /* C_A - C_B after repair; 0 if clean */
	uint16_t back, out; /* stash entries that were added, removed */
};

struct ow_recovery {
	uint32_t buckets;
	struct ow_recovered_bucket *bucket;
};

/*
 * Entries of one bucket that are used, those nearest to the boundaries first. A random difference of digests is the XOR
 * of some of n entries with probability 2^(n-64): 40 give one false repair in 10^7, fewer because of the count.
 */
#define OW_RECOVER_ENTRIES_MAX 40u

/* The synopses must be comparable. stash: false does not use it (FineComb-). -ENOMEM. */
int ow_finecomb_recover(const struct ow_finecomb *a, const struct ow_finecomb *b, bool stash,
                        struct ow_recovery *ret_recovery);
void ow_recovery_done(struct ow_recovery *recovery);

/*
 * Finds the entries whose XOR is `digest` and whose signs sum to `count`. Returns true and the subset as a mask. At
 * most OW_RECOVER_ENTRIES_MAX entries. With dependent digests (copies of a packet) several subsets may be possible; the
 * earlier entries are preferred.
 */
bool ow_recover_subset(const uint64_t *digests, const int8_t *signs, unsigned entries, uint64_t digest, int64_t count,
                       uint64_t *ret_mask);
