/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/topology.h"

/*
 * All shortest paths from one router. The predecessors of each router on shortest paths form a directed graph without
 * cycles (a tree if no costs are equal).
 */
struct ow_spf {
	uint32_t source, nodes;
	int64_t *cost;   /* of each router; INT64_MAX = cannot be reached */
	uint32_t *first; /* nodes + 1: where the predecessors of a router start in `from` */
	uint32_t *from;
	uint32_t *order; /* reachable routers, nearest first */
	uint32_t reached;
};

/* -ENOMEM. */
int ow_spf_run(const struct ow_topology *topology, uint32_t source, struct ow_spf *ret_spf);
void ow_spf_done(struct ow_spf *spf);
