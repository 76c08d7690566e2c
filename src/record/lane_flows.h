/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/id_map.h"
#include "packet/scope_flow.h"

/*
 * The flows of a chunk or of an interval, numbered from 1 in the order of their first packets. Sightings refer to them
 * by number. For one thread.
 */
struct ow_lane_flows {
	struct ow_scope_flow *flow; /* number n is flow[n - 1] */
	uint32_t count, room;
	struct ow_id_map map; /* by hash */
};

/* The number of the flow with this hash (ow_scope_hash_flow, taken to be unique), or 0. */
uint32_t ow_lane_flows_find(const struct ow_lane_flows *flows, uint64_t hash);
/* Adds a flow that is not there yet. Returns its number; 0 if there are `max` flows, or no memory. */
uint32_t ow_lane_flows_add(struct ow_lane_flows *flows, const struct ow_scope_flow *flow, uint32_t max);
/* After a copy, or ow_lane_flows_close: flows can be found and added again. 0 or -ENOMEM. */
int ow_lane_flows_reopen(struct ow_lane_flows *flows);
/* Copies the list of flows. 0 or -ENOMEM. */
int ow_lane_flows_copy(const struct ow_lane_flows *flows, struct ow_lane_flows *ret_copy);
/* Frees everything but the list of flows, which no longer grows. */
void ow_lane_flows_close(struct ow_lane_flows *flows);
void ow_lane_flows_done(struct ow_lane_flows *flows);
