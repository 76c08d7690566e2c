/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "path/path.h"

/*
 * Finds the order of points from samples of their packets. Routers decrease the TTL, so the packets that two points
 * share show how many routers are between them; between points without a router, the time that packets take shows it:
 * that of both directions together, in which the clocks have no part, if there are both.
 */
struct ow_order_found {
	unsigned place[OW_PATH_POINTS]; /* argument numbers, in the order of the path */
	enum ow_path_order by;
	bool lone
		[OW_PATH_POINTS]; /* by argument: no packets in common with any other point show its place; it is no end */
	bool apart;               /* points share no time, and nothing shows how they lie */
	bool partial[OW_PATH_POINTS]; /* by argument: packets pass the point that it does not show */
};

/* trusted: the clocks may be used to order points, if traffic goes one way. */
int ow_path_find_order(const struct ow_path_point *point, unsigned points, bool trusted, uint64_t seed,
                       struct ow_order_found *ret_found, struct ow_error *err);
