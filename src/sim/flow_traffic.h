/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/sim.h"

/*
 * The packets of many flows in memory, without bytes: generated with heavy-tailed sizes, or read from a capture.
 * papers/flow_stream.h sends them over a path.
 */
struct ow_flow_packet {
	int64_t time_ns;
	uint32_t flow; /* index of the flow */
	uint32_t len;  /* bytes in a queue */
};

struct ow_flow_traffic {
	struct ow_flow_packet *packet; /* in order of time */
	size_t packets;
	uint64_t *flow; /* hash of each flow, uniformly distributed */
	uint32_t flows;
	uint64_t bytes;
};

/*
 * Sizes are Pareto: P(packets >= n) = (n / least)^-shape, cut at `most`. A flow begins at a uniform time. Its packets
 * come in bursts (geometric, `train` packets on average, spaced by the time of 1500 bytes at 1 Gbit/s). The gaps
 * between bursts are exponential; their mean is drawn for each flow, log-uniform from gap_ns[0] to gap_ns[1]. A flow
 * that would last longer than the traffic is compressed into the remaining time.
 */
struct ow_flow_traffic_params {
	uint32_t flows;
	double shape;      /* > 0, e.g. 1.1 */
	double least;      /* packets of the smallest flow, >= 1 */
	uint32_t most;     /* packets of the largest flow */
	int64_t length_ns; /* of the traffic */
	double train;      /* >= 1; 1 = no bursts */
	int64_t gap_ns[2]; /* 0, 0 = 1 ms to 1 s */
	bool steady;       /* train and gaps are not used then */
	struct ow_sim_size size;
	uint64_t seed;
};
int ow_flow_traffic_make(const struct ow_flow_traffic_params *params, struct ow_flow_traffic *ret_traffic,
                         struct ow_error *err);

/*
 * The IP packets of a capture; flows are 5-tuples. A time that goes backwards is replaced by the time of the packet
 * before. most: at most this many packets, 0 = all. Fails for a capture without IP packets.
 */
int ow_flow_traffic_read(const char *path, uint64_t most, uint64_t seed, struct ow_flow_traffic *ret_traffic,
                         struct ow_error *err);

void ow_flow_traffic_done(struct ow_flow_traffic *traffic);

/* From the first packet to the last, ns. */
int64_t ow_flow_traffic_length(const struct ow_flow_traffic *traffic);
/* Average bits a second over this time; 0 if it is 0. */
double ow_flow_traffic_bps(const struct ow_flow_traffic *traffic);
