/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/hash.h"
#include <stddef.h>
#include <stdint.h>

/*
 * Finds items of an array by their ids: open addressing over slots of 8 bytes, at most half of them used. The map holds
 * numbers of items, not ids, so the caller compares the items that it is shown. Several items may have the same id; an
 * id may be the hash of a longer key.
 *
 * A slot is chosen by the top bits of a hash with a random secret, so that nobody can choose ids that meet in few slots.
 */
struct ow_id_map {
	uint64_t *slot; /* upper half: that of the hash; lower half: number of the item + 1. 0 = free */
	uint64_t secret;
	unsigned shift; /* there are 2^(64 - shift) slots */
	size_t used;
};

#define OW_ID_MAP_ITEMS_MAX (UINT32_C(1) << 31)
#define OW_ID_MAP_NONE      UINT32_MAX

/* Zeroed is empty. */
void ow_id_map_done(struct ow_id_map *map);
/* Empties it, but keeps the memory. */
void ow_id_map_clear(struct ow_id_map *map);
/* Makes room for `count` items in all. 0 or -ENOMEM. */
int ow_id_map_reserve(struct ow_id_map *map, size_t count);
/* Adds an item, whether or not others have the same id. 0 or -ENOMEM; 0 where room was reserved. */
int ow_id_map_add(struct ow_id_map *map, uint64_t id, uint32_t item);
/* The map has the item with this id: it takes another one's place, or is removed. */
void ow_id_map_replace(struct ow_id_map *map, uint64_t id, uint32_t item, uint32_t by);
void ow_id_map_remove(struct ow_id_map *map, uint64_t id, uint32_t item);

static inline uint64_t ow_id_map_hash(const struct ow_id_map *map, uint64_t id)
{
	return ow_mix64(id ^ map->secret);
}

static inline void ow_id_map_prefetch(const struct ow_id_map *map, uint64_t id)
{
	if (map->slot)
		__builtin_prefetch(map->slot + (ow_id_map_hash(map, id) >> map->shift));
}

struct ow_id_probe {
	const uint64_t *slot;
	uint64_t hash, at, mask;
};

static inline struct ow_id_probe ow_id_map_probe(const struct ow_id_map *map, uint64_t id)
{
	static const uint64_t none;
	if (!map->slot)
		return (struct ow_id_probe){.slot = &none};
	uint64_t hash = ow_id_map_hash(map, id);
	return (struct ow_id_probe){map->slot, hash >> 32, hash >> map->shift, UINT64_MAX >> map->shift};
}

/* The next item that may have the id, or OW_ID_MAP_NONE. */
static inline uint32_t ow_id_probe_next(struct ow_id_probe *probe)
{
	for (;;) {
		uint64_t slot = probe->slot[probe->at];
		probe->at = (probe->at + 1) & probe->mask;
		if (slot >> 32 == probe->hash || !slot)
			return (uint32_t)slot - 1;
	}
}

/* The first item for which `is_it` holds among those that may have the id, or OW_ID_MAP_NONE. `is_it` says `item` for
 * its number:
 *
 *     OW_ID_MAP_FIND(&map, id, i, flow[i].id == id)
 */
#define OW_ID_MAP_FIND(map, id, item, is_it)                              \
	({                                                                \
		struct ow_id_probe probe_ = ow_id_map_probe((map), (id)); \
		uint32_t item = ow_id_probe_next(&probe_);                \
		while ((item) != OW_ID_MAP_NONE && !(is_it))              \
			(item) = ow_id_probe_next(&probe_);               \
		item;                                                     \
	})
