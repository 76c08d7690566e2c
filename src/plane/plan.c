/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans upgrades. Algorithm 1 as printed takes the router on most of the remaining paths. Among equal routers the first
 * by name is taken, so that a plan does not depend on the order of the file. The greedy planner looks one step ahead at
 * the probe hop count itself, the beam looks further.
 */
#include "plane/plan.h"
#include "base/random.h"
#include "plane/beam.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const ow_planner_name[OW_PLANNERS] = {"paper", "beam", "greedy", "random"};

struct planner {
	const struct ow_topology *topology;
	const struct ow_plan_options *options;
	struct ow_paths *paths;
	uint32_t nodes;
	bool *is_upgraded;
	int64_t *score;
	uint64_t *through;
	struct ow_random random;
	uint32_t *order; /* result of the beam search */
	uint32_t ordered;
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
	case OW_PLANNER_BEAM: /* its order is already known */
	case OW_PLANNERS:
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

struct named {
	const char *name;
	uint32_t router;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int sort_names(const struct planner *planner, uint32_t *by_name)
{
	struct named *named = calloc((size_t)planner->nodes + 1, sizeof(*named));
	if (!named)
		return -ENOMEM;
	for (uint32_t i = 0; i < planner->nodes; i++)
		named[i] = (struct named){ow_topology_name(planner->topology, i), i};
	qsort(named, planner->nodes, sizeof(*named), compare_names);
	for (uint32_t i = 0; i < planner->nodes; i++)
		by_name[i] = named[i].router;
	free(named);
	return 0;
}

static int beam_search(struct planner *planner, const struct ow_plan_step *reference, uint32_t count)
{
	const struct ow_plan_options *options = planner->options;
	uint32_t *by_name = calloc((size_t)planner->nodes + 1, sizeof(*by_name));
	uint32_t *order = calloc((size_t)count + 1, sizeof(*order));
	planner->order = calloc((size_t)count + 1, sizeof(*planner->order));
	planner->ordered = count;
	int r = by_name && order && planner->order ? sort_names(planner, by_name) : -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < count; i++)
		order[i] = reference[i + 1].router;
	if (r == 0)
		r = ow_beam_search(planner->paths, planner->nodes,
		                   &(struct ow_beam_options){.by_name = by_name,
		                                             .is_out = planner->is_upgraded,
		                                             .reference = order,
		                                             .count = count,
		                                             .on_progress = options->on_progress,
		                                             .arg = options->arg},
		                   planner->order);
	free(by_name);
	free(order);
	return r;
}

/* The order of the beam search, with the order of Algorithm 1 as the reference. */
static int find_order(struct planner *planner, struct ow_error *err)
{
	struct ow_plan_options paper = *planner->options;
	struct ow_plan_step *reference = NULL;
	uint32_t steps = 1;
	paper.planner = OW_PLANNER_PAPER;
	paper.on_progress = NULL;
	int r = ow_plan(planner->topology, &paper, &reference, &steps, err);
	if (r < 0)
		return r;
	r = beam_search(planner, reference, steps - 1);
	free(reference);
	return r < 0 ? ow_error_set(err, ENOMEM, "out of memory") : 0;
}

/* UINT32_MAX: no router is left. */
static int next(struct planner *planner, uint32_t step, uint32_t *ret_router)
{
	if (planner->order) {
		*ret_router = step <= planner->ordered ? planner->order[step - 1] : UINT32_MAX;
		return 0;
	}
	int r = score(planner);
	*ret_router = r < 0 ? UINT32_MAX : best(planner);
	return r;
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
	if (options->planner == OW_PLANNER_BEAM)
		r = find_order(planner, err);
	if (r < 0)
		return r;
	steps[0].router = UINT32_MAX;
	ow_paths_measure(planner->paths, &steps[0].measure);
	for (*ret_done = 1; *ret_done <= count; ++*ret_done) {
		uint32_t router;
		if (next(planner, *ret_done, &router) < 0)
			return ow_error_set(err, ENOMEM, "out of memory");
		if (router == UINT32_MAX)
			break;
		if (upgrade(planner, router) < 0)
			return ow_error_set(err, ENOMEM, "out of memory");
		steps[*ret_done].router = router;
		ow_paths_measure(planner->paths, &steps[*ret_done].measure);
		if (options->on_progress && !planner->order)
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
	free(planner.order);
	if (r < 0)
		free(steps);
	else
		*ret_steps = steps;
	return r;
}
