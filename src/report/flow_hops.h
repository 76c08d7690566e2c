/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "base/table.h"
#include "path/flow_hops.h"
#include <stdio.h>

/* The flows of a path, with the hops to blame. */
struct ow_flow_hops_report {
	const struct ow_path_report *path; /* NULL: there are none */
	const struct ow_flow_select *select;
	struct ow_flow_on_path *flow;
	size_t flows;
	uint64_t omitted; /* packets of flows that are not among them */
};

/* For each direction the `top` flows that lost most, and where; and the flows with the slowest hops. */
void ow_report_flow_hops_text(FILE *out, const struct ow_flow_hops_report *report, size_t top, uint64_t least,
                              enum ow_look look);
/* The array "flow_hops", and "flow_hops_omitted". */
void ow_report_flow_hops_json(struct ow_json *json, const struct ow_flow_hops_report *report);
