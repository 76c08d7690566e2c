/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/synopsis.h"

/*
 * FineComb: Lee, Goldberg, Kompella, Varghese, "FineComb: Measuring Microscopic Latencies and Losses in the Presence of
 * Reordering", Purdue TR 10-009 (2010), section 3. An LDA whose buckets also hold a digest, the XOR of a hash of each
 * packet: a bucket is used only if counter and digest agree. The receiving point stashes the packets that arrived near
 * the boundaries of the interval. If a bucket differs by packets that drifted over a boundary, the stash repairs it
 * (reconcile/finecomb_recover.h).
 *
 * The paper's symbols: TS, C, D time sum, counter and digest of a bucket; M buckets, W = 4w stash entries, S = M + W; T
 * packets of an interval, beta loss ratio, R = rho T packets that drift over a boundary, p share that is sampled.
 *
 * The names of sub-stashes say where packets arrived. The paper names packets by where they were sent, so that the
 * pre-start stash holds post-start packets:
 *   pre-start   the last w before the start: of this interval if they were early      -> add back
 *   post-start  the first w after it: of the interval before if they were late        -> remove
 *   pre-end     the last w before the end: of the next interval if they were early    -> remove
 *   post-end    the first w after it: of this interval if they were late              -> add back
 *
 * Where we deviate:
 * - Digest, row and sampling come from independent hashes (the paper takes the row from the digest).
 * - p* is computed as min(1, 2S / (T (2 rho + beta + sqrt(4 rho beta + beta^2)))); equation (6) is the same number, but
 *   loses precision by cancellation as rho goes to 0. Provision R = 4 max of the four kinds.
 * - Several banks are disjoint, as in an LDA. Sums are 64 bits and modular.
 *
 * Bytes after the common header, little-endian:
 *    0  banks (4), reserved (4, zero)
 *    8  for each bank: buckets (4), limit (4), w (4), reserved (4, zero); limits fall strictly
 *    .. for each bank, for each bucket: time sum (8), packets (8), digest (8)
 *    .. for each bank: entries in its sub-stashes in the order above (4 x 4)
 *    .. for each bank, for each sub-stash, from the first to arrive: time (8), digest (8), bucket of the bank (4)
 *
 * Worked example: A has packets x, y in a bucket, D = dx ^ dy, C = 2. At B, y arrived before the start (post-start
 * packet, in the pre-start stash) and z of the interval before came late (in the post-start stash): D = dx ^ dz, C = 2,
 * which an LDA would accept. The digests differ by dy ^ dz, which is the XOR of these two stash entries; adding y and
 * removing z changes the count by 1 - 1 = 0 = 2 - 2: repaired, TS = bx + by.
 */

#define OW_FINECOMB_BANKS_MAX 8u

enum ow_finecomb_side { OW_STASH_PRE_START, OW_STASH_POST_START, OW_STASH_PRE_END, OW_STASH_POST_END, OW_STASHES };

struct ow_finecomb_bank {
	uint32_t buckets;
	uint32_t limit; /* as ow_lda_bank */
	uint32_t stash; /* w: entries of each sub-stash, 0 = FineComb- */
};

struct ow_finecomb_params {
	uint32_t banks;
	struct ow_finecomb_bank bank[OW_FINECOMB_BANKS_MAX]; /* limits fall strictly */
};

struct ow_finecomb_bucket {
	uint64_t time;    /* sum of times, ns, modular */
	uint64_t packets; /* modular: a difference may be negative */
	uint64_t digest;
};

struct ow_finecomb_entry {
	uint64_t time, digest;
	uint32_t bucket; /* of all banks' buckets */
};

/* A queue of at most `room` entries; the oldest is at `head`. */
struct ow_finecomb_stash {
	struct ow_finecomb_entry *entry;
	uint32_t room, head, count;
};

struct ow_finecomb {
	struct ow_synopsis base;
	struct ow_finecomb_params params;
	uint64_t key[3];
	uint32_t first[OW_FINECOMB_BANKS_MAX + 1]; /* of each bank in `bucket`; then the end */
	struct ow_finecomb_bucket *bucket;
	struct ow_finecomb_entry *entries; /* for all stashes */
	struct ow_finecomb_stash stash[OW_FINECOMB_BANKS_MAX][OW_STASHES];
};

extern const struct ow_synopsis_ops ow_finecomb_ops;

/* -EINVAL if the parameters are invalid, -ENOMEM. Free with ow_synopsis_free. */
int ow_finecomb_create(const struct ow_finecomb_params *params, uint64_t seed, struct ow_finecomb **ret_finecomb,
                       struct ow_error *err);
/* Creates one for struct ow_sizing: one bank at p*, with a stash for the expected drift and its variation. */
int ow_finecomb_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                           struct ow_synopsis **ret_synopsis);
/* The same without a stash, at p**: FineComb-. */
int ow_finecomb_minus_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                                 struct ow_synopsis **ret_synopsis);

/*
 * Adds the receiving point's packets around the interval, in order of arrival: the last ones before it and the first
 * ones after it. Times count from the start of the interval, as always. `add` stashes packets of the interval itself,
 * so it needs them in order of arrival, too (the buckets do not need it).
 */
void ow_finecomb_before(struct ow_finecomb *finecomb, const struct ow_sighting *sightings, size_t count);
void ow_finecomb_after(struct ow_finecomb *finecomb, const struct ow_sighting *sightings, size_t count);

/* The i-th entry of a stash, 0 the oldest. */
static inline const struct ow_finecomb_entry *ow_finecomb_entry(const struct ow_finecomb_stash *stash, uint32_t i)
{
	uint32_t at = stash->head + i;
	return &stash->entry[at < stash->room ? at : at - stash->room];
}

/* The share of the packets that a bank takes, without those of later banks. */
double ow_finecomb_share(const struct ow_finecomb_params *params, uint32_t bank);

/* p* with a stash of W = p* R entries, p** without one; S entries in all, T packets. */
double ow_finecomb_sampling(double storage, double packets, double loss, double reorder, bool stash);
/* E[X | L = E[L]], equation (2) with (3): expected samples. */
double ow_finecomb_samples(double buckets, double stash, double packets, double loss, double reorder, double p);

/*
 * Tunes a bank to loss and reordering. `margin` standard deviations of the drift are added to the stash (0: as in the
 * paper, where the stash is too small in half of all intervals). storage: buckets and stash entries together.
 */
#define OW_FINECOMB_MARGIN 3.0
int ow_finecomb_tune(double packets, uint32_t storage, double loss, double reorder, bool stash, double margin,
                     struct ow_finecomb_params *ret_params, struct ow_error *err);
/* Four banks, a quarter of the storage each, for the extremes of loss and reordering (section 3.5). */
int ow_finecomb_tune_four(double packets, uint32_t storage, const double loss[2], const double reorder[2],
                          double margin, struct ow_finecomb_params *ret_params, struct ow_error *err);
/*
 * The storage for which the mean is within `error` (relative) in 95 % of cases, if the standard deviation of the delays
 * is cv times their mean.
 */
uint32_t ow_finecomb_storage(double packets, double loss, double reorder, double cv, double error);
