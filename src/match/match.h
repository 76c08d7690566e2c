/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/time.h"
#include "match/duplicate_capture.h"
#include "match/plan.h"

#define OW_MATCH_WARNINGS 24

/* For a caller that matches several pairs together. */
struct ow_match_host {
	/* Runs a pass in place of ow_match_pass_run. */
	int (*run_pass)(void *arg, struct ow_match_pass *pass, struct ow_error *err);
	void *arg;
	struct ow_reader *reader[OW_SIDES]; /* of the paths; no other thread uses them between two passes */
	bool estimates; /* the clock offset that it gives is an estimate, as for OW_CLOCK_ESTIMATED */
};

/* A match of two capture files, in progress or done. */
struct ow_match {
	struct ow_match_options options;
	struct ow_match_host host; /* run_pass NULL: there is none */
	struct ow_match_planner planner;
	struct ow_match_pass pass;
	struct ow_intervals *intervals;
	struct ow_details details[OW_DIRECTIONS];
	struct ow_flow_jitter *flow_jitter[OW_DIRECTIONS];   /* of these */
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
	/* Those of them about packets that arrived without having been sent, and what a capture says of its drops; or NULL. */
	const char *unsent[OW_DIRECTIONS], *missed[OW_SIDES];
};

/*
 * The smallest delay of a direction: of unique packets, without outliers; if there are none, of identical ones. False
 * without any.
 */
bool ow_match_floor(const struct ow_match_pass *pass, enum ow_direction direction, int64_t *ret_ns);

/* ow_match_files with a host. */
int ow_match_files_hosted(const char *path_a, const char *path_b, const struct ow_match_options *options,
                          const struct ow_match_host *host, struct ow_match **ret_match, struct ow_error *err);
/* After the host has run its pass once more by the same plan: the report is that of this pass. 0 or -ENOMEM. */
int ow_match_refresh(struct ow_match *match);
/* Afterwards the match does not need its host any more: its passes read the files by themselves. */
int ow_match_leave_host(struct ow_match *match, struct ow_error *err);

/*
 * Reports the packets of a match that is done, in another pass: so that the caller can decide whether it needs them.
 * on_packet and arg are those of struct ow_match_options.
 */
int ow_match_tell(struct ow_match *match, int (*on_packet)(void *arg, const struct ow_packet_event *event), void *arg,
                  struct ow_error *err);

/* Whether TCP packets that are longer than those of a wire are compared as they are. */
bool ow_match_keeps_superframes(const struct ow_match *match);

/* Adds warnings to the report. Returns 0 or -ENOMEM. */
int ow_match_warn(struct ow_match *match);
