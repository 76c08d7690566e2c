/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_MATCH_MATCH_H
#define OW_MATCH_MATCH_H

#include "base/time.h"
#include "match/duplicate_capture.h"
#include "match/plan.h"

#define OW_MATCH_WARNINGS 24

/* A match of two capture files in the making, and done. */
struct ow_match {
	struct ow_match_options options;
	struct ow_match_planner planner;
	struct ow_match_pass pass;
	struct ow_intervals *intervals;
	struct ow_datagrams *datagrams[OW_SIDES];            /* NULL until UDP superframes are looked for */
	uint64_t *cut;                                       /* of the identity; NULL until fragments are looked for */
	bool cuts_datagrams;                                 /* UDP superframes are cut */
	struct ow_duplicate_capture_verdict twice[OW_SIDES]; /* does the capture show packets twice? */
	unsigned passes;
	bool limit_settled, drift_settled, clock_settled;
	struct ow_match_report report;
	struct ow_hole hole[OW_SIDES * OW_SILENCES_MAX];
	char *warning[OW_MATCH_WARNINGS];
	size_t warnings;
};

/* The least delay of a direction: of packets that no other is like, without outliers; if all are like others, of those.
 * False without any. */
bool ow_match_floor(const struct ow_match_pass *pass, enum ow_direction direction, int64_t *ret_ns);

/* Adds to the report what may spoil the result, or what the reader should know of it. 0 or -ENOMEM. */
int ow_match_warn(struct ow_match *match);

#endif
