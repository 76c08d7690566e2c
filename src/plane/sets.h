/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/paths.h"

/*
 * The m-set of a node: the segments that a node of the measurement plane must watch (MPLANE, section VI). Some routers
 * are measured inside (m-routers), all others have a measurement server (m-server). A node follows all its shortest
 * paths up to the first m-router, which watches the rest. A path without an m-router is watched to its end. The
 * segments are the different paths that result from this.
 *
 * Figure 8c of the paper leaves C out of the m-set of F. Here F has C in its m-set, as A has F and F has A: delay is
 * one-way, and the segment C - F that C watches does not show the delay from F to C.
 */

/* The segments that start at owner, in order of their ends' numbers. is_mrouter: one for each router. */
int ow_mset_find(const struct ow_topology *topology, uint32_t owner, const bool *is_mrouter,
                 struct ow_paths **ret_segments, struct ow_error *err);
