/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/synopsis.h"

/*
 * MinHash, the estimator by which the RDA paper sizes its table after the interval (section VIII, late binding; Broder
 * et al. 2000). Each of s slots keeps the smallest hash of its packets. The share of slots that agree at both points
 * estimates the Jaccard similarity J, and the number of differences is (1 - J) / (1 + J) (n_A + n_B).
 *
 * It cannot detect few differences among many packets: one slot of 1024 that differs stands for n / 1024 of them. AMS
 * (synopsis/ams.h) can, and is the default; MinHash is here for comparison.
 *
 * Where we deviate from the paper: one hash for each packet selects a slot and a value ("one-permutation"), instead of
 * s hashes for each packet. For n well above s both have the same distribution, and it is s times faster. Slots that
 * are empty at both points do not count.
 *
 * Merging takes the smaller value. Packets cannot be removed, and a difference has no meaning: remove and subtract are
 * NULL.
 *
 * Encoding, little-endian, after the common header:
 *     0  slots (4), reserved (4, zero)
 *     8  the slots, 8 bytes each; all ones = empty
 *
 * Example: of 1024 slots 1000 agree, A and B saw 1e6 packets each: J = 0.977, d = 0.0119 * 2e6 = 23715.
 */

#define OW_MINHASH_SLOTS     1024 /* of the paper, 8 KB */
#define OW_MINHASH_SLOTS_MAX ((OW_SYNOPSIS_BYTES_MAX - 8) / 8)

struct ow_minhash {
	struct ow_synopsis base;
	uint64_t key;
	uint32_t slots;
	uint64_t slot[]; /* UINT64_MAX = empty */
};

extern const struct ow_synopsis_ops ow_minhash_ops;

/* -EINVAL for no or too many slots, -ENOMEM. */
int ow_minhash_create(uint32_t slots, uint64_t seed, struct ow_synopsis **ret_synopsis);
int ow_minhash_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                          struct ow_synopsis **ret_synopsis);

/* Counts the slots that are used at either point, and those of them that agree. The synopses must be comparable. */
void ow_minhash_compare(const struct ow_synopsis *a, const struct ow_synopsis *b, uint32_t *ret_used,
                        uint32_t *ret_same);
