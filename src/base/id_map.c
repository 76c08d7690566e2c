/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id_map.h"

#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST_BITS 5

void ow_id_map_done(struct ow_id_map *map)
{
	free(map->slot);
	*map = (struct ow_id_map){0};
}

static size_t slots_of(const struct ow_id_map *map)
{
	return map->slot ? (size_t)1 << (64 - map->shift) : 0;
}

void ow_id_map_clear(struct ow_id_map *map)
{
	if (map->used)
		memset(map->slot, 0, slots_of(map) * sizeof *map->slot);
	map->used = 0;
}

static size_t after(const struct ow_id_map *map, size_t at)
{
	return (at + 1) & (slots_of(map) - 1);
}

/* The upper half of a slot is that of the hash, so that it says where it belongs. */
static void put(struct ow_id_map *map, uint64_t slot)
{
	size_t at = slot >> map->shift;
	while (map->slot[at])
		at = after(map, at);
	map->slot[at] = slot;
}

int ow_id_map_reserve(struct ow_id_map *map, size_t count)
{
	struct ow_id_map larger = {.secret = map->secret, .used = map->used};
	unsigned bits = map->slot ? 64 - map->shift : SLOTS_FIRST_BITS;
	if (count > OW_ID_MAP_ITEMS_MAX)
		return -ENOMEM;
	while ((size_t)1 << bits < 2 * count)
		bits++;
	if ((size_t)1 << bits == slots_of(map))
		return 0;
	larger.shift = 64 - bits;
	larger.slot = calloc((size_t)1 << bits, sizeof *larger.slot);
	if (!larger.slot)
		return -ENOMEM;
	if (!map->slot)
		larger.secret = ow_random_secret(larger.slot);
	for (size_t i = 0; i < slots_of(map); i++) {
		if (map->slot[i])
			put(&larger, map->slot[i]);
	}
	free(map->slot);
	*map = larger;
	return 0;
}

static uint64_t slot_for(const struct ow_id_map *map, uint64_t id, uint32_t item)
{
	return ow_id_map_hash(map, id) >> 32 << 32 | (item + 1);
}

int ow_id_map_add(struct ow_id_map *map, uint64_t id, uint32_t item)
{
	int r = ow_id_map_reserve(map, map->used + 1);
	if (r < 0)
		return r;
	put(map, slot_for(map, id, item));
	map->used++;
	return 0;
}

static size_t place_of(const struct ow_id_map *map, uint64_t id, uint32_t item)
{
	uint64_t slot = slot_for(map, id, item);
	size_t at = slot >> map->shift;
	while (map->slot[at] != slot)
		at = after(map, at);
	return at;
}

void ow_id_map_replace(struct ow_id_map *map, uint64_t id, uint32_t item, uint32_t by)
{
	map->slot[place_of(map, id, item)] = slot_for(map, id, by);
}

/* Later slots of the same run move up so that no search stops early. */
void ow_id_map_remove(struct ow_id_map *map, uint64_t id, uint32_t item)
{
	size_t mask = slots_of(map) - 1, at = place_of(map, id, item);
	for (size_t next = after(map, at); map->slot[next]; next = after(map, next)) {
		size_t home = map->slot[next] >> map->shift;
		if (((next - home) & mask) >= ((next - at) & mask)) {
			map->slot[at] = map->slot[next];
			at = next;
		}
	}
	map->slot[at] = 0;
	map->used--;
}
