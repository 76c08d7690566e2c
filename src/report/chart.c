/* SPDX-License-Identifier: Apache-2.0 */
/* Texts are in single quotes, in which gnuplot interprets only the quote itself, with `noenhanced`. */
#include "report/chart.h"

#include "report/gnuplot.h"
#include <errno.h>
#include <math.h>
#include <string.h>

static bool has_ending(const char *path, const char *ending)
{
	size_t length = strlen(path), n = strlen(ending);
	return length > n && strcmp(path + length - n, ending) == 0;
}

int ow_chart_check_name(const char *path, struct ow_error *err)
{
	if (has_ending(path, ".svg") || has_ending(path, ".png"))
		return 0;
	return ow_error_set(err, EINVAL, "'%.200s' does not end in .svg or .png", path);
}

int ow_chart_begin(struct ow_chart *chart, const char *path, int width, int height, struct ow_error *err)
{
	bool svg = has_ending(path, ".svg");
	*chart = (struct ow_chart){.path = path, .width = width, .height = height};
	int r = ow_chart_check_name(path, err);
	if (r == 0)
		r = ow_gnuplot_begin(path, &chart->script, err);
	if (r < 0)
		return r;
	fprintf(chart->script, "set terminal %s noenhanced size %d,%d font 'sans,%d' background rgb 'white'\n",
	        svg ? "svg" : "pngcairo", width, height, svg ? 13 : 10);
	fputs("set encoding utf8; set border 3 lc rgb '#" OW_CHART_GREY "'; set tics " OW_CHART_TICS "\n" OW_CHART_GRID,
	      chart->script);
	return 0;
}

/* Bytes at the end of a complete plot. */
static const char *trailer_of(const struct ow_chart *chart)
{
	return has_ending(chart->path, ".svg") ? "</svg>" : "IEND";
}

int ow_chart_end(struct ow_chart *chart, int r, struct ow_error *err)
{
	if (r == 0)
		r = ow_gnuplot_run(chart->script, chart->path, trailer_of(chart), err);
	fclose(chart->script);
	return r;
}

int ow_chart_end_in_memory(struct ow_chart *chart, int r, int *ret_picture, struct ow_error *err)
{
	if (r == 0)
		r = ow_gnuplot_draw(chart->script, chart->path, trailer_of(chart), ret_picture, err);
	fclose(chart->script);
	return r;
}

struct ow_chart_unit ow_chart_unit(double ns)
{
	static const struct ow_chart_unit units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (ns >= units[i].ns)
			return units[i];
	}
	return (struct ow_chart_unit){"ns", 1};
}

static void put_quoted(FILE *script, const char *text)
{
	fputc('\'', script);
	for (; *text; text++) {
		if (*text == '\'')
			fputc('\'', script);
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, script);
	}
	fputc('\'', script);
}

void ow_chart_data(struct ow_chart *chart, const char *name, size_t number)
{
	fprintf(chart->script, "$%s%zu << EOD\n", name, number);
}

void ow_chart_numbers(struct ow_chart *chart, const double *value, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (isfinite(value[i]))
			fprintf(chart->script, "%.15g ", value[i]);
		else
			fputs("NaN ", chart->script);
	}
	fputc('\n', chart->script);
}

void ow_chart_data_end(struct ow_chart *chart)
{
	fputs("EOD\n", chart->script);
}

void ow_chart_panel(struct ow_chart *chart, double left, double right, double top, double bottom)
{
	fprintf(chart->script, "set lmargin at screen %.6f; set rmargin at screen %.6f\n", left, right);
	fprintf(chart->script, "set tmargin at screen %.6f; set bmargin at screen %.6f\n", 1 - top, 1 - bottom);
}

void ow_chart_set(struct ow_chart *chart, const char *what, const char *text)
{
	fprintf(chart->script, "set %s ", what);
	put_quoted(chart->script, text);
	fputc('\n', chart->script);
}

void ow_chart_label(struct ow_chart *chart, int number, const char *text, const char *at)
{
	fprintf(chart->script, "set label %d ", number);
	put_quoted(chart->script, text);
	fprintf(chart->script, " at %s\n", at);
}

void ow_chart_series(struct ow_chart *chart, const char *data, size_t number, const char *columns, const char *style,
                     const char *colour, const char *title)
{
	fprintf(chart->script, "%s$%s%zu using %s with %s lc rgb '#%s' ", chart->plotting ? ", " : "plot ", data,
	        number, columns, style, colour);
	chart->plotting = true;
	if (!title) {
		fputs("notitle", chart->script);
		return;
	}
	fputs("title ", chart->script);
	put_quoted(chart->script, title);
}

void ow_chart_plot(struct ow_chart *chart)
{
	fputs(chart->plotting ? "\n" : "plot [0:1] [0:1] NaN notitle\n", chart->script);
	chart->plotting = false;
}
