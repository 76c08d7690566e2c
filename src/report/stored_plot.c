/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored results as a plot with gnuplot. Each lane has its own panels: the mean of each bin and, as a band, the range
 * up to the p99 of its intervals; below it the loss, that of whole flows in a lighter colour; below that the status. A bin is drawn from the start of its first
 * interval to the end of its last one, so that intervals of any length are at their place. Times without stored results
 * are empty.
 */
#include "report/chart.h"
#include "report/interval_render.h"
#include "store/stored_sum.h"
#include "base/format.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* Pixels: of the plot, and of each lane's panels from top to bottom. */
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

#define DELAY_COLOUR    "08519c"
#define BAND_COLOUR     "c1d3e6"
#define LOSS_COLOUR     "a63603"
#define WHOLE_COLOUR    "9e9ac8"
#define MEASURED_COLOUR "74c476"
#define PARTIAL_COLOUR  "fd8d3c"
#define UNKNOWN_COLOUR  "cb181d"

struct picture {
	const struct ow_stored *stored;
	const struct ow_stored_sums *sums;
	size_t lane[OW_STORED_PLOT_LANES];
	unsigned lanes;
	int64_t shift_s; /* of local time, because gnuplot knows only UTC */
	char zone[OW_FORMAT];
	struct ow_chart chart;
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
				"%s: more than %d lanes do not fit into a plot: select some with --segment, "
				"--class, --from and --to",
				path, OW_STORED_PLOT_LANES);
		p->lane[p->lanes++] = p->sums->sum[i].lane;
	}
	return p->lanes ? 0 : ow_error_set(err, ENODATA, "%s: nothing to plot", path);
}

/* Without histograms that of the worst interval. */
static double p99_of(const struct ow_stored_sum *sum)
{
	struct ow_value p99 = ow_stored_sum_quantile(sum, ow_quantile_level[OW_Q99]);
	if (p99.status != OW_VALUE_NONE)
		return p99.value;
	return sum->p99_ns.count ? sum->p99_ns.high : NAN;
}

/* The largest of a lane's numbers; NAN if it has none, because gnuplot would then draw nothing at all. */
static double highest(const struct picture *p, unsigned k, double (*number)(const struct ow_stored_sum *))
{
	double most = NAN;
	for (size_t i = 0; i < p->sums->count; i++)
		if (p->sums->sum[i].lane == p->lane[k])
			most = fmax(most, number(&p->sums->sum[i]));
	return most;
}

/* The unit of a lane's delays. */
static struct ow_chart_unit unit_of(const struct picture *p, unsigned k)
{
	return ow_chart_unit(fmax(highest(p, k, ow_stored_sum_mean), highest(p, k, p99_of)));
}

static double local_s(const struct picture *p, int64_t ns)
{
	return (double)ns / 1e9 + (double)p->shift_s;
}

/* The part of the loss that is of whole flows. */
static double whole_loss(const struct ow_stored_sum *sum)
{
	struct ow_interval_result n = {.length_ns = 0};
	ow_stored_sum_counts(sum, &n);
	return n.lost ? ow_stored_sum_loss(sum) * (double)n.lost_whole_flows / (double)n.lost : 0;
}

/* Columns: middle, begin, end of the bin, mean, p99, loss (%), share of measured, partial, unknown,
 * and the loss of whole flows (%). */
static void put_data(struct picture *p, unsigned k)
{
	int64_t end = INT64_MIN;
	struct ow_chart_unit unit = unit_of(p, k);
	ow_chart_data(&p->chart, "lane", k);
	for (size_t i = 0; i < p->sums->count; i++) {
		const struct ow_stored_sum *sum = &p->sums->sum[i];
		if (sum->lane != p->lane[k])
			continue;
		/* An empty line begins a new curve: curves do not continue over missing data. */
		bool numbers = sum->measured + sum->partial > 0;
		if (end != INT64_MIN && (sum->first_ns > end || !numbers))
			fputc('\n', p->chart.script);
		end = sum->last_ns;
		double all = (double)sum->intervals + (double)sum->missing;
		const double row[] = {local_s(p, sum->first_ns / 2 + sum->last_ns / 2),
		                      local_s(p, sum->first_ns),
		                      local_s(p, sum->last_ns),
		                      ow_stored_sum_mean(sum) / unit.ns,
		                      p99_of(sum) / unit.ns,
		                      100 * ow_stored_sum_loss(sum),
		                      (double)sum->measured / all,
		                      (double)sum->partial / all,
		                      (double)sum->unknown / all,
		                      100 * whole_loss(sum)};
		ow_chart_numbers(&p->chart, row, sizeof row / sizeof *row);
		if (!numbers)
			fputc('\n', p->chart.script);
	}
	ow_chart_data_end(&p->chart);
}

/* Packets that are in none of the curves. */
static void add_unshared(const struct picture *p, unsigned k, char name[OW_RENDER_LANE])
{
	double sent = 0, unshared = 0;
	for (size_t i = 0; i < p->sums->count; i++) {
		struct ow_interval_result n = {.length_ns = 0};
		if (p->sums->sum[i].lane != p->lane[k])
			continue;
		ow_stored_sum_counts(&p->sums->sum[i], &n);
		sent += (double)n.sent;
		unshared += (double)n.unshared_sent;
	}
	char share[OW_FORMAT];
	size_t used = strlen(name);
	if (unshared > 0)
		snprintf(name + used, OW_RENDER_LANE - used, "   (%s of the packets sent do not pass it: unshared)",
		         ow_format_percent(unshared / (sent + unshared), share));
}

static void name_of(const struct picture *p, unsigned k, char name[OW_RENDER_LANE])
{
	size_t lanes;
	const struct ow_stored_lane *lane = ow_stored_lanes(p->stored, &lanes) + p->lane[k];
	struct ow_interval_result names = {0};
	ow_stored_name(lane, &names);
	ow_render_lane(&names, NAME, false, name);
	add_unshared(p, k, name);
}

/* Pixels from the top, in gnuplot's coordinates. */
static double screen_y(const struct picture *p, double px)
{
	return 1 - px / p->chart.height;
}

static void put_frame(struct picture *p)
{
	char from[OW_FORMAT], to[OW_FORMAT], title[2 * OW_FORMAT + 60], at[60];
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (size_t i = 0; i < p->sums->count; i++) {
		first = p->sums->sum[i].first_ns < first ? p->sums->sum[i].first_ns : first;
		last = p->sums->sum[i].last_ns > last ? p->sums->sum[i].last_ns : last;
	}
	fprintf(p->chart.script, "set multiplot; set xrange [%.3f:%.3f]; set xtics time\n", local_s(p, first),
	        local_s(p, last));
	snprintf(title, sizeof title, "One-way delay and loss, %s to %s %s",
	         ow_format_local(first, "%Y-%m-%d %H:%M", from), ow_format_local(last, "%Y-%m-%d %H:%M", to), p->zone);
	snprintf(at, sizeof at, "screen 0.5, screen %.6f center", screen_y(p, TITLE_PX / 2.0));
	ow_chart_label(&p->chart, 1, title, at);
}

/* The position of a panel, in pixels from the top. */
static void put_panel(struct picture *p, int top, int height)
{
	ow_chart_panel(&p->chart, (double)LEFT_PX / WIDTH_PX, 1 - (double)RIGHT_PX / WIDTH_PX,
	               (double)top / p->chart.height, (double)(top + height) / p->chart.height);
}

/* The legend is next to the first lane, because all have the same colours. */
static void put_key(struct picture *p, unsigned k, int top)
{
	if (k == 0)
		fprintf(p->chart.script,
		        "set key at screen %.6f, screen %.6f left top vertical Left reverse samplen 2\n",
		        1 - (RIGHT_PX - 10.0) / WIDTH_PX, screen_y(p, top));
	else
		fputs("unset key\n", p->chart.script);
}

/* Ends a panel with legend entries for everything that is drawn. */
static void put_legend(struct picture *p)
{
	static const char *const entry[][2] = {
		{"mean to p99", BAND_COLOUR},  {"loss", LOSS_COLOUR},       {"of whole flows", WHOLE_COLOUR},
		{"measured", MEASURED_COLOUR}, {"partial", PARTIAL_COLOUR}, {"unknown", UNKNOWN_COLOUR},
	};
	ow_chart_series(&p->chart, "lane", 0, "1:(NaN)", "lines lw 2.5", DELAY_COLOUR, "mean");
	for (size_t i = 0; i < sizeof entry / sizeof *entry; i++)
		ow_chart_series(&p->chart, "lane", 0, "1:(NaN)", "points pt 5 ps 1.5", entry[i][1], entry[i][0]);
	ow_chart_plot(&p->chart);
	fputs("unset label 1; unset label 2; unset label 3; unset key\n", p->chart.script);
}

/* A round step, so that `most` has one to four of them. */
static double step_of(double most)
{
	double ten = pow(10, floor(log10(most)));
	return most / ten < 2 ? ten / 2 : most / ten < 4 ? ten : 2 * ten;
}

static void put_nothing(struct picture *p, const char *what)
{
	fputs("set yrange [0:1]; unset ytics\n", p->chart.script);
	ow_chart_label(&p->chart, 3, what, "graph 0.5, graph 0.5 center tc rgb '#" OW_CHART_GREY "'");
	put_legend(p);
}

static void put_delay(struct picture *p, unsigned k, int top)
{
	char name[OW_RENDER_LANE], at[60];
	put_panel(p, top, DELAY_PX);
	put_key(p, k, top);
	name_of(p, k, name);
	snprintf(at, sizeof at, "graph 0, screen %.6f left offset 0,0.7", screen_y(p, top));
	ow_chart_label(&p->chart, 2, name, at);
	fprintf(p->chart.script,
	        "set format x ''; set ylabel 'delay, %s'; set yrange [*:*]; set ytics nomirror autofreq\n"
	        "set grid; set style fill solid 1 noborder\n",
	        unit_of(p, k).name);
	if (isnan(highest(p, k, ow_stored_sum_mean))) {
		put_nothing(p, "no delays");
		return;
	}
	ow_chart_series(&p->chart, "lane", k, "1:4:2:3:4:5", "boxxyerror", BAND_COLOUR, NULL);
	ow_chart_series(&p->chart, "lane", k, "1:4", "lines lw 1", DELAY_COLOUR, NULL);
	ow_chart_series(&p->chart, "lane", k, "2:4:($3-$2):(0)", "vectors nohead lw 2.5", DELAY_COLOUR, NULL);
	put_legend(p);
}

static void put_loss(struct picture *p, unsigned k, int top)
{
	put_panel(p, top, LOSS_PX);
	fputs("set ylabel 'loss, %'; set style fill solid 0.8 noborder\n", p->chart.script);
	double most = 100 * highest(p, k, ow_stored_sum_loss);
	if (isnan(most)) {
		put_nothing(p, "no packets");
		return;
	}
	/* Without any loss the axis goes up to 0.1 %. */
	most = fmax(most, 0.1);
	fprintf(p->chart.script, "set yrange [0:%g]; set ytics nomirror 0,%g\n", 1.05 * most, step_of(most));
	ow_chart_series(&p->chart, "lane", k, "1:6:2:3:(0):6", "boxxyerror", LOSS_COLOUR, NULL);
	ow_chart_series(&p->chart, "lane", k, "1:10:2:3:(0):10", "boxxyerror", WHOLE_COLOUR, NULL);
	ow_chart_plot(&p->chart);
}

/* From bottom to top the shares of unknown, partial and measured intervals; each share above 0 is visible. */
static void put_status(struct picture *p, unsigned k, int top)
{
	put_panel(p, top, STATUS_PX);
	fputs("unset ylabel; set yrange [0:1]; unset ytics; unset grid; set style fill solid 1 noborder\n"
	      "seen(x) = x > 0 && x < 0.3 ? 0.3 : x\n",
	      p->chart.script);
	if (k + 1 == p->lanes)
		fprintf(p->chart.script, "set format x \"%%H:%%M:%%S\\n%%m-%%d\"; set xlabel '%s'\n", p->zone);
	ow_chart_series(&p->chart, "lane", k, "1:(0):2:3:(0):($7+$8+$9)", "boxxyerror", MEASURED_COLOUR, NULL);
	ow_chart_series(&p->chart, "lane", k, "1:(0):2:3:(0):(seen($9)+seen($8))", "boxxyerror", PARTIAL_COLOUR, NULL);
	ow_chart_series(&p->chart, "lane", k, "1:(0):2:3:(0):(seen($9))", "boxxyerror", UNKNOWN_COLOUR, NULL);
	ow_chart_plot(&p->chart);
}

static void put_lane(struct picture *p, unsigned k)
{
	int top = TITLE_PX + (int)k * LANE_PX + NAME_PX;
	put_delay(p, k, top);
	top += DELAY_PX + SPACE_PX;
	put_loss(p, k, top);
	put_status(p, k, top + LOSS_PX + SPACE_PX);
}

int ow_stored_plot(const char *path, const struct ow_stored *stored, const struct ow_stored_sums *sums,
                   struct ow_error *err)
{
	struct picture p = {.stored = stored, .sums = sums};
	int r = find_lanes(&p, path, err);
	if (r < 0)
		return r;
	r = ow_chart_begin(&p.chart, path, WIDTH_PX, TITLE_PX + (int)p.lanes * LANE_PX + AXIS_PX, err);
	if (r < 0)
		return r;
	time_t start = (time_t)(sums->sum[0].start_ns / 1000000000);
	struct tm tm = {0};
	localtime_r(&start, &tm);
	p.shift_s = tm.tm_gmtoff;
	ow_format_local(sums->sum[0].start_ns, "%Z", p.zone);
	for (unsigned k = 0; k < p.lanes; k++)
		put_data(&p, k);
	put_frame(&p);
	for (unsigned k = 0; k < p.lanes; k++)
		put_lane(&p, k);
	fputs("unset multiplot\n", p.chart.script);
	return ow_chart_end(&p.chart, 0, err);
}
