/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "match/match.h"

/*
 * Internal to the offline engine: the questions that match.c answers one after the other, each by further passes. All
 * return 0 or a negative errno.
 */

static inline uint64_t ow_match_matched(const struct ow_match_pass *pass)
{
	return pass->tally[OW_A_TO_B].matched + pass->tally[OW_B_TO_A].matched;
}

/* settle.c: one pass by the plan; further ones until what they teach of clocks and paths changes nothing; both. */
int ow_match_run(struct ow_match *match, struct ow_error *err);
int ow_match_improve(struct ow_match *match, struct ow_error *err);
int ow_match_settle(struct ow_match *match, struct ow_error *err);
/* settle.c: doubles the waiting time, if some packets are nearly as late as that while others are lost and extra. False:
 * it is long enough. */
bool ow_match_wait_longer(struct ow_match *match);

/* try_identities.c: if packets of both sides stay unmatched, tries other identities and keeps one that matches more. */
int ow_match_try_identities(struct ow_match *match, struct ow_error *err);
/* leave_copies_out.c: if a capture shows packets twice, its copies are ignored. */
int ow_match_leave_copies_out(struct ow_match *match, struct ow_error *err);
/* holes.c: packets that a capture could not show, because it showed nothing at all for a time, are not lost. */
int ow_match_find_holes(struct ow_match *match, struct ow_error *err);
/* one_way.c: the direction of traffic that goes one way. */
int ow_match_settle_direction(struct ow_match *match, struct ow_error *err);
/* match_report.c */
int ow_match_fill_report(struct ow_match *match);
