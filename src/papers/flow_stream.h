/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/flow_traffic.h"
#include "synopsis/colate.h"

/*
 * Traffic of many flows as two points see it, in memory, with the truth about each flow. Per-flow synopses are tried on
 * it. The same traffic, path and seed give the same sightings.
 */
struct ow_flow_path {
	/*
	 * A queue or a distribution, as for `oneway simulate --delay`; several paths chosen by weight, or by flow
	 * (ECMP).
	 */
	struct ow_sim_delay delay;
	/*
	 * Distributions only: each flow's delays are multiplied by a factor of its own, log-normal around 1 (median),
	 * with this standard deviation of the logarithm.
	 */
	double spread;
	int64_t base_ns;         /* added to every delay */
	struct ow_sim_loss loss; /* in addition to what a queue drops; happens before the queue */
	int64_t start_ns;        /* added to all times */
	uint64_t seed;
};

struct ow_flow_truth {
	uint64_t flow; /* hash */
	uint64_t sent, received;
	double mean_ns, stddev_ns; /* of the received packets (population); 0 if there are none */
	int64_t first_ns, last_ns; /* of its packets, at either point */
};

struct ow_flow_stream {
	/* In order of time at each point. */
	struct ow_flow_sighting *a, *b;
	size_t as, bs;
	/* In the order of the traffic's flows. */
	struct ow_flow_truth *flow;
	size_t flows;
	double mean_ns, stddev_ns; /* of all received packets */
};

/*
 * A queue with a utilisation, which is the average load of the traffic divided by the rate. kind: OW_SIM_FIFO
 * (buffer_bytes 0 = no limit) or OW_SIM_RED.
 */
struct ow_sim_delay ow_flow_queue(enum ow_sim_delay_kind kind, const struct ow_flow_traffic *traffic,
                                  double utilisation, double buffer_bytes);

/* The path alone, packet by packet: for callers that add their own packets to the traffic. */
struct ow_flow_passage;
/* -EINVAL for a path out of range, -ENOMEM. The caller keeps the path. */
int ow_flow_passage_create(const struct ow_flow_path *path, struct ow_flow_passage **ret_passage, struct ow_error *err);
void ow_flow_passage_free(struct ow_flow_passage *passage);
/*
 * A packet of len bytes of the flow (hash) is sent since_ns after the first packet, and not before the previous one.
 * Returns its delay, or -1 if it is lost.
 */
int64_t ow_flow_passage_next(struct ow_flow_passage *passage, uint64_t flow, uint32_t len, int64_t since_ns);

/* Counts a delay in a truth. Until the truth is completed, `stddev_ns` is a sum of squares. */
void ow_flow_truth_count(struct ow_flow_truth *truth, double delay_ns);
void ow_flow_truth_settle(struct ow_flow_truth *truth);

/* -EINVAL for a path out of range, -ENOMEM. */
int ow_flow_stream_make(const struct ow_flow_traffic *traffic, const struct ow_flow_path *path,
                        struct ow_flow_stream *ret_stream, struct ow_error *err);
void ow_flow_stream_done(struct ow_flow_stream *stream);
