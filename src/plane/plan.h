/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/paths.h"

/*
 * Which routers to upgrade first (MPLANE, section VI-A). Algorithm 1 takes the router on most paths. The greedy planner
 * takes the router that leaves the smallest probe hop count. Random is the baseline. The beam searches among the orders
 * that at no step leave more probe hops than Algorithm 1.
 */
enum ow_planner { OW_PLANNER_PAPER, OW_PLANNER_BEAM, OW_PLANNER_GREEDY, OW_PLANNER_RANDOM, OW_PLANNERS };

/* "paper", "beam", ... */
extern const char *const ow_planner_name[OW_PLANNERS];

struct ow_plan_step {
	uint32_t router; /* upgraded in this step; UINT32_MAX in step 0 */
	struct ow_paths_measure measure;
};

struct ow_plan_options {
	enum ow_planner planner;
	uint32_t steps;           /* upgrades; UINT32_MAX = all routers */
	uint64_t seed;            /* of random */
	const uint32_t *upgraded; /* routers that are upgraded before step 0 */
	uint32_t upgrades;
	void (*on_progress)(void *arg, double done); /* or NULL */
	void *arg;
};

struct ow_made_plan {
	enum ow_planner planner;
	struct ow_plan_step *steps;
	uint32_t count;
};

/* Steps 0 .. *ret_count - 1, to be freed by the caller. */
int ow_plan(const struct ow_topology *topology, const struct ow_plan_options *options, struct ow_plan_step **ret_steps,
            uint32_t *ret_count, struct ow_error *err);
