/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "record/lanes.h"

/*
 * The work of one recording thread: takes frames of one source and returns chunks of its lanes. It uses no locks, no
 * clock and no threads.
 */
struct ow_lane_recorder;

struct ow_lane_recorder_counts {
	uint64_t not_ip, unclaimed; /* as in struct ow_recorder_counts */
	uint64_t lost;              /* packets of a lane that were lost because memory ran out */
};

int ow_lane_recorder_create(unsigned source, struct ow_lane_recorder **ret_recorder);
void ow_lane_recorder_free(struct ow_lane_recorder *recorder);

/* Switches to a table, which must stay valid until the next one. Chunks of removed lanes are freed. After -ENOMEM the
 * previous table is still in use. */
int ow_lane_recorder_take_up(struct ow_lane_recorder *recorder, const struct ow_lane_table *table);
/* To be called only after a table was set. */
void ow_lane_recorder_frames(struct ow_lane_recorder *recorder, const struct ow_iface_frame *frames, size_t count);

/* Finishes the chunks of intervals that ended by passed_ns; INT64_MAX = all. */
void ow_lane_recorder_finish(struct ow_lane_recorder *recorder, int64_t passed_ns);
/* Whether there are finished chunks, including full ones. */
bool ow_lane_recorder_ready(const struct ow_lane_recorder *recorder);
/* Returns the finished chunks, in time order for each lane. ret_last: the last of them. NULL if there is none. */
struct ow_chunk *ow_lane_recorder_take(struct ow_lane_recorder *recorder, struct ow_chunk **ret_last);
/* The earliest end of an interval of any lane after this time; INT64_MAX when there are no lanes. */
int64_t ow_lane_recorder_boundary(const struct ow_lane_recorder *recorder, int64_t time_ns);
/* Packets that some lane may have wanted were not given to it. */
void ow_lane_recorder_miss(struct ow_lane_recorder *recorder, uint64_t packets);
const struct ow_lane_recorder_counts *ow_lane_recorder_counts(const struct ow_lane_recorder *recorder);
