/* SPDX-License-Identifier: Apache-2.0 */
/* A hash set of ranges of a pool, by contents. */
#include "plane/ranges.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void ow_ranges_done(struct ow_ranges *ranges)
{
	free(ranges->range);
	ow_id_map_done(&ranges->by_contents);
	*ranges = (struct ow_ranges){0};
}

static uint64_t hash_of(const uint16_t *pool, struct ow_range range)
{
	return XXH3_64bits(pool + range.at, range.nodes * sizeof(*pool));
}

static bool same(const uint16_t *pool, struct ow_range a, struct ow_range b)
{
	return a.nodes == b.nodes && memcmp(pool + a.at, pool + b.at, a.nodes * sizeof(*pool)) == 0;
}

bool ow_ranges_has(const struct ow_ranges *ranges, const uint16_t *pool, struct ow_range range)
{
	return OW_ID_MAP_FIND(&ranges->by_contents, hash_of(pool, range), i, same(pool, ranges->range[i], range)) !=
	       OW_ID_MAP_NONE;
}

int ow_ranges_add(struct ow_ranges *ranges, const uint16_t *pool, struct ow_range range)
{
	if (ow_ranges_has(ranges, pool, range))
		return 0;
	if (OW_GROW(ranges->range, ranges->room, ranges->count + 1) < 0 ||
	    ow_id_map_add(&ranges->by_contents, hash_of(pool, range), ranges->count) < 0)
		return -ENOMEM;
	ranges->range[ranges->count++] = range;
	return 1;
}
