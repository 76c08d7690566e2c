/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "plane/monitor.h"
#include "report/style.h"
#include "station/incidents.h"
#include <stdio.h>

/* The verdicts of the monitoring station on its paths: text, and lines of JSON. */

/* What begins, gets worse or ends: a line, and more for each finding. */
void ow_report_incident(FILE *out, const struct ow_style *style, enum ow_incident_event event, int64_t now_ns,
                        const struct ow_incident *incident);
/* The same as a line of JSON. */
void ow_report_incident_json(FILE *out, enum ow_incident_event event, int64_t now_ns,
                             const struct ow_incident *incident);
/* A place that has changed, as an object of a list. */
void ow_report_finding_json(struct ow_json *json, const struct ow_finding *finding);
/* The incident in one sentence, for people: "B>C is worse than usual: it loses 2.1%, usually 0%". */
#define OW_REPORT_SENTENCE 1024
void ow_report_incident_sentence(const struct ow_incident *incident, char text[OW_REPORT_SENTENCE]);
/* The state of every path, as a table, at the end. */
void ow_report_verdict_table(FILE *out, const struct ow_style *style, const struct ow_monitor_verdict *verdict,
                             uint32_t count, const struct ow_monitor_count *counts);
/* How things are, on one line that the next one replaces; for terminals whose cursor can be moved. */
void ow_report_status(FILE *out, const struct ow_style *style, int64_t now_ns, const struct ow_monitor_verdict *verdict,
                      uint32_t count);
/* Removes that line. */
void ow_report_status_clear(FILE *out);
/* One line of JSON for an interval. */
void ow_report_verdicts_json(FILE *out, int64_t start_ns, int64_t length_ns, const struct ow_monitor_verdict *verdict,
                             uint32_t count, const char *hops);
