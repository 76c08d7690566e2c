/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/synopsis.h"

/*
 * Lossy Difference Aggregator: Kompella, Levchenko, Snoeren, Varghese, "Router Support for Fine-Grained Latency
 * Measurements", ToN 2012 (SIGCOMM 2009), section III. It has banks of buckets. A packet is added to one bucket of at
 * most one bank: its time to the bucket's sum, one to the bucket's counter. A bucket whose counters agree at both
 * points holds the same packets at both (if packets keep their order around the ends of the interval), so the
 * difference of its sums is the sum of the delays of these packets. A lost packet makes one bucket unusable; sampling
 * keeps the share of unusable buckets small.
 *
 * The paper's symbols: T[i,j] time sum and S[i,j] counter of row i, bank j; p_j share of the packets that bank j takes;
 * g(x), h(x) choose bank and row; R received, L lost packets, alpha the lost packets that are planned for a bucket.
 *
 * Where we deviate:
 * - Sums are 64 bits and modular (40 bits overflow); a difference of two sums is signed.
 * - A bank is chosen by comparing 32 bits of a hash with a limit; limits of the form 2^k - 1 are the paper's leading
 *   zeros, others allow any p. As in the paper a packet goes to the last bank that takes it, so that banks are
 *   disjoint: zeros 3 and 7 give p = 2^-3 - 2^-7 and 2^-7.
 * - alpha = 1 is the default: E[S] = alpha e^-alpha m R/(L+1) has its maximum there; 0.5 maximises only the bound (2).
 *
 * Bytes after the common header, little-endian:
 *    0  banks (4), reserved (4, zero)
 *    8  for each bank: buckets (4), limit (4); limits fall strictly
 *    .. for each bank, for each bucket: time sum (8), packets (8)
 *
 * Worked example (figure 2 of the paper, m = 4, one loss in the second row):
 *    A   120/5  234/10  15/2  6/1      B   180/5  348/9  37/2  14/1
 *    usable: rows 1, 3, 4; delay (60 + 22 + 8) / (5 + 2 + 1) = 11.25.
 */

#define OW_LDA_BANKS_MAX 8u
/* Of all banks together; 64 MB. */
#define OW_LDA_BUCKETS_MAX (OW_SYNOPSIS_BYTES_MAX / 16 - 64)

struct ow_lda_bank {
	uint32_t buckets;
	uint32_t limit; /* takes packets whose sampling hash is at most this: p = (limit + 1) / 2^32 */
};

struct ow_lda_params {
	uint32_t banks;
	struct ow_lda_bank bank[OW_LDA_BANKS_MAX]; /* limits fall strictly */
};

struct ow_lda_bucket {
	uint64_t time;    /* sum of times, ns, modular */
	uint64_t packets; /* modular: a difference may be negative */
};

struct ow_lda {
	struct ow_synopsis base;
	struct ow_lda_params params;
	uint64_t key[2];
	uint32_t first[OW_LDA_BANKS_MAX + 1]; /* of each bank in `bucket`; then the end */
	struct ow_lda_bucket *bucket;
};

extern const struct ow_synopsis_ops ow_lda_ops;

/* -EINVAL if the parameters are invalid, -ENOMEM. Free with ow_synopsis_free. */
int ow_lda_create(const struct ow_lda_params *params, uint64_t seed, struct ow_lda **ret_lda, struct ow_error *err);

/* Creates one bank with as many buckets as fit into the memory, tuned to the loss in struct ow_sizing. */
int ow_lda_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis **ret_synopsis);

/* The limit for a share p of the packets (0 < p; 1 or more: all). */
uint32_t ow_lda_limit(double p);
/* The share that a bank takes, without what goes to later banks. */
double ow_lda_share(const struct ow_lda_params *params, uint32_t bank);

/* The share to sample for a number of lost packets: p = min(1, alpha m / (L + 1)). */
#define OW_LDA_ALPHA       1.0
#define OW_LDA_ALPHA_PAPER 0.5
double ow_lda_sampling(double buckets, double lost, double alpha);
/*
 * The number of buckets for which the mean is within `error` (relative) in 95 % of cases, if the standard deviation of
 * the delays is cv times their mean. At most OW_LDA_BUCKETS_MAX; at least 64, because with fewer the estimate of the
 * standard deviation is poor.
 */
uint32_t ow_lda_buckets(double packets, double loss, double cv, double error);

/*
 * Makes banks of the given numbers of buckets, each tuned to a loss ratio; the ratios must increase. packets: expected
 * in an interval.
 */
int ow_lda_tune(double packets, const uint32_t *buckets, const double *loss, uint32_t banks, double alpha,
                struct ow_lda_params *ret_params, struct ow_error *err);
