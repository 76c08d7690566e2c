/* SPDX-License-Identifier: Apache-2.0 */
/* A growing set of packet keys. */
#include "reconcile/keyset.h"

#include <errno.h>
#include <stdlib.h>

#define SLOTS_MIN 64u

static void put(struct ow_keyset *set, uint64_t key)
{
	uint64_t i = (key >> 12) & set->mask;
	while (set->slot[i])
		i = (i + 1) & set->mask;
	set->slot[i] = key + 1;
	set->bits[(key & set->bit_mask) / 64] |= UINT64_C(1) << key % 64;
	set->used++;
}

static int grow(struct ow_keyset *set)
{
	size_t old = set->slot ? set->mask + 1 : 0, slots = old ? 2 * old : SLOTS_MIN;
	/* 32 bits a slot: one of 64 that are not there gets past the filter. */
	struct ow_keyset larger = {calloc(slots, sizeof *larger.slot), calloc(slots / 2, sizeof *larger.bits),
	                           slots - 1, slots * 32 - 1, 0};
	if (!larger.slot || !larger.bits) {
		ow_keyset_done(&larger);
		return -ENOMEM;
	}
	for (size_t i = 0; i < old; i++) {
		if (set->slot[i])
			put(&larger, set->slot[i] - 1);
	}
	ow_keyset_done(set);
	*set = larger;
	return 0;
}

int ow_keyset_add(struct ow_keyset *set, uint64_t key)
{
	if (ow_keyset_has(set, key))
		return 0;
	if (!set->slot || set->used >= (set->mask + 1) / 2) {
		int r = grow(set);
		if (r < 0)
			return r;
	}
	put(set, key);
	return 0;
}

void ow_keyset_done(struct ow_keyset *set)
{
	free(set->slot);
	free(set->bits);
	*set = (struct ow_keyset){0};
}
