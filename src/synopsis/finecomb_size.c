/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the sampling and the stash of a FineComb: section 4 of the paper. */
#include "synopsis/finecomb.h"
#include "synopsis/lda.h"

#include <errno.h>
#include <math.h>

/* The largest share of the storage for the stash: without loss the optimum would leave no bucket. */
#define STASH_SHARE_MAX 0.875

double ow_finecomb_share(const struct ow_finecomb_params *params, uint32_t bank)
{
	double p = (double)params->bank[bank].limit + 1;
	if (bank + 1 < params->banks)
		p -= (double)params->bank[bank + 1].limit + 1;
	return p * 0x1p-32;
}

double ow_finecomb_sampling(double storage, double packets, double loss, double reorder, bool stash)
{
	double bad = stash ? (2 * reorder + loss + sqrt(4 * reorder * loss + loss * loss)) / 2 : reorder + loss;
	return storage < packets * bad ? storage / (packets * bad) : 1;
}

double ow_finecomb_samples(double buckets, double stash, double packets, double loss, double reorder, double p)
{
	double bad = loss * p * packets + fmax(0, p * reorder * packets - stash);
	/* Good packets are those of this interval that B also counts in it. */
	return p * (1 - loss) * packets * pow(1 - 1 / buckets, bad);
}

/* W = p R, a quarter of it on each side, and the margin for its variation. */
static double side_stash(double storage, double drift, double margin)
{
	double side = drift / OW_STASHES;
	return fmin(round(side + margin * sqrt(side)), floor(STASH_SHARE_MAX * storage / OW_STASHES));
}

static int tune_bank(double packets, uint32_t storage, double loss, double reorder, bool stash, double margin,
                     struct ow_finecomb_bank *ret_bank, struct ow_error *err)
{
	if (!(packets > 0) || !(loss >= 0) || !(reorder >= 0) || storage < 2)
		return ow_error_set(err, EINVAL, "finecomb: no traffic to tune %u buckets and stash entries to",
		                    storage);
	double p = ow_finecomb_sampling(storage, packets, loss, reorder, stash), best = p, most = -1;
	/* A margin takes storage from the buckets: then a lower p is better. The optimum is flat, so steps of 2 % find
	 * it. */
	for (double q = p; stash && margin > 0 && q > p / 100; q *= 0.98) {
		double w = side_stash(storage, q * reorder * packets, margin) * OW_STASHES;
		double x = ow_finecomb_samples(storage - w, w, packets, loss, reorder, q);
		if (x > most) {
			most = x;
			best = q;
		}
	}
	p = best;
	double w = stash ? side_stash(storage, p * reorder * packets, margin) : 0;
	*ret_bank = (struct ow_finecomb_bank){storage - OW_STASHES * (uint32_t)w, ow_lda_limit(p), (uint32_t)w};
	return 0;
}

int ow_finecomb_tune(double packets, uint32_t storage, double loss, double reorder, bool stash, double margin,
                     struct ow_finecomb_params *ret_params, struct ow_error *err)
{
	struct ow_finecomb_params params = {.banks = 1};
	int r = tune_bank(packets, storage, loss, reorder, stash, margin, &params.bank[0], err);
	if (!r)
		*ret_params = params;
	return r;
}

int ow_finecomb_tune_four(double packets, uint32_t storage, const double loss[2], const double reorder[2],
                          double margin, struct ow_finecomb_params *ret_params, struct ow_error *err)
{
	struct ow_finecomb_params params = {.banks = 4};
	for (int i = 0; i < 4; i++) {
		struct ow_finecomb_bank bank;
		int r = tune_bank(packets, storage / 4, loss[i >> 1], reorder[i & 1], true, margin, &bank, err);
		if (r < 0)
			return r;
		/* Limits fall. */
		int at = i;
		for (; at > 0 && params.bank[at - 1].limit < bank.limit; at--)
			params.bank[at] = params.bank[at - 1];
		params.bank[at] = bank;
	}
	for (int i = 1; i < 4; i++)
		if (params.bank[i].limit >= params.bank[i - 1].limit)
			params.bank[i].limit = params.bank[i - 1].limit / 2;
	*ret_params = params;
	return 0;
}

uint32_t ow_finecomb_storage(double packets, double loss, double reorder, double cv, double error)
{
	double want = fmin(pow(1.96 * cv / error, 2), 0.99 * (1 - loss) * packets);
	/* Samples increase with storage: find the smallest sufficient storage by bisection. */
	uint32_t low = 64, high = (uint32_t)(OW_SYNOPSIS_BYTES_MAX / sizeof(struct ow_finecomb_bucket) - 64);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		double p = ow_finecomb_sampling(middle, packets, loss, reorder, true), stash = p * reorder * packets;
		stash = fmin(stash, STASH_SHARE_MAX * middle);
		if (ow_finecomb_samples(middle - stash, stash, packets, loss, reorder, p) >= want)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int create_for(size_t memory, const struct ow_sizing *sizing, bool stash, uint64_t seed,
                      struct ow_synopsis **ret_synopsis)
{
	size_t most = OW_SYNOPSIS_BYTES_MAX / sizeof(struct ow_finecomb_bucket) - 64;
	size_t storage = memory / sizeof(struct ow_finecomb_bucket);
	struct ow_finecomb_params params;
	int r = ow_finecomb_tune(fmax(1, sizing->packets), (uint32_t)(storage < most ? storage : most), sizing->loss,
	                         sizing->reorder, stash, OW_FINECOMB_MARGIN, &params, NULL);
	if (r < 0)
		return r;
	struct ow_finecomb *finecomb;
	r = ow_finecomb_create(&params, seed, &finecomb, NULL);
	if (!r)
		*ret_synopsis = &finecomb->base;
	return r;
}

int ow_finecomb_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                           struct ow_synopsis **ret_synopsis)
{
	return create_for(memory, sizing, true, seed, ret_synopsis);
}

int ow_finecomb_minus_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                                 struct ow_synopsis **ret_synopsis)
{
	return create_for(memory, sizing, false, seed, ret_synopsis);
}
