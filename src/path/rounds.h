/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "match/match.h"
#include "path/joint_pass.h"

/*
 * Matches pairs of points together: each in a thread of its own, of which one runs at a time. When all of them want a pass,
 * there is a round: one joint pass for those that can, a pass for each of the others.
 */
struct ow_rounds_pair {
	struct ow_path_pair place;
	const char *path[OW_SIDES];
	struct ow_reader *reader[OW_SIDES];
	struct ow_match_options options;
	bool estimates; /* as in struct ow_match_host */
	/* Results: */
	int result; /* of ow_match_files */
	struct ow_match *match;
	struct ow_error err;
	struct ow_pass_log log;
	unsigned round; /* of its last pass: the log is of this round; 0 = it was not a joint one */
};

/* Runs all; those that end without a match have their reason in `result`. Returns 0, -ENOMEM or -EAGAIN: no thread. */
int ow_rounds_run(struct ow_rounds_pair *pair, unsigned pairs, unsigned *round);
