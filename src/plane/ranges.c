/* SPDX-License-Identifier: Apache-2.0 */
/* A hash set of ranges of a pool, by contents. */
#include "plane/ranges.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define SLOTS_FIRST 256u

void ow_ranges_done(struct ow_ranges *ranges)
{
	free(ranges->range);
	free(ranges->slot);
	*ranges = (struct ow_ranges){0};
}

static uint32_t slot_of(const struct ow_ranges *ranges, const uint16_t *pool, struct ow_range range)
{
	size_t size = range.nodes * sizeof(*pool);
	uint32_t mask = ranges->slots - 1, at = (uint32_t)XXH3_64bits(pool + range.at, size) & mask;
	while (ranges->slot[at]) {
		struct ow_range there = ranges->range[ranges->slot[at] - 1];
		if (there.nodes == range.nodes && memcmp(pool + there.at, pool + range.at, size) == 0)
			break;
		at = (at + 1) & mask;
	}
	return at;
}

bool ow_ranges_has(const struct ow_ranges *ranges, const uint16_t *pool, struct ow_range range)
{
	return ranges->slots && ranges->slot[slot_of(ranges, pool, range)];
}

static int grow(struct ow_ranges *ranges, const uint16_t *pool)
{
	uint32_t slots = ranges->slots ? ranges->slots * 2 : SLOTS_FIRST;
	struct ow_range *range = reallocarray(ranges->range, slots / 2, sizeof(*range));
	if (!range)
		return -ENOMEM;
	ranges->range = range;
	uint32_t *slot = calloc(slots, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(ranges->slot);
	ranges->slot = slot;
	ranges->slots = slots;
	ranges->room = slots / 2;
	for (uint32_t i = 0; i < ranges->count; i++)
		slot[slot_of(ranges, pool, range[i])] = i + 1;
	return 0;
}

int ow_ranges_add(struct ow_ranges *ranges, const uint16_t *pool, struct ow_range range)
{
	if (ranges->count == ranges->room && grow(ranges, pool) < 0)
		return -ENOMEM;
	uint32_t at = slot_of(ranges, pool, range);
	if (ranges->slot[at])
		return 0;
	ranges->range[ranges->count++] = range;
	ranges->slot[at] = ranges->count;
	return 1;
}
