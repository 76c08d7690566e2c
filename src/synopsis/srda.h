/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/hash.h"
#include "synopsis/synopsis.h"

/*
 * sRDA, the simple Reconcilable Difference Aggregator: Fu, Barlet-Ros, Li, "Every Timestamp Counts", IEEE/ACM ToN 2018,
 * section IV. One flat array of m cells; a packet enters k of them. A cell holds
 *
 *     ID   XOR of the ids     TS   sum of the times, mod 2^64     IDSH   XOR of the ids' hashes     count (Delta)
 *
 * A cell of the difference B - A holds one packet if its count is +-1 and IDSH is the hash of ID.
 *
 * Where we deviate from the paper:
 * - The k cells of a packet are always different. The paper uses k independent places. If two of them are the same, the
 *   packet has less weight in the mean.
 * - IDSH and count have 32 bits, a cell 24 bytes instead of 32.
 * - A pure cell must also be one of the cells of its id.
 *
 * What the paper shows with it: neighbouring cells share packets, so collapsing them in pairs for the standard
 * deviation cancels what they share (section IV-D: -6089.6 for a variance). The centred estimator uses no pairs and
 * does not fail.
 *
 * Encoding, little-endian, after the common header:
 *     0  k (1), reserved (3, zero)
 *     4  m, cells (4)
 *     8  m cells of 24 bytes: ID (8), TS (8), IDSH (4), count (4)
 *
 * Example, figure 3 and 4, five cells (times of A and B): P1 70,110 in cells 1 and 2; P2 150,260 in 4 and 5; P4 250,390
 * in 3 and 4; P6 330,450 in 2 and 5; P3, P5 only at A, P9 only at B. With these three erased, A has TS = 70 400 250 400
 * 480, B 110 560 390 650 710, counts 1 2 1 2 2: the mean is 820/8 = 102.5. (tests/estimate/test_rda_estimate.c)
 */

#define OW_SRDA_HASHES_MAX 4
#define OW_SRDA_CELLS_MAX  ((OW_SYNOPSIS_BYTES_MAX - 8) / 24)

struct ow_srda_cell {
	uint64_t id, ts;
	uint32_t idsh, count;
};

struct ow_srda_params {
	uint32_t hashes; /* k, 1 .. OW_SRDA_HASHES_MAX */
	uint32_t cells;  /* m, at least k */
};

struct ow_srda {
	struct ow_synopsis base;
	struct ow_srda_params params;
	uint64_t hash_key, place_key[OW_SRDA_HASHES_MAX / 2];
	struct ow_srda_cell cell[];
};

extern const struct ow_synopsis_ops ow_srda_ops;

/* -EINVAL for parameters out of range, -ENOMEM. */
int ow_srda_create(const struct ow_srda_params *params, uint64_t seed, struct ow_synopsis **ret_synopsis);
/* Uses up to `memory` bytes: 4 hashes if they decode the expected differences completely, else 3, else 2. */
int ow_srda_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis **ret_synopsis);

static inline const struct ow_srda *ow_srda_of(const struct ow_synopsis *synopsis)
{
	return (const struct ow_srda *)synopsis;
}

/* The paper's H. */
static inline uint32_t ow_srda_hash(const struct ow_srda *srda, uint64_t id)
{
	return (uint32_t)(ow_mum64(id ^ srda->hash_key, UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* The k different cells of an id: the j-th is drawn from the m - j that are left, skipping those drawn before. */
static inline void ow_srda_places(const struct ow_srda *srda, uint64_t id, uint32_t *ret_place)
{
	uint32_t taken[OW_SRDA_HASHES_MAX]; /* ascending */
	uint64_t hash = 0;
	for (uint32_t j = 0; j < srda->params.hashes; j++) {
		hash = j % 2 ? hash >> 32 : ow_mix64(id ^ srda->place_key[j / 2]);
		uint32_t place = (uint32_t)((hash & UINT32_MAX) * (srda->params.cells - j) >> 32);
		for (uint32_t i = 0; i < j; i++)
			place += place >= taken[i];
		ret_place[j] = place;
		for (uint32_t i = 0; i < j; i++) {
			uint32_t other = taken[i];
			taken[i] = other < place ? other : place;
			place = other < place ? place : other;
		}
		taken[j] = place;
	}
}
