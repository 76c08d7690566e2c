/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Curves as CSV and, by gnuplot, as a picture. A value of 0 has no place on a logarithmic axis, but is what an exact
 * method is proud of: it is drawn on the lower edge, a decade below the smallest value, and the axis says 0 there.
 */
#include "report/chart.h"

#include "report/gnuplot.h"
#include "report/plot.h"
#include "base/format.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 100000
#define SERIES_MAX 64
#define WIDTH_PX   1000
#define HEIGHT_PX  600

/* Told apart also by those who see fewer colours (Okabe and Ito), in the order in which series appear. */
static const char *const colours[] = {"0072b2", "d55e00", "009e73", "cc79a7", "e69f00", "56b4e9", "000000", "999999"};
#define COLOURS (sizeof colours / sizeof *colours)

static int series_of(struct ow_chart *chart, const char *name, size_t *ret_series)
{
	for (size_t i = 0; i < chart->names; i++) {
		if (strcmp(chart->name[i], name) == 0) {
			*ret_series = i;
			return 0;
		}
	}
	if (chart->names == SERIES_MAX)
		return -EINVAL;
	char **list = reallocarray(chart->name, chart->names + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	chart->name = list;
	list[chart->names] = strdup(name);
	if (!list[chart->names])
		return -ENOMEM;
	*ret_series = chart->names++;
	return 0;
}

int ow_chart_add(struct ow_chart *chart, const char *series, double x, double y, double low, double high)
{
	size_t index;
	if (!isfinite(x) || !isfinite(y) || !isfinite(low) || !isfinite(high) || chart->points == POINTS_MAX)
		return -EINVAL;
	int r = series_of(chart, series, &index);
	if (r < 0)
		return r;
	struct ow_chart_point *list = reallocarray(chart->point, chart->points + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	chart->point = list;
	list[chart->points++] = (struct ow_chart_point){index, x, y, low, high};
	return 0;
}

void ow_chart_done(struct ow_chart *chart)
{
	for (size_t i = 0; i < chart->names; i++)
		free(chart->name[i]);
	free(chart->name);
	free(chart->point);
	chart->name = NULL;
	chart->point = NULL;
	chart->names = chart->points = 0;
}

void ow_chart_csv(FILE *out, const struct ow_chart *chart)
{
	fputs("series,x,y,low,high\n", out);
	for (size_t i = 0; i < chart->points; i++) {
		const struct ow_chart_point *p = &chart->point[i];
		ow_format_csv(out, chart->name[p->series]);
		fprintf(out, ",%.10g,%.10g,%.10g,%.10g\n", p->x, p->y, p->low, p->high);
	}
}

/* Where values that a logarithmic axis cannot show are drawn. */
struct edge {
	double x, y;
	bool x_used, y_used;
};

static struct edge find_edge(const struct ow_chart *chart)
{
	double x = INFINITY, y = INFINITY;
	struct edge edge = {1, 1, false, false};
	for (size_t i = 0; i < chart->points; i++) {
		const struct ow_chart_point *p = &chart->point[i];
		x = p->x > 0 ? fmin(x, p->x) : x;
		y = p->y > 0 ? fmin(y, p->y) : y;
		y = p->low > 0 ? fmin(y, p->low) : y;
		edge.x_used |= chart->log_x && p->x <= 0;
		edge.y_used |= chart->log_y && (p->y <= 0 || p->low <= 0);
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
	const struct ow_chart_point *p = a, *q = b;
	if (p->series != q->series)
		return p->series < q->series ? -1 : 1;
	return (p->x > q->x) - (p->x < q->x);
}

static int put_data(FILE *out, const struct ow_chart *chart, const struct edge *edge)
{
	struct ow_chart_point *list = malloc((chart->points + 1) * sizeof *list);
	if (!list)
		return -ENOMEM;
	memcpy(list, chart->point, chart->points * sizeof *list);
	qsort(list, chart->points, sizeof *list, by_x);
	for (size_t i = 0; i < chart->points; i++) {
		const struct ow_chart_point *p = &list[i];
		if (i == 0 || p->series != list[i - 1].series)
			fprintf(out, "$series%zu << EOD\n", p->series);
		fprintf(out, "%.10g %.10g %.10g %.10g\n", shown(p->x, chart->log_x, edge->x),
		        shown(p->y, chart->log_y, edge->y), shown(p->low, chart->log_y, edge->y),
		        shown(p->high, chart->log_y, edge->y));
		if (i + 1 == chart->points || p->series != list[i + 1].series)
			fputs("EOD\n", out);
	}
	free(list);
	return 0;
}

static void put_axis(FILE *out, const char *axis, const char *label, bool log_axis, bool zero, double floor)
{
	fprintf(out, "set %slabel ", axis);
	ow_gnuplot_quote(out, label ? label : "");
	fputc('\n', out);
	if (!log_axis)
		return;
	fprintf(out, "set logscale %s; set format %s '%%g'\n", axis, axis);
	if (zero)
		fprintf(out, "set %stics add ('0' %.10g); set %srange [%.10g:*]\n", axis, floor, axis, floor);
}

static bool has_spread(const struct ow_chart *chart, size_t series)
{
	for (size_t i = 0; i < chart->points; i++) {
		const struct ow_chart_point *p = &chart->point[i];
		if (p->series == series && (p->low != p->y || p->high != p->y))
			return true;
	}
	return false;
}

/* Bars first, so that the marks lie on top of them. */
static void put_curves(FILE *out, const struct ow_chart *chart)
{
	static const int marks[] = {5, 7, 9, 11, 13}; /* filled: square, circle, triangles, diamond */
	const char *join = "plot ";
	for (size_t i = 0; i < chart->names; i++) {
		if (!has_spread(chart, i))
			continue;
		fprintf(out, "%s$series%zu using 1:2:3:4 with yerrorbars lw 1 pt 0 lc rgb '#%s' notitle", join, i,
		        colours[i % COLOURS]);
		join = ", ";
	}
	for (size_t i = 0; i < chart->names; i++) {
		fprintf(out, "%s$series%zu using 1:2 with linespoints lw 2 pt %d ps 0.7 dt %zu lc rgb '#%s' title ",
		        join, i, marks[i % (sizeof marks / sizeof *marks)], i / COLOURS + 1, colours[i % COLOURS]);
		ow_gnuplot_quote(out, chart->name[i]);
		join = ", ";
	}
	fputs(chart->names ? "\n" : "plot [0:1] [0:1] NaN notitle\n", out);
}

int ow_chart_draw(const struct ow_chart *chart, const char *path, struct ow_error *err)
{
	int r = ow_plot_check_name(path, err);
	if (r < 0)
		return r;
	bool svg = ow_gnuplot_is_svg(path);
	FILE *out;
	r = ow_gnuplot_begin(path, &out, err);
	if (r < 0)
		return r;
	struct edge edge = find_edge(chart);
	fprintf(out, "set terminal %s noenhanced size %d,%d font 'sans,%d' background rgb 'white'\n",
	        svg ? "svg" : "pngcairo", WIDTH_PX, HEIGHT_PX, svg ? 13 : 10);
	fputs("set encoding utf8; set border 3 lc rgb '#636363'; set tics nomirror out scale 0.5\n"
	      "set grid back lt 1 lc rgb '#e4e4e4' lw 1; set key outside right center vertical Left reverse samplen 2\n"
	      "set title ",
	      out);
	ow_gnuplot_quote(out, chart->title ? chart->title : "");
	fputc('\n', out);
	put_axis(out, "x", chart->x_label, chart->log_x, edge.x_used, edge.x);
	put_axis(out, "y", chart->y_label, chart->log_y, edge.y_used, edge.y);
	r = put_data(out, chart, &edge);
	if (r < 0) {
		ow_error_set(err, -r, "%s: not enough memory", path);
	} else {
		put_curves(out, chart);
		r = ow_gnuplot_run(out, path, err);
	}
	fclose(out);
	return r;
}
