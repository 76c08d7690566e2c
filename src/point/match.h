/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_MATCH_H
#define OW_POINT_MATCH_H

#include "base/time.h"
#include "point/plan.h"

#define OW_MATCH_WARNINGS 24

/* A match of two capture files in the making, and done. */
struct ow_match {
	struct ow_match_options options;
	struct ow_planner planner;
	struct ow_pass pass;
	struct ow_intervals *intervals;
	struct ow_datagrams *datagrams[OW_SIDES]; /* NULL until UDP superframes are looked for */
	bool cuts_datagrams;                      /* UDP superframes are cut */
	unsigned passes;
	bool limit_settled, drift_settled, clock_settled;
	struct ow_match_report report;
	char *warning[OW_MATCH_WARNINGS];
	size_t warnings;
};

/* Adds to the report what may spoil the result, or what the reader should know of it. 0 or -ENOMEM. */
int ow_match_warn(struct ow_match *match);

#endif
