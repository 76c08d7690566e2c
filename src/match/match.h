/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/time.h"
#include "match/duplicate_capture.h"
#include "match/plan.h"

#define OW_MATCH_WARNINGS 24

/* A match of two capture files, in progress or done. */
struct ow_match {
	struct ow_match_options options;
	struct ow_match_planner planner;
	struct ow_match_pass pass;
	struct ow_intervals *intervals;
	struct ow_datagrams *datagrams[OW_SIDES];            /* NULL until UDP superframes are searched */
	uint64_t *cut;                                       /* of the identity; NULL until fragments are searched */
	bool cuts_datagrams;                                 /* UDP superframes are cut */
	struct ow_duplicate_capture_verdict twice[OW_SIDES]; /* whether the capture shows packets twice */
	unsigned passes;
	bool limit_settled, drift_settled, clock_settled;
	unsigned corrections; /* of the clock offset, so far */
	struct ow_match_report report;
	struct ow_hole hole[OW_SIDES * OW_SILENCES_MAX];
	char *warning[OW_MATCH_WARNINGS];
	size_t warnings;
};

/*
 * The smallest delay of a direction: of unique packets, without outliers; if there are none, of identical ones. False
 * without any.
 */
bool ow_match_floor(const struct ow_match_pass *pass, enum ow_direction direction, int64_t *ret_ns);

/*
 * Reports the packets of a match that is done, in another pass: so that the caller can decide whether it needs them.
 * on_packet and arg are those of struct ow_match_options.
 */
int ow_match_tell(struct ow_match *match, int (*on_packet)(void *arg, const struct ow_packet_event *event), void *arg,
                  struct ow_error *err);

/* Adds warnings to the report. Returns 0 or -ENOMEM. */
int ow_match_warn(struct ow_match *match);
