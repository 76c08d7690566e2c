/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECORD_LANE_RECORDER_H
#define OW_RECORD_LANE_RECORDER_H

#include "record/lanes.h"

/*
 * The work of one recording thread: frames of one source go in, chunks of its lanes come out. No locks, no clock, no
 * threads.
 */
struct ow_lane_recorder;

struct ow_lane_recorder_counts {
	uint64_t not_ip, unclaimed; /* as in struct ow_recorder_counts */
	uint64_t lost;              /* packets of a lane for which there was no memory */
};

int ow_lane_recorder_create(unsigned source, struct ow_lane_recorder **ret_scribe);
void ow_lane_recorder_free(struct ow_lane_recorder *scribe);

/* Takes up a table, which must stay until another one is taken up. Chunks of lanes that are gone are thrown away. On
 * -ENOMEM the scribe still uses the one before. */
int ow_lane_recorder_take_up(struct ow_lane_recorder *scribe, const struct ow_lane_table *table);
/* Only after a table was taken up. */
void ow_lane_recorder_frames(struct ow_lane_recorder *scribe, const struct ow_iface_frame *frames, size_t count);

/* Puts chunks aside to be handed on: those of intervals that ended by then; INT64_MAX = all that there are. */
void ow_lane_recorder_finish(struct ow_lane_recorder *scribe, int64_t passed_ns);
/* Whether any were put aside: also those that are full. */
bool ow_lane_recorder_ready(const struct ow_lane_recorder *scribe);
/* What was put aside so far, in the order of time for each lane. ret_last: the last of them. NULL if there is none. */
struct ow_chunk *ow_lane_recorder_take(struct ow_lane_recorder *scribe, struct ow_chunk **ret_last);
/* The earliest end of an interval of any lane after this time; INT64_MAX when there are no lanes. */
int64_t ow_lane_recorder_boundary(const struct ow_lane_recorder *scribe, int64_t time_ns);
/* Packets that some lane may have wanted were not given to it. */
void ow_lane_recorder_miss(struct ow_lane_recorder *scribe, uint64_t packets);
const struct ow_lane_recorder_counts *ow_lane_recorder_counts(const struct ow_lane_recorder *scribe);

#endif
