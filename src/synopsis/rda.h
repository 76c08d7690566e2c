/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/hash.h"
#include "synopsis/synopsis.h"

/*
 * RDA, the Reconcilable Difference Aggregator: Fu, Barlet-Ros, Li, "Every Timestamp Counts", IEEE/ACM ToN 2018, section
 * V. k banks of m cells; a packet enters one cell of each bank. A cell holds
 *
 *     ID     XOR of the ids            TS   sum of the times, mod 2^64            count (the paper's Delta)
 *
 * The difference of two RDAs, B - A, holds only what the points do not share: a cell with count +1 and one id is a
 * packet that only B saw, with count -1 one that only A saw. Peeling (reconcile/rda_peel.h) removes these one by one.
 * The points then erase them from both tables, with the times in their caches, and what is left is common to both
 * (estimate/rda_estimate.h).
 *
 * Where we deviate from the paper (docs/reproduction.md has the measurements):
 * - Ids contain a check: the low 16 bits are replaced by a nonlinear keyed hash of the upper 48. In the paper a cell is
 *   pure if its count is +-1 and its ID hashes to the cell. Of the cells with count +-1 that hold several packets, one
 *   in m passes that test, and decoding does not end. `checked = false` stores the ids unchanged, as published.
 * - k is 1 to 8. "More than two hash functions hurt" is a consequence of that weak test. With checked ids, 3 banks
 *   decode completely up to a load of 0.75 packets a cell and 4 up to 0.7 with less risk of failure, while 2 banks fail
 *   in 13 % of cases even at a quarter.
 * - Counts have 32 bits, a cell 20 bytes instead of 24.
 *
 * Encoding, little-endian, after the common header:
 *     0  banks (1), flags (1; bit 0: checked ids), reserved (2, zero)
 *     4  m, cells of a bank (4)
 *     8  banks * m cells, bank after bank, of 20 bytes: ID (8), TS (8), count (4)
 *
 * Example, two banks of two cells, unchecked: A saw packets 5 at 10 and 6 at 20, B only 5 at 17. If 5 goes to cells 0
 * and 1, 6 to cells 0 and 0:
 *     A  {3,30,2} {0,0,0} | {6,20,1} {5,10,1}
 *     B  {5,17,1} {0,0,0} | {0,0,0} {5,17,1}
 * B - A has ID and count  {6,-1} {0,0} | {6,-1} {0,0}: 6 is lost. Erased from A with its cached time 20, both tables
 * agree, and the delay is 17 - 10 in every bank.
 */

#define OW_RDA_BANKS_MAX 8
/* Cells of all banks: the most that fit into an encoding. */
#define OW_RDA_CELLS_MAX ((OW_SYNOPSIS_BYTES_MAX - 8) / 20)
/* The low bits of a checked id. */
#define OW_RDA_CHECK_MASK UINT64_C(0xffff)
/* Multipliers of the hashes. Ids are already uniform, so one folded product each is enough, with any odd number. */
#define OW_RDA_CHECK_MUL UINT64_C(0x9e3779b97f4a7c15)
#define OW_RDA_PLACE_MUL UINT64_C(0xd6e8feb86659fd93)

struct ow_rda_cell {
	uint64_t id, ts;
	uint32_t count;
} __attribute__((packed, aligned(4)));

struct ow_rda_params {
	uint32_t banks; /* k, 1 .. OW_RDA_BANKS_MAX */
	uint32_t cells; /* m, of each bank, at least 1 */
	bool checked;   /* ids with a check; false: as published */
};

struct ow_rda {
	struct ow_synopsis base;
	struct ow_rda_params params;
	uint64_t check_key;
	uint64_t place_key[OW_RDA_BANKS_MAX / 2]; /* each for two banks */
	struct ow_rda_cell cell[];
};

extern const struct ow_synopsis_ops ow_rda_ops;

/* -EINVAL for parameters out of range, -ENOMEM. */
int ow_rda_create(const struct ow_rda_params *params, uint64_t seed, struct ow_synopsis **ret_synopsis);

/*
 * Uses up to `memory` bytes: 4 banks if they decode the expected differences (lost, and reordered at both ends)
 * completely, else 3, else 2, which lose the least when there are too many differences.
 */
int ow_rda_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis **ret_synopsis);

/*
 * Late binding (section VIII): the parameters for a known or estimated number of differences (pass its upper bound),
 * and for a relative error of the standard deviation (one sigma, 1/sqrt(2B); 0 = no requirement). Corrected: 4 banks,
 * 1.36 d + 100 cells in all, which decode completely in more than 99.8 % of cases. As published: 2 banks of 2d cells,
 * complete in 87 %.
 */
void ow_rda_params_for(double differences, double stddev_error, bool published, struct ow_rda_params *ret_params);

/* Cells in all for which 3 or 4 banks of checked ids decode d differences completely in 99.5 % of cases or more. */
double ow_rda_cells_for(double differences, uint32_t banks);

static inline const struct ow_rda *ow_rda_of(const struct ow_synopsis *synopsis)
{
	return (const struct ow_rda *)synopsis;
}

/* A packet's id as it is stored in cells. Two different ids agree in their upper 48 bits with probability 2^-48. */
static inline uint64_t ow_rda_id(const struct ow_rda *rda, uint64_t id)
{
	if (!rda->params.checked)
		return id;
	id &= ~OW_RDA_CHECK_MASK;
	return id | ow_mum64(id ^ rda->check_key, OW_RDA_CHECK_MUL) >> 48;
}

/* The cell of a bank for an id (as stored in cells), counted within the bank. */
static inline uint32_t ow_rda_place(const struct ow_rda *rda, uint64_t id, uint32_t bank)
{
	uint64_t hash = ow_mum64(id ^ rda->place_key[bank / 2], OW_RDA_PLACE_MUL);
	return (uint32_t)((hash >> (bank % 2 * 32) & UINT32_MAX) * rda->params.cells >> 32);
}
