/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reconcile/scope_keys.h"

/*
 * Internal to scope: the keys that are live in a lane, and the pairs that are FINE and destinations that are HOT. The
 * sending point has two of them: what it announced, and what the other point has applied and seen. The receiving point
 * has the latter. A set changes by updates only, so equal updates give equal sets.
 */

/* A pair that is FINE, or a destination that is HOT. */
struct ow_scope_listed {
	uint64_t key; /* + 1; 0 = free */
	int64_t since;
	uint16_t generation;
};

struct ow_scope_listing {
	struct ow_scope_listed *slot;
	size_t slots, used;
};

struct ow_scope_set {
	uint64_t *slot; /* see scope_set.c; 0 = free */
	size_t slots, used;
	struct ow_scope_listing fine, hot;
	uint16_t generation;
	uint32_t overlap;
	uint64_t secret; /* places in the tables */
	uint64_t digest, seen_digest;
};

/* Bits of a slot besides key and generation. */
#define OW_SCOPE_SLOT_USED (UINT64_C(1) << 40)
#define OW_SCOPE_SLOT_SEEN (UINT64_C(1) << 41)
#define OW_SCOPE_SLOT_NOW  (UINT64_C(1) << 42) /* of the update at hand */

static inline uint64_t ow_scope_slot_key(uint64_t slot)
{
	return slot & ((UINT64_C(1) << OW_SCOPE_KEY_BITS) - 1);
}
static inline uint16_t ow_scope_slot_generation(uint64_t slot)
{
	return (uint16_t)(slot >> 48);
}

void ow_scope_set_init(struct ow_scope_set *set, uint32_t overlap, uint64_t secret);
void ow_scope_set_done(struct ow_scope_set *set);
/* Forgets everything but the generation. */
void ow_scope_set_clear(struct ow_scope_set *set);

/* Begins a generation: forgets what is older than the one before. 0 or -ENOMEM. */
int ow_scope_set_turn(struct ow_scope_set *set, uint16_t generation);
/* The key is announced in the present generation, and not seen. 0 or -ENOMEM. Whether there is room is the caller's to
 * check. */
int ow_scope_set_add(struct ow_scope_set *set, uint64_t key);
int ow_scope_set_list(struct ow_scope_set *set, struct ow_scope_listing *listing, uint64_t key, int64_t interval);
/* An update that came or is answered. -ESTALE: an update before it is missing, -EPROTO: beyond the limits, -ENOMEM. The
 * digest is not compared. Keys of it have OW_SCOPE_SLOT_NOW until ow_scope_set_settle. */
int ow_scope_set_apply(struct ow_scope_set *set, int64_t interval, const struct ow_scope_update *update);
void ow_scope_set_settle(struct ow_scope_set *set, const struct ow_scope_update *update);

/* The slot of a live key, or NULL. */
uint64_t *ow_scope_set_find(const struct ow_scope_set *set, uint64_t key);
const struct ow_scope_listed *ow_scope_listed(const struct ow_scope_set *set, const struct ow_scope_listing *listing,
                                              uint64_t key);
void ow_scope_set_see(struct ow_scope_set *set, uint64_t *slot);

/* The keys that a packet of the flow may be found by, the present one first, which is the one that is announced.
 * Returns how many. */
#define OW_SCOPE_KEYS_OF_FLOW 3
unsigned ow_scope_set_keys(const struct ow_scope_set *set, const struct ow_scope_flow *flow, int64_t interval,
                           uint64_t keys[OW_SCOPE_KEYS_OF_FLOW]);
/* Whether any of these keys is seen. */
bool ow_scope_set_has(const struct ow_scope_set *set, const struct ow_scope_flow *flow, int64_t interval);
