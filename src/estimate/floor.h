/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * The least delay of a direction, which gives the estimate of the difference of two clocks. One or two packets that are
 * far faster than all others (a bad timestamp, two packets taken for one) are ignored. That can only widen the range of
 * possible clock offsets, never make it wrong.
 */
#define OW_FLOOR_KEPT 16

struct ow_floor {
	uint64_t samples;
	unsigned kept;
	int64_t least_ns[OW_FLOOR_KEPT]; /* ascending */
};

void ow_floor_init(struct ow_floor *floor);
/* Adds a delay that is among the least. */
void ow_floor_keep(struct ow_floor *floor, int64_t delay_ns);

static inline void ow_floor_add(struct ow_floor *floor, int64_t delay_ns)
{
	floor->samples++;
	if (floor->kept < OW_FLOOR_KEPT || delay_ns < floor->least_ns[OW_FLOOR_KEPT - 1])
		ow_floor_keep(floor, delay_ns);
}

/* The least delay without outliers. median_ns: of all delays. There must be at least one sample. */
int64_t ow_floor_find(const struct ow_floor *floor, int64_t median_ns);

/*
 * A delay that hardly any further packet is below, from the least one without outliers. Delays are as dense below the
 * least as above it: where the kept ones are spread, others are faster still.
 */
int64_t ow_floor_below(const struct ow_floor *floor, int64_t least_ns);
