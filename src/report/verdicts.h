/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/monitor.h"
#include "report/style.h"
#include <stdio.h>

/* The verdicts of the monitoring station on its paths: text, and lines of JSON. */

/* A path that broke its target, recovered, or can no longer be judged: a line, and one for each finding. */
void ow_report_verdict(FILE *out, const struct ow_style *style, int64_t now_ns,
                       const struct ow_monitor_verdict *verdict, const char *hops);
/* The state of every path, as a table, at the end. */
void ow_report_verdict_table(FILE *out, const struct ow_style *style, const struct ow_monitor_verdict *verdict,
                             uint32_t count, const struct ow_monitor_count *counts);
/* One line of JSON for an interval. */
void ow_report_verdicts_json(FILE *out, int64_t now_ns, const struct ow_monitor_verdict *verdict, uint32_t count,
                             const char *hops);
