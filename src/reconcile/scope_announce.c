/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scope at the sending point. Two sets: `announced` is ahead, with every update that was made; `confirmed` is what the
 * other point has, and follows with its answers. Updates in between are in flight.
 */
#include "base/array.h"
#include "base/sort.h"
#include "reconcile/key_sketch.h"
#include "reconcile/scope_set.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A sketch is for as many keys as were unlike lately, plus so many standard deviations, and some. What is less decays. */
#define SKETCH_MARGIN 2
#define SKETCH_LEAST  3
#define UNLIKE_DECAY  0.25

struct flight {
	int64_t interval;
	struct ow_scope_update update;
};

struct keys { /* a growing list */
	uint64_t *key;
	size_t count, room;
};

struct ow_scope_announcer {
	struct ow_scope_options options;
	struct ow_scope_set announced, confirmed;
	int64_t last;       /* interval announced */
	int64_t generation; /* its first interval */
	bool reset;         /* the next update is one */
	struct keys wanted; /* pairs that shall be FINE */
	struct keys again;  /* live keys that a reset has still to announce */
	struct flight *flight;
	size_t flights, room;
	struct ow_scope_announcer_counts counts;
	double unlike; /* new keys of an interval that only one point has; NAN = not known */
};

int ow_scope_announcer_create(const struct ow_scope_options *options, struct ow_scope_announcer **ret_announcer)
{
	if (options->hold < 1 || options->hold > OW_SCOPE_HOLD_MAX || options->overlap < 1 ||
	    options->overlap > OW_SCOPE_OVERLAP_MAX)
		return -EINVAL;
	struct ow_scope_announcer *a = calloc(1, sizeof *a);
	if (!a)
		return -ENOMEM;
	a->options = *options;
	a->last = INT64_MIN;
	a->reset = true;
	a->unlike = NAN;
	ow_scope_set_init(&a->announced, options->overlap, options->secret);
	ow_scope_set_init(&a->confirmed, options->overlap, options->secret);
	*ret_announcer = a;
	return 0;
}

static void drop_flights(struct ow_scope_announcer *a, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ow_scope_update_done(&a->flight[i].update);
	a->flights -= count;
	if (a->flights)
		memmove(a->flight, a->flight + count, a->flights * sizeof *a->flight);
}

void ow_scope_announcer_free(struct ow_scope_announcer *a)
{
	if (!a)
		return;
	drop_flights(a, a->flights);
	ow_scope_set_done(&a->announced);
	ow_scope_set_done(&a->confirmed);
	free(a->flight);
	free(a->wanted.key);
	free(a->again.key);
	free(a);
}

static int append(struct keys *keys, uint64_t key)
{
	if (keys->count == keys->room && OW_GROW(keys->key, keys->room, keys->count + 1) < 0)
		return -ENOMEM;
	keys->key[keys->count++] = key;
	return 0;
}

int ow_scope_make_fine(struct ow_scope_announcer *a, const uint64_t *pair_keys, size_t count)
{
	for (size_t k = 0; k < count && a->wanted.count < OW_SCOPE_LISTED_MAX; k++) {
		if (!ow_scope_listed(&a->announced, &a->announced.fine, pair_keys[k]) &&
		    append(&a->wanted, pair_keys[k]) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* -- resets -------------------------------------------------------------------------------------------------------- */

/* All that is listed, as wanted again. */
static void keep_fine(struct ow_scope_announcer *a)
{
	const struct ow_scope_listing *fine = &a->announced.fine;
	for (size_t i = 0; i < fine->slots; i++) {
		if (fine->slot[i].key && a->wanted.count < OW_SCOPE_LISTED_MAX)
			append(&a->wanted, fine->slot[i].key - 1);
	}
}

void ow_scope_announcer_reset(struct ow_scope_announcer *a)
{
	a->reset = true;
	a->counts.resets++;
	drop_flights(a, a->flights);
}

/* Clears the set; its keys are to be announced again. HOT destinations are listed at once. */
static int begin_again(struct ow_scope_announcer *a, int64_t interval, struct keys *hot)
{
	int r = 0;
	struct ow_scope_set *set = &a->announced;
	keep_fine(a);
	for (size_t i = 0; i < set->slots && r == 0; i++) {
		if (set->slot[i] && a->again.count < OW_SCOPE_LIVE_MAX)
			r = append(&a->again, ow_scope_slot_key(set->slot[i]));
	}
	for (size_t i = 0; i < set->hot.slots && r == 0; i++) {
		if (set->hot.slot[i].key)
			r = append(hot, set->hot.slot[i].key - 1);
	}
	ow_scope_set_clear(set);
	a->generation = interval;
	for (size_t i = 0; i < hot->count && r == 0; i++)
		r = ow_scope_set_list(set, &set->hot, hot->key[i], interval);
	return r;
}

/* -- FINE and HOT -------------------------------------------------------------------------------------------------- */

/* Lists a pair or destination, if it is not listed in this generation and there is room. */
static int list(struct ow_scope_announcer *a, struct ow_scope_listing *listing, uint64_t key, int64_t interval,
                struct keys *keys)
{
	const struct ow_scope_listed *listed = ow_scope_listed(&a->announced, listing, key);
	if (listed ? listed->generation == a->announced.generation : listing->used >= OW_SCOPE_LISTED_MAX)
		return 0;
	int r = ow_scope_set_list(&a->announced, listing, key, interval);
	return r < 0 ? r : append(keys, key);
}

static int list_wanted(struct ow_scope_announcer *a, int64_t interval, struct keys *fine)
{
	int r = 0;
	for (size_t k = 0; k < a->wanted.count && r == 0; k++)
		r = list(a, &a->announced.fine, a->wanted.key[k], interval, fine);
	a->wanted.count = 0;
	return r;
}

/* What was listed in the last generation and is in use is listed again. */
static int renew(struct ow_scope_announcer *a, int64_t interval, const struct ow_scope_flow *flow, struct keys *fine,
                 struct keys *hot)
{
	struct ow_scope_set *set = &a->announced;
	int r = 0;
	if (set->fine.used && ow_scope_listed(set, &set->fine, ow_scope_key(flow->pair)))
		r = list(a, &set->fine, ow_scope_key(flow->pair), interval, fine);
	if (r == 0 && set->hot.used && ow_scope_listed(set, &set->hot, ow_scope_key(flow->dest)))
		r = list(a, &set->hot, ow_scope_key(flow->dest), interval, hot);
	return r;
}

static bool is_announced(const struct ow_scope_set *set, uint64_t key)
{
	const uint64_t *slot = ow_scope_set_find(set, key);
	return slot && ow_scope_slot_generation(*slot) == set->generation;
}

static bool is_new_pair(const struct ow_scope_set *set, const struct ow_scope_flow *flow)
{
	return !ow_scope_listed(set, &set->fine, ow_scope_key(flow->pair)) &&
	       !ow_scope_listed(set, &set->hot, ow_scope_key(flow->dest)) &&
	       !is_announced(set, ow_scope_key(flow->pair));
}

static int by_dest(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	if (x[0] != y[0])
		return x[0] < y[0] ? -1 : 1;
	return (x[1] > y[1]) - (x[1] < y[1]);
}

/* Destinations with many new pairs. */
static int find_hot(struct ow_scope_announcer *a, int64_t interval, const struct ow_scope_flow *flows, size_t count,
                    struct keys *hot)
{
	size_t news = 0;
	for (size_t i = 0; i < count; i++)
		news += is_new_pair(&a->announced, &flows[i]);
	if (news <= OW_SCOPE_HOT_PAIRS)
		return 0;
	uint64_t(*pair)[2] = malloc(news * sizeof *pair);
	if (!pair)
		return -ENOMEM;
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		if (is_new_pair(&a->announced, &flows[i])) {
			pair[n][0] = ow_scope_key(flows[i].dest);
			pair[n++][1] = ow_scope_key(flows[i].pair);
		}
	}
	qsort(pair, n, sizeof *pair, by_dest);
	int r = 0;
	for (size_t i = 0, pairs = 0; i < n && r == 0; i++) {
		bool same = i && pair[i][0] == pair[i - 1][0];
		pairs = same ? pairs + (pair[i][1] != pair[i - 1][1]) : 1;
		if (pairs == OW_SCOPE_HOT_PAIRS + 1)
			r = list(a, &a->announced.hot, pair[i][0], interval, hot);
	}
	free(pair);
	return r;
}

/* -- updates ------------------------------------------------------------------------------------------------------- */

static int announce_key(struct ow_scope_announcer *a, uint64_t key, struct keys *keys)
{
	struct ow_scope_set *set = &a->announced;
	const uint64_t *slot = ow_scope_set_find(set, key);
	if (slot && ow_scope_slot_generation(*slot) == set->generation)
		return 0;
	if (keys->count >= OW_SCOPE_UPDATE_MAX || (!slot && set->used >= OW_SCOPE_LIVE_MAX))
		return -ENOSPC;
	int r = ow_scope_set_add(set, key);
	return r < 0 ? r : append(keys, key);
}

static int announce_flows(struct ow_scope_announcer *a, int64_t interval, const struct ow_scope_flow *flows,
                          size_t count, struct keys *keys)
{
	int r = 0;
	a->counts.unannounced = 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		uint64_t key[OW_SCOPE_KEYS_OF_FLOW];
		ow_scope_set_keys(&a->announced, &flows[i], interval, key);
		r = announce_key(a, key[0], keys);
		if (r == -ENOSPC) {
			/* It may be live from the last generation. */
			a->counts.unannounced += !ow_scope_set_find(&a->announced, key[0]);
			r = 0;
		}
	}
	return r;
}

/* After a reset: what is live besides the keys of this interval. */
static int announce_again(struct ow_scope_announcer *a, struct keys *keys)
{
	int r = 0;
	while (a->again.count && r == 0) {
		r = announce_key(a, a->again.key[a->again.count - 1], keys);
		a->again.count -= r == 0;
	}
	/* Full for good, or until the next update. */
	if (r == -ENOSPC && keys->count < OW_SCOPE_UPDATE_MAX)
		a->again.count = 0;
	return r == -ENOSPC ? 0 : r;
}

/* Whether a generation is over: after its usual time, or as soon as late packets allow if there are many keys. */
static bool turn_is_due(const struct ow_scope_announcer *a, int64_t interval)
{
	int64_t age = interval - a->generation, least = a->options.overlap;
	if (a->again.count)
		return false;
	return age >= (least > OW_SCOPE_GENERATION ? least : OW_SCOPE_GENERATION) ||
	       (age >= least && a->announced.used > OW_SCOPE_LIVE_MAX / 2);
}

static int make_lists(struct ow_scope_announcer *a, int64_t interval, const struct ow_scope_flow *flows, size_t count,
                      struct keys *hot, struct keys *fine, struct keys *keys)
{
	int r = 0;
	if (a->reset) {
		r = begin_again(a, interval, hot);
	} else if (turn_is_due(a, interval)) {
		a->generation = interval;
		r = ow_scope_set_turn(&a->announced, (uint16_t)(a->announced.generation + 1));
	}
	if (r == 0)
		r = list_wanted(a, interval, fine);
	for (size_t i = 0; i < count && r == 0 && (a->announced.fine.used || a->announced.hot.used); i++)
		r = renew(a, interval, &flows[i], fine, hot);
	if (r == 0)
		r = find_hot(a, interval, flows, count, hot);
	if (r == 0)
		r = announce_flows(a, interval, flows, count, keys);
	return r < 0 ? r : announce_again(a, keys);
}

static struct ow_scope_list sorted(const struct keys *keys)
{
	ow_sort_ids(keys->key, keys->count);
	return (struct ow_scope_list){keys->key, keys->count};
}

/* The capacity of a sketch that probably tells the keys; 0: a list is better. B does not have those that a reset repeats. */
static unsigned choose_capacity(const struct ow_scope_announcer *a, const struct ow_scope_update *update)
{
	double capacity = ceil(a->unlike + SKETCH_MARGIN * sqrt(a->unlike) + SKETCH_LEAST);
	if (update->reset || a->again.count || isnan(a->unlike) || !update->keys.count || !update->keys.key[0])
		return 0;
	return capacity <= OW_KEY_SKETCH_MAX && 2 * capacity < (double)update->keys.count ? (unsigned)capacity : 0;
}

static void learn_unlike(struct ow_scope_announcer *a, const struct ow_scope_update *update,
                         const struct ow_scope_answer *answer)
{
	double unlike = answer->strange;
	for (size_t k = 0; k < update->keys.count; k++)
		unlike += !(answer->seen[k / 8] >> k % 8 & 1);
	if (isnan(a->unlike) || unlike > a->unlike)
		a->unlike = unlike;
	else
		a->unlike += UNLIKE_DECAY * (unlike - a->unlike);
}

int ow_scope_announce(struct ow_scope_announcer *a, int64_t interval, const struct ow_scope_flow *flows, size_t count,
                      const struct ow_scope_update **ret_update)
{
	struct keys hot = {0}, fine = {0}, keys = {0};
	if (interval <= a->last)
		return -EINVAL;
	if (a->flights >= OW_SCOPE_FLIGHT_MAX)
		return -ENOSPC;
	if (a->flights == a->room && OW_GROW(a->flight, a->room, a->flights + 1) < 0)
		return -ENOMEM;
	int r = make_lists(a, interval, flows, count, &hot, &fine, &keys);
	if (r < 0) {
		free(hot.key);
		free(fine.key);
		free(keys.key);
		return r;
	}
	struct flight *flight = &a->flight[a->flights++];
	*flight = (struct flight){.interval = interval,
	                          .update = {.generation = a->announced.generation,
	                                     .reset = a->reset,
	                                     .hot = sorted(&hot),
	                                     .fine = sorted(&fine),
	                                     .keys = sorted(&keys),
	                                     .digest = a->announced.digest}};
	flight->update.capacity = choose_capacity(a, &flight->update);
	a->last = interval;
	a->reset = false;
	*ret_update = &flight->update;
	return 0;
}

/* -- answers ------------------------------------------------------------------------------------------------------- */

static int see_answer(struct ow_scope_set *set, const struct ow_scope_update *update,
                      const struct ow_scope_answer *answer, struct ow_error *err)
{
	if (answer->seen_bytes != (update->keys.count + 7) / 8)
		return ow_error_set(err, EINVAL, "the answer to %zu keys has %zu bytes", update->keys.count,
		                    answer->seen_bytes);
	for (size_t k = 0; k < update->keys.count; k++) {
		if (answer->seen[k / 8] >> k % 8 & 1)
			ow_scope_set_see(set, ow_scope_set_find(set, update->keys.key[k]));
	}
	for (size_t k = 0; k < answer->late.count; k++) {
		uint64_t *slot = ow_scope_set_find(set, answer->late.key[k]);
		if (!slot)
			return ow_error_set(err, EINVAL, "the answer has a key that was not announced");
		ow_scope_set_see(set, slot);
	}
	if (set->seen_digest != answer->digest)
		return ow_error_set(err, ESTALE, "both points have seen different keys");
	return 0;
}

static int find_flight(const struct ow_scope_announcer *a, int64_t interval, size_t *ret_index)
{
	size_t i = 0;
	while (i < a->flights && a->flight[i].interval < interval)
		i++;
	*ret_index = i;
	return i < a->flights && a->flight[i].interval == interval ? 0 : -ENOENT;
}

void ow_scope_announcer_lost(struct ow_scope_announcer *a, int64_t interval)
{
	size_t index;
	if (find_flight(a, interval, &index) == 0)
		ow_scope_announcer_reset(a);
}

int ow_scope_confirm(struct ow_scope_announcer *a, int64_t interval, const struct ow_scope_answer *answer,
                     const struct ow_scope_flow *flows, size_t count, uint8_t *in_scope, struct ow_error *err)
{
	size_t index;
	if (find_flight(a, interval, &index) < 0)
		return ow_error_set(err, ENOENT, "no update of this interval waits for an answer");
	int r = 0;
	for (size_t i = 0; i <= index && r == 0; i++) {
		r = ow_scope_set_apply(&a->confirmed, a->flight[i].interval, &a->flight[i].update);
		ow_scope_set_settle(&a->confirmed, &a->flight[i].update);
	}
	if (r < 0)
		return ow_error_set(err, -r, "the answers do not fit to the updates");
	r = see_answer(&a->confirmed, &a->flight[index].update, answer, err);
	if (r == 0)
		learn_unlike(a, &a->flight[index].update, answer);
	drop_flights(a, index + 1);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		in_scope[i] = ow_scope_set_has(&a->confirmed, &flows[i], interval);
	return ow_scope_make_fine(a, answer->fine.key, answer->fine.count);
}

size_t ow_scope_flights(const struct ow_scope_announcer *a)
{
	return a->flights;
}

const struct ow_scope_update *ow_scope_in_flight(const struct ow_scope_announcer *a, size_t nth, int64_t *ret_interval)
{
	if (nth >= a->flights)
		return NULL;
	*ret_interval = a->flight[nth].interval;
	return &a->flight[nth].update;
}

void ow_scope_announcer_counts(const struct ow_scope_announcer *a, struct ow_scope_announcer_counts *ret_counts)
{
	*ret_counts = a->counts;
	ret_counts->live = a->announced.used;
	ret_counts->fine = a->announced.fine.used;
	ret_counts->hot = a->announced.hot.used;
}
