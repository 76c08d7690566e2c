/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PLANE_SPF_H
#define OW_PLANE_SPF_H

#include "plane/topology.h"

/*
 * Shortest paths from one router, all of equal cost: the routers that a shortest path can come from form a directed
 * graph without cycles (a tree, but for equal costs).
 */
struct ow_spf {
	uint32_t source, nodes;
	int64_t *cost;   /* of each router; INT64_MAX = cannot be reached */
	uint32_t *first; /* nodes + 1: where a router's predecessors start in `from` */
	uint32_t *from;
	uint32_t *order; /* routers that can be reached, nearest first */
	uint32_t reached;
};

/* -ENOMEM. */
int ow_spf_run(const struct ow_topology *topology, uint32_t source, struct ow_spf *ret_spf);
void ow_spf_done(struct ow_spf *spf);

#endif
