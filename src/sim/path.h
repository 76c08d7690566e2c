/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/drift.h"
#include "sim/models.h"
#include "sim/queue.h"
#include "sim/wire.h"

/* One direction of the path: decides the fate of each packet. */
struct ow_sim_path {
	const struct ow_sim_options *options;
	struct ow_random random;
	struct ow_loss loss;
	struct ow_queue queue[OW_SIM_PATHS];
	struct ow_drift *drift; /* FineComb's reordering, or NULL */
	int64_t latest_ns;      /* latest arrival so far, for in_order */
	uint64_t dropped;       /* by a queue */
};

int ow_sim_path_init(struct ow_sim_path *path, const struct ow_sim_options *options, enum ow_direction direction);
void ow_sim_path_done(struct ow_sim_path *path);

struct ow_passage {
	bool lost;
	int64_t arrival_ns; /* of a lost packet: when it would have arrived */
	bool ce;            /* congestion marked */
	int64_t copy_ns;    /* arrival of a second copy, 0 = none */
};
/* Sends a packet at its time; packets must come in the order of sending. */
void ow_sim_path_pass(struct ow_sim_path *path, const struct ow_wire *wire, struct ow_passage *ret_passage);
