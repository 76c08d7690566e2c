/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PLANE_BEAM_H
#define OW_PLANE_BEAM_H

#include "plane/paths.h"

/*
 * An order of upgrades that is at no step worse than a given one, and better where a search finds it. The set must have
 * with each path all its parts, as all shortest paths between all routers have: then upgrading a router only takes the
 * paths through it out of the set, and what is left does not depend on the order of the upgrades.
 */
struct ow_beam_options {
	const uint32_t *by_name;   /* all routers in order of their names: an answer depends on nothing else */
	const bool *is_out;        /* of each router: not to be upgraded */
	const uint32_t *reference; /* the order to beat */
	uint32_t count;            /* of its upgrades, and of those wanted */
	void (*on_progress)(void *arg, double done); /* or NULL */
	void *arg;
};

/* ret_order: count routers. -ENOMEM. */
int ow_beam_search(const struct ow_paths *paths, uint32_t routers, const struct ow_beam_options *options,
                   uint32_t *ret_order);

#endif
