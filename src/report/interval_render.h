/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/flow_event.h"
#include <stdio.h>

/* Live results as text. */

/*
 * One line of text for each result; a heading before the first, and again after some lines. A mark before the lane's
 * name: ~ provisional (then lost is a range, because pending packets may still arrive), ! partial, ? no numbers.
 */
struct ow_render_text {
	FILE *out;
	unsigned width; /* columns of the terminal; 0 = not a terminal: no limit */
	bool colour;
	bool local;                  /* local time, and a line before each day; otherwise UTC */
	unsigned lines;              /* since the last heading */
	char cause[OW_RESULT_CAUSE]; /* cause of the last partial result that was printed */
	char day[16];                /* of the last line */
	unsigned lane;               /* columns of the longest lane so far */
	unsigned shown, lane_width;  /* at the last heading */
	unsigned scope;              /* columns about scope that were not 0 so far */
};
void ow_render_text(struct ow_render_text *text, const struct ow_interval_result *result);
/* The sentence of an event in a line of its own, or several on a narrow terminal. */
void ow_render_event(struct ow_render_text *text, const struct ow_flow_event *event);
/* The same for stored ones: local time with its day, lane, what happened. width: columns, 0 = any. */
void ow_render_stored_event(FILE *out, unsigned width, const struct ow_flow_event *event);
/* "CLASS: since 10:02:13 ..."; without the class, if it is the one of all packets. */
#define OW_RENDER_EVENT (OW_RESULT_NAME + OW_FLOW_EVENT_TEXT)
void ow_render_event_text(const struct ow_flow_event *event, char text[OW_RENDER_EVENT]);
/*
 * The summary of a run: several lines, like that of owping. If both clock errors are 0, the points have the same clock.
 */
void ow_render_summary(FILE *out, const struct ow_interval_result *total);
/* Prints a line for each count whose field has words (result/fields.h), unless it is 0. */
void ow_render_counts(FILE *out, const struct ow_interval_result *result);

#define OW_RENDER_LANE 200
/*
 * The lane as "segment/class from>to" in at most `columns` columns. The segment is omitted if it only repeats the
 * points, class "all" if it does not fit. Returns the columns used.
 */
size_t ow_render_lane(const struct ow_interval_result *result, size_t columns, bool ascii, char text[OW_RENDER_LANE]);

/*
 * A table of all lanes that is redrawn in place: delay with a sparkline of the last intervals, loss, rate. Rate and
 * delay are those of the lane's newest interval; loss is that of its newest final one, because late packets are not
 * lost.
 */
struct ow_render_table;
int ow_render_table_create(FILE *out, struct ow_render_table **ret_table);
void ow_render_table_free(struct ow_render_table *table);
/* utf8: block characters may be used (default: no); colour (default: no). */
void ow_render_table_style(struct ow_render_table *table, bool utf8, bool colour);
/* -ENOMEM: a new lane is not shown. */
int ow_render_table_add(struct ow_render_table *table, const struct ow_interval_result *result);
/* The newest events stay below the table. */
void ow_render_table_event(struct ow_render_table *table, const struct ow_flow_event *event);
/* Draws over the last drawing. width, height: of the terminal now. */
void ow_render_table_draw(struct ow_render_table *table, unsigned width, unsigned height);
