/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "match/match_pass.h"
#include "match/survey.h"

/*
 * Decides how two captures are matched: identity, bytes that enter it, clock shift, waiting time. A first look at the
 * start of the common time is usually enough; if it finds too little in common, samples of the whole captures decide.
 */
struct ow_match_planner {
	const struct ow_match_options *options;
	struct ow_outlook outlook[OW_SIDES];
	uint32_t limit[OW_VARIANTS];
	uint64_t seed;
	bool whole;                                    /* the common part below is from the whole captures */
	int64_t first_ns[OW_SIDES], last_ns[OW_SIDES]; /* of the whole captures, when `whole` */
	bool strangers;          /* the samples have nothing in common; UDP superframes or fragments may */
	enum ow_variant variant; /* the chosen identity */
	enum ow_tcp_rule tcp;    /* of it */
	struct ow_sample_overlap common[OW_VARIANTS];
};

/* With fewer bytes an id has no meaning: packets truncated further are skipped. */
#define OW_PLAN_LIMIT_FLOOR 40u

/* The default waiting time, and its upper limit if the samples show longer delays. */
#define OW_WINDOW_DEFAULT_NS INT64_C(2000000000)
#define OW_WINDOW_STRETCH_NS INT64_C(60000000000)

/* Reads both captures (and rewinds them) and makes the plan. -ENOMSG with the reason if they cannot be matched. */
int ow_plan_make(struct ow_match_planner *planner, struct ow_record_reader input[OW_SIDES], struct ow_plan *ret_plan,
                 struct ow_error *err);

/* Whether routers show the direction of the sampled packets: their TTL is lower at the end. */
bool ow_plan_hops(const struct ow_match_planner *planner, enum ow_direction *ret_way);

/* Why the captures have nothing in common: -ENOMSG. */
int ow_plan_refuse(const struct ow_match_planner *planner, struct ow_record_reader input[OW_SIDES],
                   struct ow_error *err);

/* The identity of the plan with this many bytes of each packet, when some are truncated further than was known. */
void ow_plan_limit(struct ow_match_planner *planner, struct ow_plan *plan, uint32_t limit);
