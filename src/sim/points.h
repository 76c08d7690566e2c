/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/sim.h"

/*
 * A path with more than two measurement points. Its places are in a row, with a hop between neighbours. At a place there
 * are one or more points, each on a link of its own; every flow (or packet) takes one of the links, and the shares of the
 * links may leave some traffic that no point sees. The traffic is that of struct ow_sim_options, from the first place to
 * the last and back.
 */

#define OW_SIM_POINTS     16u
#define OW_SIM_POINT_NAME 40

struct ow_sim_point {
	char name[OW_SIM_POINT_NAME + 1];
	char *path;                /* owned; freed by ow_sim_points_done */
	unsigned place;            /* 0, 1, ... */
	double share;              /* of the traffic of its place; negative: an equal part of what others leave */
	double drop;               /* share of the packets that its capture misses */
	int64_t offset_ns;         /* its clock is ahead by this .. */
	double drift_ppb;          /* .. and gains this many ns a second */
	int64_t skip_ns, early_ns; /* as in struct ow_sim_side */
	uint32_t snaplen;
};

struct ow_sim_hop {
	struct ow_sim_delay delay;
	struct ow_sim_loss loss;
	int64_t base_delay_ns;
	bool in_order;
	uint32_t routers; /* each decrements the TTL */
	bool nat;         /* points behind it see other addresses and ports of the first place */
	bool spray;       /* every packet, not every flow, chooses a link of the place behind it */
};

struct ow_sim_points {
	struct ow_sim_point point[OW_SIM_POINTS];
	struct ow_sim_hop hop[OW_SIM_POINTS];
	unsigned points, hops; /* there is one place more than hops */
};

/* What happened on a hop: all packets count, whether or not a capture shows them. Delays are those of the packets. */
struct ow_sim_hop_truth {
	struct ow_result direction[OW_DIRECTIONS];
	bool has_direction[OW_DIRECTIONS];
};

struct ow_sim_points_truth {
	struct ow_sim_hop_truth ends, hop[OW_SIM_POINTS];
	uint64_t records[OW_SIM_POINTS]; /* frames written */
	uint32_t files[OW_SIM_POINTS];
	int64_t first_ns, last_ns; /* true times of the first and the last packet sent */
};

/*
 * Sets what the points leave open. The options give traffic, start, seed, rotation and, in their side A, what the
 * captures of all points have in common. -EINVAL: options that contradict each other, the message names them.
 */
int ow_sim_points_check(struct ow_sim_points *points, const struct ow_sim_options *options, struct ow_error *err);
/* packets: file for a row for each packet (docs/simulate.md), "-" = standard output, NULL = none. */
int ow_sim_points_run(const struct ow_sim_points *points, const struct ow_sim_options *options, const char *packets,
                      struct ow_sim_points_truth *ret_truth, struct ow_error *err);
void ow_sim_points_done(struct ow_sim_points *points);

/* The truth as JSON. */
int ow_sim_points_truth_write(const char *path, const struct ow_sim_points *points,
                              const struct ow_sim_options *options, const struct ow_sim_points_truth *truth,
                              struct ow_error *err);
