/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/flow_select.h"
#include "path/path.h"

/* What each hop of a path did to the packets of each flow: how many it lost, and how long they took. */

struct ow_flow_hop {
	unsigned from, to;   /* points, in the direction of the flow */
	uint64_t sent, lost; /* packets that `from` shows; those of them that no later point shows */
	uint64_t delays;     /* packets that show how long it took */
	double mean_ns;
	int64_t max_ns;
};

struct ow_flow_on_path {
	struct ow_flow_key key;
	enum ow_direction direction;
	uint64_t sent, lost; /* from end to end; the sum of the hops may be less, if no point shows some packets */
	unsigned hops;
	struct ow_flow_hop hop[OW_PATH_POINTS];
	int lossy, slow; /* the hop that lost most, that took longest on average; -1: none */
};

struct ow_flow_hops;

int ow_flow_hops_create(const struct ow_flow_select *select, uint64_t seed, struct ow_flow_hops **ret_hops);
void ow_flow_hops_free(struct ow_flow_hops *hops);
/* Packets of flows for which there was no room: they are not in the results. */
uint64_t ow_flow_hops_omitted(const struct ow_flow_hops *hops);
/* A packet of the path: matched or lost from end to end; others do not count. 0 or -ENOMEM. */
int ow_flow_hops_add(struct ow_flow_hops *hops, const struct ow_path_packet *packet);
/* All flows of both directions, those that lost most first, then the slowest ones. The caller frees. 0 or -ENOMEM. */
int ow_flow_hops_all(const struct ow_flow_hops *hops, struct ow_flow_on_path **ret_flow, size_t *ret_count);
