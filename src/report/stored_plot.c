/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored results as a picture with gnuplot. Each lane has panels of its own: the mean of each bin and, as a band, how
 * far the p99 of its intervals goes; below it loss; below that what was measured at all. A bin is drawn from where its
 * first interval begins to where its last one ends, so that intervals of any length have their place. Where nothing is
 * stored, nothing is drawn.
 */
#include "report/gnuplot.h"
#include "report/interval_render.h"
#include "store/stored_sum.h"
#include "base/format.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Pixels: of the picture, and of each lane's panels from top to bottom. */
#define WIDTH_PX  1200
#define TITLE_PX  40
#define NAME_PX   30
#define DELAY_PX  200
#define LOSS_PX   70
#define STATUS_PX 16
#define SPACE_PX  12
#define AXIS_PX   60
#define LANE_PX   (NAME_PX + DELAY_PX + SPACE_PX + LOSS_PX + SPACE_PX + STATUS_PX + SPACE_PX)
#define LEFT_PX   90
#define RIGHT_PX  150
#define NAME      100

#define DELAY_COLOUR    "#08519c"
#define BAND_COLOUR     "#c1d3e6"
#define LOSS_COLOUR     "#a63603"
#define MEASURED_COLOUR "#74c476"
#define PARTIAL_COLOUR  "#fd8d3c"
#define UNKNOWN_COLOUR  "#cb181d"

struct picture {
	const struct ow_stored *stored;
	const struct ow_stored_sums *sums;
	size_t lane[OW_STORED_PLOT_LANES];
	unsigned lanes;
	int64_t shift_s; /* of local time; gnuplot knows UTC alone */
	char zone[OW_FORMAT];
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
			return ow_error_set(
				err, E2BIG,
				"%s: more than %d lanes do not fit into a picture: choose some with --segment, "
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

static double p99_of(const struct ow_stored_sum *sum)
{
	return sum->p99_ns.count ? sum->p99_ns.high : NAN;
}

/* The highest of a lane's numbers; NAN if it has none, of which gnuplot would draw nothing at all. */
static double highest(const struct picture *p, unsigned k, double (*number)(const struct ow_stored_sum *))
{
	double most = NAN;
	for (size_t i = 0; i < p->sums->count; i++)
		if (p->sums->sum[i].lane == p->lane[k])
			most = fmax(most, number(&p->sums->sum[i]));
	return most;
}

/* The unit of a lane's delays. */
static struct ow_gnuplot_unit unit_of(const struct picture *p, unsigned k)
{
	return ow_gnuplot_unit(fmax(highest(p, k, ow_stored_sum_mean), highest(p, k, p99_of)));
}

/* Columns: middle, begin, end of the bin, mean, highest p99, loss (%), share of measured, partial, unknown. */
static void put_data(FILE *out, const struct picture *p, unsigned k)
{
	int64_t end = INT64_MIN;
	struct ow_gnuplot_unit unit = unit_of(p, k);
	fprintf(out, "$lane%u << EOD\n", k);
	for (size_t i = 0; i < p->sums->count; i++) {
		const struct ow_stored_sum *sum = &p->sums->sum[i];
		if (sum->lane != p->lane[k])
			continue;
		/* After an empty line a new curve begins: curves do not go over what is not there. */
		bool numbers = sum->measured + sum->partial > 0;
		if (end != INT64_MIN && (sum->first_ns > end || !numbers))
			fputc('\n', out);
		end = sum->last_ns;
		double all = (double)sum->intervals + (double)sum->missing;
		put_time(out, p, sum->first_ns / 2 + sum->last_ns / 2);
		put_time(out, p, sum->first_ns);
		put_time(out, p, sum->last_ns);
		put_number(out, ow_stored_sum_mean(sum) / unit.ns);
		put_number(out, p99_of(sum) / unit.ns);
		put_number(out, 100 * ow_stored_sum_loss(sum));
		put_number(out, (double)sum->measured / all);
		put_number(out, (double)sum->partial / all);
		put_number(out, (double)sum->unknown / all);
		fputs(numbers ? "\n" : "\n\n", out);
	}
	fputs("EOD\n", out);
}

static void put_name(FILE *out, const struct picture *p, unsigned k)
{
	size_t lanes;
	const struct ow_stored_lane *lane = ow_stored_lanes(p->stored, &lanes) + p->lane[k];
	struct ow_interval_result names = {0};
	char name[OW_RENDER_LANE];
	memcpy(names.segment, lane->segment, sizeof names.segment);
	memcpy(names.class_name, lane->class_name, sizeof names.class_name);
	memcpy(names.from, lane->from, sizeof names.from);
	memcpy(names.to, lane->to, sizeof names.to);
	ow_render_lane(&names, NAME, false, name);
	ow_gnuplot_quote(out, name);
}

static int height_px(const struct picture *p)
{
	return TITLE_PX + (int)p->lanes * LANE_PX + AXIS_PX;
}

static void put_frame(FILE *out, const struct picture *p, bool svg)
{
	char from[OW_FORMAT], to[OW_FORMAT];
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (size_t i = 0; i < p->sums->count; i++) {
		first = p->sums->sum[i].first_ns < first ? p->sums->sum[i].first_ns : first;
		last = p->sums->sum[i].last_ns > last ? p->sums->sum[i].last_ns : last;
	}
	fprintf(out, "set terminal %s noenhanced size %d,%d font 'sans,%d' background rgb 'white'\n",
	        svg ? "svg" : "pngcairo", WIDTH_PX, height_px(p), svg ? 13 : 10);
	fputs("set border 3 lc rgb '#636363'; set tics nomirror out scale 0.5\nset multiplot\n", out);
	fprintf(out, "set lmargin at screen %.6f; set rmargin at screen %.6f\n", (double)LEFT_PX / WIDTH_PX,
	        1 - (double)RIGHT_PX / WIDTH_PX);
	fprintf(out, "set xrange [%.3f:%.3f]; set xtics time\n", (double)first / 1e9 + (double)p->shift_s,
	        (double)last / 1e9 + (double)p->shift_s);
	char title[2 * OW_FORMAT + 60];
	snprintf(title, sizeof title, "One-way delay and loss, %s to %s %s",
	         ow_format_local(first, "%Y-%m-%d %H:%M", from), ow_format_local(last, "%Y-%m-%d %H:%M", to), p->zone);
	fputs("set label 1 ", out);
	ow_gnuplot_quote(out, title);
	fprintf(out, " at screen 0.5, screen %.6f center\n", 1 - TITLE_PX / 2.0 / height_px(p));
}

/* A panel's place: pixels from the top. */
static void put_panel(FILE *out, const struct picture *p, int top, int height)
{
	fprintf(out, "set tmargin at screen %.6f; set bmargin at screen %.6f\n", 1 - (double)top / height_px(p),
	        1 - (double)(top + height) / height_px(p));
}

/* The legend is beside the first lane: all have the same colours. */
static void put_key(FILE *out, const struct picture *p, unsigned k, int top)
{
	if (k == 0)
		fprintf(out, "set key at screen %.6f, screen %.6f left top vertical Left reverse samplen 2\n",
		        1 - (RIGHT_PX - 10.0) / WIDTH_PX, 1 - (double)top / height_px(p));
	else
		fputs("unset key\n", out);
}

static void put_legend(FILE *out)
{
	static const char *const entry[][2] = {
		{"mean to p99", BAND_COLOUR}, {"loss", LOSS_COLOUR},       {"measured", MEASURED_COLOUR},
		{"partial", PARTIAL_COLOUR},  {"unknown", UNKNOWN_COLOUR},
	};
	fputs("NaN with lines lw 2.5 lc rgb '" DELAY_COLOUR "' title 'mean'", out);
	for (size_t i = 0; i < sizeof entry / sizeof *entry; i++)
		fprintf(out, ", NaN with points pt 5 ps 1.5 lc rgb '%s' title '%s'", entry[i][1], entry[i][0]);
	fputc('\n', out);
}

/* A round step of which `most` has one to four. */
static double step_of(double most)
{
	double ten = pow(10, floor(log10(most)));
	return most / ten < 2 ? ten / 2 : most / ten < 4 ? ten : 2 * ten;
}

static void put_nothing(FILE *out, const char *what)
{
	fprintf(out,
	        "set yrange [0:1]; unset ytics; set label 3 '%s' at graph 0.5, graph 0.5 center tc rgb '#636363'\n"
	        "plot ",
	        what);
	put_legend(out);
	fputs("unset label 1; unset label 2; unset label 3; unset key\n", out);
}

static void put_delay(FILE *out, const struct picture *p, unsigned k, int top)
{
	put_panel(out, p, top, DELAY_PX);
	put_key(out, p, k, top);
	fputs("set label 2 ", out);
	put_name(out, p, k);
	fprintf(out, " at graph 0, screen %.6f left offset 0,0.7\n", 1 - (double)top / height_px(p));
	fprintf(out,
	        "set format x ''; set ylabel 'delay, %s'; set yrange [*:*]; set ytics nomirror autofreq\n"
	        "set grid back lt 1 lc rgb '#e4e4e4' lw 1; set style fill solid 1 noborder\n",
	        unit_of(p, k).name);
	if (isnan(highest(p, k, ow_stored_sum_mean))) {
		put_nothing(out, "no delays");
		return;
	}
	fprintf(out,
	        "plot $lane%u using 1:4:2:3:4:5 with boxxyerror lc rgb '" BAND_COLOUR "' notitle, \\\n"
	        "$lane%u using 1:4 with lines lw 1 lc rgb '" DELAY_COLOUR "' notitle, \\\n"
	        "$lane%u using 2:4:($3-$2):(0) with vectors nohead lw 2.5 lc rgb '" DELAY_COLOUR "' notitle, ",
	        k, k, k);
	put_legend(out);
	fputs("unset label 1; unset label 2; unset key\n", out);
}

static void put_loss(FILE *out, const struct picture *p, unsigned k, int top)
{
	put_panel(out, p, top, LOSS_PX);
	fputs("set ylabel 'loss, %'; set style fill solid 0.8 noborder\n", out);
	double most = 100 * highest(p, k, ow_stored_sum_loss);
	if (isnan(most)) {
		put_nothing(out, "no packets");
		return;
	}
	/* Without any loss the axis goes up to 0.1 %. */
	most = fmax(most, 0.1);
	fprintf(out,
	        "set yrange [0:%g]; set ytics nomirror 0,%g\n"
	        "plot $lane%u using 1:6:2:3:(0):6 with boxxyerror lc rgb '" LOSS_COLOUR "'\n",
	        1.05 * most, step_of(most), k);
}

/* From bottom to top the shares of unknown, partial and measured intervals; each that there is can be seen. */
static void put_status(FILE *out, const struct picture *p, unsigned k, int top)
{
	put_panel(out, p, top, STATUS_PX);
	fputs("unset ylabel; set yrange [0:1]; unset ytics; unset grid; set style fill solid 1 noborder\n"
	      "seen(x) = x > 0 && x < 0.3 ? 0.3 : x\n",
	      out);
	if (k + 1 == p->lanes)
		fprintf(out, "set format x \"%%H:%%M:%%S\\n%%m-%%d\"; set xlabel '%s'\n", p->zone);
	fprintf(out,
	        "plot $lane%u using 1:(0):2:3:(0):($7+$8+$9) with boxxyerror lc rgb '" MEASURED_COLOUR "', \\\n"
	        "$lane%u using 1:(0):2:3:(0):(seen($9)+seen($8)) with boxxyerror lc rgb '" PARTIAL_COLOUR "', \\\n"
	        "$lane%u using 1:(0):2:3:(0):(seen($9)) with boxxyerror lc rgb '" UNKNOWN_COLOUR "'\n",
	        k, k, k);
}

static void put_lane(FILE *out, const struct picture *p, unsigned k)
{
	int top = TITLE_PX + (int)k * LANE_PX + NAME_PX;
	put_delay(out, p, k, top);
	top += DELAY_PX + SPACE_PX;
	put_loss(out, p, k, top);
	put_status(out, p, k, top + LOSS_PX + SPACE_PX);
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
	ow_format_local(sums->sum[0].start_ns, "%Z", p.zone);
	for (unsigned k = 0; k < p.lanes; k++)
		put_data(script, &p, k);
	put_frame(script, &p, ow_gnuplot_is_svg(path));
	for (unsigned k = 0; k < p.lanes; k++)
		put_lane(script, &p, k);
	fputs("unset multiplot\n", script);
	r = ow_gnuplot_run(script, path, err);
	fclose(script);
	return r;
}
