/* SPDX-License-Identifier: Apache-2.0 */
/* The lab's picture: lines are the truth, marks are the measured values. Delay above, lost packets below. */
#include "lab/lab.h"
#include "report/chart.h"
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

/* Columns: start; true mean, p99 and lost; the same as measured. */
static bool put_data(struct ow_chart *chart, const struct ow_lab_plot *plot, enum ow_direction direction)
{
	bool any = false;
	ow_chart_data(chart, "way", direction);
	for (size_t i = 0; i < plot->count; i++) {
		const struct row *r = &plot->row[i];
		const double row[] = {r->seconds, r->mean[0], r->p99[0], r->lost[0], r->mean[1], r->p99[1], r->lost[1]};
		if (r->direction != direction)
			continue;
		ow_chart_numbers(chart, row, sizeof row / sizeof *row);
		any = true;
	}
	ow_chart_data_end(chart);
	return any;
}

static void put_curve(struct ow_chart *chart, int way, int column, int mark, const char *dark, const char *light,
                      const char *name)
{
	char columns[16], style[32], title[40];
	snprintf(columns, sizeof columns, "1:%d", column);
	snprintf(title, sizeof title, "%s %s, true", way ? "B to A" : "A to B", name);
	ow_chart_series(chart, "way", (size_t)way, columns, "lines lw 4", light, title);
	snprintf(columns, sizeof columns, "1:%d", column + 3);
	snprintf(style, sizeof style, "points pt %d ps 0.8", mark);
	snprintf(title, sizeof title, "%s %s, measured", way ? "B to A" : "A to B", name);
	ow_chart_series(chart, "way", (size_t)way, columns, style, dark, title);
}

int ow_lab_plot_write(const struct ow_lab_plot *plot, const char *path, struct ow_error *err)
{
	static const char *const dark[2][2] = {{"08519c", "54278f"}, {"006d2c", "a63603"}};
	static const char *const light[2][2] = {{"9ecae1", "bcbddc"}, {"a1d99b", "fdae6b"}};
	struct ow_chart chart;
	bool there[OW_DIRECTIONS];
	if (!plot->count)
		return ow_error_set(err, ENODATA, "%s: no interval to draw", path);
	int r = ow_chart_begin(&chart, path, WIDTH_PX, HEIGHT_PX, err);
	if (r < 0)
		return r;
	for (int i = 0; i < OW_DIRECTIONS; i++)
		there[i] = put_data(&chart, plot, (enum ow_direction)i);
	fputs("set key outside right center vertical Left reverse samplen 2\n"
	      "set multiplot; set lmargin 10; set rmargin 32\n"
	      "set size 1,0.62; set origin 0,0.38; set title 'What the points measured, and what the wire did'\n"
	      "set logscale y; set ylabel 'one-way delay, ms'; set format x ''\n",
	      chart.script);
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		if (!there[i])
			continue;
		put_curve(&chart, i, 2, 7, dark[i][0], light[i][0], "mean");
		put_curve(&chart, i, 3, 5, dark[i][1], light[i][1], "p99");
	}
	ow_chart_plot(&chart);
	fputs("set size 1,0.38; set origin 0,0; unset title; unset logscale y; set yrange [0:*]\n"
	      "set ylabel 'packets lost'; set xlabel 'start of the interval, s'; set format x '%g'\n",
	      chart.script);
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		if (there[i])
			put_curve(&chart, i, 4, 7, dark[i][0], light[i][0], "lost");
	}
	ow_chart_plot(&chart);
	fputs("unset multiplot\n", chart.script);
	return ow_chart_end(&chart, 0, err);
}
