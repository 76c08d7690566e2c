/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * The look of all plots, and a gnuplot script that draws one: data first, then panels with axes and series. A caller
 * writes what is special to its plot to the script.
 */
struct ow_chart {
	FILE *script;
	const char *path;
	int width, height; /* pixels */
	bool plotting;     /* the panel already has a series */
};

#define OW_CHART_GREY "636363"
#define OW_CHART_TICS "nomirror out scale 0.5"
#define OW_CHART_GRID "set grid back lt 1 lc rgb '#e4e4e4' lw 1\n"

/* -EINVAL unless the name ends in .svg or .png. */
int ow_chart_check_name(const char *path, struct ow_error *err);
/* After success the caller must call ow_chart_end. */
int ow_chart_begin(struct ow_chart *chart, const char *path, int width, int height, struct ow_error *err);
/* Draws with gnuplot, unless r is an error. On failure there is no file at path. */
int ow_chart_end(struct ow_chart *chart, int r, struct ow_error *err);

/* The same, but the picture stays in memory: a file without a name, which the caller closes. */
int ow_chart_end_in_memory(struct ow_chart *chart, int r, int *ret_picture, struct ow_error *err);

/* The unit of time in which delays of up to `ns` have few digits. */
struct ow_chart_unit {
	const char *name;
	double ns;
};
struct ow_chart_unit ow_chart_unit(double ns);

/* A block of data $name<number>: rows of numbers, NaN if not known; ended by ow_chart_data_end. */
void ow_chart_data(struct ow_chart *chart, const char *name, size_t number);
void ow_chart_numbers(struct ow_chart *chart, const double *value, size_t count);
void ow_chart_data_end(struct ow_chart *chart);

/* The next panel, in fractions of the plot: from left to right, and from the top down. */
void ow_chart_panel(struct ow_chart *chart, double left, double right, double top, double bottom);
/* "set what 'text'": a title, or the label of an axis. */
void ow_chart_set(struct ow_chart *chart, const char *what, const char *text);
/* A numbered label in the plot; `at` in gnuplot's syntax. */
void ow_chart_label(struct ow_chart *chart, int number, const char *text, const char *at);
/* Adds a series to the panel. columns, style: in gnuplot's syntax; colour: six hex digits. title: may be NULL. */
void ow_chart_series(struct ow_chart *chart, const char *data, size_t number, const char *columns, const char *style,
                     const char *colour, const char *title);
/* Draws the panel with its series; without any series it is empty. */
void ow_chart_plot(struct ow_chart *chart);
