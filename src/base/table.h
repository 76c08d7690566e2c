/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * How text looks: plain; with ANSI colours; or also with marks that show where its cells begin, from which report/html.h
 * makes tables. Clean text has no such characters.
 */
enum ow_look { OW_LOOK_PLAIN, OW_LOOK_COLOUR, OW_LOOK_MARKED };
#define OW_MARK_TITLE "\x1d" /* before the title of a column of numbers */
#define OW_MARK_LEFT  "\x1e" /* before text */
#define OW_MARK_RIGHT "\x1f" /* before a number */

/*
 * Tables for people: rows begin with what the caller prints, such as a name; then come columns, each with a space
 * before it. A narrow terminal shows the most important ones.
 */
struct ow_table_column {
	const char *title;
	unsigned width;
	unsigned rank; /* 0 is the most important; each rank once, below OW_TABLE_COLUMNS */
	bool left;     /* aligned at its left side; else at its right one */
};
#define OW_TABLE_COLUMNS 16

struct ow_table {
	FILE *out;
	const struct ow_table_column *column;
	unsigned count;
	bool colour;
	unsigned shown;  /* a bit for each column; set by ow_table_fit */
	unsigned hidden; /* columns that are not needed: they do not count */
	bool marked;     /* OW_LOOK_MARKED */
};

/* Shows the columns that fit into `width`: by rank until one does not fit. Returns the width they take. */
unsigned ow_table_fit(struct ow_table *table, unsigned width);
/* The same where rows begin with `front` columns and a name. Returns the columns of the name: at least `least`, at most
 * `most`. */
unsigned ow_table_fit_name(struct ow_table *table, unsigned width, unsigned front, unsigned least, unsigned most);

#define OW_TABLE_CELL 64
typedef char ow_table_cells[OW_TABLE_COLUMNS][OW_TABLE_CELL];
/* Titles and cells of the columns that are shown. red: a bit for each column that is. */
void ow_table_heading(const struct ow_table *table);
void ow_table_numbers(const struct ow_table *table, ow_table_cells cells, unsigned red);
/* The same, and the end of the line, without spaces before it. A heading line is bold from ow_table_bold to there. */
void ow_table_bold(const struct ow_table *table);
void ow_table_titles(const struct ow_table *table);
void ow_table_row(const struct ow_table *table, ow_table_cells cells, unsigned red);
/* Clean text, cut in its middle and filled with spaces to so many columns. */
void ow_table_name(FILE *out, const char *clean, size_t columns);
