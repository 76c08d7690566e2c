/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/colate_size.h"
#include "flows/flow_measure.h"
#include <stdio.h>

struct ow_report_sizing {
	const struct ow_colate_need *need;
	const struct ow_colate_size *size;
	const struct ow_flow_measure *measured; /* NULL = nothing was measured */
	bool both;                              /* at two points */
	uint64_t packets_min;                   /* of what was measured */
	int64_t unit_ns;
	double rate; /* packets in a unit; 0 = not known */
};

void ow_report_sizing_text(FILE *out, const struct ow_report_sizing *sizing);
void ow_report_sizing_json(FILE *out, const struct ow_report_sizing *sizing);
