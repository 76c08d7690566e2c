/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"
#include "sim/sim.h"
#include "sim/wire.h"

/* The independent random streams of a run: changing one model does not change what the others draw. */
enum ow_random_stream {
	OW_STREAM_TIME,
	OW_STREAM_TRAFFIC,
	OW_STREAM_PAYLOAD,
	OW_STREAM_PATH,
	OW_STREAM_PATH_REVERSE,
	OW_STREAM_STAMP_A,
	OW_STREAM_STAMP_B
};
void ow_stream_seed(struct ow_random *random, uint64_t seed, enum ow_random_stream stream);

/* Sending times: ns after the start, in order. A copy can run ahead. */
struct ow_gaps {
	struct ow_random random;
	double gap_ns; /* mean */
	bool constant;
	uint64_t count;
	int64_t fine; /* in 1/256 ns: no floating-point sum grows with the run */
};
void ow_gaps_init(struct ow_gaps *gaps, const struct ow_sim_options *options);
int64_t ow_gaps_next(struct ow_gaps *gaps);

struct ow_traffic;
int ow_traffic_create(const struct ow_sim_options *options, struct ow_wire_pool *pool, struct ow_traffic **ret_traffic,
                      struct ow_error *err);
void ow_traffic_free(struct ow_traffic *traffic);

/*
 * The next packet in the order of sending, with time, direction, flow and bytes. The first packet of a burst has
 * segments > 1 and points to the others by `more`; these are returned later, at their times. Returns 1, 0 at the end,
 * or a negative errno.
 */
int ow_traffic_next(struct ow_traffic *traffic, struct ow_wire **ret_wire, struct ow_error *err);

/* All packets, one after the other, to `send`, which owns them; with progress. */
int ow_traffic_run(struct ow_traffic *traffic, int (*send)(void *arg, struct ow_wire *wire, struct ow_error *err),
                   void *arg, struct ow_error *err);

/* When generated traffic sends its last packet; known in advance. */
int64_t ow_traffic_end(const struct ow_sim_options *options);

/* Adds what only the traffic knows: the numbers of retransmissions, identical packets and fragments. */
void ow_traffic_truth(const struct ow_traffic *traffic, struct ow_sim_truth *truth);
/* The share done, 0..1. */
double ow_traffic_done(const struct ow_traffic *traffic);
