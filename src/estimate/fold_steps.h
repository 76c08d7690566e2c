/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/reconciled.h"
#include "reconcile/fold_peel.h"

/*
 * The steps of a comparison by fold, at the sending point (fold_estimate.h has the messages). The offline estimator
 * executes them with the data of both points, a live point (exchange/exchange.h) when messages arrive.
 *
 *   push     compares B's fold with A's own of the same cells: peels
 *   more     the second fold that A needs, if that was not complete
 *   second   B's second fold: peels both
 *   erase    A's packets without the differences; the keys that B needs to do the same
 *   losses   estimates
 */
struct ow_fold_steps {
	/* A's data; set before the first step. The table may be NULL or already folded: then folds are made from the
	 * cache. */
	const struct ow_synopsis *table;
	const struct ow_sighting *cache;
	size_t cached;
	uint64_t packets;
	/* May be NULL. Returns whether the packet is one of several identical ones and it is not known which of them
	 * arrived. */
	bool (*doubt)(void *arg, uint64_t id);
	void *arg;

	/* Data from B. The counters must stay valid as long as this; NULL = none. */
	const struct ow_synopsis *counters;
	uint64_t received;

	struct ow_synopsis *first, *second; /* A - B */
	struct ow_fold_difference diff;
	double differences, deviation; /* by the counters; NAN without; known from `more` on */

	/* Valid after erase: */
	struct ow_sighting *left; /* A's packets that B also has, as far as is known */
	size_t lefts;
	struct ow_sighting *only; /* A's packets that B does not have */
	size_t onlys;
	/* Sorted keys: of packets that only B has, and of others that B must leave out. */
	uint64_t *wanted, *others;
	size_t wanteds, otherss;
	/* Packets that both have, left out because the numbers of their copies differ (or in doubt). */
	uint64_t ambiguous;
	/* Further arrivals of packets that were sent once; the first arrival gives the delay (RFC 5560). */
	uint64_t duplicated;
};

/* fold: B's fold as it was sent; also the number of B's packets. -ENODATA: A has neither table nor cache; -EINVAL,
 * -ENOMEM. */
int ow_fold_steps_push(struct ow_fold_steps *steps, const struct ow_synopsis *fold, const struct ow_synopsis *counters,
                       uint64_t received);
/* Returns cells and order of the second fold. 0 or -ENOMEM. */
int ow_fold_steps_more(struct ow_fold_steps *steps, uint32_t *ret_cells, unsigned *ret_order);
int ow_fold_steps_second(struct ow_fold_steps *steps, const struct ow_synopsis *fold);
/* Whether nothing is left of the difference, and the counts agree with what was found. */
bool ow_fold_steps_complete(const struct ow_fold_steps *steps);
int ow_fold_steps_erase(struct ow_fold_steps *steps);
/* Sets lost, extra, loss_ratio and complete: exact, or by the counters. */
void ow_fold_steps_losses(struct ow_fold_steps *steps, bool complete, struct ow_estimate *estimate);
/* Number of differences whose keys are not known, for a plan that is not complete. */
double ow_fold_steps_rest(const struct ow_fold_steps *steps);
void ow_fold_steps_done(struct ow_fold_steps *steps);

/* The fold of a point: from its table if that is unfolded or has these cells, else from its cache; -ENODATA. */
int ow_fold_steps_fold(const struct ow_synopsis *table, const struct ow_sighting *cache, size_t cached,
                       const struct ow_fold_params *params, uint64_t seed, struct ow_synopsis **ret_fold);
