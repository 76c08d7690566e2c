/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/hash.h"
#include "synopsis/ams.h"
#include "synopsis/synopsis.h"

/*
 * fold: the additive, foldable reconciliation table, our default. When two points subtract their tables, only the
 * packets remain that one of them saw. reconcile/fold_peel recovers these, whatever the number of common packets.
 *
 * From RDA (rda-ton2018, "IBF" part) with these deviations (formulas.md 3.7):
 *  - A cell is one 64-bit word. A packet adds  key48 << 16 | check16  modulo 2^64 to one cell of each bank; there is no
 *    count. A cell v of the difference A - B is pure if v (only at A) or -v (only at B) has a valid check and belongs
 *    to this cell. Two identical packets do not cancel as with XOR: they leave 2w and are detected (v / 2).
 *  - 3 or 4 banks instead of 2: it decodes all differences or reports failure, from 1.3 cells a difference on.
 *  - One table of 2^16 cells a bank for each interval, whatever the difference will be. It is folded when it is sent,
 *    to any number of cells m: cell i goes to i * m >> 16. Both points fold, then subtract. If the peeling fails, a
 *    second fold with permuted cells (`order`) of the same table is peeled jointly with the first.
 *  - The cells contain no times; after reconciliation both points know the common packets and exchange plain sums.
 *  - It can contain the counters of ams, which estimate the size of the difference, so that after a failed fold one of
 *    the right size follows.
 *
 * Keys, cells and checks come from the secret seed. The key is a 48-bit hash of the 64-bit id: among n packets and d
 * differences two ids that matter share one with probability n d / 2^48 (4e-6 for 1e6 and 1e3).
 *
 * The encoding, after the common header (little-endian):
 *    0  banks (1: 3 or 4), order (1), estimator (1: 0 or 1), reserved (1, zero)
 *    4  cells of a bank (4): 1 .. 65536
 *    8  cells (8 each), bank after bank
 *    .  if estimator: the encoding of ams (its size follows from its own first bytes)
 * Encoding folds an unfolded table (ow_fold_expect sets the number of cells), so its encoding decodes to the folded
 * table.
 *
 * Example: banks = 3, cells = 2 and packets with words 5, 7, 9 (ignoring keys and checks). At A 5 and 7 are in the
 * cells 0 and 1 of each bank: 5 7 | 5 7 | 5 7. At B 7 and 9, where 9 belongs to cells 0, 1, 1: 9 7 | 0 16 | 0 16. A - B
 * gives -4 0 | 5 -9 | 5 -9. Cell 0 of bank 2 is pure: 5, only at A. Without it: -9 0 | 0 -9 | 0 -9: 9, only at B. All
 * cells are 0 now: nothing else differs.
 */

#define OW_FOLD_CELLS     65536u /* of a bank of an unfolded table */
#define OW_FOLD_BANKS_MIN 3
#define OW_FOLD_BANKS_MAX 4
#define OW_FOLD_KEY_BITS  48
#define OW_FOLD_ORDERS    256 /* 0: cells in their order; others: permutations of them */

struct ow_fold_params {
	unsigned banks;    /* 4; 3 saves a fifth of the bytes if the difference is usually above 1e4 */
	uint32_t cells;    /* of a bank; OW_FOLD_CELLS can be folded later; fewer: the table is already folded */
	unsigned order;    /* 0 unless this is a second fold */
	bool estimator;    /* contains ams counters: */
	uint32_t counters; /* so many; 0 = OW_AMS_COUNTERS */
};

/* Derived from the seed; the peeling needs it, too. */
struct ow_fold_secret {
	uint64_t id_xor, id_mul; /* id to key */
	uint64_t at_xor, at_mul; /* key to cells */
	uint64_t check_mul;      /* cells to check */
	uint16_t order_mul[2];   /* permutation of this order; unused if order is 0 */
};

struct ow_fold {
	struct ow_synopsis synopsis;
	struct ow_fold_params params;
	struct ow_fold_secret secret;
	uint32_t send;           /* cells of a bank of the encoding, <= params.cells */
	struct ow_synopsis *ams; /* or NULL */
	uint64_t *cell;          /* params.banks * params.cells */
};

extern const struct ow_synopsis_ops ow_fold_ops;

/* -EINVAL for parameters out of range, -ENOMEM. */
int ow_fold_create(const struct ow_fold_params *params, uint64_t seed, struct ow_synopsis **ret_synopsis);
/* Uses at most `memory` bytes: a foldable table if they suffice, else the cells that the differences need, if these
 * fit. */
int ow_fold_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis **ret_synopsis);

/* Cells of a bank that decode this many differences at the first attempt in more than 99.7 % of cases. */
uint32_t ow_fold_cells_for(unsigned banks, double differences);
/* Sets how many differences the encoding must hold. Initially the table is encoded unfolded. */
void ow_fold_expect(struct ow_synopsis *fold, double differences);
/*
 * Makes a table of `cells` a bank in the given order, without estimator, from an unfolded one of order 0 (or a copy, if
 * it already has these cells and order). -EINVAL if the table cannot be folded so, -ENOMEM.
 */
int ow_fold_to(const struct ow_synopsis *fold, uint32_t cells, unsigned order, struct ow_synopsis **ret_synopsis);

static inline const struct ow_fold *ow_fold_of(const struct ow_synopsis *synopsis)
{
	return (const struct ow_fold *)synopsis;
}

/* The key of an id; differences are identified by keys. */
static inline uint64_t ow_fold_key(const struct ow_fold_secret *secret, uint64_t id)
{
	return ow_mum64(id ^ secret->id_xor, secret->id_mul) >> (64 - OW_FOLD_KEY_BITS);
}

/* Four numbers of 16 bits: the cells of an unfolded table of order 0, bank 0 in the lowest. */
static inline uint64_t ow_fold_places(const struct ow_fold_secret *secret, uint64_t key)
{
	return ow_mum64(key ^ secret->at_xor, secret->at_mul);
}

static inline uint64_t ow_fold_word(const struct ow_fold_secret *secret, uint64_t key, uint64_t places)
{
	return key << 16 | (places * secret->check_mul) >> 48;
}

/* A bijection of 16 bits. It separates neighbours, which a fold adds up. */
static inline uint32_t ow_fold_permute(const struct ow_fold_secret *secret, uint32_t place)
{
	uint32_t x = place * secret->order_mul[0] & 0xffff;
	x ^= x >> 8;
	x = x * secret->order_mul[1] & 0xffff;
	return x ^ x >> 7;
}

/* The cell in its bank, for a table of these parameters. */
static inline uint32_t ow_fold_cell(const struct ow_fold_params *params, const struct ow_fold_secret *secret,
                                    uint64_t places, unsigned bank)
{
	uint32_t place = (uint32_t)(places >> 16 * bank) & 0xffff;
	if (params->order)
		place = ow_fold_permute(secret, place);
	return (uint32_t)((uint64_t)place * params->cells >> 16);
}
