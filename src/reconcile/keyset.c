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
	struct ow_keyset old = *set;
	size_t slots = old.slot ? 2 * (old.mask + 1) : SLOTS_MIN;
	/* 32 bits a slot: one of 64 that are not there gets past the filter. */
	uint64_t *slot = calloc(slots, sizeof *slot), *bits = calloc(slots / 2, sizeof *bits);
	if (!slot || !bits) {
		free(slot);
		free(bits);
		return -ENOMEM;
	}
	*set = (struct ow_keyset){slot, bits, slots - 1, slots * 32 - 1, 0};
	for (size_t i = 0; i < slots / 2 && old.slot; i++) {
		if (old.slot[i])
			put(set, old.slot[i] - 1);
	}
	free(old.slot);
	free(old.bits);
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
