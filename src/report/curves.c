/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Curves as CSV and, with gnuplot, as a plot. A logarithmic axis cannot show 0, which is the error of an exact method:
 * it is drawn at the lower edge, a decade below the smallest value, where the axis has the label 0.
 */
#include "report/curves.h"

#include "report/chart.h"
#include "base/array.h"
#include "base/format.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 100000
#define SERIES_MAX 64
#define WIDTH_PX   1000
#define HEIGHT_PX  600

/* Colours that also colour-blind people can distinguish (Okabe and Ito), in the order of the series. */
static const char *const colours[] = {"0072b2", "d55e00", "009e73", "cc79a7", "e69f00", "56b4e9", "000000", "999999"};
#define COLOURS (sizeof colours / sizeof *colours)

static int series_of(struct ow_curves *curves, const char *name, size_t *ret_series)
{
	for (size_t i = 0; i < curves->names; i++) {
		if (strcmp(curves->name[i], name) == 0) {
			*ret_series = i;
			return 0;
		}
	}
	if (curves->names == SERIES_MAX)
		return -EINVAL;
	if (OW_GROW(curves->name, curves->names_room, curves->names + 1) < 0)
		return -ENOMEM;
	curves->name[curves->names] = strdup(name);
	if (!curves->name[curves->names])
		return -ENOMEM;
	*ret_series = curves->names++;
	return 0;
}

int ow_curves_add(struct ow_curves *curves, const char *series, double x, double y, double low, double high)
{
	size_t index;
	if (!isfinite(x) || !isfinite(y) || !isfinite(low) || !isfinite(high) || curves->points == POINTS_MAX)
		return -EINVAL;
	int r = series_of(curves, series, &index);
	if (r < 0)
		return r;
	if (OW_GROW(curves->point, curves->points_room, curves->points + 1) < 0)
		return -ENOMEM;
	curves->point[curves->points++] = (struct ow_curves_point){index, x, y, low, high};
	return 0;
}

void ow_curves_done(struct ow_curves *curves)
{
	for (size_t i = 0; i < curves->names; i++)
		free(curves->name[i]);
	free(curves->name);
	free(curves->point);
	*curves = (struct ow_curves){0};
}

void ow_curves_csv(FILE *out, const struct ow_curves *curves)
{
	fputs("series,x,y,low,high\n", out);
	for (size_t i = 0; i < curves->points; i++) {
		const struct ow_curves_point *p = &curves->point[i];
		ow_format_csv(out, curves->name[p->series]);
		fprintf(out, ",%.10g,%.10g,%.10g,%.10g\n", p->x, p->y, p->low, p->high);
	}
}

/* Where values are drawn that a logarithmic axis cannot show. */
struct edge {
	double x, y;
	bool x_used, y_used;
};

static struct edge find_edge(const struct ow_curves *curves)
{
	double x = INFINITY, y = INFINITY;
	struct edge edge = {1, 1, false, false};
	for (size_t i = 0; i < curves->points; i++) {
		const struct ow_curves_point *p = &curves->point[i];
		x = p->x > 0 ? fmin(x, p->x) : x;
		y = p->y > 0 ? fmin(y, p->y) : y;
		y = p->low > 0 ? fmin(y, p->low) : y;
		edge.x_used |= curves->log_x && p->x <= 0;
		edge.y_used |= curves->log_y && (p->y <= 0 || p->low <= 0);
	}
	if (isfinite(x))
		edge.x = pow(10, floor(log10(x)) - 1);
	if (isfinite(y))
		edge.y = pow(10, floor(log10(y)) - 1);
	return edge;
}

static double shown(double value, bool log_axis, double floor)
{
	return log_axis && value <= 0 ? floor : value;
}

static int by_x(const void *a, const void *b)
{
	const struct ow_curves_point *p = a, *q = b;
	if (p->series != q->series)
		return p->series < q->series ? -1 : 1;
	return (p->x > q->x) - (p->x < q->x);
}

static int put_data(struct ow_chart *chart, const struct ow_curves *curves, const struct edge *edge)
{
	struct ow_curves_point *list = malloc((curves->points + 1) * sizeof *list);
	if (!list)
		return -ENOMEM;
	memcpy(list, curves->point, curves->points * sizeof *list);
	qsort(list, curves->points, sizeof *list, by_x);
	for (size_t i = 0; i < curves->points; i++) {
		const struct ow_curves_point *p = &list[i];
		const double row[] = {shown(p->x, curves->log_x, edge->x), shown(p->y, curves->log_y, edge->y),
		                      shown(p->low, curves->log_y, edge->y), shown(p->high, curves->log_y, edge->y)};
		if (i == 0 || p->series != list[i - 1].series)
			ow_chart_data(chart, "series", p->series);
		ow_chart_numbers(chart, row, 4);
		if (i + 1 == curves->points || p->series != list[i + 1].series)
			ow_chart_data_end(chart);
	}
	free(list);
	return 0;
}

static void put_axis(struct ow_chart *chart, const char *axis, const char *label, bool log_axis, bool zero,
                     double floor)
{
	char what[16];
	snprintf(what, sizeof what, "%slabel", axis);
	ow_chart_set(chart, what, label ? label : "");
	if (!log_axis)
		return;
	fprintf(chart->script, "set logscale %s; set format %s '%%g'\n", axis, axis);
	if (zero)
		fprintf(chart->script, "set %stics add ('0' %.10g); set %srange [%.10g:*]\n", axis, floor, axis, floor);
}

static bool has_spread(const struct ow_curves *curves, size_t series)
{
	for (size_t i = 0; i < curves->points; i++) {
		const struct ow_curves_point *p = &curves->point[i];
		if (p->series == series && (p->low != p->y || p->high != p->y))
			return true;
	}
	return false;
}

/* Bars first, so that the marks are on top of them. */
static void put_series(struct ow_chart *chart, const struct ow_curves *curves)
{
	static const int marks[] = {5, 7, 9, 11, 13}; /* filled: square, circle, triangles, diamond */
	for (size_t i = 0; i < curves->names; i++) {
		if (has_spread(curves, i))
			ow_chart_series(chart, "series", i, "1:2:3:4", "yerrorbars lw 1 pt 0", colours[i % COLOURS],
			                NULL);
	}
	for (size_t i = 0; i < curves->names; i++) {
		char style[64];
		snprintf(style, sizeof style, "linespoints lw 2 pt %d ps 0.7 dt %zu",
		         marks[i % (sizeof marks / sizeof *marks)], i / COLOURS + 1);
		ow_chart_series(chart, "series", i, "1:2", style, colours[i % COLOURS], curves->name[i]);
	}
	ow_chart_plot(chart);
}

int ow_curves_draw(const struct ow_curves *curves, const char *path, struct ow_error *err)
{
	struct ow_chart chart;
	int r = ow_chart_begin(&chart, path, WIDTH_PX, HEIGHT_PX, err);
	if (r < 0)
		return r;
	struct edge edge = find_edge(curves);
	fputs("set key outside right center vertical Left reverse samplen 2\n", chart.script);
	ow_chart_set(&chart, "title", curves->title ? curves->title : "");
	put_axis(&chart, "x", curves->x_label, curves->log_x, edge.x_used, edge.x);
	put_axis(&chart, "y", curves->y_label, curves->log_y, edge.y_used, edge.y);
	r = put_data(&chart, curves, &edge);
	if (r < 0)
		ow_error_set(err, -r, "%s: not enough memory", path);
	else
		put_series(&chart, curves);
	return ow_chart_end(&chart, r, err);
}
