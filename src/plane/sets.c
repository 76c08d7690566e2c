/* SPDX-License-Identifier: Apache-2.0 */
/* m-sets: the shortest paths of a node, cut at the first m-router. */
#include "plane/sets.h"
#include <errno.h>

int ow_mset_find(const struct ow_topology *topology, uint32_t owner, const bool *is_mrouter,
                 struct ow_paths **ret_segments, struct ow_error *err)
{
	struct ow_paths *paths;
	struct ow_spf spf;
	if (ow_paths_create(ow_topology_nodes(topology), &paths) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	if (ow_spf_run(topology, owner, &spf) < 0) {
		ow_paths_free(paths);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	int r = ow_paths_add_cut(paths, &spf, is_mrouter, err);
	ow_spf_done(&spf);
	if (r < 0)
		ow_paths_free(paths);
	else
		*ret_segments = paths;
	return r;
}
