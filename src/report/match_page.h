/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/table.h"
#include <oneway/match.h>
#include <stdio.h>

struct ow_match_classes; /* report/match_classes.h */
struct ow_match_flows;   /* report/match_flows.h */
struct ow_match_packets; /* report/match_packets.h */
struct ow_path_report;   /* path/path.h */
struct ow_plot;          /* report/plot.h */

/* All that is shown of a match; NULL for what was not asked for. */
struct ow_match_page {
	const struct ow_match_report *report; /* never NULL on a page */
	const char *const *name;              /* of A and B; NULL = they have none */
	const struct ow_path_report *path;
	const struct ow_match_classes *classes;
	const struct ow_match_packets *packets;
	const struct ow_match_flows *flows;
	size_t top;     /* rows of tables of flows */
	uint64_t least; /* packets of a flow that is shown */
	const struct ow_plot *plot;
};

/* width: columns of the terminal. terminal: false: warnings are one line each. */
void ow_match_page_text(FILE *out, const struct ow_match_page *page, int width, bool terminal, enum ow_look look);
/*
 * The same as HTML, with the plots as pictures; without gnuplot the page says that there are none. The caller checks
 * the stream for errors.
 */
int ow_match_page_html(FILE *out, const struct ow_match_page *page, struct ow_error *err);
