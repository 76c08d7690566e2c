/* SPDX-License-Identifier: Apache-2.0 */
/* The set of paths. Paths are ranges of one pool of routers, so the parts of a path need no memory of their own. */
#include "plane/paths.h"
#include "plane/ranges.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ow_paths {
	uint32_t routers;
	uint16_t *pool;
	uint32_t used, room;
	struct ow_ranges set;
};

int ow_paths_create(uint32_t routers, struct ow_paths **ret_paths)
{
	struct ow_paths *paths = calloc(1, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	paths->routers = routers;
	*ret_paths = paths;
	return 0;
}

void ow_paths_free(struct ow_paths *paths)
{
	if (!paths)
		return;
	ow_ranges_done(&paths->set);
	free(paths->pool);
	free(paths);
}

static int add(struct ow_paths *paths, const uint16_t *node, uint32_t nodes, struct ow_error *err)
{
	if (paths->set.count == OW_PATHS_MAX || paths->used > OW_PATHS_NODES_MAX - nodes)
		return ow_error_set(err, E2BIG, "more than %u shortest paths: too many to keep", paths->set.count);
	if (OW_GROW(paths->pool, paths->room, paths->used + nodes) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	memcpy(paths->pool + paths->used, node, nodes * sizeof(*node));
	int r = ow_ranges_add(&paths->set, paths->pool, (struct ow_range){paths->used, nodes});
	if (r < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	paths->used += r ? nodes : 0;
	return 0;
}

/*
 * All shortest paths to one router: follows all predecessors back and writes each path from its end. If is_cut is
 * given, paths that pass through such a router are left out.
 */
static int add_to(struct ow_paths *paths, const struct ow_spf *spf, uint32_t end, const bool *is_cut,
                  struct ow_error *err)
{
	uint16_t node[OW_PATH_NODES_MAX];
	uint32_t next[OW_PATH_NODES_MAX]; /* index of the next predecessor of node[depth] to try */
	uint32_t depth = OW_PATH_NODES_MAX - 1;
	node[depth] = (uint16_t)end;
	next[depth] = spf->first[end];
	while (depth < OW_PATH_NODES_MAX) {
		if (node[depth] == spf->source) {
			int r = add(paths, node + depth, OW_PATH_NODES_MAX - depth, err);
			if (r < 0)
				return r;
			depth++;
		} else if (next[depth] == spf->first[node[depth] + 1]) {
			depth++;
		} else if (depth == 0) {
			return ow_error_set(err, E2BIG, "a shortest path of more than %d routers", OW_PATH_NODES_MAX);
		} else {
			uint32_t from = spf->from[next[depth]++];
			if (is_cut && is_cut[from] && from != spf->source)
				continue;
			node[--depth] = (uint16_t)from;
			next[depth] = spf->first[from];
		}
	}
	return 0;
}

int ow_paths_add_shortest(struct ow_paths *paths, const struct ow_spf *spf, uint32_t destination, struct ow_error *err)
{
	int r = 0;
	for (uint32_t n = 1; r == 0 && n < spf->reached; n++)
		if (destination == UINT32_MAX || spf->order[n] == destination)
			r = add_to(paths, spf, spf->order[n], NULL, err);
	return r;
}

/* A path that is cut at its first such router is a shortest path to that router, and passes through no other. */
int ow_paths_add_cut(struct ow_paths *paths, const struct ow_spf *spf, const bool *is_cut, struct ow_error *err)
{
	int r = 0;
	for (uint32_t end = 0; r == 0 && end < spf->nodes; end++)
		if (end != spf->source && spf->cost[end] != INT64_MAX)
			r = add_to(paths, spf, end, is_cut, err);
	return r;
}

int ow_paths_add_all(struct ow_paths *paths, const struct ow_topology *topology, struct ow_error *err)
{
	for (uint32_t source = 0; source < paths->routers; source++) {
		struct ow_spf spf;
		if (ow_spf_run(topology, source, &spf) < 0)
			return ow_error_set(err, ENOMEM, "out of memory");
		int r = ow_paths_add_shortest(paths, &spf, UINT32_MAX, err);
		ow_spf_done(&spf);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The position of the router inside the path; 0 if the path does not pass through it. */
static uint32_t passes(const uint16_t *node, uint32_t nodes, uint32_t router)
{
	for (uint32_t i = 1; i + 1 < nodes; i++)
		if (node[i] == router)
			return i;
	return 0;
}

int ow_paths_split(struct ow_paths *paths, uint32_t router)
{
	struct ow_ranges parts = {0};
	for (uint32_t i = 0; i < paths->set.count; i++) {
		struct ow_range range = paths->set.range[i];
		uint32_t at = passes(paths->pool + range.at, range.nodes, router);
		int r = ow_ranges_add(&parts, paths->pool, (struct ow_range){range.at, at ? at + 1 : range.nodes});
		if (r >= 0 && at)
			r = ow_ranges_add(&parts, paths->pool, (struct ow_range){range.at + at, range.nodes - at});
		if (r < 0) {
			ow_ranges_done(&parts);
			return -ENOMEM;
		}
	}
	ow_ranges_done(&paths->set);
	paths->set = parts;
	return 0;
}

uint32_t ow_paths_count(const struct ow_paths *paths)
{
	return paths->set.count;
}

const uint16_t *ow_paths_get(const struct ow_paths *paths, uint32_t i, uint32_t *ret_nodes)
{
	*ret_nodes = paths->set.range[i].nodes;
	return paths->pool + paths->set.range[i].at;
}

void ow_paths_measure(const struct ow_paths *paths, struct ow_paths_measure *ret_measure)
{
	struct ow_paths_measure measure = {.paths = paths->set.count};
	for (uint32_t i = 0; i < paths->set.count; i++) {
		uint32_t hops = paths->set.range[i].nodes - 1;
		measure.probe_hops += hops;
		measure.min = i == 0 || hops < measure.min ? hops : measure.min;
		measure.max = hops > measure.max ? hops : measure.max;
	}
	measure.mean = measure.paths ? (double)measure.probe_hops / (double)measure.paths : 0;
	*ret_measure = measure;
}

void ow_paths_through(const struct ow_paths *paths, uint64_t *ret_count)
{
	memset(ret_count, 0, paths->routers * sizeof(*ret_count));
	for (uint32_t i = 0; i < paths->set.count; i++) {
		struct ow_range range = paths->set.range[i];
		for (uint32_t n = 1; n + 1 < range.nodes; n++)
			ret_count[paths->pool[range.at + n]]++;
	}
}

/* A part that the set does not have yet would have to be probed, but only once for all paths that leave it. */
static int cost_of_part(const struct ow_paths *paths, struct ow_ranges *seen, struct ow_range part, int64_t *saving)
{
	if (ow_ranges_has(&paths->set, paths->pool, part))
		return 0;
	int r = ow_ranges_add(seen, paths->pool, part);
	if (r > 0)
		*saving -= part.nodes - 1;
	return r < 0 ? r : 0;
}

int ow_paths_savings(const struct ow_paths *paths, int64_t *ret_savings)
{
	/*
	 * First and second parts are counted separately: a first part belongs to the router at its end, a second part
	 * to the router at its start.
	 */
	struct ow_ranges first = {0}, second = {0};
	int r = 0;
	memset(ret_savings, 0, paths->routers * sizeof(*ret_savings));
	for (uint32_t i = 0; r == 0 && i < paths->set.count; i++) {
		struct ow_range range = paths->set.range[i];
		for (uint32_t n = 1; r == 0 && n + 1 < range.nodes; n++) {
			int64_t *saving = &ret_savings[paths->pool[range.at + n]];
			*saving += range.nodes - 1;
			r = cost_of_part(paths, &first, (struct ow_range){range.at, n + 1}, saving);
			if (r == 0)
				r = cost_of_part(paths, &second, (struct ow_range){range.at + n, range.nodes - n},
				                 saving);
		}
	}
	ow_ranges_done(&first);
	ow_ranges_done(&second);
	return r;
}
