/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/id_map.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A set of packet keys (synopsis/fold). It is searched for each packet of an interval, so there is a filter in front of
 * the map. Keys are uniform; their own bits choose those of the filter.
 */
struct ow_keyset {
	uint64_t *key; /* in the order in which they were added */
	size_t used, room;
	uint64_t *bits; /* the filter: 64 bits a key that there is room for, a power of two */
	uint64_t bit_mask;
	struct ow_id_map by_key;
};

/* Zeroed is empty. Returns 0 or -ENOMEM; a key is in the set only once. */
int ow_keyset_add(struct ow_keyset *set, uint64_t key);
void ow_keyset_done(struct ow_keyset *set);

static inline bool ow_keyset_has(const struct ow_keyset *set, uint64_t key)
{
	if (!set->bits || !(set->bits[(key & set->bit_mask) / 64] >> key % 64 & 1))
		return false;
	return OW_ID_MAP_FIND(&set->by_key, key, i, set->key[i] == key) != OW_ID_MAP_NONE;
}
