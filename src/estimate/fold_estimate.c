/* SPDX-License-Identifier: Apache-2.0 */
/* From two folds to numbers: fold_estimate.h has the messages. */
#include "estimate/fold_estimate.h"

#include "estimate/distribution.h"
#include "reconcile/fold_peel.h"
#include "reconcile/keyset.h"
#include "reconcile/names.h"
#include "synopsis/copies.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_BYTES (OW_SYNOPSIS_HEADER + 8) /* cells and order of a second fold */
/* A second fold for the counters' estimate plus this many of its standard deviations. */
#define MARGIN 3
/* Without counters, and nothing peeled, the difference may be anything: a second fold of so many times the first. */
#define BLIND 8

struct run {
	const struct ow_view *a, *b;
	const struct ow_reconciled_options *options;
	struct ow_synopsis *first, *second; /* A - B */
	struct ow_fold_difference diff;
	double differences, deviation; /* by the counters; NAN without */
	struct ow_estimate estimate;
	struct ow_fold_cost cost;
	/* Packets of each point that the other has too, as far as is known. */
	struct ow_stamp *left_a, *left_b;
	size_t as, bs;
};

static bool unfolded(const struct ow_synopsis *synopsis)
{
	return ow_fold_of(synopsis)->params.cells == OW_FOLD_CELLS && ow_fold_of(synopsis)->params.order == 0;
}

/* A fold of one point: from its table if that is unfolded, else from its cache. -ENODATA if it has neither. */
static int fold_of_view(const struct ow_view *view, uint32_t cells, unsigned order, struct ow_synopsis **ret_fold)
{
	const struct ow_fold *fold = ow_fold_of(view->synopsis);
	if (unfolded(view->synopsis) || (fold->params.cells == cells && fold->params.order == order))
		return ow_fold_to(view->synopsis, cells, order, ret_fold);
	if (!view->cache)
		return -ENODATA;
	struct ow_fold_params params = {fold->params.banks, cells, order, false};
	int r = ow_fold_create(&params, view->synopsis->seed, ret_fold);
	if (r == 0)
		(*ret_fold)->ops->add(*ret_fold, view->cache, view->cached);
	return r;
}

static int subtract_views(const struct run *run, uint32_t cells, unsigned order, struct ow_synopsis **ret_difference)
{
	struct ow_synopsis *mine = NULL, *theirs = NULL;
	int r = fold_of_view(run->a, cells, order, &mine);
	if (r == 0)
		r = fold_of_view(run->b, cells, order, &theirs);
	if (r == 0)
		r = ow_synopsis_subtract(mine, theirs, NULL);
	ow_synopsis_free(theirs);
	if (r < 0)
		ow_synopsis_free(mine);
	else
		*ret_difference = mine;
	return r;
}

/* Differences that are still unknown after the first fold: by the counters, and by the cells that are left. */
static double unknown(const struct run *run)
{
	double found = (double)(run->diff.as + run->diff.bs), left = (double)run->diff.left;
	if (isnan(run->differences))
		return found > left ? left : BLIND * left;
	/* What is stuck has at least two packets a cell, and each packet is in `banks` cells: at least left * 2 /
	 * banks. */
	return fmax(run->differences + MARGIN * run->deviation - found, left / 2);
}

/* True when nothing speaks against the result of the peeling. */
static bool settled(const struct run *run)
{
	return run->diff.complete && run->a->packets - run->b->packets == (uint64_t)run->diff.as - run->diff.bs;
}

static int top_up(struct run *run)
{
	const struct ow_fold_params *params = &ow_fold_of(run->first)->params;
	uint32_t cells = ow_fold_cells_for(params->banks, unknown(run));
	unsigned order = params->order + 1;
	int r = subtract_views(run, cells, order % OW_FOLD_ORDERS, &run->second);
	if (r == -ENODATA)
		return 0;
	if (r < 0)
		return r;
	run->cost.top_up = REQUEST_BYTES + ow_synopsis_encoded_size(run->second);
	run->estimate.round_trips++;
	return ow_fold_peel(run->first, run->second, &run->diff);
}

static int reconcile(struct run *run)
{
	const struct ow_fold *a = ow_fold_of(run->a->synopsis), *b = ow_fold_of(run->b->synopsis);
	run->differences = NAN;
	if (a->ams && b->ams)
		ow_ams_difference(a->ams, b->ams, &run->differences, &run->deviation);
	run->cost.push = ow_synopsis_encoded_size(run->b->synopsis);
	int r = subtract_views(run, b->send, b->params.order, &run->first);
	if (r < 0)
		return r == -ENODATA ? -EINVAL : r;
	r = ow_fold_peel(run->first, NULL, &run->diff);
	if (r == 0 && !run->diff.complete)
		r = top_up(run);
	return r;
}

/* -- leaving out -------------------------------------------------------------------------------------------------- */

static int add_keys(struct ow_keyset *set, const uint64_t *keys, size_t count)
{
	int r = 0;
	for (size_t i = 0; i < count && r == 0; i++)
		r = ow_keyset_add(set, keys[i]);
	return r;
}

/* Packets whose key is not in the set. */
static size_t leave_out(const struct ow_fold_secret *secret, const struct ow_keyset *set, const struct ow_stamp *cache,
                        size_t cached, struct ow_stamp *dest)
{
	size_t kept = 0;
	for (size_t i = 0; i < cached; i++) {
		dest[kept] = cache[i];
		kept += !ow_keyset_has(set, ow_fold_key(secret, cache[i].id));
	}
	return kept;
}

/*
 * Copies of a packet have each other's successors as ids. Where a copy is at one point only, those before it are
 * ambiguous: which of them arrived is not known. Moves them to the set.
 */
static int leave_out_copies(const struct ow_fold_secret *secret, struct ow_keyset *set, struct ow_stamp *stamps,
                            size_t *count)
{
	for (size_t before = 0; before != *count;) {
		size_t kept = 0;
		before = *count;
		/* From the last to the first: a copy comes after those before it, so one pass follows a chain to its
		 * start. */
		for (size_t i = before; i-- > 0;) {
			if (ow_keyset_has(set, ow_fold_key(secret, ow_copy_next(stamps[i].id)))) {
				int r = ow_keyset_add(set, ow_fold_key(secret, stamps[i].id));
				if (r < 0)
					return r;
			} else {
				stamps[before - ++kept] = stamps[i];
			}
		}
		memmove(stamps, stamps + before - kept, kept * sizeof *stamps);
		*count = kept;
	}
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/*
 * What A tells B to leave out: all keys of the set but those that only A has. If A has left out more packets than it
 * should have to (copies: points that do not tell them apart by name), B may have some of these as well: then all.
 */
static int name_packets(struct run *run, const struct ow_keyset *set, bool all)
{
	struct ow_keyset only_a = {0};
	uint64_t *names = malloc((set->used + 1) * sizeof *names);
	size_t count = 0;
	int r = names ? add_keys(&only_a, run->diff.only_a, all ? 0 : run->diff.as) : -ENOMEM;
	for (uint64_t i = 0; r == 0 && set->slot && i <= set->mask; i++) {
		if (set->slot[i] && !ow_keyset_has(&only_a, set->slot[i] - 1))
			names[count++] = set->slot[i] - 1;
	}
	if (r == 0) {
		if (count)
			qsort(names, count, sizeof *names, compare_keys);
		run->cost.names = OW_SYNOPSIS_HEADER + ow_names_size(names, count);
	}
	ow_keyset_done(&only_a);
	free(names);
	return r;
}

static int erase(struct run *run)
{
	const struct ow_fold_secret *secret = &ow_fold_of(run->first)->secret;
	struct ow_keyset set = {0};
	bool copies = false;
	run->left_a = malloc((run->a->cached + 1) * sizeof *run->left_a);
	run->left_b = malloc((run->b->cached + 1) * sizeof *run->left_b);
	int r = run->left_a && run->left_b ? 0 : -ENOMEM;
	if (r == 0)
		r = add_keys(&set, run->diff.only_a, run->diff.as);
	if (r == 0)
		r = add_keys(&set, run->diff.only_b, run->diff.bs);
	if (r == 0) {
		run->as = leave_out(secret, &set, run->a->cache, run->a->cached, run->left_a);
		copies = run->a->cached - run->as > run->diff.as;
		r = leave_out_copies(secret, &set, run->left_a, &run->as);
	}
	if (r == 0)
		r = name_packets(run, &set, copies);
	if (r == 0)
		run->bs = leave_out(secret, &set, run->b->cache, run->b->cached, run->left_b);
	ow_keyset_done(&set);
	return r;
}

/* -- numbers ------------------------------------------------------------------------------------------------------ */

static struct ow_value exact(double value)
{
	return (struct ow_value){OW_VALUE_EXACT, value, value, value, NULL};
}

static void count_losses(struct run *run)
{
	struct ow_estimate *e = &run->estimate;
	e->complete = true;
	e->lost = exact((double)run->diff.as);
	e->extra = exact((double)run->diff.bs);
	if (run->a->packets)
		e->loss_ratio = exact((double)run->diff.as / (double)run->a->packets);
	else
		e->loss_ratio.reason = "no packet was sent";
}

/* value +- error, not below least */
static struct ow_value around(double value, double error, double least)
{
	return (struct ow_value){OW_VALUE_ESTIMATED, fmax(value, least), fmax(value - error, least),
	                         fmax(value + error, least), NULL};
}

/* lost + extra = d by the counters, lost - extra is known. */
static void guess_losses(struct run *run)
{
	struct ow_estimate *e = &run->estimate;
	double more = (double)run->a->packets - (double)run->b->packets, error = OW_NORMAL_975 * run->deviation / 2;
	if (isnan(run->differences)) {
		e->lost.reason = e->extra.reason = e->loss_ratio.reason =
			"the points differ by more than the fold holds, and it has no counters";
		return;
	}
	e->lost = around((run->differences + more) / 2, error, fmax(more, (double)run->diff.as));
	e->extra = around((run->differences - more) / 2, error, fmax(-more, (double)run->diff.bs));
	double sent = (double)run->a->packets;
	if (sent > 0)
		e->loss_ratio = (struct ow_value){OW_VALUE_ESTIMATED, fmin(1, e->lost.value / sent),
		                                  fmin(1, e->lost.low / sent), fmin(1, e->lost.high / sent), NULL};
	else
		e->loss_ratio.reason = "no packet was sent";
}

static int delays(struct run *run, bool complete)
{
	struct ow_estimate *e = &run->estimate;
	uint64_t seed = run->first->seed;
	e->more_bytes = 0;
	int r = erase(run);
	if (r < 0)
		return r;
	e->round_trips++;
	/* Ids that share a key, or a cache that is not that of the table: not the same packets after all. */
	if (complete && run->as != run->bs) {
		run->estimate.complete = complete = false;
		guess_losses(run);
	}
	if (complete) {
		run->cost.ambiguous = run->a->cached - run->diff.as - run->as;
		r = ow_reconciled_delays(run->left_a, run->left_b, run->as, run->as + run->cost.ambiguous, seed,
		                         run->options, e);
	} else {
		double rest = isnan(run->differences)
		                      ? (double)ow_fold_of(run->first)->params.cells
		                      : fmax(1, run->differences - (double)(run->diff.as + run->diff.bs));
		r = ow_unreconciled_delays(run->left_a, run->as, run->left_b, run->bs, rest, seed, run->options, e);
	}
	run->cost.delays = OW_SYNOPSIS_HEADER + e->more_bytes;
	return r;
}

static int estimate(struct run *run)
{
	bool cached = run->a->cache && run->b->cache && run->a->cached && run->b->cached, complete = settled(run);
	ow_estimate_none(&run->estimate, !run->a->packets || !run->b->packets ? "a point saw no packet"
	                                 : cached                             ? "the points have no packet in common"
	                                          : "a fold has no times, and there is no cache");
	run->estimate.round_trips = run->cost.top_up > 0;
	if (complete)
		count_losses(run);
	else
		guess_losses(run);
	int r = cached ? delays(run, complete) : 0;
	run->estimate.more_bytes = run->cost.top_up + run->cost.names + run->cost.delays;
	return r;
}

int ow_fold_estimate_with(const struct ow_view *a, const struct ow_view *b, const struct ow_reconciled_options *options,
                          struct ow_estimate *ret_estimate, struct ow_fold_cost *ret_cost)
{
	struct run run = {.a = a, .b = b, .options = options};
	if (a->synopsis->ops != &ow_fold_ops || b->synopsis->ops != &ow_fold_ops ||
	    a->synopsis->seed != b->synopsis->seed ||
	    ow_fold_of(a->synopsis)->params.banks != ow_fold_of(b->synopsis)->params.banks)
		return -EINVAL;
	int r = reconcile(&run);
	if (r == 0)
		r = estimate(&run);
	if (r == 0) {
		*ret_estimate = run.estimate;
		if (ret_cost)
			*ret_cost = run.cost;
	}
	ow_fold_difference_done(&run.diff);
	ow_synopsis_free(run.first);
	ow_synopsis_free(run.second);
	free(run.left_a);
	free(run.left_b);
	return r;
}

int ow_fold_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate)
{
	struct ow_reconciled_options options = {OW_RECONCILED_BUCKETS, OW_RECONCILED_SAMPLE};
	return ow_fold_estimate_with(a, b, &options, ret_estimate, NULL);
}
