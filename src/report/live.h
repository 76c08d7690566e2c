/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_REPORT_LIVE_H
#define OW_REPORT_LIVE_H

#include "estimate/live.h"
#include <stdio.h>

/* Live results for people and machines. */

/* One line of JSON: the RESULT of every command, with segment, class, interval, late, pending, clock, synopsis, cost.
 */
void ow_live_json(FILE *out, const struct ow_live_result *result);
/* The same object without line end, to be put into others ({"result": ...}). */
void ow_live_json_object(FILE *out, const struct ow_live_result *result);

/* One line of text a result; a heading before the first, and again every so many lines. */
struct ow_live_text {
	FILE *out;
	unsigned width; /* columns of the terminal; 0 = not a terminal: no limit */
	bool colour;
	unsigned lines; /* since the last heading */
};
void ow_live_text(struct ow_live_text *text, const struct ow_live_result *result);
/* The summary of a run: several lines, as of owping. */
void ow_live_summary(FILE *out, const struct ow_live_result *total);

/* A table of all lanes that is redrawn in place: delay with a sparkline of the last intervals, loss, rate. */
struct ow_live_table;
int ow_live_table_create(FILE *out, struct ow_live_table **ret_table);
void ow_live_table_free(struct ow_live_table *table);
void ow_live_table_add(struct ow_live_table *table, const struct ow_live_result *result);
void ow_live_table_draw(struct ow_live_table *table, unsigned width, unsigned height);

#endif
