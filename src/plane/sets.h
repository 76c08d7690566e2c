/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PLANE_SETS_H
#define OW_PLANE_SETS_H

#include "plane/paths.h"

/*
 * What a node of the measurement plane must watch: its m-set (MPLANE, section VI). Some routers are measured inside
 * (m-routers), all others have a measurement server (m-server). A node follows its shortest paths, all of equal cost,
 * up to the first m-router, which watches what lies behind it; where there is none the path is watched to its end. What
 * is left are the segments: one for each path that ends at a cut.
 *
 * Figure 8c of the paper leaves C out of the m-set of F. Delay is one-way: that C watches the segment C - F does not
 * tell what happens from F to C, so F has C in its m-set here, as A has F and F has A.
 */

/* The segments that start at owner, in order of their ends' numbers. is_mrouter: one for each router. */
int ow_mset_find(const struct ow_topology *topology, uint32_t owner, const bool *is_mrouter,
                 struct ow_paths **ret_segments, struct ow_error *err);

/* A segment as people write it: "F E D", with arrows "F>E>D". Cut with "..." where the room ends. */
void ow_segment_text(const struct ow_topology *topology, const uint16_t *node, uint32_t nodes, char *text, size_t size);

#endif
