/* SPDX-License-Identifier: Apache-2.0 */
/* The lab's picture: lines are the truth, marks are the measured values. Delay above, lost packets below. */
#include "lab/lab.h"
#include "report/gnuplot.h"
#include "base/array.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WIDTH_PX  1000
#define HEIGHT_PX 640

struct row {
	double seconds;
	enum ow_direction direction;
	double mean[2], p99[2], lost[2]; /* true, measured; NAN = not known */
};

struct ow_lab_plot {
	struct row *row;
	size_t count, size;
};

static void fill(struct row *to, const struct ow_lab_row *from, int64_t start_ns)
{
	const struct ow_lab_measured *m = from->measured;
	*to = (struct row){.seconds = (double)(m->start_ns - start_ns) / 1e9,
	                   .direction = from->direction,
	                   .mean = {NAN, NAN},
	                   .p99 = {NAN, NAN},
	                   .lost = {NAN, NAN}};
	if (from->truth) {
		const struct ow_result *truth = &from->truth->result;
		to->lost[0] = (double)truth->lost;
		to->mean[0] = truth->delay.samples ? truth->delay.mean_ns / 1e6 : NAN;
		to->p99[0] = truth->delay.samples ? truth->delay.quantile_ns[OW_Q99] / 1e6 : NAN;
	}
	if (!m->unknown)
		to->lost[1] = (double)m->result.lost;
	if (m->has_delay) {
		to->mean[1] = m->result.delay.mean_ns / 1e6;
		to->p99[1] = m->result.delay.quantile_ns[OW_Q99] / 1e6;
	}
}

int ow_lab_plot_create(struct ow_lab_plot **ret_plot)
{
	struct ow_lab_plot *plot = calloc(1, sizeof *plot);
	if (!plot)
		return -ENOMEM;
	*ret_plot = plot;
	return 0;
}

void ow_lab_plot_free(struct ow_lab_plot *plot)
{
	if (plot)
		free(plot->row);
	free(plot);
}

int ow_lab_plot_add(struct ow_lab_plot *plot, const struct ow_lab_row *row, int64_t start_ns)
{
	if (OW_GROW(plot->row, plot->size, plot->count + 1) < 0)
		return -ENOMEM;
	fill(&plot->row[plot->count++], row, start_ns);
	return 0;
}

/* The range of the means, true and measured, on one scale. false: there are none. */
static bool find_range(const struct ow_lab_plot *plot, enum ow_direction direction, double *ret_low, double *ret_high)
{
	*ret_low = INFINITY;
	*ret_high = -INFINITY;
	for (size_t i = 0; i < plot->count; i++) {
		for (int k = 0; plot->row[i].direction == direction && k < 2; k++) {
			double value = plot->row[i].mean[k];
			*ret_low = isfinite(value) ? fmin(*ret_low, value) : *ret_low;
			*ret_high = isfinite(value) ? fmax(*ret_high, value) : *ret_high;
		}
	}
	/* Differences of less than a tenth are not enlarged. */
	*ret_low = fmin(*ret_low, 0.9 * *ret_high);
	return isfinite(*ret_high);
}

/* The last `columns` intervals of one direction. */
static void put_spark(FILE *out, const struct ow_lab_plot *plot, enum ow_direction direction, int kind, double low,
                      double high, unsigned columns, bool utf8)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const letters[] = {"_", ".", "-", "=", "+", "*", "%", "#"};
	size_t skip = 0;
	for (size_t i = 0; i < plot->count; i++)
		skip += plot->row[i].direction == direction;
	skip = skip > columns ? skip - columns : 0;
	for (size_t i = 0; i < plot->count; i++) {
		double value = plot->row[i].mean[kind];
		if (plot->row[i].direction != direction || (skip && skip--))
			continue;
		int level = high > low && isfinite(value) ? (int)(7.999 * (value - low) / (high - low)) : 0;
		fputs(!isfinite(value) ? " " : utf8 ? blocks[level] : letters[level], out);
	}
}

void ow_lab_plot_sparks(const struct ow_lab_plot *plot, FILE *out, unsigned width, bool utf8)
{
	static const char *const names[] = {"true", "measured"};
	for (int way = 0; way < OW_DIRECTIONS; way++) {
		double low, high;
		if (!find_range(plot, (enum ow_direction)way, &low, &high))
			continue;
		fprintf(out, "\nmean %s, %.3g to %.3g ms\n", way ? "B to A" : "A to B", low, high);
		for (int kind = 1; kind >= 0; kind--) {
			fprintf(out, "  %-12s ", names[kind]);
			put_spark(out, plot, (enum ow_direction)way, kind, low, high, width > 30 ? width - 16 : 14,
			          utf8);
			fputc('\n', out);
		}
	}
}

static void put_number(FILE *out, double value)
{
	if (isfinite(value))
		fprintf(out, " %.9g", value);
	else
		fputs(" NaN", out);
}

static bool put_data(FILE *out, const struct ow_lab_plot *plot, enum ow_direction direction)
{
	bool any = false;
	fprintf(out, "$way%d << EOD\n", (int)direction);
	for (size_t i = 0; i < plot->count; i++) {
		const struct row *row = &plot->row[i];
		if (row->direction != direction)
			continue;
		put_number(out, row->seconds);
		for (int k = 0; k < 2; k++) {
			put_number(out, row->mean[k]);
			put_number(out, row->p99[k]);
			put_number(out, row->lost[k]);
		}
		fputc('\n', out);
		any = true;
	}
	fputs("EOD\n", out);
	return any;
}

/* Columns: 2 3 4 are true mean, p99 and lost, 5 6 7 the measured ones. */
static void put_curve(FILE *out, int way, int column, int mark, const char *dark, const char *light, const char *name,
                      const char **join)
{
	fprintf(out, "%s$way%d using 1:%d with lines lw 4 lc rgb '#%s' title '%s %s, true'", *join, way, column, light,
	        way ? "B to A" : "A to B", name);
	*join = ", \\\n";
	fprintf(out, "%s$way%d using 1:%d with points pt %d ps 0.8 lc rgb '#%s' title '%s %s, measured'", *join, way,
	        column + 3, mark, dark, way ? "B to A" : "A to B", name);
}

static void put_script(FILE *out, const struct ow_lab_plot *plot, bool svg)
{
	bool there[OW_DIRECTIONS];
	for (int i = 0; i < OW_DIRECTIONS; i++)
		there[i] = put_data(out, plot, (enum ow_direction)i);
	fprintf(out, "set terminal %s noenhanced size %d,%d font 'sans,%d' background rgb 'white'\n",
	        svg ? "svg" : "pngcairo", WIDTH_PX, HEIGHT_PX, svg ? 13 : 10);
	fputs("set border 3 lc rgb '#636363'; set tics nomirror out scale 0.5\n"
	      "set grid back lt 1 lc rgb '#e4e4e4' lw 1; set key outside right center vertical Left reverse samplen 2\n"
	      "set multiplot; set lmargin 10; set rmargin 32\n"
	      "set size 1,0.62; set origin 0,0.38; set title 'What the points measured, and what the wire did'\n"
	      "set logscale y; set ylabel 'one-way delay, ms'; set format x ''\n",
	      out);
	static const char *const dark[2][2] = {{"08519c", "54278f"}, {"006d2c", "a63603"}};
	static const char *const light[2][2] = {{"9ecae1", "bcbddc"}, {"a1d99b", "fdae6b"}};
	const char *join = "plot ";
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		if (!there[i])
			continue;
		put_curve(out, i, 2, 7, dark[i][0], light[i][0], "mean", &join);
		put_curve(out, i, 3, 5, dark[i][1], light[i][1], "p99", &join);
	}
	fputs("\nset size 1,0.38; set origin 0,0; unset title; unset logscale y; set yrange [0:*]\n"
	      "set ylabel 'packets lost'; set xlabel 'start of the interval, s'; set format x '%g'\n",
	      out);
	join = "plot ";
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		if (there[i])
			put_curve(out, i, 4, 7, dark[i][0], light[i][0], "lost", &join);
	}
	fputs("\nunset multiplot\n", out);
}

int ow_lab_plot_write(const struct ow_lab_plot *plot, const char *path, struct ow_error *err)
{
	FILE *script;
	if (!plot->count)
		return ow_error_set(err, ENODATA, "%s: no interval to draw", path);
	int r = ow_gnuplot_begin(path, &script, err);
	if (r < 0)
		return r;
	put_script(script, plot, ow_gnuplot_is_svg(path));
	r = ow_gnuplot_run(script, path, err);
	fclose(script);
	return r;
}
