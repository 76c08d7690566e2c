/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/sim.h"
#include "sim/wire.h"

/*
 * Traffic from a capture file: its packets at its times (a time that goes backwards is replaced by the time of the
 * packet before). If nothing is to be rewritten the frames pass unchanged, else the IP packets are taken out of them.
 */
struct ow_replay;
int ow_replay_create(const struct ow_sim_options *options, struct ow_wire_pool *pool, struct ow_replay **ret_replay,
                     struct ow_error *err);
void ow_replay_free(struct ow_replay *replay);
/* As ow_traffic_next. */
int ow_replay_next(struct ow_replay *replay, struct ow_wire **ret_wire, struct ow_error *err);
double ow_replay_done(const struct ow_replay *replay);

/* Whether frames pass unchanged under these options. */
bool ow_replay_unchanged(const struct ow_sim_options *options);

struct ow_replay_info {
	uint64_t packets;
	int64_t first_ns, last_ns;
	uint16_t linktype; /* of the first frame */
	bool mixed;        /* other frames have other link types */
};
/* Reads the whole file once. Fails for a file without packets. */
int ow_replay_scan(const char *path, struct ow_replay_info *ret_info, struct ow_error *err);
