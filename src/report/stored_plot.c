/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored results as a picture with gnuplot: on top the mean of each bin and, as a band, how far the p99 of its
 * intervals goes; then loss; at the bottom, a row a lane, what was measured at all. Where nothing is stored, nothing is
 * drawn.
 */
#include "report/gnuplot.h"
#include "report/live.h"
#include "report/stored_sum.h"
#include "report/words.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WIDTH_PX  1200
#define HEIGHT_PX 800
#define NAME      40

static const char *const colours[OW_STORED_PLOT_LANES] = {"#08519c", "#a63603", "#006d2c",
                                                          "#54278f", "#7f6000", "#7a0177"};

struct picture {
	const struct ow_stored *stored;
	const struct ow_stored_sums *sums;
	size_t lane[OW_STORED_PLOT_LANES];
	unsigned lanes;
	int64_t shift_s; /* of local time; gnuplot knows UTC alone */
	char zone[OW_WORDS];
};

static int find_lanes(struct picture *p, const char *path, struct ow_error *err)
{
	for (size_t i = 0; i < p->sums->count; i++) {
		unsigned k = 0;
		while (k < p->lanes && p->lane[k] != p->sums->sum[i].lane)
			k++;
		if (k < p->lanes)
			continue;
		if (p->lanes == OW_STORED_PLOT_LANES)
			return ow_error_set(err, E2BIG,
			                    "%s: more than %d lanes cannot be told apart: choose some with --segment, "
			                    "--class, --from and --to",
			                    path, OW_STORED_PLOT_LANES);
		p->lane[p->lanes++] = p->sums->sum[i].lane;
	}
	return p->lanes ? 0 : ow_error_set(err, ENODATA, "%s: nothing to draw", path);
}

static void put_number(FILE *out, double value)
{
	if (isfinite(value))
		fprintf(out, " %.9g", value);
	else
		fputs(" NaN", out);
}

static void put_time(FILE *out, const struct picture *p, int64_t ns)
{
	fprintf(out, " %.3f", (double)ns / 1e9 + (double)p->shift_s);
}

/* Columns: middle, start, end of the bin, mean, highest p99 (ms), loss (%), share of measured, partial, unknown. */
static void put_data(FILE *out, const struct picture *p, unsigned k)
{
	int64_t end = INT64_MIN;
	fprintf(out, "$lane%u << EOD\n", k);
	for (size_t i = 0; i < p->sums->count; i++) {
		const struct ow_stored_sum *sum = &p->sums->sum[i];
		if (sum->lane != p->lane[k])
			continue;
		/* An empty line: curves do not go over what is not there. */
		bool numbers = sum->measured + sum->partial > 0;
		if (end != INT64_MIN && (sum->start_ns > end || !numbers))
			fputc('\n', out);
		end = sum->end_ns;
		double all = (double)sum->intervals;
		put_time(out, p, sum->start_ns / 2 + sum->end_ns / 2);
		put_time(out, p, sum->start_ns);
		put_time(out, p, sum->end_ns);
		put_number(out, ow_stored_sum_mean(sum) / 1e6);
		put_number(out, sum->p99_ns.count ? sum->p99_ns.high / 1e6 : NAN);
		put_number(out, 100 * ow_stored_sum_loss(sum));
		put_number(out, (double)sum->measured / all);
		put_number(out, (double)sum->partial / all);
		put_number(out, (double)sum->unknown / all);
		fputs(numbers ? "\n" : "\n\n", out);
	}
	fputs("EOD\n", out);
}

static void put_title(FILE *out, const struct picture *p, unsigned k, const char *what)
{
	size_t lanes;
	const struct ow_stored_lane *lane = ow_stored_lanes(p->stored, &lanes) + p->lane[k];
	struct ow_live_result names = {0};
	char name[OW_LIVE_LANE], title[OW_LIVE_LANE + 20];
	memcpy(names.segment, lane->segment, sizeof names.segment);
	memcpy(names.class_name, lane->class_name, sizeof names.class_name);
	memcpy(names.from, lane->from, sizeof names.from);
	memcpy(names.to, lane->to, sizeof names.to);
	ow_live_lane(&names, NAME, false, name);
	snprintf(title, sizeof title, "%s%s", name, what);
	ow_gnuplot_quote(out, title);
}

static void put_frame(FILE *out, const struct picture *p, bool svg)
{
	char from[OW_WORDS], to[OW_WORDS];
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (size_t i = 0; i < p->sums->count; i++) {
		first = p->sums->sum[i].start_ns < first ? p->sums->sum[i].start_ns : first;
		last = p->sums->sum[i].end_ns > last ? p->sums->sum[i].end_ns : last;
	}
	fprintf(out, "set terminal %s noenhanced size %d,%d font 'sans,%d' background rgb 'white'\n",
	        svg ? "svg" : "pngcairo", WIDTH_PX, HEIGHT_PX, svg ? 13 : 10);
	fputs("set border 3 lc rgb '#636363'; set tics nomirror out scale 0.5\n"
	      "set grid back lt 1 lc rgb '#e4e4e4' lw 1; set key outside right top vertical Left reverse samplen 2\n"
	      "set multiplot; set lmargin 11; set rmargin 36; set xdata time; set timefmt '%s'\n",
	      out);
	fprintf(out, "set xrange ['%.3f':'%.3f']\n", (double)first / 1e9 + (double)p->shift_s,
	        (double)last / 1e9 + (double)p->shift_s);
	fputs("set size 1,0.50; set origin 0,0.48; set title ", out);
	char title[2 * OW_WORDS + 60];
	snprintf(title, sizeof title, "One-way delay and loss, %s to %s %s",
	         ow_words_local(first, "%Y-%m-%d %H:%M", from), ow_words_local(last, "%Y-%m-%d %H:%M", to), p->zone);
	ow_gnuplot_quote(out, title);
	fputs("\nset format x ''; set ylabel 'one-way delay, ms'\nset style fill transparent solid 0.25 noborder\n",
	      out);
}

static void put_delay(FILE *out, const struct picture *p)
{
	const char *join = "plot ";
	for (unsigned k = 0; k < p->lanes; k++, join = ", \\\n") {
		fprintf(out, "%s$lane%u using 1:4:2:3:4:5 with boxxyerror lc rgb '%s' title ", join, k, colours[k]);
		put_title(out, p, k, ": to p99");
		fprintf(out, ", \\\n$lane%u using 1:4 with linespoints pt 7 ps 0.2 lw 1.5 lc rgb '%s' title ", k,
		        colours[k]);
		put_title(out, p, k, ": mean");
	}
	fputc('\n', out);
}

static void put_loss(FILE *out, const struct picture *p)
{
	const char *join = "plot ";
	fputs("unset title; set size 1,0.27; set origin 0,0.22; set ylabel 'loss, %'; set yrange [0:*]\n"
	      "set style fill transparent solid 0.6 noborder\n",
	      out);
	for (unsigned k = 0; k < p->lanes; k++, join = ", \\\n") {
		fprintf(out, "%s$lane%u using 1:6:2:3:(0):6 with boxxyerror lc rgb '%s' title ", join, k, colours[k]);
		put_title(out, p, k, ": loss");
	}
	fputc('\n', out);
}

/* A row a lane: from bottom to top as large as the shares of unknown, partial and measured. What is not measured can be
 * seen, however short it was. */
static void put_status(FILE *out, const struct picture *p)
{
	const char *join = "plot ";
	fputs("set size 1,0.22; set origin 0,0; set ylabel 'measured'; set style fill solid 0.8 noborder\n"
	      "set format x \"%H:%M:%S\\n%m-%d\"; unset grid; seen(x) = x > 0 && x < 0.2 ? 0.2 : x\n",
	      out);
	fprintf(out, "set yrange [0:%u]; unset ytics; set xlabel '%s'\n", p->lanes, p->zone);
	for (unsigned k = 0; k < p->lanes; k++, join = ", \\\n") {
		unsigned y = p->lanes - 1 - k;
		fprintf(out,
		        "%s$lane%u using 1:(%u):2:3:(%u):(%u+0.9*seen($9)) with boxxyerror lc rgb '#cb181d' %s, \\\n"
		        "$lane%u using 1:(%u):2:3:(%u+0.9*seen($9)):(%u+0.9*(seen($9)+seen($8))) with boxxyerror lc "
		        "rgb '#fd8d3c' %s, \\\n"
		        "$lane%u using 1:(%u):2:3:(%u+0.9*(seen($9)+seen($8))):(%u+0.9) with boxxyerror lc rgb "
		        "'#74c476' title ",
		        join, k, y, y, y, k ? "notitle" : "title 'unknown'", k, y, y, y,
		        k ? "notitle" : "title 'partial'", k, y, y, y);
		put_title(out, p, k, ": measured");
	}
	fputs("\nunset multiplot\n", out);
}

int ow_stored_plot(const char *path, const struct ow_stored *stored, const struct ow_stored_sums *sums,
                   struct ow_error *err)
{
	struct picture p = {.stored = stored, .sums = sums};
	FILE *script;
	int r = find_lanes(&p, path, err);
	if (r < 0 || (r = ow_gnuplot_begin(path, &script, err)) < 0)
		return r;
	time_t start = (time_t)(sums->sum[0].start_ns / 1000000000);
	struct tm tm = {0};
	localtime_r(&start, &tm);
	p.shift_s = tm.tm_gmtoff;
	ow_words_local(sums->sum[0].start_ns, "%Z", p.zone);
	for (unsigned k = 0; k < p.lanes; k++)
		put_data(script, &p, k);
	put_frame(script, &p, ow_gnuplot_is_svg(path));
	put_delay(script, &p);
	put_loss(script, &p);
	put_status(script, &p);
	r = ow_gnuplot_run(script, path, err);
	fclose(script);
	return r;
}
