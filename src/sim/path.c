/* SPDX-License-Identifier: Apache-2.0 */
/* Delay, loss, duplication and marks of one direction. */
#include "sim/path.h"
#include "base/hash.h"
#include "base/time.h"
#include "sim/traffic.h"

/* A duplicate made by the network follows the first copy within this time. */
#define COPY_MAX_NS (20 * OW_NS_PER_US)

/* Queues contain frames: an Ethernet header for every packet. */
#define FRAME_HEADER 14

int ow_sim_path_init(struct ow_sim_path *path, const struct ow_sim_options *options, enum ow_direction direction)
{
	*path = (struct ow_sim_path){.options = options};
	ow_stream_seed(&path->random, options->seed, direction == OW_A_TO_B ? OW_STREAM_PATH : OW_STREAM_PATH_REVERSE);
	ow_loss_init(&path->loss, &options->loss, &path->random);
	for (unsigned i = 0; i < options->delay.paths; i++) {
		const struct ow_sim_model *model = &options->delay.path[i];
		if (model->kind == OW_SIM_FIFO)
			ow_queue_init_fifo(&path->queue[i], model->a, model->b);
		else if (model->kind == OW_SIM_RED)
			ow_queue_init_red(&path->queue[i], model->a);
	}
	if (options->interval_ns && direction == OW_A_TO_B)
		return ow_drift_create(options, &path->drift);
	return 0;
}

void ow_sim_path_done(struct ow_sim_path *path)
{
	ow_drift_free(path->drift);
	path->drift = NULL;
}

static unsigned choose(struct ow_sim_path *path, const struct ow_wire *wire)
{
	const struct ow_sim_delay *delay = &path->options->delay;
	if (delay->paths == 1)
		return 0;
	double u = delay->by_flow ? (double)(ow_mix64(wire->flow ^ ow_mix64(path->options->seed)) >> 11) * 0x1p-53
	                          : ow_random_unit(&path->random);
	unsigned i = 0;
	while (i + 1 < delay->paths && u >= delay->path[i].weight) {
		u -= delay->path[i].weight;
		i++;
	}
	return i;
}

/*
 * The delay in ns; negative: a queue dropped the packet. A lost packet also draws a delay, so that loss does not change
 * the delays of others.
 */
static int64_t traverse(struct ow_sim_path *path, const struct ow_wire *wire, bool lost)
{
	unsigned i = choose(path, wire);
	const struct ow_sim_model *model = &path->options->delay.path[i];
	if (!ow_model_is_queue(model))
		return ow_model_sample(model, &path->random);
	if (lost)
		return 0;
	return ow_queue_pass(&path->queue[i], wire->time_ns - path->options->start_ns,
	                     ow_wire_len(wire) + wire->missing + FRAME_HEADER, &path->random);
}

void ow_sim_path_pass(struct ow_sim_path *path, const struct ow_wire *wire, struct ow_passage *ret_passage)
{
	const struct ow_sim_options *options = path->options;
	struct ow_passage passage = {.lost = ow_loss_next(&path->loss, &path->random)};
	int64_t delay_ns = traverse(path, wire, passage.lost);
	if (delay_ns < 0) {
		passage.lost = true;
		path->dropped++;
		delay_ns = 0;
	}
	passage.arrival_ns = wire->time_ns + options->base_delay_ns + delay_ns;
	if (path->drift)
		passage.arrival_ns = ow_drift_move(path->drift, wire->time_ns, passage.arrival_ns, passage.lost);
	if (options->in_order && !passage.lost) {
		if (passage.arrival_ns < path->latest_ns)
			passage.arrival_ns = path->latest_ns;
		path->latest_ns = passage.arrival_ns;
	}
	if (options->ecn_mark > 0)
		passage.ce = ow_random_unit(&path->random) < options->ecn_mark;
	if (options->duplicate > 0 && !passage.lost && ow_random_unit(&path->random) < options->duplicate)
		passage.copy_ns = passage.arrival_ns + 1 + (int64_t)ow_random_below(&path->random, COPY_MAX_NS);
	*ret_passage = passage;
}
