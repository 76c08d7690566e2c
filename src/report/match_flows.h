/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "base/table.h"
#include "estimate/flow_tally.h"
#include "packet/flow_select.h"
#include "report/flow_hops.h"
#include <stdio.h>

/* The exact results of a match for each flow. */
struct ow_match_flows {
	struct ow_flow_select select;
	struct ow_flow_result *flow; /* by direction, the slowest first; flows without a delay last */
	size_t flows;
	const struct ow_flow_jitter **jitter; /* of each flow; NULL: it has none. NULL if there are no details */
	bool coarse;                          /* some entries are all flows between two networks */
	struct ow_flow_hops_report hops;      /* of a path */
};

/* Takes the results from the tally and sorts them. Returns 0 or -ENOMEM. */
int ow_match_flows_init(struct ow_match_flows *flows, const struct ow_flow_tally *tally,
                        const struct ow_flow_select *select);
/*
 * Adds the jitter of each flow, if the report has details of which flows are those of the key; they stay those of the
 * report. Returns 0 or -ENOMEM.
 */
int ow_match_flows_add_jitter(struct ow_match_flows *flows, const struct ow_match_report *report);
void ow_match_flows_done(struct ow_match_flows *flows);

/*
 * Prints for each direction the `top` slowest flows and the `top` flows that lost most, of those with at least `least`
 * received packets.
 */
void ow_report_match_flows_text(FILE *out, const struct ow_match_flows *flows, size_t top, uint64_t least, int width,
                                enum ow_look look);
/* The array of flows. */
void ow_report_match_flows_json(struct ow_json *json, const struct ow_match_flows *flows);
/* Writes a header line and a row for each flow. */
void ow_report_match_flows_csv(FILE *out, const struct ow_match_flows *flows);
