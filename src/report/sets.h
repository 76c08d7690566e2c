/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "plane/paths.h"
#include "plane/spf.h"
#include "plane/turnover.h"
#include "report/style.h"
#include <stdio.h>

/* What one node watches: its segments, and the shortest paths to them. */
struct ow_owner_set {
	const struct ow_topology *topology;
	const bool *is_mrouter;
	const struct ow_spf *spf;
	const struct ow_paths *segments;
	bool tree; /* also show the shortest paths */
};

void ow_report_set_text(FILE *out, const struct ow_style *style, const struct ow_owner_set *set);
/* A row (ow_json_row) of an array. */
void ow_report_set_json(struct ow_json *json, const struct ow_owner_set *set);

/* A segment that is to be measured, or no longer to be measured. */
void ow_report_turnover_text(FILE *out, const struct ow_style *style, int64_t now_ns, enum ow_turnover_event event,
                             const char *segment);
void ow_report_turnover_json(FILE *out, int64_t now_ns, enum ow_turnover_event event, const char *segment);
