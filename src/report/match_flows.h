/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_REPORT_MATCH_FLOWS_H
#define OW_REPORT_MATCH_FLOWS_H

#include "base/json_writer.h"
#include "estimate/flow_tally.h"
#include "packet/flow_select.h"
#include <stdio.h>

/* The exact results of a match, flow by flow. */
struct ow_match_flows {
	struct ow_flow_select select;
	struct ow_flow_result *flow; /* by direction, the slowest first; those without a delay last */
	size_t flows;
	bool coarse; /* some are of all flows between two networks */
};

/* Takes the results out of the tally and sorts them. 0 or -ENOMEM. */
int ow_match_flows_init(struct ow_match_flows *flows, const struct ow_flow_tally *tally,
                        const struct ow_flow_select *select);
void ow_match_flows_done(struct ow_match_flows *flows);

/* For each direction the `top` slowest and the `top` that lost most, of those with at least `least` packets received.
 */
void ow_report_match_flows_text(FILE *out, const struct ow_match_flows *flows, size_t top, uint64_t least, int width,
                                bool colour);
/* The array of flows. */
void ow_report_match_flows_json(struct ow_json *json, const struct ow_match_flows *flows);
/* A header line and a row a flow. */
void ow_report_match_flows_csv(FILE *out, const struct ow_match_flows *flows);

#endif
