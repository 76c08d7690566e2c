/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates from two folds, with the data of both points: fold_estimate.h has the messages, fold_steps.h the steps of
 * A. */
#include "estimate/fold_estimate.h"

#include "estimate/fold_steps.h"
#include "reconcile/keyset.h"
#include "reconcile/key_list.h"
#include <errno.h>
#include <stdlib.h>

#define REQUEST_BYTES (OW_SYNOPSIS_HEADER + 8) /* cells and order of a second fold */

/* Of a sum of times, a bucket with count and digest, a time, and a time with its rank. */
#define SUM_BYTES    8
#define BUCKET_BYTES 20
#define TIME_BYTES   5
#define ENTRY_BYTES  13

struct run {
	const struct ow_view *a, *b;
	const struct ow_reconciled_options *options;
	struct ow_fold_steps steps;
	struct ow_estimate estimate;
	struct ow_fold_cost cost;
	struct ow_sighting *left_b; /* B's packets that A also has, as far as is known */
	size_t bs;
};

/* B's fold as it would be sent. */
static int fold_of_b(const struct run *run, uint32_t cells, unsigned order, struct ow_synopsis **ret_fold)
{
	struct ow_fold_params params = {ow_fold_of(run->b->synopsis)->params.banks, cells, order, false};
	return ow_fold_steps_fold(run->b->synopsis, run->b->cache, run->b->cached, &params, run->b->synopsis->seed,
	                          ret_fold);
}

static int top_up(struct run *run)
{
	struct ow_synopsis *second = NULL;
	uint32_t cells;
	unsigned order;
	int r = ow_fold_steps_more(&run->steps, &cells, &order);
	if (r == 0)
		r = fold_of_b(run, cells, order, &second);
	if (r == 0)
		r = ow_fold_steps_second(&run->steps, second);
	if (r == 0) {
		run->cost.top_up = REQUEST_BYTES + ow_synopsis_encoded_size(second);
		run->estimate.round_trips++;
	}
	ow_synopsis_free(second);
	/* The tables are already folded and there are no caches: no second fold is possible. */
	return r == -ENODATA ? 0 : r;
}

static int reconcile(struct run *run)
{
	const struct ow_fold *b = ow_fold_of(run->b->synopsis);
	struct ow_synopsis *first;
	/* A's own counters, or those made from its cache. */
	const struct ow_synopsis *counters = ow_fold_of(run->a->synopsis)->ams ? b->ams : NULL;
	run->cost.push = ow_synopsis_encoded_size(run->b->synopsis);
	int r = fold_of_b(run, b->send, b->params.order, &first);
	if (r < 0)
		return r;
	r = ow_fold_steps_push(&run->steps, first, counters, run->b->packets);
	ow_synopsis_free(first);
	if (r < 0)
		return r == -ENODATA ? -EINVAL : r;
	return run->steps.diff.complete ? 0 : top_up(run);
}

/* What B does with the keys it receives. */
static int leave_out(struct run *run)
{
	const struct ow_fold_steps *s = &run->steps;
	const struct ow_fold_secret *secret = &ow_fold_of(s->first)->secret;
	struct ow_keyset set = {0};
	int r = 0;
	for (size_t i = 0; i < s->wanteds && r == 0; i++)
		r = ow_keyset_add(&set, s->wanted[i]);
	for (size_t i = 0; i < s->otherss && r == 0; i++)
		r = ow_keyset_add(&set, s->others[i]);
	run->left_b = malloc((run->b->cached + 1) * sizeof *run->left_b);
	if (r == 0 && !run->left_b)
		r = -ENOMEM;
	for (size_t i = 0; i < run->b->cached && r == 0; i++) {
		run->left_b[run->bs] = run->b->cache[i];
		run->bs += !ow_keyset_has(&set, ow_fold_key(secret, run->b->cache[i].id));
	}
	ow_keyset_done(&set);
	run->cost.names = OW_SYNOPSIS_HEADER + ow_key_list_size(OW_KEY_LIST_PACKET, s->wanted, s->wanteds) +
	                  (s->otherss ? ow_key_list_size(OW_KEY_LIST_PACKET, s->others, s->otherss) : 0);
	return r;
}

/* The size of the sample: at least the one of the options, and what the other messages leave of the bytes. */
static uint32_t choose_sample(const struct run *run, bool complete)
{
	const struct ow_reconciled_options *o = run->options;
	uint64_t used = run->cost.push + run->cost.top_up + run->cost.names + 2 * OW_SYNOPSIS_HEADER;
	used += (uint64_t)o->buckets * (complete ? SUM_BYTES : BUCKET_BYTES);
	uint64_t sample = used < o->bytes ? (o->bytes - used) / (complete ? TIME_BYTES : ENTRY_BYTES) : 0;
	sample = sample > o->sample ? sample : o->sample;
	return sample < OW_RECONCILED_ALL / 2 ? (uint32_t)sample : OW_RECONCILED_ALL / 2;
}

static int compare(struct run *run, bool complete)
{
	struct ow_fold_steps *s = &run->steps;
	struct ow_reconciled_options options = *run->options;
	options.sample = choose_sample(run, complete);
	struct ow_reconciled_plan plan = {false, options.buckets, options.sample, ow_fold_steps_rest(s)};
	if (complete)
		ow_reconciled_plan(s->lefts, &options, &plan);
	return ow_reconciled_delays(s->left, s->lefts, run->left_b, run->bs, &plan, s->lefts + s->ambiguous,
	                            s->first->seed, &run->estimate);
}

static int delays(struct run *run, bool complete)
{
	run->estimate.more_bytes = 0;
	int r = ow_fold_steps_erase(&run->steps);
	if (r == 0)
		r = leave_out(run);
	if (r < 0)
		return r;
	run->estimate.round_trips++;
	r = complete && run->steps.lefts != run->bs ? -EBADMSG : compare(run, complete);
	/* Two ids share a key, or the cache does not belong to the table: the points do not have the same packets. */
	if (complete && r == -EBADMSG) {
		ow_fold_steps_losses(&run->steps, complete = false, &run->estimate);
		r = compare(run, false);
	}
	if (complete)
		run->cost.ambiguous = run->steps.ambiguous;
	run->cost.delays = OW_SYNOPSIS_HEADER + run->estimate.more_bytes;
	return r;
}

static int estimate(struct run *run)
{
	bool cached = run->a->cache && run->b->cache && run->a->cached && run->b->cached;
	bool complete = ow_fold_steps_complete(&run->steps);
	uint64_t round_trips = run->estimate.round_trips;
	ow_estimate_none(&run->estimate, !run->a->packets || !run->b->packets ? OW_REASON_A_POINT_SAW_NONE
	                                 : cached                             ? OW_REASON_NO_COMMON_PACKET
	                                                                      : OW_REASON_FOLD_WITHOUT_CACHE);
	run->estimate.round_trips = round_trips;
	ow_fold_steps_losses(&run->steps, complete, &run->estimate);
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
	run.steps = (struct ow_fold_steps){
		.table = a->synopsis, .cache = a->cache, .cached = a->cached, .packets = a->packets};
	int r = reconcile(&run);
	if (r == 0)
		r = estimate(&run);
	if (r == 0) {
		*ret_estimate = run.estimate;
		if (ret_cost)
			*ret_cost = run.cost;
	}
	ow_fold_steps_done(&run.steps);
	free(run.left_b);
	return r;
}

int ow_fold_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate)
{
	struct ow_reconciled_options options = {OW_RECONCILED_BUCKETS, OW_RECONCILED_SAMPLE};
	return ow_fold_estimate_with(a, b, &options, ret_estimate, NULL);
}
