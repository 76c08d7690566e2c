/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/spf.h"

/*
 * A set of paths (sequences of routers) without duplicates: the paths that must be probed. Splitting a path at a router
 * puts its two parts into the set.
 */
#define OW_PATH_NODES_MAX  256        /* routers of one path */
#define OW_PATHS_MAX       (1u << 24) /* paths of a set */
#define OW_PATHS_NODES_MAX (1u << 27) /* routers of all paths of a set together */

struct ow_paths;
int ow_paths_create(uint32_t routers, struct ow_paths **ret_paths);
void ow_paths_free(struct ow_paths *paths);

/* All shortest paths from the spf's source to one destination, or to all (UINT32_MAX). -E2BIG when there are more than
 * a set can hold. */
int ow_paths_add_shortest(struct ow_paths *paths, const struct ow_spf *spf, uint32_t destination, struct ow_error *err);
/*
 * The same to all destinations, each path cut at the first router after its start for which is_cut holds. These are far
 * fewer paths.
 */
int ow_paths_add_cut(struct ow_paths *paths, const struct ow_spf *spf, const bool *is_cut, struct ow_error *err);
/* All shortest paths between all pairs of routers. */
int ow_paths_add_all(struct ow_paths *paths, const struct ow_topology *topology, struct ow_error *err);
/* Splits every path that passes through the router. On -ENOMEM the set is unchanged. */
int ow_paths_split(struct ow_paths *paths, uint32_t router);

uint32_t ow_paths_count(const struct ow_paths *paths);
/* The routers of the i-th path, from the first to the last. */
const uint16_t *ow_paths_get(const struct ow_paths *paths, uint32_t i, uint32_t *ret_nodes);

/* Probe hop count (hops of all paths) and localisation granularity (the hops of one path). */
struct ow_paths_measure {
	uint64_t paths, probe_hops;
	double mean;
	uint32_t min, max;
};
void ow_paths_measure(const struct ow_paths *paths, struct ow_paths_measure *ret_measure);
/* How many paths pass through each router (not those that begin or end there). ret_count: one a router. */
void ow_paths_through(const struct ow_paths *paths, uint64_t *ret_count);
/* By how much splitting at each router would lower the probe hop count; can be negative. */
int ow_paths_savings(const struct ow_paths *paths, int64_t *ret_savings);
