/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECONCILE_KEYSET_H
#define OW_RECONCILE_KEYSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A set of packet keys (synopsis/fold), asked for each packet of an interval: hence a filter of one bit a key in front
 * of the table. Keys are uniform, their own bits are the hash.
 */
struct ow_keyset {
	uint64_t *slot; /* key + 1, 0 = free; at most half are used */
	uint64_t *bits; /* the filter: 32 bits a slot */
	uint64_t mask, bit_mask;
	size_t used;
};

/* Zeroed is empty. 0 or -ENOMEM; a key that is there already stays there once. */
int ow_keyset_add(struct ow_keyset *set, uint64_t key);
void ow_keyset_done(struct ow_keyset *set);

static inline bool ow_keyset_has(const struct ow_keyset *set, uint64_t key)
{
	if (!set->bits || !(set->bits[(key & set->bit_mask) / 64] >> key % 64 & 1))
		return false;
	uint64_t i = (key >> 12) & set->mask;
	while (set->slot[i] && set->slot[i] != key + 1)
		i = (i + 1) & set->mask;
	return set->slot[i] != 0;
}

#endif
