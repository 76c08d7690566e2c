/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/delay.h"
#include <oneway/details.h>

/* The largest extent that is followed. */
#define OW_REORDER_EXTENT_MAX 65536u

/* Extents of reordered packets (RFC 4737, section 4.2.1). */
struct ow_reorder_extent {
	/*
	 * Packets that were sent later than all that arrived before them, the last OW_REORDER_EXTENT_MAX of them: the first one
	 * that was sent later than any other packet is among them, in the order of both numbers.
	 */
	struct ow_reorder_mark {
		uint64_t number, arrival;
	} * mark;
	uint64_t marks; /* so far */
	uint64_t arrived, reordered, beyond;
	struct ow_delays *extent;
};

int ow_reorder_extent_init(struct ow_reorder_extent *extent);
void ow_reorder_extent_done(struct ow_reorder_extent *extent);
/* Adds packets in the order of arrival. number: their place among the sent ones. */
void ow_reorder_extent_add(struct ow_reorder_extent *extent, uint64_t number, uint32_t packets);
void ow_reorder_extent_get(const struct ow_reorder_extent *extent, struct ow_reordering *ret_reordering);

/* The distribution of counts. */
void ow_count_spread_of(const struct ow_delays *counts, struct ow_count_spread *ret_spread);
