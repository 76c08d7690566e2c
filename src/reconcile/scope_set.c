/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live keys of a lane: open addressing over slots of 8 bytes,
 *
 *     key (40 bits), used, seen, of this update, 5 bits free, generation (16 bits)
 *
 * Digests are sums of mixed keys, so that they do not depend on order and follow each change.
 */
#include "reconcile/scope_set.h"

#include "base/hash.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 64u

enum { DIGEST_KEY = 1, DIGEST_SEEN, DIGEST_FINE, DIGEST_HOT };

static uint64_t digest_of(uint64_t kind, uint64_t key, uint16_t generation)
{
	return ow_mix64(ow_mix64(key ^ kind << 40) + generation);
}

void ow_scope_set_init(struct ow_scope_set *set, uint32_t overlap, uint64_t secret)
{
	memset(set, 0, sizeof *set);
	set->overlap = overlap;
	set->secret = secret;
}

void ow_scope_set_done(struct ow_scope_set *set)
{
	free(set->slot);
	free(set->fine.slot);
	free(set->hot.slot);
	ow_scope_set_init(set, set->overlap, set->secret);
}

void ow_scope_set_clear(struct ow_scope_set *set)
{
	uint16_t generation = set->generation;
	ow_scope_set_done(set);
	set->generation = generation;
}

/* -- keys ---------------------------------------------------------------------------------------------------------- */

/* The other point chooses the keys, but does not know where they are put. */
static size_t home(const struct ow_scope_set *set, uint64_t key, size_t slots)
{
	return ow_mum64(key ^ set->secret, UINT64_C(0x9fb21c651e98df25)) & (slots - 1);
}

static uint64_t *place(const struct ow_scope_set *set, uint64_t *slot, size_t slots, uint64_t key)
{
	size_t i = home(set, key, slots);
	while (slot[i] && ow_scope_slot_key(slot[i]) != key)
		i = (i + 1) & (slots - 1);
	return &slot[i];
}

uint64_t *ow_scope_set_find(const struct ow_scope_set *set, uint64_t key)
{
	if (!set->slots)
		return NULL;
	uint64_t *slot = place(set, set->slot, set->slots, key);
	return *slot ? slot : NULL;
}

static bool is_old(const struct ow_scope_set *set, uint16_t generation)
{
	return (uint16_t)(set->generation - generation) > 1;
}

static void forget_digests(struct ow_scope_set *set, uint64_t slot)
{
	uint64_t key = ow_scope_slot_key(slot);
	set->digest -= digest_of(DIGEST_KEY, key, ow_scope_slot_generation(slot));
	if (slot & OW_SCOPE_SLOT_SEEN)
		set->seen_digest -= digest_of(DIGEST_SEEN, key, 0);
}

/* Copies what is not too old into a table of this size. */
static int rebuild(struct ow_scope_set *set, size_t slots)
{
	uint64_t *slot = calloc(slots, sizeof *slot);
	if (!slot)
		return -ENOMEM;
	set->used = 0;
	for (size_t i = 0; i < set->slots; i++) {
		if (!set->slot[i])
			continue;
		if (is_old(set, ow_scope_slot_generation(set->slot[i]))) {
			forget_digests(set, set->slot[i]);
			continue;
		}
		*place(set, slot, slots, ow_scope_slot_key(set->slot[i])) = set->slot[i];
		set->used++;
	}
	free(set->slot);
	set->slot = slot;
	set->slots = slots;
	return 0;
}

int ow_scope_set_add(struct ow_scope_set *set, uint64_t key)
{
	if (2 * (set->used + 1) > set->slots) {
		int r = rebuild(set, set->slots ? 2 * set->slots : SLOTS_MIN);
		if (r < 0)
			return r;
	}
	uint64_t *slot = place(set, set->slot, set->slots, key);
	if (*slot)
		forget_digests(set, *slot);
	else
		set->used++;
	*slot = key | OW_SCOPE_SLOT_USED | (uint64_t)set->generation << 48;
	set->digest += digest_of(DIGEST_KEY, key, set->generation);
	return 0;
}

void ow_scope_set_see(struct ow_scope_set *set, uint64_t *slot)
{
	if (*slot & OW_SCOPE_SLOT_SEEN)
		return;
	*slot |= OW_SCOPE_SLOT_SEEN;
	set->seen_digest += digest_of(DIGEST_SEEN, ow_scope_slot_key(*slot), 0);
}

/* -- FINE and HOT -------------------------------------------------------------------------------------------------- */

static struct ow_scope_listed *listed_place(const struct ow_scope_set *set, struct ow_scope_listed *slot, size_t slots,
                                            uint64_t key)
{
	size_t i = home(set, key, slots);
	while (slot[i].key && slot[i].key != key + 1)
		i = (i + 1) & (slots - 1);
	return &slot[i];
}

const struct ow_scope_listed *ow_scope_listed(const struct ow_scope_set *set, const struct ow_scope_listing *listing,
                                              uint64_t key)
{
	if (!listing->used)
		return NULL;
	const struct ow_scope_listed *slot = listed_place(set, listing->slot, listing->slots, key);
	return slot->key ? slot : NULL;
}

static uint64_t listing_kind(const struct ow_scope_set *set, const struct ow_scope_listing *listing)
{
	return listing == &set->fine ? DIGEST_FINE : DIGEST_HOT;
}

static int listing_rebuild(struct ow_scope_set *set, struct ow_scope_listing *listing, size_t slots)
{
	struct ow_scope_listed *slot = calloc(slots, sizeof *slot);
	if (!slot)
		return -ENOMEM;
	listing->used = 0;
	for (size_t i = 0; i < listing->slots; i++) {
		const struct ow_scope_listed *old = &listing->slot[i];
		if (!old->key)
			continue;
		if (is_old(set, old->generation)) {
			set->digest -= digest_of(listing_kind(set, listing), old->key - 1, old->generation);
			continue;
		}
		*listed_place(set, slot, slots, old->key - 1) = *old;
		listing->used++;
	}
	free(listing->slot);
	listing->slot = slot;
	listing->slots = slots;
	return 0;
}

int ow_scope_set_list(struct ow_scope_set *set, struct ow_scope_listing *listing, uint64_t key, int64_t interval)
{
	if (2 * (listing->used + 1) > listing->slots) {
		int r = listing_rebuild(set, listing, listing->slots ? 2 * listing->slots : SLOTS_MIN);
		if (r < 0)
			return r;
	}
	struct ow_scope_listed *slot = listed_place(set, listing->slot, listing->slots, key);
	uint64_t kind = listing_kind(set, listing);
	if (slot->key) {
		set->digest -= digest_of(kind, key, slot->generation);
	} else {
		*slot = (struct ow_scope_listed){.key = key + 1, .since = interval};
		listing->used++;
	}
	slot->generation = set->generation;
	set->digest += digest_of(kind, key, slot->generation);
	return 0;
}

/* -- updates ------------------------------------------------------------------------------------------------------- */

/* A table that was this large last time. It shrinks with what is in it: the other point may begin a generation with
 * each update, and the work must not exceed what it sent. */
static size_t slots_after(size_t slots, size_t used)
{
	while (slots > SLOTS_MIN && slots / 8 > used)
		slots /= 2;
	return slots;
}

int ow_scope_set_turn(struct ow_scope_set *set, uint16_t generation)
{
	set->generation = generation;
	int r = set->slots ? rebuild(set, slots_after(set->slots, set->used)) : 0;
	if (r == 0 && set->fine.slots)
		r = listing_rebuild(set, &set->fine, slots_after(set->fine.slots, set->fine.used));
	if (r == 0 && set->hot.slots)
		r = listing_rebuild(set, &set->hot, slots_after(set->hot.slots, set->hot.used));
	return r;
}

static int apply_listed(struct ow_scope_set *set, struct ow_scope_listing *listing, int64_t interval,
                        const struct ow_scope_list *list)
{
	int r = 0;
	for (size_t k = 0; k < list->count && r == 0; k++)
		r = ow_scope_set_list(set, listing, list->key[k], interval);
	return r < 0 ? r : listing->used > OW_SCOPE_LISTED_MAX ? -EPROTO : 0;
}

int ow_scope_set_apply(struct ow_scope_set *set, int64_t interval, const struct ow_scope_update *update)
{
	int r = 0;
	if (update->keys.count > OW_SCOPE_UPDATE_MAX || update->hot.count > OW_SCOPE_LISTED_MAX ||
	    update->fine.count > OW_SCOPE_LISTED_MAX)
		return -EPROTO;
	if (update->reset) {
		ow_scope_set_clear(set);
		set->generation = update->generation;
	} else if (update->generation == (uint16_t)(set->generation + 1)) {
		r = ow_scope_set_turn(set, update->generation);
	} else if (update->generation != set->generation) {
		return -ESTALE;
	}
	if (r == 0)
		r = apply_listed(set, &set->hot, interval, &update->hot);
	if (r == 0)
		r = apply_listed(set, &set->fine, interval, &update->fine);
	for (size_t k = 0; k < update->keys.count && r == 0; k++) {
		r = ow_scope_set_add(set, update->keys.key[k]);
		if (r == 0)
			*ow_scope_set_find(set, update->keys.key[k]) |= OW_SCOPE_SLOT_NOW;
	}
	return r < 0 ? r : set->used > OW_SCOPE_LIVE_MAX ? -EPROTO : 0;
}

void ow_scope_set_settle(struct ow_scope_set *set, const struct ow_scope_update *update)
{
	for (size_t k = 0; k < update->keys.count; k++) {
		uint64_t *slot = ow_scope_set_find(set, update->keys.key[k]);
		if (slot)
			*slot &= ~OW_SCOPE_SLOT_NOW;
	}
}

/* -- the keys of a flow -------------------------------------------------------------------------------------------- */

static bool is_recent(const struct ow_scope_set *set, const struct ow_scope_listed *listed, int64_t interval)
{
	return interval - listed->since < (int64_t)set->overlap;
}

unsigned ow_scope_set_keys(const struct ow_scope_set *set, const struct ow_scope_flow *flow, int64_t interval,
                           uint64_t keys[OW_SCOPE_KEYS_OF_FLOW])
{
	unsigned n = 0;
	const struct ow_scope_listed *fine = ow_scope_listed(set, &set->fine, ow_scope_key(flow->pair));
	if (fine) {
		keys[n++] = ow_scope_key(flow->flow);
		if (!is_recent(set, fine, interval))
			return n;
	}
	const struct ow_scope_listed *hot = ow_scope_listed(set, &set->hot, ow_scope_key(flow->dest));
	if (hot) {
		keys[n++] = ow_scope_key(flow->dest);
		if (!is_recent(set, hot, interval))
			return n;
	}
	keys[n++] = ow_scope_key(flow->pair);
	return n;
}

bool ow_scope_set_has(const struct ow_scope_set *set, const struct ow_scope_flow *flow, int64_t interval)
{
	uint64_t keys[OW_SCOPE_KEYS_OF_FLOW];
	unsigned n = ow_scope_set_keys(set, flow, interval, keys);
	for (unsigned k = 0; k < n; k++) {
		const uint64_t *slot = ow_scope_set_find(set, keys[k]);
		if (slot && *slot & OW_SCOPE_SLOT_SEEN)
			return true;
	}
	return false;
}

static void list_done(struct ow_scope_list *list)
{
	free(list->key);
	*list = (struct ow_scope_list){0};
}

void ow_scope_update_done(struct ow_scope_update *update)
{
	list_done(&update->hot);
	list_done(&update->fine);
	list_done(&update->keys);
	*update = (struct ow_scope_update){0};
}

void ow_scope_answer_done(struct ow_scope_answer *answer)
{
	list_done(&answer->late);
	list_done(&answer->fine);
	list_done(&answer->rerouted);
	free(answer->seen);
	free(answer->ttl_change);
	*answer = (struct ow_scope_answer){0};
}
