/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that pairs of networks waste: a small table, whose entries are forgotten as they fall. */
#include "reconcile/scope_waste.h"

#include "base/array.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define SLOTS_MIN 64u
#define KEEPS     .9
#define LEAST     1.f /* waste that is worth an entry */

void ow_scope_waste_done(struct ow_scope_waste *waste)
{
	free(waste->slot);
	free(waste->fine);
	*waste = (struct ow_scope_waste){0};
}

static struct ow_scope_wasted *place(struct ow_scope_wasted *slot, size_t slots, uint64_t key)
{
	size_t i = (key >> 8) & (slots - 1);
	while (slot[i].key && slot[i].key != key + 1)
		i = (i + 1) & (slots - 1);
	return &slot[i];
}

/* Brings an entry to this interval. */
static void age(struct ow_scope_wasted *wasted, int64_t interval)
{
	if (interval <= wasted->interval)
		return;
	float keeps = (float)pow(KEEPS, (double)(interval - wasted->interval));
	wasted->waste *= keeps;
	wasted->flows *= keeps;
	wasted->interval = interval;
}

static int rebuild(struct ow_scope_waste *waste, size_t slots, int64_t interval)
{
	struct ow_scope_wasted *slot = calloc(slots, sizeof *slot);
	if (!slot)
		return -1;
	waste->used = 0;
	for (size_t i = 0; i < waste->slots; i++) {
		struct ow_scope_wasted *old = &waste->slot[i];
		if (!old->key)
			continue;
		age(old, interval);
		if (old->waste >= LEAST) {
			*place(slot, slots, old->key - 1) = *old;
			waste->used++;
		}
	}
	free(waste->slot);
	waste->slot = slot;
	waste->slots = slots;
	return 0;
}

/* Room for one more. The largest table is looked through once an interval, not for each packet. */
static bool make_room(struct ow_scope_waste *waste, int64_t interval)
{
	size_t slots = waste->slots;
	if (2 * (waste->used + 1) <= slots)
		return true;
	bool more = slots < 2 * OW_SCOPE_WASTE_MAX;
	if (!more && interval <= waste->rebuilt)
		return false;
	waste->rebuilt = interval;
	return rebuild(waste,
	               !slots ? SLOTS_MIN
	               : more ? 2 * slots
	                      : slots,
	               interval) == 0 &&
	       2 * (waste->used + 1) <= waste->slots;
}

static struct ow_scope_wasted *entry(struct ow_scope_waste *waste, uint64_t key, int64_t interval)
{
	if (!make_room(waste, interval)) {
		struct ow_scope_wasted *known = waste->slots ? place(waste->slot, waste->slots, key) : NULL;
		if (!known || !known->key)
			return NULL;
	}
	struct ow_scope_wasted *wasted = place(waste->slot, waste->slots, key);
	if (!wasted->key) {
		*wasted = (struct ow_scope_wasted){.key = key + 1, .interval = interval};
		waste->used++;
	}
	age(wasted, interval);
	return wasted;
}

void ow_scope_waste_add(struct ow_scope_waste *waste, uint64_t pair_key, int64_t interval, float bytes)
{
	struct ow_scope_wasted *wasted = entry(waste, pair_key, interval);
	if (!wasted)
		return;
	wasted->waste += bytes;
	if (wasted->waste <= 4 * wasted->flows + 8)
		return;
	if (waste->fines < OW_SCOPE_WASTE_MAX && OW_GROW(waste->fine, waste->room, waste->fines + 1) == 0) {
		waste->fine[waste->fines++] = pair_key;
		wasted->waste = 0;
	}
}

void ow_scope_waste_flow(struct ow_scope_waste *waste, uint64_t pair_key, int64_t interval)
{
	if (!waste->used)
		return;
	struct ow_scope_wasted *wasted = place(waste->slot, waste->slots, pair_key);
	if (!wasted->key)
		return;
	age(wasted, interval);
	wasted->flows++;
}
