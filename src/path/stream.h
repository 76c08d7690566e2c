/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/*
 * The packets of a pair of points, from the thread that matches them to the one that joins the pairs. It holds a limited
 * number: a match that is ahead of the others waits.
 */

/* A packet event without what belongs to the match. */
struct ow_path_event {
	uint64_t number[OW_SIDES];
	int64_t time_ns[OW_SIDES];
	uint64_t part; /* of the record; 0 = all of it */
	struct ow_flow_key flow;
	uint32_t packets, bytes;
	uint8_t fate, direction, side;
	bool ambiguous;
};

#define OW_PATH_BATCH 256

struct ow_path_stream;

int ow_path_stream_create(struct ow_path_stream **ret_stream);
void ow_path_stream_free(struct ow_path_stream *stream);

/* For the thread that matches. Waits for room; -ECANCELED if nobody reads any more. */
int ow_path_stream_put(struct ow_path_stream *stream, const struct ow_path_event *event);
/* After the last packet, also of a match that failed. */
void ow_path_stream_end(struct ow_path_stream *stream);

/* For the thread that joins: up to OW_PATH_BATCH events; waits for the first. 0 at the end. */
unsigned ow_path_stream_take(struct ow_path_stream *stream, struct ow_path_event event[OW_PATH_BATCH]);
/* The events are not wanted any more. */
void ow_path_stream_cancel(struct ow_path_stream *stream);
