/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/id_map.h"
#include <stdbool.h>
#include <stdint.h>

/* A set of ranges of a pool of router numbers. No two ranges have the same contents. */
struct ow_range {
	uint32_t at, nodes;
};

struct ow_ranges {
	struct ow_range *range; /* in order of insertion */
	uint32_t count, room;
	struct ow_id_map by_contents; /* their numbers by the hash of their contents */
};

void ow_ranges_done(struct ow_ranges *ranges);
bool ow_ranges_has(const struct ow_ranges *ranges, const uint16_t *pool, struct ow_range range);
/* 1 if the range is new, 0 if the set has it already, -ENOMEM. */
int ow_ranges_add(struct ow_ranges *ranges, const uint16_t *pool, struct ow_range range);
