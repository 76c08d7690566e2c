/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/paths.h"

/*
 * Finds an order of upgrades that is at no step worse than a given order, and better where the search finds one. For
 * each path the set must also contain all parts of the path. The set of all shortest paths between all routers does.
 * Then upgrading a router only removes the paths through it, and what is left does not depend on the order of the
 * upgrades.
 */
struct ow_beam_options {
	const uint32_t *by_name;   /* all routers in order of their names: the order of the file has no effect */
	const bool *is_out;        /* for each router: it is not to be upgraded */
	const uint32_t *reference; /* the order to improve on */
	uint32_t count;            /* number of upgrades in the reference and in the result */
	void (*on_progress)(void *arg, double done); /* or NULL */
	void *arg;
};

/* ret_order: count routers. -ENOMEM. */
int ow_beam_search(const struct ow_paths *paths, uint32_t routers, const struct ow_beam_options *options,
                   uint32_t *ret_order);
