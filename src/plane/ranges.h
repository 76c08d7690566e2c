/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PLANE_RANGES_H
#define OW_PLANE_RANGES_H

#include <stdbool.h>
#include <stdint.h>

/* A set of ranges of a pool of routers' numbers, none of them with the same contents as another. */
struct ow_range {
	uint32_t at, nodes;
};

struct ow_ranges {
	struct ow_range *range; /* in order of entering */
	uint32_t count, room;
	uint32_t *slot; /* hash of contents: number + 1 */
	uint32_t slots; /* a power of two, or 0 */
};

void ow_ranges_done(struct ow_ranges *ranges);
bool ow_ranges_has(const struct ow_ranges *ranges, const uint16_t *pool, struct ow_range range);
/* 1 if it is new, 0 if it was there, -ENOMEM. */
int ow_ranges_add(struct ow_ranges *ranges, const uint16_t *pool, struct ow_range range);

#endif
