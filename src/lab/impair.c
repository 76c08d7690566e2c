/* SPDX-License-Identifier: Apache-2.0 */
/* Decides the fate of each packet on the lab's wire. */
#include "lab/impair.h"

#include "sim/traffic.h"

/* The queues of the path add an Ethernet header themselves. */
#define ETHER_HEADER 14

int ow_impair_init(struct ow_impair *impair, const struct ow_impair_options *options, enum ow_direction direction,
                   int64_t start_ns)
{
	*impair = (struct ow_impair){.limited = options->bandwidth_bps > 0,
	                             .reorder = options->reorder,
	                             .hold_ns = options->hold_ns,
	                             .start_ns = start_ns};
	double buffer = options->buffer_bytes;
	if (buffer <= 0)
		buffer = OW_IMPAIR_BUFFER_S * options->bandwidth_bps / 8;
	if (impair->limited)
		ow_queue_init_fifo(&impair->link, options->bandwidth_bps, buffer);
	ow_stream_seed(&impair->random, options->path.seed,
	               direction == OW_A_TO_B ? OW_STREAM_STAMP_A : OW_STREAM_STAMP_B);
	return ow_sim_path_init(&impair->path, &options->path, direction);
}

void ow_impair_done(struct ow_impair *impair)
{
	ow_sim_path_done(&impair->path);
}

void ow_impair_pass(struct ow_impair *impair, int64_t time_ns, uint32_t len, uint32_t flow,
                    struct ow_impaired *ret_impaired)
{
	struct ow_impaired impaired = {.fate = OW_IMPAIR_PASSES};
	int64_t waited_ns = 0;
	if (impair->limited) {
		waited_ns = ow_queue_pass(&impair->link, time_ns - impair->start_ns, len, &impair->random);
		if (waited_ns < 0) {
			*ret_impaired = (struct ow_impaired){.fate = OW_IMPAIR_QUEUE_FULL};
			return;
		}
	}
	/* The path reads time, length and flow only. */
	struct ow_wire wire;
	wire.time_ns = time_ns + waited_ns;
	wire.flow = flow;
	wire.head_len = 0;
	wire.missing = 0;
	wire.body_len = len > ETHER_HEADER ? len - ETHER_HEADER : 0;
	struct ow_passage passage;
	uint64_t dropped = impair->path.dropped;
	ow_sim_path_pass(&impair->path, &wire, &passage);
	if (passage.lost)
		impaired.fate = impair->path.dropped > dropped ? OW_IMPAIR_QUEUE_FULL : OW_IMPAIR_LOST;
	impaired.due_ns = passage.arrival_ns;
	impaired.copy_ns = passage.copy_ns;
	if (impair->reorder > 0 && ow_random_unit(&impair->random) < impair->reorder) {
		int64_t held_ns = 1 + (int64_t)ow_random_below(&impair->random, (uint64_t)impair->hold_ns);
		impaired.due_ns += held_ns;
		impaired.copy_ns += impaired.copy_ns ? held_ns : 0;
	}
	*ret_impaired = impaired;
}
