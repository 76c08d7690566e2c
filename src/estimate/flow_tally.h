/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ESTIMATE_FLOW_TALLY_H
#define OW_ESTIMATE_FLOW_TALLY_H

#include "packet/flow.h"
#include "packet/flow_select.h"
#include <oneway/match.h>

/*
 * What became of the packets of each flow, exactly: fed with the events of a match. Memory follows the flows: about
 * 200 bytes each, and never more than OW_FLOWS_MAX of them a direction (packet/flow.h says what happens to the rest).
 */
struct ow_flow_tally;

/* One flow that went one way. As in struct ow_result: sent = matched + lost, received = matched + extra. */
struct ow_flow_result {
	struct ow_flow_key key;
	enum ow_direction direction;
	uint64_t sent, received, matched, lost, extra, duplicated, ambiguous;
	uint64_t samples;          /* packets that the delays are of; nothing below is meaningful when it is 0 */
	double mean_ns, stddev_ns; /* of the population; exact */
	int64_t min_ns, max_ns;
};

/* select: what of the packets makes a flow, anything but classes. seed: not to be known to who writes the captures. */
int ow_flow_tally_create(const struct ow_flow_select *select, uint64_t seed, struct ow_flow_tally **ret_tally);
void ow_flow_tally_free(struct ow_flow_tally *tally);
/* Takes an event as ow_match_options.on_packet delivers it; those without a direction are left out. 0 or -ENOMEM. */
int ow_flow_tally_add(struct ow_flow_tally *tally, const struct ow_packet_event *event);
/* Flows of both directions, 0 .. count-1: those from A to B first, in order of appearance. When memory ran out, some
 * may be empty. */
size_t ow_flow_tally_count(const struct ow_flow_tally *tally);
void ow_flow_tally_get(const struct ow_flow_tally *tally, size_t i, struct ow_flow_result *ret_result);
/* Were there more flows than there is room for? Then some results are of all flows between two networks. */
bool ow_flow_tally_is_coarse(const struct ow_flow_tally *tally);
/* Is every packet of the report in exactly one flow? After the match. */
bool ow_flow_tally_conserves(const struct ow_flow_tally *tally, const struct ow_match_report *report);

#endif
