/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main loop. It takes the packets in the order of sending. The sending side sees each packet, the path decides its
 * fate, and the other side expects it. Before a packet is sent, both sides process everything that has arrived by then.
 */
#include "sim/sim.h"
#include "base/side.h"
#include "sim/account.h"
#include "sim/check.h"
#include "sim/path.h"
#include "sim/side.h"
#include "sim/traffic.h"

#include <errno.h>

/* Packets between two reports of progress. */

struct run {
	struct ow_sim_options options;
	struct ow_wire_pool *pool;
	struct ow_traffic *traffic;
	struct ow_account account;
	struct ow_sim_path path[OW_DIRECTIONS];
	struct ow_point_side *side[OW_SIDES];
};

static void run_done(struct run *run)
{
	for (int i = 0; i < OW_SIDES; i++)
		ow_point_side_free(run->side[i]);
	for (int i = 0; i < OW_DIRECTIONS; i++)
		ow_sim_path_done(&run->path[i]);
	ow_traffic_free(run->traffic);
	ow_account_done(&run->account);
	ow_wire_pool_free(run->pool);
}

static int run_init(struct run *run, struct ow_error *err)
{
	int linktype;
	int64_t end_ns;
	int r = ow_sim_resolve(&run->options, &linktype, &end_ns, err);
	if (r < 0)
		return r;
	r = ow_wire_pool_create(&run->pool);
	if (r >= 0)
		r = ow_account_init(&run->account, &run->options);
	for (int i = 0; r >= 0 && i < OW_DIRECTIONS; i++)
		r = ow_sim_path_init(&run->path[i], &run->options, (enum ow_direction)i);
	if (r < 0)
		return ow_error_set(err, -r, "out of memory");
	r = ow_traffic_create(&run->options, run->pool, &run->traffic, err);
	for (int i = 0; r >= 0 && i < OW_SIDES; i++)
		r = ow_point_side_create(&run->options, (enum ow_side)i, linktype, end_ns, run->pool, &run->account,
		                         &run->side[i], err);
	return r;
}

/* Each segment of a burst passes the path separately; with offload at the sender one record contains all of them. */
static void break_train(struct ow_wire *wire, bool superframe)
{
	for (struct ow_wire *more = wire->more; more; more = wire->more) {
		wire->more = NULL;
		wire = more;
		if (superframe)
			wire->segments = 0;
	}
}

static int pass(struct run *run, struct ow_wire *wire, struct ow_error *err)
{
	struct ow_point_side *receiver = run->side[ow_receiver_of(wire->direction)];
	struct ow_sim_path *path = &run->path[wire->direction];
	struct ow_passage passage;
	uint64_t dropped = path->dropped;
	ow_sim_path_pass(path, wire, &passage);
	if (passage.lost) {
		bool covered = ow_point_side_covers(receiver, passage.arrival_ns);
		ow_account_lost(&run->account, wire, covered, path->dropped > dropped);
		ow_wire_put(run->pool, wire);
		return 0;
	}
	wire->time_ns = passage.arrival_ns;
	wire->ce = passage.ce;
	if (passage.copy_ns) {
		struct ow_wire *copy = ow_wire_clone(run->pool, wire);
		if (!copy)
			return ow_error_set(err, ENOMEM, "out of memory");
		copy->copy = true;
		/* If the receiver's capture missed the first copy, the second one does not count either. */
		copy->sent_covered = wire->sent_covered && ow_point_side_covers(receiver, wire->time_ns);
		copy->time_ns = passage.copy_ns;
		int r = ow_point_side_expect(receiver, copy, err);
		if (r < 0)
			return r;
	}
	return ow_point_side_expect(receiver, wire, err);
}

static int send_packet(void *arg, struct ow_wire *wire, struct ow_error *err)
{
	struct run *run = arg;
	for (int i = 0; i < OW_SIDES; i++) {
		int r = ow_point_side_advance(run->side[i], wire->time_ns, err);
		if (r < 0)
			return r;
	}
	enum ow_side sender = ow_sender_of(wire->direction);
	if (wire->segments > 0) {
		int r = ow_point_side_send(run->side[sender], wire, err);
		if (r < 0)
			return r;
		break_train(wire, run->options.side[sender].superframes);
	}
	ow_account_sent(&run->account, wire);
	return pass(run, wire, err);
}

static int run_all(struct run *run, struct ow_error *err)
{
	int r = ow_traffic_run(run->traffic, send_packet, run, err);
	for (int i = 0; r >= 0 && i < OW_SIDES; i++)
		r = ow_point_side_advance(run->side[i], INT64_MAX, err);
	for (int i = 0; r >= 0 && i < OW_SIDES; i++)
		r = ow_point_side_close(run->side[i], err);
	return r;
}

int ow_sim_run(const struct ow_sim_options *options, struct ow_sim_truth *ret_truth, struct ow_error *err)
{
	int r = ow_sim_check(options, err);
	if (r < 0)
		return r;
	struct run run = {.options = *options};
	r = run_init(&run, err);
	if (r >= 0)
		r = run_all(&run, err);
	if (r >= 0) {
		ow_account_finish(&run.account);
		ow_traffic_truth(run.traffic, &run.account.truth);
		if (run.path[OW_A_TO_B].drift)
			ow_drift_counts(run.path[OW_A_TO_B].drift, run.account.truth.drifted);
		*ret_truth = run.account.truth;
	}
	run_done(&run);
	return r;
}
