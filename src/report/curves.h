/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Curves of named series over two axes, as CSV and as a plot. Zero except for the first members; then add points. */
struct ow_curves_point {
	size_t series;
	double x, y, low, high; /* low = high = y: no spread is drawn */
};

struct ow_curves {
	const char *title, *x_label, *y_label;
	bool log_x, log_y;
	char **name; /* of the series */
	size_t names, names_room;
	struct ow_curves_point *point;
	size_t points, points_room;
};

/* 0, -ENOMEM, or -EINVAL for values that are not numbers. A series begins with its first point. */
int ow_curves_add(struct ow_curves *curves, const char *series, double x, double y, double low, double high);
void ow_curves_done(struct ow_curves *curves);

/* series,x,y,low,high */
void ow_curves_csv(FILE *out, const struct ow_curves *curves);
/* With gnuplot, by the ending .svg or .png. On failure there is no file at path. */
int ow_curves_draw(const struct ow_curves *curves, const char *path, struct ow_error *err);
