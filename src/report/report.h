/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/table.h"
#include <oneway/match.h>
#include <stdio.h>

struct ow_match_classes; /* report/match_classes.h */
struct ow_match_flows;   /* report/match_flows.h */
struct ow_match_packets; /* report/match_packets.h */
struct ow_path_packet;   /* path/path.h */
struct ow_path_report;

/* Renders results as text, JSON and CSV. Functions write to a stream; the caller checks the stream for errors. */

/*
 * Text similar to owping's summary. width = terminal columns (at least 60 are used), 0 = no terminal: each warning is
 * one line; name = those of A and B, NULL = they have none.
 */
void ow_report_match_text(FILE *out, const struct ow_match_report *report, const char *const *name, int width,
                          enum ow_look look);
/* Hop by hop, for a path of more than two points; what is between its ends is for ow_report_match_text. */
void ow_report_path_text(FILE *out, const struct ow_path_report *path, int width, enum ow_look look);
/* One JSON object as in the design document. name, flows, classes, packets and path: may be NULL. */
void ow_report_match_json(FILE *out, const struct ow_match_report *report, const char *const *name,
                          const struct ow_match_flows *flows, const struct ow_match_classes *classes,
                          const struct ow_match_packets *packets, const struct ow_path_report *path);

/* One CSV row for each packet. from_ns: offsets are from this time on. */
void ow_report_csv_header(FILE *out);
void ow_report_csv_packet(FILE *out, const struct ow_packet_event *event, int64_t from_ns);
/* One for each interval and direction. */
void ow_report_csv_intervals(FILE *out, const struct ow_match_report *report);
/* The same for a path of more than two points: a column of times for each point. */
void ow_report_csv_path_header(FILE *out, const struct ow_path_report *path);
void ow_report_csv_path_packet(FILE *out, const struct ow_path_report *path, const struct ow_path_packet *packet,
                               int64_t from_ns);
