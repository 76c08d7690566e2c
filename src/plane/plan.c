/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning upgrades. Algorithm 1 as printed takes the router on most of the paths that are left; ties go to the name
 * that comes first, so that a plan does not depend on the order of the file. The greedy planner looks one step ahead at
 * the probe hop count itself.
 */
#include "plane/plan.h"
#include "base/random.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct planner {
	const struct ow_topology *topology;
	const struct ow_plan_options *options;
	struct ow_paths *paths;
	uint32_t nodes;
	bool *is_upgraded;
	int64_t *score;
	uint64_t *through;
	struct ow_random random;
};

static int score(struct planner *planner)
{
	switch (planner->options->planner) {
	case OW_PLANNER_GREEDY:
		return ow_paths_savings(planner->paths, planner->score);
	case OW_PLANNER_RANDOM:
		for (uint32_t i = 0; i < planner->nodes; i++)
			planner->score[i] = (int64_t)(ow_random_u64(&planner->random) >> 1);
		return 0;
	case OW_PLANNER_PAPER:
		break;
	}
	ow_paths_through(planner->paths, planner->through);
	for (uint32_t i = 0; i < planner->nodes; i++)
		planner->score[i] = (int64_t)planner->through[i];
	return 0;
}

/* The router with the highest score among those not upgraded yet; UINT32_MAX if all are. */
static uint32_t best(const struct planner *planner)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t i = 0; i < planner->nodes; i++) {
		if (planner->is_upgraded[i])
			continue;
		if (best == UINT32_MAX || planner->score[i] > planner->score[best] ||
		    (planner->score[i] == planner->score[best] &&
		     strcmp(ow_topology_name(planner->topology, i), ow_topology_name(planner->topology, best)) < 0))
			best = i;
	}
	return best;
}

static int upgrade(struct planner *planner, uint32_t router)
{
	planner->is_upgraded[router] = true;
	return ow_paths_split(planner->paths, router);
}

static int run(struct planner *planner, struct ow_plan_step *steps, uint32_t count, uint32_t *ret_done,
               struct ow_error *err)
{
	const struct ow_plan_options *options = planner->options;
	int r = ow_paths_add_all(planner->paths, planner->topology, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < options->upgrades; i++)
		if (upgrade(planner, options->upgraded[i]) < 0)
			return ow_error_set(err, ENOMEM, "out of memory");
	steps[0].router = UINT32_MAX;
	ow_paths_measure(planner->paths, &steps[0].measure);
	for (*ret_done = 1; *ret_done <= count; ++*ret_done) {
		if (score(planner) < 0)
			return ow_error_set(err, ENOMEM, "out of memory");
		uint32_t router = best(planner);
		if (router == UINT32_MAX)
			break;
		if (upgrade(planner, router) < 0)
			return ow_error_set(err, ENOMEM, "out of memory");
		steps[*ret_done].router = router;
		ow_paths_measure(planner->paths, &steps[*ret_done].measure);
		if (options->on_progress)
			options->on_progress(options->arg, *ret_done / (double)count);
	}
	return 0;
}

int ow_plan(const struct ow_topology *topology, const struct ow_plan_options *options, struct ow_plan_step **ret_steps,
            uint32_t *ret_count, struct ow_error *err)
{
	uint32_t nodes = ow_topology_nodes(topology), count = options->steps < nodes ? options->steps : nodes;
	struct planner planner = {.topology = topology, .options = options, .nodes = nodes};
	struct ow_plan_step *steps = calloc((size_t)count + 1, sizeof(*steps));
	planner.is_upgraded = calloc((size_t)nodes + 1, sizeof(*planner.is_upgraded));
	planner.score = calloc((size_t)nodes + 1, sizeof(*planner.score));
	planner.through = calloc((size_t)nodes + 1, sizeof(*planner.through));
	ow_random_seed(&planner.random, options->seed);
	int r;
	if (!steps || !planner.is_upgraded || !planner.score || !planner.through ||
	    ow_paths_create(nodes, &planner.paths) < 0)
		r = ow_error_set(err, ENOMEM, "out of memory");
	else
		r = run(&planner, steps, count, ret_count, err);
	ow_paths_free(planner.paths);
	free(planner.is_upgraded);
	free(planner.score);
	free(planner.through);
	if (r < 0)
		free(steps);
	else
		*ret_steps = steps;
	return r;
}
