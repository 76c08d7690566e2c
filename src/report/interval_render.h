/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_REPORT_INTERVAL_RENDER_H
#define OW_REPORT_INTERVAL_RENDER_H

#include "result/interval_result.h"
#include <stdio.h>

/* Live results for people. */

/*
 * One line of text a result; a heading before the first, and again every so many lines. In front of the lane's name: ~
 * provisional (then lost is a range, because what is pending may still come), ! partial, ? no numbers.
 */
struct ow_render_text {
	FILE *out;
	unsigned width; /* columns of the terminal; 0 = not a terminal: no limit */
	bool colour;
	bool local;                  /* local time, and a line before each day; else UTC */
	unsigned lines;              /* since the last heading */
	char cause[OW_RESULT_CAUSE]; /* of a partial result, said last */
	char day[16];                /* of the last line */
	unsigned lane, shown;        /* columns of the longest lane so far; those of the last heading */
};
void ow_render_text(struct ow_render_text *text, const struct ow_interval_result *result);
/* The summary of a run: several lines, as of owping. Clock errors of 0 on both sides stand for one and the same clock.
 */
void ow_render_summary(FILE *out, const struct ow_interval_result *total);
/* A line for each count whose field has words (result/fields.h), unless it is 0. */
void ow_render_counts(FILE *out, const struct ow_interval_result *result);

#define OW_RENDER_LANE 200
/* The lane as "segment/class from>to" in at most `columns` columns; the segment is left out where it only repeats the
 * points, class "all" where it does not fit. Returns the columns it takes. */
size_t ow_render_lane(const struct ow_interval_result *result, size_t columns, bool ascii, char text[OW_RENDER_LANE]);

/*
 * A table of all lanes that is redrawn in place: delay with a sparkline of the last intervals, loss, rate. Rate and
 * delay are those of the lane's newest interval; loss is that of its newest final one, as late is not lost.
 */
struct ow_render_table;
int ow_render_table_create(FILE *out, struct ow_render_table **ret_table);
void ow_render_table_free(struct ow_render_table *table);
/* utf8: block characters may be used (by default not); colour: by default none. */
void ow_render_table_style(struct ow_render_table *table, bool utf8, bool colour);
/* -ENOMEM: a new lane is not shown. */
int ow_render_table_add(struct ow_render_table *table, const struct ow_interval_result *result);
/* Draws over what was drawn last. width, height: of the terminal now. */
void ow_render_table_draw(struct ow_render_table *table, unsigned width, unsigned height);

#endif
