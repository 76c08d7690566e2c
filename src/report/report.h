/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>
#include <stdio.h>

struct ow_match_flows; /* report/match_flows.h */

/* Renders results as text, JSON and CSV. Functions write to a stream; the caller checks the stream for errors. */

/*
 * Text similar to owping's summary. width = terminal columns (at least 60 are used), 0 = no terminal: each warning is
 * one line; colour = ANSI allowed.
 */
void ow_report_match_text(FILE *out, const struct ow_match_report *report, int width, bool colour);
/* One JSON object as in the design document. flows: may be NULL. */
void ow_report_match_json(FILE *out, const struct ow_match_report *report, const struct ow_match_flows *flows);

/* One CSV row for each packet. */
void ow_report_csv_header(FILE *out);
void ow_report_csv_packet(FILE *out, const struct ow_packet_event *event);
