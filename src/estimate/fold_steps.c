/* SPDX-License-Identifier: Apache-2.0 */
/* The sending point's steps of a comparison by fold: fold_steps.h. */
#include "estimate/fold_steps.h"

#include "base/sort.h"
#include "estimate/distribution.h"
#include "reconcile/keyset.h"
#include "synopsis/copies.h"
#include "base/array.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The second fold is sized for the counters' estimate plus this many standard deviations. */
#define MARGIN 3
/*
 * Without counters, and if nothing was peeled, the difference is unknown: the second fold is this many times as large.
 */
#define BLIND 8

int ow_fold_steps_fold(const struct ow_synopsis *table, const struct ow_sighting *cache, size_t cached,
                       const struct ow_fold_params *params, uint64_t seed, struct ow_synopsis **ret_fold)
{
	if (table) {
		const struct ow_fold_params *has = &ow_fold_of(table)->params;
		bool unfolded = has->cells == OW_FOLD_CELLS && has->order == 0;
		if (unfolded || (has->cells == params->cells && has->order == params->order))
			return ow_fold_to(table, params->cells, params->order, ret_fold);
	}
	if (!cache)
		return -ENODATA;
	int r = ow_fold_create(params, seed, ret_fold);
	if (r == 0)
		(*ret_fold)->ops->add(*ret_fold, cache, cached);
	return r;
}

/* A's fold of the same shape as B's, less B's. */
static int subtract(const struct ow_fold_steps *s, const struct ow_synopsis *theirs,
                    struct ow_synopsis **ret_difference)
{
	struct ow_fold_params params = ow_fold_of(theirs)->params;
	struct ow_synopsis *mine = NULL, *cells = NULL;
	params.estimator = false;
	int r = ow_fold_steps_fold(s->table, s->cache, s->cached, &params, theirs->seed, &mine);
	/* Without the counters. */
	if (r == 0)
		r = ow_fold_to(theirs, params.cells, params.order, &cells);
	if (r == 0)
		r = ow_synopsis_subtract(mine, cells, NULL);
	ow_synopsis_free(cells);
	if (r < 0)
		ow_synopsis_free(mine);
	else
		*ret_difference = mine;
	return r;
}

static int add_keys(struct ow_keyset *set, const uint64_t *keys, size_t count)
{
	int r = 0;
	for (size_t i = 0; i < count && r == 0; i++)
		r = ow_keyset_add(set, keys[i]);
	return r;
}

/* B has no packets: there is nothing to peel, all of A's packets are only at A. */
static int all_lost(struct ow_fold_steps *s)
{
	const struct ow_fold_secret *secret = &ow_fold_of(s->first)->secret;
	s->diff.only_a = malloc((s->cached + 1) * sizeof *s->diff.only_a);
	if (!s->diff.only_a)
		return -ENOMEM;
	for (size_t i = 0; i < s->cached; i++)
		s->diff.only_a[i] = ow_fold_key(secret, s->cache[i].id);
	s->diff.as = s->diff.space_a = s->cached;
	s->diff.complete = true;
	return 0;
}

int ow_fold_steps_push(struct ow_fold_steps *s, const struct ow_synopsis *fold, const struct ow_synopsis *counters,
                       uint64_t received)
{
	s->counters = counters;
	s->received = received;
	s->differences = NAN;
	int r = subtract(s, fold, &s->first);
	if (r < 0)
		return r;
	return !received && s->cache ? all_lost(s) : ow_fold_peel(s->first, NULL, &s->diff);
}

/* Estimates the differences by the counters. A's are in its table, or are made from its cache now. */
static int count_differences(struct ow_fold_steps *s)
{
	struct ow_synopsis *made = NULL;
	const struct ow_synopsis *mine = s->table ? ow_fold_of(s->table)->ams : NULL;
	if (!s->counters || !isnan(s->differences) || (!mine && !s->cache))
		return 0;
	if (!mine) {
		int r = ow_ams_create(((const struct ow_ams *)s->counters)->counters, s->counters->seed, &made);
		if (r < 0)
			return r;
		ow_ams_ops.add(made, s->cache, s->cached);
		mine = made;
	}
	if (ow_ams_difference(mine, s->counters, &s->differences, &s->deviation) < 0)
		s->differences = NAN;
	ow_synopsis_free(made);
	return 0;
}

/* Differences that are still unknown after the first fold: by the counters, and by the cells that are left. */
static double unknown(const struct ow_fold_steps *s)
{
	double found = (double)(s->diff.as + s->diff.bs), left = (double)s->diff.left;
	if (isnan(s->differences))
		return found > left ? left : BLIND * left;
	/* A cell that is not decoded has at least two packets, and each packet is in `banks` cells: at least left * 2 /
	 * banks. */
	return fmax(s->differences + MARGIN * s->deviation - found, left / 2);
}

int ow_fold_steps_more(struct ow_fold_steps *s, uint32_t *ret_cells, unsigned *ret_order)
{
	const struct ow_fold_params *params = &ow_fold_of(s->first)->params;
	int r = count_differences(s);
	if (r < 0)
		return r;
	*ret_cells = ow_fold_cells_for(params->banks, unknown(s));
	*ret_order = (params->order + 1) % OW_FOLD_ORDERS;
	return 0;
}

int ow_fold_steps_second(struct ow_fold_steps *s, const struct ow_synopsis *fold)
{
	int r = subtract(s, fold, &s->second);
	return r < 0 ? r : ow_fold_peel(s->first, s->second, &s->diff);
}

bool ow_fold_steps_complete(const struct ow_fold_steps *s)
{
	return s->diff.complete && s->packets - s->received == (uint64_t)s->diff.as - s->diff.bs;
}

/* -- leaving out -------------------------------------------------------------------------------------------------- */

static int add_only(struct ow_fold_steps *s, size_t *room, const struct ow_sighting *sighting)
{
	if (OW_GROW(s->only, *room, s->onlys + 1) < 0)
		return -ENOMEM;
	s->only[s->onlys++] = *sighting;
	return 0;
}

/* Splits A's packets into those that only A has and the others. */
static int part(struct ow_fold_steps *s, const struct ow_fold_secret *secret, const struct ow_keyset *set)
{
	size_t room = 0;
	int r = 0;
	s->lefts = s->onlys = 0;
	s->left = malloc((s->cached + 1) * sizeof *s->left);
	if (!s->left)
		return -ENOMEM;
	for (size_t i = 0; i < s->cached && r == 0; i++) {
		if (ow_keyset_has(set, ow_fold_key(secret, s->cache[i].id)))
			r = add_only(s, &room, &s->cache[i]);
		else
			s->left[s->lefts++] = s->cache[i];
	}
	return r;
}

static uint64_t key_after(const struct ow_fold_secret *secret, const struct ow_sighting *sighting)
{
	return ow_fold_key(secret, ow_copy_next(sighting->id));
}

static bool is_ambiguous(const struct ow_fold_steps *s, const struct ow_fold_secret *secret,
                         const struct ow_keyset *set, const struct ow_sighting *sighting)
{
	return ow_keyset_has(set, key_after(secret, sighting)) || (s->doubt && s->doubt(s->arg, sighting->id));
}

/* Usually there is nothing to leave out. */
static bool any_ambiguous(const struct ow_fold_steps *s, const struct ow_fold_secret *secret,
                          const struct ow_keyset *set)
{
	for (size_t i = 0; i < s->lefts; i++) {
		if (is_ambiguous(s, secret, set, &s->left[i]))
			return true;
	}
	return false;
}

/* Packets that A sent once and B received several times: adds their keys to `once`, and counts the further arrivals. */
static int find_duplicates(struct ow_fold_steps *s, const struct ow_fold_secret *secret, const struct ow_keyset *only_b,
                           struct ow_keyset *once)
{
	struct ow_keyset again = {0}; /* candidates that are copies themselves: A sent several */
	int r = 0;
	for (size_t i = 0; i < s->lefts && only_b->used && r == 0; i++) {
		if (ow_keyset_has(only_b, key_after(secret, &s->left[i])) &&
		    !(s->doubt && s->doubt(s->arg, s->left[i].id)))
			r = ow_keyset_add(once, ow_fold_key(secret, s->left[i].id));
	}
	for (size_t i = 0; i < s->lefts && once->used && r == 0; i++) {
		uint64_t key = key_after(secret, &s->left[i]);
		if (ow_keyset_has(once, key))
			r = ow_keyset_add(&again, key);
	}
	struct ow_keyset single = {0};
	for (size_t i = 0; i < s->lefts && once->used && r == 0; i++) {
		uint64_t key = ow_fold_key(secret, s->left[i].id);
		if (!ow_keyset_has(once, key) || ow_keyset_has(&again, key))
			continue;
		r = ow_keyset_add(&single, key);
		for (uint64_t id = ow_copy_next(s->left[i].id); ow_keyset_has(only_b, ow_fold_key(secret, id));
		     id = ow_copy_next(id))
			s->duplicated++;
	}
	ow_keyset_done(&again);
	ow_keyset_done(once);
	*once = single;
	return r;
}

/*
 * The ids of copies of a packet are successors of each other. If only one point has a copy, those before it are
 * ambiguous, because it is not known which of them arrived. Adds them to the set, and those in doubt.
 */
static int leave_out_copies(struct ow_fold_steps *s, const struct ow_fold_secret *secret, struct ow_keyset *set,
                            const struct ow_keyset *once)
{
	for (size_t before = SIZE_MAX; before != s->lefts;) {
		size_t kept = 0, count = before = s->lefts;
		/* From the last to the first: a copy comes after its predecessors, so one pass follows a chain to its
		 * start. */
		for (size_t i = count; i-- > 0;) {
			struct ow_sighting sighting = s->left[i];
			bool out = is_ambiguous(s, secret, set, &sighting);
			uint64_t key = out ? ow_fold_key(secret, sighting.id) : 0;
			if (out && !ow_keyset_has(once, key)) {
				int r = ow_keyset_add(set, key);
				if (r < 0)
					return r;
			} else {
				s->left[count - ++kept] = sighting;
			}
		}
		memmove(s->left, s->left + count - kept, kept * sizeof *s->left);
		s->lefts = kept;
	}
	return 0;
}

/* The keys that B has to leave out: all keys of the set except those that only A has; with `all`, these too. */
static int name_packets(struct ow_fold_steps *s, const struct ow_keyset *set, const struct ow_keyset *only_b, bool all)
{
	struct ow_keyset only_a = {0};
	s->wanted = malloc((s->diff.bs + 1) * sizeof *s->wanted);
	s->others = malloc((set->used + 1) * sizeof *s->others);
	int r = s->wanted && s->others ? add_keys(&only_a, s->diff.only_a, all ? 0 : s->diff.as) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < set->used; i++) {
		uint64_t key = set->key[i];
		if (ow_keyset_has(&only_a, key))
			continue;
		if (ow_keyset_has(only_b, key))
			s->wanted[s->wanteds++] = key;
		else
			s->others[s->otherss++] = key;
	}
	if (r == 0) {
		ow_sort_ids(s->wanted, s->wanteds);
		ow_sort_ids(s->others, s->otherss);
	}
	ow_keyset_done(&only_a);
	return r;
}

int ow_fold_steps_erase(struct ow_fold_steps *s)
{
	const struct ow_fold_secret *secret = &ow_fold_of(s->first)->secret;
	struct ow_keyset set = {0}, only_b = {0}, once = {0};
	int r = add_keys(&set, s->diff.only_a, s->diff.as);
	if (r == 0)
		r = add_keys(&set, s->diff.only_b, s->diff.bs);
	if (r == 0)
		r = add_keys(&only_b, s->diff.only_b, s->diff.bs);
	if (r == 0)
		r = part(s, secret, &set);
	bool ambiguous = r == 0 && any_ambiguous(s, secret, &set);
	if (r == 0 && ambiguous)
		r = find_duplicates(s, secret, &only_b, &once);
	if (r == 0 && ambiguous)
		r = leave_out_copies(s, secret, &set, &once);
	/* If A has left out more packets than necessary (points that do not distinguish copies by id), B may have some
	 * of these as well. */
	if (r == 0)
		r = name_packets(s, &set, &only_b, s->onlys > s->diff.as);
	s->ambiguous = s->cached - s->lefts - (s->onlys < s->diff.as ? s->onlys : s->diff.as);
	ow_keyset_done(&set);
	ow_keyset_done(&only_b);
	ow_keyset_done(&once);
	return r;
}

/* -- estimates ----------------------------------------------------------------------------------------------------- */

static void count_losses(const struct ow_fold_steps *s, struct ow_estimate *e)
{
	e->complete = true;
	e->lost = ow_value_exact((double)s->diff.as);
	e->extra = ow_value_exact((double)s->diff.bs);
	if (s->packets)
		e->loss_ratio = ow_value_exact((double)s->diff.as / (double)s->packets);
	else
		e->loss_ratio.reason = OW_REASON_NO_PACKET_SENT;
}

/* value +- error, not below least */
static struct ow_value around(double value, double error, double least)
{
	return (struct ow_value){OW_VALUE_ESTIMATED, fmax(value, least), fmax(value - error, least),
	                         fmax(value + error, least), OW_NO_REASON};
}

/* lost + extra = d by the counters; lost - extra is known. */
static void guess_losses(const struct ow_fold_steps *s, struct ow_estimate *e)
{
	double more = (double)s->packets - (double)s->received, error = OW_NORMAL_975 * s->deviation / 2;
	e->complete = false;
	if (isnan(s->differences)) {
		e->lost.reason = e->extra.reason = e->loss_ratio.reason = OW_REASON_FOLD_TOO_SMALL;
		return;
	}
	e->lost = around((s->differences + more) / 2, error, fmax(more, (double)s->diff.as));
	e->extra = around((s->differences - more) / 2, error, fmax(-more, (double)s->diff.bs));
	double sent = (double)s->packets;
	if (sent > 0)
		e->loss_ratio =
			(struct ow_value){OW_VALUE_ESTIMATED, fmin(1, e->lost.value / sent),
		                          fmin(1, e->lost.low / sent), fmin(1, e->lost.high / sent), OW_NO_REASON};
	else
		e->loss_ratio.reason = OW_REASON_NO_PACKET_SENT;
}

void ow_fold_steps_losses(struct ow_fold_steps *s, bool complete, struct ow_estimate *estimate)
{
	if (complete) {
		count_losses(s, estimate);
		return;
	}
	/* If there is no memory for the counters, the differences stay unknown. */
	(void)count_differences(s);
	guess_losses(s, estimate);
}

double ow_fold_steps_rest(const struct ow_fold_steps *s)
{
	if (isnan(s->differences))
		return (double)ow_fold_of(s->first)->params.cells;
	return fmax(1, s->differences - (double)(s->diff.as + s->diff.bs));
}

void ow_fold_steps_done(struct ow_fold_steps *s)
{
	ow_fold_difference_done(&s->diff);
	ow_synopsis_free(s->first);
	ow_synopsis_free(s->second);
	free(s->left);
	free(s->only);
	free(s->wanted);
	free(s->others);
	*s = (struct ow_fold_steps){0};
}
