/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture of a match. For each direction, one row of three panels:
 *
 *     delay over time (range, median to p99, median)  |  delay by share of packets that were faster,
 *     loss over time                                  |  stretched towards the slowest
 *
 * All numbers are scaled here; gnuplot draws what it is told. Texts are in single quotes, where nothing but the quote
 * has a meaning to gnuplot, and `noenhanced`.
 */
#include "report/plot.h"

#include "base/time.h"
#include "estimate/delay.h"
#include "estimate/timeline.h"
#include "report/gnuplot.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICS         "nomirror out scale 0.5"
#define FRAME        "set border 3 lc rgb '#636363'; set tics " TICS "\n"
#define WIDTH_PX     1200
#define HEAD_PX      50
#define DIRECTION_PX 500
/* Points of the curve of the distribution. */
#define TAIL_POINTS 240
/* With a tail this many times longer than the median, the axis is logarithmic: a linear one would show only the tail.
 */
#define LOG_FROM 15.
/* Where it begins: at this quantile, or this part of the greatest delay; a few delays of almost 0 are not worth it. */
#define LOG_QUANTILE 1e-3
#define LOG_RANGE    1e-4
/* Where delays vary by less than this part of themselves, the axis shows what is above the smallest. */
#define RELATIVE_FROM 1e-3

/* Up to this many packets are shown one by one, more as bins. */
#define POINTS_MAX 3000
/*
 * Clocks that are seconds apart give delays of seconds that vary by microseconds, less than a histogram of the delay
 * can show. Such delays are counted from the first one; others from 0.
 */
#define ORIGIN_FROM_NS INT64_C(1000000000)
#define DELAY_MAX_NS   (INT64_C(1) << 61)

struct point {
	int64_t time_ns, delay_ns;
};

/* What is kept of one direction. Delays less the origin. */
struct track {
	bool any;
	int64_t origin_ns;
	struct ow_timeline *timeline;
	struct ow_delays *delays;
	size_t points; /* POINTS_MAX + 1: there were more */
	struct point point[POINTS_MAX];
};

struct ow_plot {
	struct track track[OW_DIRECTIONS];
};

int ow_plot_create(struct ow_plot **ret_plot)
{
	struct ow_plot *plot = calloc(1, sizeof *plot);
	for (int d = 0; plot && d < OW_DIRECTIONS; d++) {
		if (ow_timeline_create(&plot->track[d].timeline) < 0 || ow_delays_create(&plot->track[d].delays) < 0) {
			ow_plot_free(plot);
			return -ENOMEM;
		}
	}
	if (!plot)
		return -ENOMEM;
	*ret_plot = plot;
	return 0;
}

void ow_plot_free(struct ow_plot *plot)
{
	for (int d = 0; plot && d < OW_DIRECTIONS; d++) {
		ow_timeline_free(plot->track[d].timeline);
		ow_delays_free(plot->track[d].delays);
	}
	free(plot);
}

static int add_sample(struct track *track, int64_t time_ns, int64_t delay_ns, uint32_t packets)
{
	/* Stamps from a file may be anything; nothing below may overflow. */
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
	enum ow_side sender = event->direction == OW_A_TO_B ? OW_SIDE_A : OW_SIDE_B;
	struct track *track = &plot->track[event->direction];
	int64_t sent_ns = event->time_ns[sender];
	if (event->fate == OW_FATE_LOST)
		return ow_timeline_add_lost(track->timeline, sent_ns, event->packets);
	if (event->ambiguous && !event->estimated)
		return ow_timeline_add_unmeasured(track->timeline, sent_ns, event->packets);
	int64_t delay_ns = (int64_t)((uint64_t)event->time_ns[!sender] - (uint64_t)sent_ns);
	return add_sample(track, sent_ns, delay_ns, event->packets);
}

int ow_plot_check_name(const char *path, struct ow_error *err)
{
	if (ow_gnuplot_is_svg(path) || ow_gnuplot_is_png(path))
		return 0;
	return ow_error_set(err, EINVAL, "'%.200s' does not end in .svg or .png", path);
}

/* An axis: values are divided by `unit_ns` after `base_ns` was subtracted. */
struct axis {
	const char *unit;
	double unit_ns, base_ns, low, high;
	bool log;
};

static void choose_unit(struct axis *axis, double size_ns)
{
	struct ow_gnuplot_unit unit = ow_gnuplot_unit(size_ns);
	axis->unit = unit.name;
	axis->unit_ns = unit.ns;
}

/* For the delays of a track, which are less its origin. */
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

/* On a logarithmic axis what is below it is drawn at its foot. */
static double scaled(const struct axis *axis, double ns)
{
	double value = (ns - axis->base_ns) / axis->unit_ns;
	return axis->log && value < axis->low ? axis->low : value;
}

/* What the panels of one direction share. */
struct panel {
	int direction;
	const struct track *track;
	const struct ow_timeline_bin *bin;
	size_t bins;
	int64_t start_ns;
	struct axis time, delay;
	double top, height; /* screen coordinates, 1 = top */
};

/* t0 t1 min median p99 max loss% 0; NaN where there was no sample. */
static void put_bins(FILE *out, const struct panel *panel)
{
	fprintf(out, "$bins%d << EOD\n", panel->direction);
	for (size_t i = 0; i < panel->bins; i++) {
		const struct ow_timeline_bin *bin = &panel->bin[i];
		fprintf(out, "%.9g %.9g ", scaled(&panel->time, (double)(bin->start_ns - panel->start_ns)),
		        scaled(&panel->time, (double)(bin->end_ns - panel->start_ns)));
		if (bin->samples)
			fprintf(out, "%.9g %.9g %.9g %.9g", scaled(&panel->delay, (double)bin->min_ns),
			        scaled(&panel->delay, bin->median_ns), scaled(&panel->delay, bin->p99_ns),
			        scaled(&panel->delay, (double)bin->max_ns));
		else
			fputs("NaN NaN NaN NaN", out);
		fprintf(out, " %.9g 0\n", 100 * (double)bin->lost / (double)bin->sent);
	}
	fputs("EOD\n", out);
}

static void put_points(FILE *out, const struct panel *panel)
{
	fprintf(out, "$points%d << EOD\n", panel->direction);
	for (size_t i = 0; i < panel->track->points; i++) {
		const struct point *point = &panel->track->point[i];
		fprintf(out, "%.9g %.9g\n", scaled(&panel->time, (double)(point->time_ns - panel->start_ns)),
		        scaled(&panel->delay, (double)point->delay_ns));
	}
	fputs("EOD\n", out);
}

/* 1 / (1 - q) and the delay of that quantile, from the fastest to the slowest packet. */
static void put_tail(FILE *out, const struct panel *panel)
{
	const struct ow_delays *delays = panel->track->delays;
	double samples = (double)ow_delays_samples(delays);
	fprintf(out, "$tail%d << EOD\n", panel->direction);
	for (int i = 0; i <= TAIL_POINTS; i++) {
		double x = pow(samples, (double)i / TAIL_POINTS);
		double q = fmax(1 - 1 / x, 1e-9);
		fprintf(out, "%.9g %.9g\n", x, scaled(&panel->delay, ow_delays_quantile(delays, q)));
	}
	fprintf(out, "%.9g %.9g\nEOD\n", samples * 1.2, scaled(&panel->delay, ow_delays_quantile(delays, 1)));
}

/* Marks at 1, 2 and 5 of each decade, only at 1 when there are many. */
static void put_delay_axis(FILE *out, const struct axis *axis)
{
	fprintf(out, "set yrange [%.9g:%.9g]\n", axis->low, axis->high);
	if (!axis->log) {
		fputs("unset logscale y; set ytics " TICS " autofreq; set format y '%g'\n", out);
		return;
	}
	fputs("set logscale y; set format y '%g'; set ytics " TICS " (", out);
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

/* Places the next plot: margins as parts of the picture's width and of this direction's height. */
static void put_place(FILE *out, const struct panel *panel, double left, double right, double top, double bottom)
{
	fprintf(out, "set lmargin at screen %.4f; set rmargin at screen %.4f; ", left, right);
	fprintf(out, "set tmargin at screen %.4f; set bmargin at screen %.4f\n", panel->top - top * panel->height,
	        panel->top - bottom * panel->height);
}

/* A box for each bin from one column to another; its border closes the seam to the next. */
static void put_boxes(FILE *out, int d, int from, int to, const char *colour, const char *title)
{
	fprintf(out, "$bins%d using (($1+$2)/2):(($%d+$%d)/2):1:2:%d:%d with boxxyerror ", d, from, to, from, to);
	fprintf(out, "fc rgb '#%s' fs solid 1 border lc rgb '#%s' title '%s'", colour, colour, title);
}

static void put_delay_panel(FILE *out, const struct panel *panel)
{
	int d = panel->direction;
	put_place(out, panel, 0.075, 0.66, 0.12, 0.66);
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
		fprintf(out, "unset key; plot $points%d using 1:2 with points pt 7 ps 0.35 lc rgb '#08519c'\n", d);
		return;
	}
	fputs("set key at graph 1, graph 1.09 right horizontal samplen 2\n", out);
	fputs("plot ", out);
	put_boxes(out, d, 3, 6, "c6dbef", "min to max");
	fputs(", ", out);
	put_boxes(out, d, 4, 5, "6baed6", "median to p99");
	fprintf(out, ", $bins%d using (($1+$2)/2):4:1:2 with xerrorbars pt 0 lw 2 lc rgb '#08306b' title 'median'\n",
	        d);
}

static void put_loss_panel(FILE *out, const struct panel *panel)
{
	double worst = 0;
	for (size_t i = 0; i < panel->bins; i++)
		worst = fmax(worst, 100 * (double)panel->bin[i].lost / (double)panel->bin[i].sent);
	put_place(out, panel, 0.075, 0.66, 0.70, 0.86);
	fputs("unset logscale y; unset key; set ylabel 'loss, %'; set format x '%g'; set format y '%g'\n", out);
	char start[40];
	time_t second = (time_t)(panel->start_ns / OW_NS_PER_S);
	struct tm tm;
	strftime(start, sizeof start, "%Y-%m-%d %H:%M:%S", gmtime_r(&second, &tm));
	fprintf(out, "set xlabel 'time since %s.%03d UTC, %s'\n", start,
	        (int)(panel->start_ns % OW_NS_PER_S / OW_NS_PER_MS), panel->time.unit);
	if (worst > 0) {
		/* Three marks: there is room for no more. */
		double step = pow(10, floor(log10(worst)));
		step *= worst / step > 5 ? 5 : worst / step > 2 ? 2 : 1;
		fprintf(out, "set yrange [0:%.9g]; set ytics " TICS " 0,%.9g\n", worst * 1.05, step);
	} else {
		fputs("set yrange [0:1]; unset ytics; ", out);
		fputs("set label 1 'no packet lost' at graph 0.5, graph 0.5 center tc rgb '#636363'\n", out);
	}
	fputs("plot ", out);
	put_boxes(out, panel->direction, 8, 7, "cb181d", "lost");
	fputs("\n", out);
	fputs("unset label 1\n", out);
}

static void put_tail_panel(FILE *out, const struct panel *panel)
{
	double samples = (double)ow_delays_samples(panel->track->delays);
	put_place(out, panel, 0.735, 0.98, 0.12, 0.86);
	put_delay_axis(out, &panel->delay);
	fputs("unset key; unset ylabel; set xlabel 'packets that were faster, %'; set logscale x\n", out);
	fprintf(out, "set xrange [1:%.9g]; set xtics ('0' 1, ", fmax(10, samples * 1.2));
	/* With many decades the marks would touch: some go without a name. */
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
	fprintf(out, "plot $tail%d using 1:2 with lines lw 2 lc rgb '#08306b'\n", panel->direction);
	fputs("unset logscale x; set xtics autofreq; set autoscale x\n", out);
}

static void put_title(FILE *out, int d, double at, const struct ow_result *result)
{
	char text[300], median[OW_DURATION_TEXT], p99[OW_DURATION_TEXT], max[OW_DURATION_TEXT];
	double loss = result->sent ? 100 * (double)result->lost / (double)result->sent : 0;
	int n = snprintf(text, sizeof text, "%s: %" PRIu64 " sent, %" PRIu64 " lost (%.3g %%)",
	                 d == OW_A_TO_B ? "A to B" : "B to A", result->sent, result->lost, loss);
	if (result->delay.samples) {
		ow_duration_text(result->delay.quantile_ns[OW_Q50], median);
		ow_duration_text(result->delay.quantile_ns[OW_Q99], p99);
		ow_duration_text((double)result->delay.max_ns, max);
		snprintf(text + n, sizeof text - (size_t)n, "; delay median %s, p99 %s, max %s", median, p99, max);
	}
	fputs("set label 2 ", out);
	ow_gnuplot_quote(out, text);
	fprintf(out, " at screen 0.075, screen %.4f left\n", at);
}

static void put_panels(FILE *out, struct panel *panel)
{
	panel->delay = delay_axis(panel->track);
	panel->start_ns = panel->bin[0].start_ns;
	double span_ns = (double)(panel->bin[panel->bins - 1].end_ns - panel->start_ns);
	choose_unit(&panel->time, span_ns);
	put_bins(out, panel);
	if (panel->track->points <= POINTS_MAX)
		put_points(out, panel);
	put_tail(out, panel);
	fprintf(out, "set xrange [0:%.9g]\n", scaled(&panel->time, span_ns));
	put_delay_panel(out, panel);
	fputs("unset label 2; unset label 9\n", out); /* or every plot would print them again, over each other */
	put_loss_panel(out, panel);
	put_tail_panel(out, panel);
}

static int put_direction(FILE *out, const struct ow_plot *plot, const struct ow_match_report *report, int d, double top,
                         double height)
{
	struct ow_timeline_bin *bin = calloc(OW_TIMELINE_BINS, sizeof *bin);
	if (!bin)
		return -ENOMEM;
	const struct track *track = &plot->track[d];
	struct panel panel = {.direction = d, .track = track, .bin = bin, .top = top, .height = height};
	panel.bins = ow_timeline_bins(track->timeline, bin);
	put_title(out, d, top - 0.02 * height, &report->direction[d]);
	if (ow_delays_samples(track->delays)) {
		put_panels(out, &panel);
	} else {
		fprintf(out, "set label 3 'no delay sample' at screen 0.5, screen %.4f center\n", top - height / 2);
		fputs("unset border; unset tics; unset key; unset xlabel; unset ylabel; plot [0:1] [0:1] NaN\n", out);
		fputs(FRAME "unset label 2; unset label 3; unset label 9\n", out);
	}
	free(bin);
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

static int put_script(FILE *out, const struct ow_plot *plot, const struct ow_match_report *report, bool svg)
{
	int directions = report->has_direction[OW_A_TO_B] + report->has_direction[OW_B_TO_A];
	int height = HEAD_PX + DIRECTION_PX * (directions ? directions : 1);
	fprintf(out, "set terminal %s noenhanced size %d,%d font 'sans,%d' background rgb 'white'\n",
	        svg ? "svg" : "pngcairo", WIDTH_PX, height, svg ? 13 : 10);
	fputs(FRAME "set encoding utf8; set errorbars 0\n"
	            "set grid back lt 1 lc rgb '#e4e4e4' lw 1; set multiplot\n",
	      out);
	char heading[600];
	snprintf(heading, sizeof heading, "A: %.250s    B: %.250s", base_name(report->capture[OW_SIDE_A].path),
	         base_name(report->capture[OW_SIDE_B].path));
	fputs("set label 9 ", out);
	ow_gnuplot_quote(out, heading);
	fprintf(out, " at screen 0.075, screen %.4f left tc rgb '#636363'\n", 1 - 0.5 * HEAD_PX / height);
	double top = 1 - (double)HEAD_PX / height;
	for (int d = 0; d < OW_DIRECTIONS; d++) {
		if (!report->has_direction[d])
			continue;
		int r = put_direction(out, plot, report, d, top, (double)DIRECTION_PX / height);
		if (r < 0)
			return r;
		top -= (double)DIRECTION_PX / height;
	}
	fputs("unset multiplot\n", out);
	return 0;
}

int ow_plot_write(const struct ow_plot *plot, const struct ow_match_report *report, const char *path,
                  struct ow_error *err)
{
	int r = ow_plot_check_name(path, err);
	if (r < 0)
		return r;
	bool svg = ow_gnuplot_is_svg(path);
	FILE *script;
	r = ow_gnuplot_begin(path, &script, err);
	if (r < 0)
		return r;
	r = put_script(script, plot, report, svg);
	if (r < 0)
		ow_error_set(err, -r, "%s: not enough memory", path);
	else
		r = ow_gnuplot_run(script, path, err);
	fclose(script);
	return r;
}
