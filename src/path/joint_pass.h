/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "match/match_pass.h"
#include "path/join.h"

/*
 * One pass over all points for the passes of several pairs: each point is read once, its packets are identified once, and
 * all sightings of a packet meet in one table with a place for each point. What the pairs learn and report is the same as
 * in passes of their own: packets that are unique within the time that delays usually take are reported to each pair as
 * matched, all others go through the matchers of the pairs.
 *
 * The log of each pass has all packets but those that every point shows in the usual way.
 */

struct ow_joint_pass {
	unsigned passes;
	struct ow_match_pass *pass[OW_PATH_PAIRS];
	struct ow_path_pair pair[OW_PATH_PAIRS]; /* its points */
};

/*
 * Moves passes that cannot run together with the first one to the end: another identity, clocks that contradict each other
 * or drift, other times of a point, captures that are read in a special way. Returns how many can; fewer than two: none.
 */
unsigned ow_joint_pass_select(struct ow_joint_pass *joint);
/* The point of a side of pass k. */
unsigned ow_joint_point(const struct ow_joint_pass *joint, unsigned k, enum ow_side side);
/* The shifts of all points that follow from those of pairs. False: they contradict each other. */
bool ow_joint_shifts(const struct ow_joint_pass *joint, unsigned passes, int64_t shift_ns[OW_PATH_POINTS]);
/* Runs all. -EAGAIN: they have to be run one by one. */
int ow_joint_pass_run(const struct ow_joint_pass *joint, struct ow_error *err);
