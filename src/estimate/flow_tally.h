/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/flow.h"
#include "packet/flow_select.h"
#include <oneway/match.h>

/*
 * Exact counts and delays of each flow, from the events of a match. About 200 bytes a flow, and at most OW_FLOWS_MAX
 * flows a direction (packet/flow.h says what happens to the rest).
 */
struct ow_flow_tally;

/* One flow in one direction. As in struct ow_result: sent = matched + lost, received = matched + extra. */
struct ow_flow_result {
	struct ow_flow_key key;
	enum ow_direction direction;
	uint64_t sent, received, matched, lost, extra, duplicated, ambiguous;
	uint64_t samples;          /* packets with a delay; if 0, nothing below is defined */
	double mean_ns, stddev_ns; /* of the population; exact */
	int64_t min_ns, max_ns;
};

/* select: defines a flow; not by class. seed: must be unknown to the author of the captures. */
int ow_flow_tally_create(const struct ow_flow_select *select, uint64_t seed, struct ow_flow_tally **ret_tally);
void ow_flow_tally_free(struct ow_flow_tally *tally);
/* Adds an event of ow_match_options.on_packet; ignores those without a direction. 0 or -ENOMEM. */
int ow_flow_tally_add(struct ow_flow_tally *tally, const struct ow_packet_event *event);
/* Flows of both directions, 0 .. count-1: those from A to B first, in order of appearance. If memory ran out, some may
 * be empty. */
size_t ow_flow_tally_count(const struct ow_flow_tally *tally);
void ow_flow_tally_get(const struct ow_flow_tally *tally, size_t i, struct ow_flow_result *ret_result);
/* Whether there were more flows than room. Then some results are of all flows between two networks. */
bool ow_flow_tally_is_coarse(const struct ow_flow_tally *tally);
/* Whether every packet of the report is in exactly one flow. To be called after the match. */
bool ow_flow_tally_conserves(const struct ow_flow_tally *tally, const struct ow_match_report *report);
