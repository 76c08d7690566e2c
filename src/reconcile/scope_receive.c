/* SPDX-License-Identifier: Apache-2.0 */
/* Scope at the receiving point: which keys were seen, which packets are held, which flows changed their TTL. */
#include "base/array.h"
#include "base/sort.h"
#include "reconcile/scope_set.h"
#include "reconcile/scope_waste.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Flows that are remembered with their TTL, one a slot; a newer one takes the place. 512 KiB. */
#define KNOWN_FLOWS  65536u
#define REROUTED_MAX 1024u /* pairs of an answer */

struct held {
	int64_t interval;
	const struct ow_scope_flow *flow; /* the caller's */
	uint8_t *state;                   /* enum ow_scope_holding of each */
	size_t count;
	bool over; /* the last chance to join was the last call */
};

struct rerouted {
	uint64_t key;
	int8_t change;
};

struct ow_scope_receiver {
	struct ow_scope_options options;
	struct ow_scope_set set;
	int64_t last;
	bool stale; /* until a reset */
	struct held held[OW_SCOPE_HOLD_MAX + 1];
	size_t helds;
	uint64_t *known; /* hash of the flow with its TTL in the low byte */
	struct ow_scope_waste waste;
};

int ow_scope_receiver_create(const struct ow_scope_options *options, struct ow_scope_receiver **ret_receiver)
{
	if (options->hold < 1 || options->hold > OW_SCOPE_HOLD_MAX || options->overlap < 1 ||
	    options->overlap > OW_SCOPE_OVERLAP_MAX)
		return -EINVAL;
	struct ow_scope_receiver *r = calloc(1, sizeof *r);
	if (!r)
		return -ENOMEM;
	r->known = calloc(KNOWN_FLOWS, sizeof *r->known);
	if (!r->known) {
		free(r);
		return -ENOMEM;
	}
	r->options = *options;
	r->last = INT64_MIN;
	r->stale = true;
	ow_scope_set_init(&r->set, options->overlap, options->secret);
	ow_scope_waste_init(&r->waste, options->secret);
	*ret_receiver = r;
	return 0;
}

void ow_scope_receiver_free(struct ow_scope_receiver *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->helds; i++)
		free(r->held[i].state);
	ow_scope_set_done(&r->set);
	ow_scope_waste_done(&r->waste);
	free(r->known);
	free(r);
}

/* -- held packets -------------------------------------------------------------------------------------------------- */

/* What joined has passed; what had its last chance is forgotten. */
static void age_held(struct ow_scope_receiver *r)
{
	size_t kept = 0;
	for (size_t i = 0; i < r->helds; i++) {
		struct held *held = &r->held[i];
		if (held->over) {
			free(held->state);
			continue;
		}
		for (size_t k = 0; k < held->count; k++) {
			if (held->state[k] == OW_SCOPE_JOINS)
				held->state[k] = OW_SCOPE_PASSED;
		}
		r->held[kept++] = *held;
	}
	r->helds = kept;
}

/* The newest first. */
static int hold(struct ow_scope_receiver *r, int64_t interval, const struct ow_scope_flow *flows, size_t count,
                const uint8_t *in_scope)
{
	uint8_t *state = malloc(count + 1);
	if (!state)
		return -ENOMEM;
	for (size_t k = 0; k < count; k++)
		state[k] = in_scope[k] == OW_SCOPE_HOLDS ? OW_SCOPE_HOLDS : OW_SCOPE_PASSED;
	memmove(&r->held[1], &r->held[0], r->helds * sizeof *r->held);
	r->held[0] = (struct held){interval, flows, state, count, false};
	r->helds++;
	return 0;
}

/* Held flows whose key is seen by now join; the last chance is over for others of the oldest interval. */
static void join_held(struct ow_scope_receiver *r, int64_t interval, struct ow_scope_held *ret_held, size_t *ret_helds)
{
	for (size_t i = 0; i < r->helds; i++) {
		struct held *held = &r->held[i];
		held->over = interval - held->interval >= (int64_t)r->options.hold;
		for (size_t k = 0; k < held->count; k++) {
			if (held->state[k] != OW_SCOPE_HOLDS)
				continue;
			if (ow_scope_set_has(&r->set, &held->flow[k], interval))
				held->state[k] = OW_SCOPE_JOINS;
			else if (held->over)
				held->state[k] = OW_SCOPE_EXPIRES;
		}
		ret_held[i] = (struct ow_scope_held){held->interval, held->state, held->count};
	}
	*ret_helds = r->helds;
}

/* -- keys ---------------------------------------------------------------------------------------------------------- */

/* Packets of this flow are here: its keys are seen. Those that were announced before are late. */
static int see_flow(struct ow_scope_receiver *r, int64_t interval, const struct ow_scope_flow *flow,
                    struct ow_scope_answer *answer, size_t *room)
{
	uint64_t key[OW_SCOPE_KEYS_OF_FLOW];
	unsigned n = ow_scope_set_keys(&r->set, flow, interval, key);
	for (unsigned k = 0; k < n; k++) {
		uint64_t *slot = ow_scope_set_find(&r->set, key[k]);
		if (!slot || *slot & OW_SCOPE_SLOT_SEEN)
			continue;
		ow_scope_set_see(&r->set, slot);
		if (*slot & OW_SCOPE_SLOT_NOW)
			continue;
		if (OW_GROW(answer->late.key, *room, answer->late.count + 1) < 0)
			return -ENOMEM;
		answer->late.key[answer->late.count++] = key[k];
	}
	return 0;
}

static int see_all(struct ow_scope_receiver *r, int64_t interval, const struct ow_scope_flow *flows, size_t count,
                   struct ow_scope_answer *answer)
{
	int ret = 0;
	size_t room = 0;
	for (size_t k = 0; k < count && ret == 0; k++)
		ret = see_flow(r, interval, &flows[k], answer, &room);
	for (size_t i = 0; i < r->helds; i++) {
		for (size_t k = 0; k < r->held[i].count && ret == 0; k++) {
			if (r->held[i].state[k] == OW_SCOPE_HOLDS)
				ret = see_flow(r, interval, &r->held[i].flow[k], answer, &room);
		}
	}
	ow_sort_ids(answer->late.key, answer->late.count);
	return ret;
}

static int answer_bits(const struct ow_scope_receiver *r, const struct ow_scope_update *update,
                       struct ow_scope_answer *answer)
{
	answer->seen_bytes = (update->keys.count + 7) / 8;
	answer->seen = calloc(1, answer->seen_bytes + 1);
	if (!answer->seen)
		return -ENOMEM;
	for (size_t k = 0; k < update->keys.count; k++) {
		const uint64_t *slot = ow_scope_set_find(&r->set, update->keys.key[k]);
		if (*slot & OW_SCOPE_SLOT_SEEN)
			answer->seen[k / 8] |= (uint8_t)(1u << k % 8);
	}
	answer->digest = r->set.seen_digest;
	return 0;
}

/* -- flows that are known ------------------------------------------------------------------------------------------ */

static int by_key(const void *a, const void *b)
{
	const struct rerouted *x = a, *y = b;
	return (x->key > y->key) - (x->key < y->key);
}

/* Each pair once; its flows went the same way. */
static int answer_rerouted(struct rerouted *rerouted, size_t count, struct ow_scope_answer *answer)
{
	if (!count)
		return 0;
	qsort(rerouted, count, sizeof *rerouted, by_key);
	answer->rerouted.key = malloc(count * sizeof *answer->rerouted.key);
	answer->ttl_change = malloc(count);
	if (!answer->rerouted.key || !answer->ttl_change)
		return -ENOMEM;
	for (size_t k = 0; k < count; k++) {
		if (k && rerouted[k].key == rerouted[k - 1].key)
			continue;
		answer->rerouted.key[answer->rerouted.count] = rerouted[k].key;
		answer->ttl_change[answer->rerouted.count++] = rerouted[k].change;
	}
	return 0;
}

/* Notes TTLs and new flows of what is in scope. */
static int know_flows(struct ow_scope_receiver *r, int64_t interval, const struct ow_scope_flow *flows, size_t count,
                      const uint8_t *in_scope, struct ow_scope_answer *answer)
{
	struct rerouted rerouted[REROUTED_MAX];
	size_t n = 0;
	for (size_t k = 0; k < count; k++) {
		if (in_scope[k] != OW_SCOPE_JOINS)
			continue;
		uint64_t *known = &r->known[(flows[k].flow >> 8) % KNOWN_FLOWS], now = flows[k].flow | 0xff;
		uint64_t pair = ow_scope_key(flows[k].pair);
		uint8_t before = (uint8_t)*known;
		int change = flows[k].ttl - before;
		if ((*known | 0xff) != now)
			ow_scope_waste_flow(&r->waste, pair, interval);
		else if (before && flows[k].ttl && change && n < REROUTED_MAX)
			rerouted[n++] = (struct rerouted){pair, (int8_t)(change > 127    ? 127
			                                                 : change < -127 ? -127
			                                                                 : change)};
		*known = (now & ~UINT64_C(0xff)) | flows[k].ttl;
	}
	return answer_rerouted(rerouted, n, answer);
}

static void answer_fine(struct ow_scope_receiver *r, struct ow_scope_answer *answer)
{
	struct ow_scope_waste *waste = &r->waste;
	if (!waste->fines)
		return;
	ow_sort_ids(waste->fine, waste->fines);
	size_t n = 0;
	for (size_t k = 0; k < waste->fines; k++) {
		bool known = (n && waste->fine[n - 1] == waste->fine[k]) ||
		             ow_scope_listed(&r->set, &r->set.fine, waste->fine[k]);
		if (!known)
			waste->fine[n++] = waste->fine[k];
	}
	answer->fine = (struct ow_scope_list){waste->fine, n};
	waste->fine = NULL;
	waste->fines = waste->room = 0;
}

static int add_candidate(const struct ow_scope_receiver *r, int64_t interval, uint16_t generation,
                         const struct ow_scope_flow *flow, struct ow_scope_list *keys, size_t *room)
{
	uint64_t key[OW_SCOPE_KEYS_OF_FLOW];
	ow_scope_set_keys(&r->set, flow, interval, key);
	const uint64_t *slot = ow_scope_set_find(&r->set, key[0]);
	if (slot && ow_scope_slot_generation(*slot) == generation)
		return 0;
	if (OW_GROW(keys->key, *room, keys->count + 1) < 0)
		return -ENOMEM;
	keys->key[keys->count++] = key[0];
	return 0;
}

int ow_scope_candidates(struct ow_scope_receiver *r, int64_t interval, const struct ow_scope_update *update,
                        const struct ow_scope_flow *flows, size_t count, struct ow_scope_list *ret_keys)
{
	struct ow_scope_list keys = {0};
	struct ow_scope_update rest = *update;
	uint16_t generation = update->generation;
	size_t room = 0, kept = 0;
	*ret_keys = keys;
	rest.keys = keys;
	if (r->stale || update->reset)
		return 0;
	int ret = ow_scope_set_apply(&r->set, interval, &rest);
	/* What is wrong with it shows when it is received. */
	if (ret < 0)
		return ret == -ENOMEM ? ret : 0;
	for (size_t k = 0; k < count && ret == 0; k++)
		ret = add_candidate(r, interval, generation, &flows[k], &keys, &room);
	for (size_t i = 0; i < r->helds; i++) {
		for (size_t k = 0; k < r->held[i].count && ret == 0; k++) {
			if (r->held[i].state[k] == OW_SCOPE_HOLDS)
				ret = add_candidate(r, interval, generation, &r->held[i].flow[k], &keys, &room);
		}
	}
	ow_sort_ids(keys.key, keys.count);
	for (size_t k = 0; k < keys.count; k++) {
		if (!k || keys.key[k] != keys.key[k - 1])
			keys.key[kept++] = keys.key[k];
	}
	keys.count = kept;
	*ret_keys = keys;
	return ret;
}

void ow_scope_received_only(struct ow_scope_receiver *r, const struct ow_scope_flow *flow, uint32_t packets)
{
	ow_scope_waste_add(&r->waste, ow_scope_key(flow->pair), r->last, OW_SCOPE_WASTE_B_ONLY * (float)packets);
}

/* -- an interval --------------------------------------------------------------------------------------------------- */

static int apply(struct ow_scope_receiver *r, int64_t interval, const struct ow_scope_update *update,
                 struct ow_error *err)
{
	if (r->stale && !update->reset)
		return ow_error_set(err, ESTALE, "an update of the flows of this lane is missing");
	r->stale = true; /* until all went well */
	int ret = ow_scope_set_apply(&r->set, interval, update);
	if (ret == -EPROTO)
		return ow_error_set(err, EPROTO, "more flow keys than a lane may have");
	if (ret < 0)
		return ow_error_set(err, -ret, "an update of the flows of this lane is missing");
	if (r->set.digest != update->digest)
		return ow_error_set(err, ESTALE, "both points have different flow keys");
	return 0;
}

static int answer_update(struct ow_scope_receiver *r, int64_t interval, const struct ow_scope_update *update,
                         const struct ow_scope_flow *flows, size_t count, struct ow_scope_answer *answer,
                         struct ow_error *err)
{
	int ret = apply(r, interval, update, err);
	if (ret < 0)
		return ret;
	if (see_all(r, interval, flows, count, answer) < 0 || answer_bits(r, update, answer) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	ow_scope_set_settle(&r->set, update);
	answer_fine(r, answer);
	r->stale = false;
	return 0;
}

int ow_scope_receive(struct ow_scope_receiver *r, int64_t interval, const struct ow_scope_update *update,
                     const struct ow_scope_flow *flows, size_t count, uint8_t *in_scope, struct ow_scope_held *ret_held,
                     size_t *ret_helds, struct ow_scope_answer *ret_answer, struct ow_error *err)
{
	struct ow_scope_answer answer = {0};
	int ret = 0;
	if (interval <= r->last)
		return ow_error_set(err, EINVAL, "interval %lld comes after %lld", (long long)interval,
		                    (long long)r->last);
	r->last = interval;
	age_held(r);
	if (update)
		ret = answer_update(r, interval, update, flows, count, &answer, err);
	for (size_t k = 0; k < count; k++)
		in_scope[k] = ow_scope_set_has(&r->set, &flows[k], interval) ? OW_SCOPE_JOINS : OW_SCOPE_HOLDS;
	join_held(r, interval, ret_held, ret_helds);
	if (ret == 0 && know_flows(r, interval, flows, count, in_scope, &answer) < 0)
		ret = ow_error_set(err, ENOMEM, "out of memory");
	if (hold(r, interval, flows, count, in_scope) < 0)
		ret = ow_error_set(err, ENOMEM, "out of memory");
	if (ret < 0)
		ow_scope_answer_done(&answer);
	*ret_answer = answer;
	return ret;
}
