/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ESTIMATE_FLOOR_H
#define OW_ESTIMATE_FLOOR_H

#include <stdint.h>

/*
 * The least delay of a direction, from which the difference of two clocks is estimated. A packet or two that are far
 * faster than all others (a bad timestamp, two packets taken for one) do not decide it: leaving them out can only make
 * the range of possible clock offsets wider, never wrong.
 */
#define OW_FLOOR_KEPT 16

struct ow_floor {
	uint64_t samples;
	unsigned kept;
	int64_t least_ns[OW_FLOOR_KEPT]; /* ascending */
};

void ow_floor_init(struct ow_floor *floor);
/* Adds one of the least. */
void ow_floor_keep(struct ow_floor *floor, int64_t delay_ns);

static inline void ow_floor_add(struct ow_floor *floor, int64_t delay_ns)
{
	floor->samples++;
	if (floor->kept < OW_FLOOR_KEPT || delay_ns < floor->least_ns[OW_FLOOR_KEPT - 1])
		ow_floor_keep(floor, delay_ns);
}

/* The least delay but for outliers. median_ns: of all delays. There is at least one sample. */
int64_t ow_floor_find(const struct ow_floor *floor, int64_t median_ns);

#endif
