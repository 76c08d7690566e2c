/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plot of a match. Of a path, first a view of each direction (report/path_view.h). For each direction, and for each
 * hop of a path, one row of three panels:
 *
 *     delay over time (range, median to p99, median)  |  delay by share of packets that were faster,
 *     loss over time                                  |  stretched towards the slowest
 *
 * All numbers are scaled here; gnuplot only draws.
 */
#include "report/plot.h"

#include "base/side.h"
#include "base/time.h"
#include "estimate/delay.h"
#include "estimate/timeline.h"
#include "path/path.h"
#include "report/chart.h"
#include "report/path_view.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WIDTH_PX     1200
#define HEAD_PX      50
#define VIEW_PX      250 /* of a direction of a path */
#define DIRECTION_PX 500
#define MARGIN_PX    20 /* above a row that is a picture of its own */
#define NAME_COLUMNS 60 /* of the name of a point */
/* Number of points of the curve of the distribution. */
#define TAIL_POINTS 240
/*
 * If the tail is this many times longer than the median, the axis is logarithmic: a linear one would show only the
 * tail.
 */
#define LOG_FROM 15.
/*
 * Where a logarithmic axis begins: at this quantile, or at this fraction of the largest delay, so that a few delays of
 * almost 0 do not stretch it.
 */
#define LOG_QUANTILE 1e-3
#define LOG_RANGE    1e-4
/* If delays vary by less than this fraction of themselves, the axis shows the difference from the smallest. */
#define RELATIVE_FROM 1e-3

/* Up to this many packets are drawn one by one, more as bins. */
#define POINTS_MAX 1000
/*
 * If clocks differ by seconds, delays are seconds long and vary by microseconds, less than a histogram of the delay can
 * show. Such delays are counted from the first one; others from 0.
 */
#define ORIGIN_FROM_NS INT64_C(1000000000)
#define DELAY_MAX_NS   (INT64_C(1) << 61)

struct point {
	int64_t time_ns, delay_ns;
};

/* The data of one direction. Delays are relative to the origin. */
struct track {
	bool any;
	int64_t origin_ns;
	struct ow_timeline *timeline;
	struct ow_delays *delays;
	size_t points; /* POINTS_MAX + 1: there were more */
	struct point point[POINTS_MAX];
};

struct ow_plot {
	unsigned hops; /* of a path: they have tracks behind those of both ends */
	struct track *track;
};

static unsigned tracks_of(const struct ow_plot *plot)
{
	return OW_DIRECTIONS * (1 + plot->hops);
}

static struct track *hop_track(const struct ow_plot *plot, unsigned hop, unsigned direction)
{
	return &plot->track[OW_DIRECTIONS * (1 + hop) + direction];
}

int ow_plot_create(unsigned hops, struct ow_plot **ret_plot)
{
	struct ow_plot *plot = calloc(1, sizeof *plot);
	if (!plot)
		return -ENOMEM;
	plot->hops = hops;
	plot->track = calloc(tracks_of(plot), sizeof *plot->track);
	for (unsigned i = 0; i < tracks_of(plot); i++) {
		if (!plot->track || ow_timeline_create(&plot->track[i].timeline) < 0 ||
		    ow_delays_create(&plot->track[i].delays) < 0) {
			ow_plot_free(plot);
			return -ENOMEM;
		}
	}
	*ret_plot = plot;
	return 0;
}

void ow_plot_free(struct ow_plot *plot)
{
	if (!plot)
		return;
	for (unsigned i = 0; plot->track && i < tracks_of(plot); i++) {
		ow_timeline_free(plot->track[i].timeline);
		ow_delays_free(plot->track[i].delays);
	}
	free(plot->track);
	free(plot);
}

static int add_sample(struct track *track, int64_t time_ns, int64_t delay_ns, uint32_t packets)
{
	/* Timestamps from a file may have any value; nothing below may overflow. */
	delay_ns = delay_ns > DELAY_MAX_NS ? DELAY_MAX_NS : delay_ns < -DELAY_MAX_NS ? -DELAY_MAX_NS : delay_ns;
	if (!track->any && (delay_ns >= ORIGIN_FROM_NS || delay_ns <= -ORIGIN_FROM_NS))
		track->origin_ns = delay_ns;
	track->any = true;
	delay_ns -= track->origin_ns;
	if (track->points < POINTS_MAX)
		track->point[track->points] = (struct point){time_ns, delay_ns};
	track->points += track->points <= POINTS_MAX;
	ow_delays_add(track->delays, delay_ns, packets);
	return ow_timeline_add(track->timeline, time_ns, delay_ns, packets);
}

int ow_plot_add(struct ow_plot *plot, const struct ow_packet_event *event)
{
	if (event->fate != OW_FATE_LOST && event->fate != OW_FATE_MATCHED)
		return 0;
	enum ow_side sender = ow_sender_of(event->direction);
	struct track *track = &plot->track[event->direction];
	int64_t sent_ns = event->time_ns[sender];
	if (event->fate == OW_FATE_LOST)
		return ow_timeline_add_lost(track->timeline, sent_ns, event->packets);
	if (event->ambiguous && !event->estimated)
		return ow_timeline_add_unmeasured(track->timeline, sent_ns, event->packets);
	int64_t delay_ns = (int64_t)((uint64_t)event->time_ns[!sender] - (uint64_t)sent_ns);
	return add_sample(track, sent_ns, delay_ns, event->packets);
}

/* A packet that was seen at a point of a path: the hop that follows. Lost packets are those that no later point shows. */
static int add_hop(struct ow_plot *plot, const struct ow_path_packet *packet, unsigned from, unsigned to, bool last)
{
	struct track *track = hop_track(plot, from < to ? from : to, packet->direction);
	int64_t sent_ns = packet->time_ns[from];
	if (!(packet->seen >> to & 1))
		return last && packet->fate == OW_FATE_LOST
		               ? ow_timeline_add_lost(track->timeline, sent_ns, packet->packets)
		               : 0;
	if (packet->ambiguous)
		return ow_timeline_add_unmeasured(track->timeline, sent_ns, packet->packets);
	return add_sample(track, sent_ns, (int64_t)((uint64_t)packet->time_ns[to] - (uint64_t)sent_ns),
	                  packet->packets);
}

int ow_plot_add_path(struct ow_plot *plot, const struct ow_path_packet *packet)
{
	int r = 0;
	bool back = packet->direction == OW_B_TO_A;
	if (packet->direction >= OW_DIRECTIONS)
		return 0;
	unsigned last = back ? (unsigned)__builtin_ctz(packet->seen) : 31u - (unsigned)__builtin_clz(packet->seen);
	for (unsigned i = 0; i < plot->hops && r == 0; i++) {
		unsigned from = back ? i + 1 : i, to = back ? i : i + 1;
		if (packet->seen >> from & 1)
			r = add_hop(plot, packet, from, to, from == last);
	}
	return r;
}

/* An axis: values are divided by `unit_ns` after `base_ns` was subtracted. */
struct axis {
	const char *unit;
	double unit_ns, base_ns, low, high;
	bool log;
};

static void choose_unit(struct axis *axis, double size_ns)
{
	struct ow_chart_unit unit = ow_chart_unit(size_ns);
	axis->unit = unit.name;
	axis->unit_ns = unit.ns;
}

/* For the delays of a track, which are relative to its origin. */
static struct axis delay_axis(const struct track *track)
{
	struct ow_delay summary;
	struct axis axis = {0};
	ow_delays_summary(track->delays, &summary);
	double min_ns = (double)summary.min_ns, max_ns = (double)summary.max_ns, range = max_ns - min_ns;
	double origin_ns = (double)track->origin_ns;
	if (range < fabs(min_ns + origin_ns) * RELATIVE_FROM)
		axis.base_ns = min_ns;
	else
		axis.base_ns = -origin_ns;
	min_ns -= axis.base_ns;
	max_ns -= axis.base_ns;
	double median_ns = summary.quantile_ns[OW_Q50] - axis.base_ns;
	axis.log = min_ns >= 0 && max_ns > LOG_FROM * median_ns;
	choose_unit(&axis, axis.log ? median_ns : fmax(fabs(min_ns), fabs(max_ns)));
	if (axis.log) {
		double low_ns = ow_delays_quantile(track->delays, LOG_QUANTILE) - axis.base_ns;
		axis.low = fmax(low_ns, max_ns * LOG_RANGE) / 1.3;
		axis.high = max_ns * 1.3;
	} else {
		double room = range > 0 ? 0.06 * range : fmax(1, 0.1 * fabs(max_ns));
		axis.low = min_ns >= 0 && min_ns < range / 2 ? 0 : min_ns - room;
		axis.high = max_ns + room;
	}
	axis.low /= axis.unit_ns;
	axis.high /= axis.unit_ns;
	return axis;
}

/* On a logarithmic axis, values below it are drawn at its lower end. */
static double scaled(const struct axis *axis, double ns)
{
	double value = (ns - axis->base_ns) / axis->unit_ns;
	return axis->log && value < axis->low ? axis->low : value;
}

/* What the panels of one direction have in common. */
struct panel {
	int row;
	bool loss_known; /* the receiving point shows all packets that pass it */
	const struct track *track;
	const struct ow_timeline_bin *bin;
	size_t bins;
	int64_t start_ns;
	struct axis time, delay;
	double top, height; /* fractions of the plot, from its top */
};

/* NaN where there was no sample. */
enum column { FROM, TO, MIN, MEDIAN, P99, MAX, LOSS, ZERO, VALUES };

static void values_of(const struct panel *panel, size_t i, double ret[VALUES])
{
	const struct ow_timeline_bin *bin = &panel->bin[i];
	ret[FROM] = scaled(&panel->time, (double)(bin->start_ns - panel->start_ns));
	ret[TO] = scaled(&panel->time, (double)(bin->end_ns - panel->start_ns));
	ret[MIN] = bin->samples ? scaled(&panel->delay, (double)bin->min_ns) : NAN;
	ret[MEDIAN] = bin->samples ? scaled(&panel->delay, bin->median_ns) : NAN;
	ret[P99] = bin->samples ? scaled(&panel->delay, bin->p99_ns) : NAN;
	ret[MAX] = bin->samples ? scaled(&panel->delay, (double)bin->max_ns) : NAN;
	ret[LOSS] = 100 * (double)bin->lost / (double)bin->sent;
	ret[ZERO] = 0;
}

static void put_bins(struct ow_chart *chart, const struct panel *panel)
{
	ow_chart_data(chart, "bins", (size_t)panel->row);
	for (size_t i = 0; i < panel->bins; i++) {
		double row[VALUES];
		values_of(panel, i, row);
		ow_chart_numbers(chart, row, VALUES);
	}
	ow_chart_data_end(chart);
}

/* The edge of one bin: from where it begins to where it ends, or back. */
static void put_edge(struct ow_chart *chart, const struct panel *panel, size_t i, enum column value, bool back)
{
	double row[VALUES];
	values_of(panel, i, row);
	const double x[] = {row[back ? TO : FROM], row[back ? FROM : TO]};
	for (int k = 0; k < 2; k++)
		ow_chart_numbers(chart, (const double[]){x[k], row[value]}, 2);
}

/*
 * What bins show from one value to another, as an outline of each run of bins that have it: along the upper edge, and back
 * along the lower one. A box for each bin would be six times as many bytes of a picture.
 */
static void put_outline(struct ow_chart *chart, const struct panel *panel, const char *name, enum column low,
                        enum column high)
{
	double row[VALUES];
	ow_chart_data(chart, name, (size_t)panel->row);
	for (size_t i = 0, end; i < panel->bins; i = end + 1) {
		for (end = i; end < panel->bins; end++) {
			values_of(panel, end, row);
			if (isnan(row[low]) || isnan(row[high]))
				break;
		}
		for (size_t k = i; k < end; k++)
			put_edge(chart, panel, k, high, false);
		for (size_t k = end; k-- > i;)
			put_edge(chart, panel, k, low, true);
		fputs(end > i ? "\n" : "", chart->script);
	}
	ow_chart_data_end(chart);
}

static void put_points(struct ow_chart *chart, const struct panel *panel)
{
	ow_chart_data(chart, "points", (size_t)panel->row);
	for (size_t i = 0; i < panel->track->points; i++) {
		const struct point *point = &panel->track->point[i];
		const double row[] = {scaled(&panel->time, (double)(point->time_ns - panel->start_ns)),
		                      scaled(&panel->delay, (double)point->delay_ns)};
		ow_chart_numbers(chart, row, 2);
	}
	ow_chart_data_end(chart);
}

/* 1 / (1 - q) and the delay of that quantile, from the fastest to the slowest packet. */
static void put_tail(struct ow_chart *chart, const struct panel *panel)
{
	const struct ow_delays *delays = panel->track->delays;
	double samples = (double)ow_delays_samples(delays);
	ow_chart_data(chart, "tail", (size_t)panel->row);
	for (int i = 0; i <= TAIL_POINTS; i++) {
		double x = pow(samples, (double)i / TAIL_POINTS);
		double q = fmax(1 - 1 / x, 1e-9);
		const double row[] = {x, scaled(&panel->delay, ow_delays_quantile(delays, q))};
		ow_chart_numbers(chart, row, 2);
	}
	const double last[] = {samples * 1.2, scaled(&panel->delay, ow_delays_quantile(delays, 1))};
	ow_chart_numbers(chart, last, 2);
	ow_chart_data_end(chart);
}

/*
 * Marks at 1, 2 and 5 of each decade; only at 1 if there are many. The previous axis may be logarithmic, which refuses
 * ranges that begin at 0.
 */
static void put_delay_axis(FILE *out, const struct axis *axis)
{
	fprintf(out, "unset logscale y; set yrange [%.9g:%.9g]\n", axis->low, axis->high);
	if (!axis->log) {
		fputs("set ytics " OW_CHART_TICS " autofreq; set format y '%g'\n", out);
		return;
	}
	fputs("set logscale y; set format y '%g'; set ytics " OW_CHART_TICS " (", out);
	bool many = axis->high / axis->low > 2e3, first = true;
	for (int exponent = (int)floor(log10(axis->low)); exponent <= (int)log10(axis->high) + 1; exponent++) {
		for (int i = 0; i < 3; i++) {
			static const double step[] = {1, 2, 5};
			double at = pow(10, exponent) * step[i];
			if (at < axis->low || at > axis->high || (many && i > 0))
				continue;
			fprintf(out, "%s%.9g", first ? "" : ", ", at);
			first = false;
		}
	}
	fputs(")\n", out);
}

/* Places the next panel: margins as fractions of the plot's width and of this direction's height. */
static void put_place(struct ow_chart *chart, const struct panel *panel, double left, double right, double top,
                      double bottom)
{
	ow_chart_panel(chart, left, right, panel->top + top * panel->height, panel->top + bottom * panel->height);
}

/* Fills an outline. */
static void put_area(struct ow_chart *chart, const char *outline, int d, const char *colour, const char *title)
{
	char style[80];
	snprintf(style, sizeof style, "filledcurves closed fc rgb '#%s' fs solid 1 noborder", colour);
	ow_chart_series(chart, outline, (size_t)d, "1:2", style, colour, title);
}

static void put_delay_panel(struct ow_chart *chart, const struct panel *panel)
{
	FILE *out = chart->script;
	size_t d = (size_t)panel->row;
	put_place(chart, panel, 0.075, 0.66, 0.12, 0.66);
	put_delay_axis(out, &panel->delay);
	char base[OW_DURATION_TEXT];
	double base_ns = panel->delay.base_ns + (double)panel->track->origin_ns;
	ow_duration_text(base_ns, base);
	if (base_ns != 0)
		fprintf(out, "set ylabel 'delay above %s, %s'\n", base, panel->delay.unit);
	else
		fprintf(out, "set ylabel 'delay, %s'\n", panel->delay.unit);
	fputs("unset xlabel; set format x ''\n", out);
	if (panel->track->points <= POINTS_MAX) {
		fputs("unset key\n", out);
		ow_chart_series(chart, "points", d, "1:2", "points pt 7 ps 0.35", "08519c", NULL);
	} else {
		fputs("set key at graph 1, graph 1.09 right horizontal samplen 2\n", out);
		put_area(chart, "range", panel->row, "c6dbef", "min to max");
		put_area(chart, "usual", panel->row, "6baed6", "median to p99");
		ow_chart_series(chart, "bins", d, "1:4:($2-$1):(0)", "vectors nohead lw 2", "08306b", "median");
	}
	ow_chart_plot(chart);
}

static void put_loss_panel(struct ow_chart *chart, const struct panel *panel)
{
	FILE *out = chart->script;
	double worst = 0;
	for (size_t i = 0; i < panel->bins && panel->loss_known; i++)
		worst = fmax(worst, 100 * (double)panel->bin[i].lost / (double)panel->bin[i].sent);
	put_place(chart, panel, 0.075, 0.66, 0.70, 0.86);
	fputs("unset logscale y; unset key; set ylabel 'loss, %'; set format x '%g'; set format y '%g'\n", out);
	char start[40];
	time_t second = (time_t)(panel->start_ns / OW_NS_PER_S);
	struct tm tm;
	strftime(start, sizeof start, "%Y-%m-%d %H:%M:%S", gmtime_r(&second, &tm));
	fprintf(out, "set xlabel 'time since %s.%03d UTC, %s'\n", start,
	        (int)(panel->start_ns % OW_NS_PER_S / OW_NS_PER_MS), panel->time.unit);
	if (worst > 0) {
		/* Three marks, because there is no room for more. */
		double step = pow(10, floor(log10(worst)));
		step *= worst / step > 5 ? 5 : worst / step > 2 ? 2 : 1;
		fprintf(out, "set yrange [0:%.9g]; set ytics " OW_CHART_TICS " 0,%.9g\n", worst * 1.05, step);
	} else {
		fputs("set yrange [0:1]; unset ytics; ", out);
		ow_chart_label(chart, 1, panel->loss_known ? "no packet lost" : "not known",
		               "graph 0.5, graph 0.5 center tc rgb '#" OW_CHART_GREY "'");
	}
	if (panel->loss_known)
		put_area(chart, "lost", panel->row, "cb181d", "lost");
	ow_chart_plot(chart);
	fputs("unset label 1\n", out);
}

static void put_tail_panel(struct ow_chart *chart, const struct panel *panel)
{
	FILE *out = chart->script;
	double samples = (double)ow_delays_samples(panel->track->delays);
	put_place(chart, panel, 0.735, 0.98, 0.12, 0.86);
	put_delay_axis(out, &panel->delay);
	fputs("unset key; unset ylabel; set xlabel 'packets that were faster, %'; set logscale x\n", out);
	fprintf(out, "set xrange [1:%.9g]; set xtics ('0' 1, ", fmax(10, samples * 1.2));
	/* With many decades the labels would touch: some marks have none. */
	if (samples <= 1e4)
		fputs("'50' 2, ", out);
	fputs("'90' 10", out);
	char label[32] = "99";
	for (int nines = 2; nines <= 9 && pow(10, nines) <= samples; nines++) {
		fprintf(out, ", '%s' %.9g", samples >= 1e6 && nines % 2 ? "" : label, pow(10, nines));
		size_t length = strlen(label);
		snprintf(label + length, sizeof label - length, nines == 2 ? ".9" : "9");
	}
	fputs(")\n", out);
	ow_chart_series(chart, "tail", (size_t)panel->row, "1:2", "lines lw 2", "08306b", NULL);
	ow_chart_plot(chart);
	fputs("unset logscale x; set xtics autofreq; set autoscale x\n", out);
}

static void put_title(struct ow_chart *chart, const char *name, double top, const struct ow_result *result)
{
	char text[500], at[60], median[OW_DURATION_TEXT], p99[OW_DURATION_TEXT], max[OW_DURATION_TEXT];
	double loss = result->sent ? 100 * (double)result->lost / (double)result->sent : 0;
	int n = snprintf(text, sizeof text, "%s: %" PRIu64 " sent, %" PRIu64 " lost (%.3g %%)", name, result->sent,
	                 result->lost, loss);
	if (result->delay.samples) {
		ow_duration_text(result->delay.quantile_ns[OW_Q50], median);
		ow_duration_text(result->delay.quantile_ns[OW_Q99], p99);
		ow_duration_text((double)result->delay.max_ns, max);
		snprintf(text + n, sizeof text - (size_t)n, "; delay median %s, p99 %s, max %s", median, p99, max);
	}
	snprintf(at, sizeof at, "screen 0.075, screen %.6f left", 1 - top);
	ow_chart_label(chart, 2, text, at);
}

static void put_panels(struct ow_chart *chart, struct panel *panel)
{
	FILE *out = chart->script;
	panel->delay = delay_axis(panel->track);
	panel->start_ns = panel->bin[0].start_ns;
	double span_ns = (double)(panel->bin[panel->bins - 1].end_ns - panel->start_ns);
	choose_unit(&panel->time, span_ns);
	put_bins(chart, panel);
	put_outline(chart, panel, "range", MIN, MAX);
	put_outline(chart, panel, "usual", MEDIAN, P99);
	put_outline(chart, panel, "lost", ZERO, LOSS);
	if (panel->track->points <= POINTS_MAX)
		put_points(chart, panel);
	put_tail(chart, panel);
	fprintf(out, "set xrange [0:%.9g]\n", scaled(&panel->time, span_ns));
	put_delay_panel(chart, panel);
	/* otherwise every panel would print them again, over each other */
	fputs("unset label 2; unset label 9\n", out);
	put_loss_panel(chart, panel);
	put_tail_panel(chart, panel);
}

/* A row of panels. */
struct row {
	char name[2 * NAME_COLUMNS + 8];
	const struct track *track;
	const struct ow_result *result;
	bool loss_known;
};

/* top, height: fractions of the plot, from its top. */
static int put_row(struct ow_chart *chart, const struct row *row, int number, double top, double height)
{
	struct ow_timeline_bin *bin = calloc(OW_TIMELINE_BINS, sizeof *bin);
	if (!bin)
		return -ENOMEM;
	struct panel panel = {.row = number,
	                      .loss_known = row->loss_known,
	                      .track = row->track,
	                      .bin = bin,
	                      .top = top,
	                      .height = height};
	panel.bins = ow_timeline_bins(row->track->timeline, bin);
	put_title(chart, row->name, top + 0.02 * height, row->result);
	if (ow_delays_samples(row->track->delays)) {
		put_panels(chart, &panel);
	} else {
		char at[60];
		snprintf(at, sizeof at, "screen 0.5, screen %.6f center", 1 - (top + height / 2));
		ow_chart_label(chart, 3, "no delay sample", at);
		fputs("unset border; unset tics; unset key; unset xlabel; unset ylabel; unset logscale y\n",
		      chart->script);
		ow_chart_plot(chart);
		fputs("set border 3 lc rgb '#" OW_CHART_GREY "'; set tics " OW_CHART_TICS "\n"
		      "unset label 2; unset label 3; unset label 9\n",
		      chart->script);
	}
	free(bin);
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

/* The rows of a direction: both ends, then the hops in the order in which packets pass them. */
static unsigned rows_of(const struct ow_plot *plot, const struct ow_match_report *report,
                        const struct ow_path_report *path, enum ow_direction d, struct row *row)
{
	unsigned rows = 1;
	row[0] = (struct row){.track = &plot->track[d], .result = &report->direction[d], .loss_known = true};
	snprintf(row[0].name, sizeof row->name, "%s", d == OW_A_TO_B ? "A to B" : "B to A");
	for (unsigned i = 0; path && i < plot->hops; i++) {
		unsigned hop = d == OW_A_TO_B ? i : plot->hops - 1 - i;
		const struct ow_path_segment *segment = &path->segment[hop];
		unsigned from = d == OW_A_TO_B ? segment->from : segment->to,
			 to = d == OW_A_TO_B ? segment->to : segment->from;
		if (!segment->report)
			continue;
		row[rows] = (struct row){.track = hop_track(plot, hop, d),
		                         .result = &segment->result[d],
		                         .loss_known = !segment->correction[d].undecided &&
		                                       !segment->correction[d].around_to};
		snprintf(row[rows++].name, sizeof row->name, "%.*s to %.*s", NAME_COLUMNS, path->point[from].name,
		         NAME_COLUMNS, path->point[to].name);
	}
	return rows;
}

/* All that a plot shows, from the top down: views of a path, and rows. */
struct contents {
	const struct ow_match_report *report;
	const struct ow_path_report *path;
	enum ow_direction view[OW_DIRECTIONS];
	unsigned views, rows;
	struct row *row;
};

static int find_contents(const struct ow_plot *plot, const struct ow_match_report *report,
                         const struct ow_path_report *path, struct contents *ret_contents)
{
	struct contents c = {.report = report, .path = path, .row = calloc(tracks_of(plot), sizeof *c.row)};
	if (!c.row)
		return -ENOMEM;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (!report->has_direction[d])
			continue;
		if (path)
			c.view[c.views++] = d;
		c.rows += rows_of(plot, report, path, d, c.row + c.rows);
	}
	*ret_contents = c;
	return 0;
}

static void put_heading(struct ow_chart *chart, const struct ow_match_report *report)
{
	char heading[600], at[60];
	snprintf(heading, sizeof heading, "A: %.250s    B: %.250s", base_name(report->capture[OW_SIDE_A].path),
	         base_name(report->capture[OW_SIDE_B].path));
	snprintf(at, sizeof at, "screen 0.075, screen %.6f left tc rgb '#" OW_CHART_GREY "'",
	         1 - 0.5 * HEAD_PX / chart->height);
	ow_chart_label(chart, 9, heading, at);
}

static int put_script(struct ow_chart *chart, const struct contents *c)
{
	fputs("set multiplot\n", chart->script);
	put_heading(chart, c->report);
	double top = (double)HEAD_PX / chart->height, view = (double)VIEW_PX / chart->height,
	       height = (double)DIRECTION_PX / chart->height;
	for (unsigned i = 0; i < c->views; i++, top += view) {
		ow_path_view(chart, c->path, c->view[i], top, view);
		fputs("unset label 9\n", chart->script);
	}
	int r = 0;
	for (unsigned i = 0; i < c->rows && r == 0; i++)
		r = put_row(chart, &c->row[i], (int)i, top + i * height, height);
	fputs("unset multiplot\n", chart->script);
	return r;
}

int ow_plot_write(const struct ow_plot *plot, const struct ow_match_report *report, const struct ow_path_report *path,
                  const char *file, struct ow_error *err)
{
	struct ow_chart chart;
	struct contents c;
	if (find_contents(plot, report, path, &c) < 0)
		return ow_error_set(err, ENOMEM, "%s: not enough memory", file);
	int height = HEAD_PX + VIEW_PX * (int)c.views + DIRECTION_PX * (int)(c.rows ? c.rows : 1);
	int r = ow_chart_begin(&chart, file, WIDTH_PX, height, err);
	if (r == 0) {
		r = put_script(&chart, &c);
		if (r < 0)
			ow_error_set(err, -r, "%s: not enough memory", file);
		r = ow_chart_end(&chart, r, err);
	}
	free(c.row);
	return r;
}

/* One view or row as a picture of its own. */
static int draw(const struct contents *c, unsigned i, int *ret_picture, struct ow_error *err)
{
	struct ow_chart chart;
	bool view = i < c->views;
	int r = ow_chart_begin(&chart, "plot.svg", WIDTH_PX, view ? VIEW_PX : DIRECTION_PX + MARGIN_PX, err);
	if (r < 0)
		return r;
	fputs("set multiplot\n", chart.script);
	if (view)
		ow_path_view(&chart, c->path, c->view[i], 0, 1);
	else if ((r = put_row(&chart, &c->row[i - c->views], 0, (double)MARGIN_PX / chart.height,
	                      (double)DIRECTION_PX / chart.height)) < 0)
		ow_error_set(err, -r, "plot: not enough memory");
	fputs("unset multiplot\n", chart.script);
	return ow_chart_end_in_memory(&chart, r, ret_picture, err);
}

int ow_plot_pictures(const struct ow_plot *plot, const struct ow_match_report *report,
                     const struct ow_path_report *path, int (*on_picture)(void *arg, const char *name, int picture),
                     void *arg, struct ow_error *err)
{
	struct contents c;
	if (find_contents(plot, report, path, &c) < 0)
		return ow_error_set(err, ENOMEM, "plot: not enough memory");
	int r = 0;
	for (unsigned i = 0; i < c.views + c.rows && r == 0; i++) {
		int picture;
		r = draw(&c, i, &picture, err);
		if (r < 0)
			break;
		r = on_picture(arg, i < c.views ? "the path, hop by hop" : c.row[i - c.views].name, picture);
		if (r < 0)
			ow_error_set(err, -r, "plot: %s", strerror(-r));
		close(picture);
	}
	free(c.row);
	return r;
}
