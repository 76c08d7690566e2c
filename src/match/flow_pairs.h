/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/flow.h"

/*
 * Finds which flow of A is which flow of B, if addresses and ports are translated (level nat). Without them packets of
 * different flows, and of different directions, may be identical. Unique packets pair their flows; in the next pass the
 * name of the pair enters the id of every packet of both flows.
 */
struct ow_flow_peers;

struct ow_flow_pairs {
	struct ow_flow_peers *peers[OW_SIDES]; /* by number of the flow */
	uint32_t room[OW_SIDES];
	uint32_t *name[OW_SIDES]; /* of the pair, by number of the flow; 0 = none. NULL until learned */
	uint32_t names[OW_SIDES]; /* number of flows with an entry */
};

/* Whether the flow is of a pair; false as long as they are not named. */
static inline bool ow_flow_pairs_named(const struct ow_flow_pairs *pairs, enum ow_side side, uint32_t flow)
{
	return flow < pairs->names[side] && pairs->name[side][flow];
}

void ow_flow_pairs_done(struct ow_flow_pairs *pairs);
/* A unique packet was seen in these flows. Returns 0 or -ENOMEM. */
int ow_flow_pairs_note(struct ow_flow_pairs *pairs, uint32_t a, uint32_t b);
/* Names the pairs. keys: the flow tables of both sides. 0 or -ENOMEM. */
int ow_flow_pairs_learn(struct ow_flow_pairs *pairs, const struct ow_flow_table *const keys[OW_SIDES]);
