/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as text, similar to owping's summary: what was compared and how, then for each direction the packets and the
 * delay with the number of samples, and last the warnings. Counters are printed even if they are 0, so that two runs
 * can be compared line by line.
 */
#include "base/word.h"
#include "report/match_details.h"
#include "report/report.h"
#include "estimate/delay.h"

#include "base/time.h"
#include "base/format.h"
#include "base/side.h"
#include "base/table.h"
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define WIDTH_MIN  30
#define WIDTH_FILE 80 /* without a terminal */
/* From this width on, the table of intervals has all its columns. */
#define WIDTH_WIDE 78
/* Below this width, a row of delays has one value. */
#define WIDTH_DELAYS 46

struct style {
	FILE *out;
	int width;
	const char *bold, *red, *plain;
	const char *left, *right; /* marks before cells, or nothing */
};

static const char *const direction_title[] = {"A to B", "B to A"};

/* File names may contain any bytes; these must not control the terminal. */
static void put_clean(FILE *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		fputc((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i], out);
}

/* The first line begins with `label` of `hang` columns, the others with as many spaces. */
static void put_wrapped(const struct style *style, const char *colour, const char *label, const char *text, int hang)
{
	fprintf(style->out, "%s%-*s%s%s", colour, hang, label, *colour ? style->plain : "", style->left);
	ow_format_wrap(style->out, text, hang, style->width);
}

/* The properties of one capture as text, and the width of each column. */
enum { COLUMN_PACKETS, COLUMN_SPAN, COLUMN_RATE, COLUMN_LINK, COLUMNS };

static void capture_columns(const struct ow_capture_info *info, char text[COLUMNS][OW_FORMAT], size_t width[COLUMNS])
{
	double ns = info->packets ? (double)info->last_ns - (double)info->first_ns : 0;
	ow_format_count(info->packets, text[COLUMN_PACKETS]);
	ow_duration_text(ns, text[COLUMN_SPAN]);
	if (info->packets > 1 && ns > 0)
		ow_format_rate((double)(info->packets - 1) / (ns / 1e9), "pps", text[COLUMN_RATE]);
	else
		snprintf(text[COLUMN_RATE], OW_FORMAT, "- pps");
	snprintf(text[COLUMN_LINK], OW_FORMAT, "%s", info->linktype);
	for (int i = 0; i < COLUMNS; i++) {
		size_t length = strlen(text[i]);
		width[i] = length > width[i] ? length : width[i];
	}
}

static void put_captures(const struct style *style, const struct ow_match_report *report, const char *const *name)
{
	char text[OW_SIDES][COLUMNS][OW_FORMAT], resolution[OW_DURATION_TEXT];
	size_t width[COLUMNS] = {0};
	for (int side = 0; side < OW_SIDES; side++)
		capture_columns(&report->capture[side], text[side], width);
	for (int side = 0; side < OW_SIDES; side++) {
		fprintf(style->out, "%s%c%s  %s", style->bold, 'A' + side, style->plain, style->left);
		const char *path = report->capture[side].path;
		if (name && name[side]) {
			put_clean(style->out, name[side], strlen(name[side]));
			fputs("  ", style->out);
		}
		put_clean(style->out, path, strlen(path));
		if (report->files[side])
			fprintf(style->out, "  %" PRIu32 " %s", report->files[side],
			        ow_plural(report->files[side], "file", "files"));
		fprintf(style->out, "\n  %s", style->left);
		const char *unit = ow_plural(report->capture[side].packets, " packet  ", " packets ");
		for (int i = 0; i < COLUMNS; i++)
			fprintf(style->out, " %*s%s", i == COLUMN_LINK ? -(int)width[i] : (int)width[i], text[side][i],
			        i == COLUMN_PACKETS ? unit : " ");
		ow_duration_text((double)report->capture[side].resolution_ns, resolution);
		fprintf(style->out, " %s%s", resolution, style->width >= WIDTH_WIDE ? " resolution" : "");
		if (report->stamps[side] && strcmp(report->stamps[side], "capture") != 0)
			fprintf(style->out, "  times of the %s", report->stamps[side]);
		fputc('\n', style->out);
	}
	fputc('\n', style->out);
}

static void put_identity(const struct style *style, const struct ow_match_report *report)
{
	static const char *const level[] = {
		[OW_LEVEL_AUTO] = "auto",
		[OW_LEVEL_IP] = "ip: what routers leave unchanged, from the IP header on",
		[OW_LEVEL_NAT] = "nat: as ip, without addresses and ports",
		[OW_LEVEL_FRAME] = "frame: all bytes as they are",
	};
	char text[300];
	bool frame = report->level == OW_LEVEL_FRAME;
	snprintf(text, sizeof text, "%s%s%s%s%s%s", level[report->level],
	         report->ip_id || frame ? "" : "; without the IP id, which is rewritten on the way",
	         report->tcp_options || frame ? ""
	         : report->tcp_numbers        ? "; without TCP's options, which are rewritten on the way"
	                                      : "; without TCP's numbers and options, which are rewritten on the way",
	         report->inner ? "; inside tunnels" : "", report->segments ? "; superframes cut into segments" : "",
	         report->fragments ? "; packets matched with their fragments" : "");
	put_wrapped(style, "", "identity", text, 11);
}

/* Nothing is rounded, because the user may pass the value to --offset. */
static void exact_duration(int64_t ns, char text[OW_DURATION_TEXT])
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	unsigned digits = size >= 1000000000 ? 9 : size >= 1000000 ? 6 : size >= 1000 ? 3 : 0;
	const char *unit = digits == 9 ? "s" : digits == 6 ? "ms" : digits == 3 ? "us" : "ns";
	uint64_t tick = digits == 9 ? 1000000000 : digits == 6 ? 1000000 : digits == 3 ? 1000 : 1;
	uint64_t rest = size % tick;
	for (; rest && rest % 10 == 0; rest /= 10)
		digits--;
	if (rest)
		snprintf(text, OW_DURATION_TEXT, "%" PRIu64 ".%0*" PRIu64 " %s", size / tick, (int)digits, rest, unit);
	else
		snprintf(text, OW_DURATION_TEXT, "%" PRIu64 " %s", size / tick, unit);
}

static const char *how_estimated(const struct ow_match_report *report)
{
	bool low = report->offset_low_ns != INT64_MIN, high = report->offset_high_ns != INT64_MAX;
	if (!low && !high)
		return "estimated from identical packets: up to multiples of their period";
	if (!low || !high)
		return "so that the minimum delay is 0: only variation counts";
	return report->offset_low_ns > report->offset_high_ns ? "estimated from both directions, though no offset fits"
	                                                      : "estimated from both directions";
}

static void put_clock(const struct style *style, const struct ow_match_report *report)
{
	char text[300], offset[OW_DURATION_TEXT], error[OW_DURATION_TEXT + 4] = "", drift[60] = "";
	bool estimated = report->clock == OW_CLOCK_ESTIMATED;
	exact_duration(report->offset_ns, offset);
	if (report->drift_ppb != 0)
		snprintf(drift, sizeof drift, ", its drift of %.4g ppm removed", report->drift_ppb / 1000);
	if (estimated && report->offset_error_ns >= 0) {
		memcpy(error, " +- ", 4);
		ow_duration_text((double)report->offset_error_ns, error + 4);
	}
	if (report->clock == OW_CLOCK_NONE)
		snprintf(text, sizeof text, "both trusted as they are");
	else
		snprintf(text, sizeof text, "B set %s %s%s%s, %s", offset, report->offset_ns < 0 ? "earlier" : "later",
		         error, drift, estimated ? how_estimated(report) : "as given");
	put_wrapped(style, "", "clocks", text, 11);
	ow_duration_text((double)report->window_ns, offset);
	snprintf(text, sizeof text, "%s, then a packet counts as lost", offset);
	put_wrapped(style, "", "waiting", text, 11);
}

static void put_counter(const struct style *style, const char *name, uint64_t count, int width, const char *note)
{
	char text[OW_FORMAT];
	bool red = strcmp(name, "lost") == 0 && count > 0;
	fprintf(style->out, "%s  %-11s %s%*s%s%s%s%s\n", red ? style->red : "", name, style->right, width,
	        ow_format_count(count, text), *note ? "  " : "", style->left, note, red ? style->plain : "");
}

static void put_counters(const struct style *style, const struct ow_match_report *report, int direction)
{
	const struct ow_result *result = &report->direction[direction];
	char text[OW_FORMAT], share[OW_FORMAT], window[OW_DURATION_TEXT], note[120] = "";
	uint64_t most = result->sent > result->received ? result->sent : result->received;
	int width = (int)strlen(ow_format_count(most, text));
	put_counter(style, "sent", result->sent, width, "");
	put_counter(style, "received", result->received, width, "");
	ow_duration_text((double)report->window_ns, window);
	if (result->lost)
		snprintf(note, sizeof note, "%s, not seen within %s",
		         ow_format_share(result->lost, result->sent, share), window);
	else if (result->sent)
		snprintf(note, sizeof note, "0 %%");
	put_counter(style, "lost", result->lost, width, note);
	put_counter(style, "duplicates", result->duplicated, width,
	            result->duplicated ? "further copies of a packet" : "");
	*note = 0;
	if (result->extra)
		snprintf(note, sizeof note, "not in %s's capture%s", direction == OW_A_TO_B ? "A" : "B",
		         result->duplicated ? ", with duplicates" : "");
	put_counter(style, "extra", result->extra, width, note);
	*note = 0;
	if (result->ambiguous)
		snprintf(note, sizeof note, "%s, %s", ow_format_share(result->ambiguous, result->matched, share),
		         result->delay.uncertain ? "delay within bounds" : "delay not known");
	put_counter(style, "ambiguous", result->ambiguous, width, note);
	*note = 0;
	if (result->reordered && result->received)
		snprintf(note, sizeof note, "%s", ow_format_share(result->reordered, result->received, share));
	put_counter(style, "reordered", result->reordered, width, note);
}

static void put_bound(const struct style *style, const char *name, double low_ns, double high_ns)
{
	char low[OW_DURATION_TEXT], high[OW_DURATION_TEXT];
	ow_duration_text(low_ns, low);
	ow_duration_text(high_ns, high);
	fprintf(style->out, "    %-8s %s%10s%s to %s\n", name, style->right, low, style->left, high);
}

/* Identical packets make some delays uncertain: the bounds hold for every assignment. */
static void put_bounds(const struct style *style, const struct ow_match_report *report, int direction)
{
	const struct ow_delay *delay = &report->direction[direction].delay;
	char count[OW_FORMAT], share[OW_FORMAT], period[OW_DURATION_TEXT], text[200];
	if (!delay->uncertain)
		return;
	ow_duration_text((double)delay->period_ns, period);
	snprintf(text, sizeof text,
	         "%s of these delays (%s) are estimates, because identical packets follow each other%s%s",
	         ow_format_count(delay->uncertain, count), ow_format_share(delay->uncertain, delay->samples, share),
	         delay->period_ns ? "; they may be off by multiples of " : "", delay->period_ns ? period : "");
	put_wrapped(style, "", "  bounds", text, 12);
	put_bound(style, "mean", delay->low.mean_ns, delay->high.mean_ns);
	put_bound(style, "median", delay->low.quantile_ns[OW_Q50], delay->high.quantile_ns[OW_Q50]);
	for (unsigned i = 0; i < report->percentiles; i++) {
		const struct ow_percentile *asked = &report->percentile[direction][i];
		snprintf(text, sizeof text, "p%s", ow_format_number(asked->percent, count));
		put_bound(style, text, asked->low_ns, asked->high_ns);
	}
	if (!report->percentiles) {
		put_bound(style, "p95", delay->low.quantile_ns[OW_Q95], delay->high.quantile_ns[OW_Q95]);
		put_bound(style, "p99", delay->low.quantile_ns[OW_Q99], delay->high.quantile_ns[OW_Q99]);
		put_bound(style, "p99.9", delay->low.quantile_ns[OW_Q999], delay->high.quantile_ns[OW_Q999]);
	}
	put_bound(style, "max", (double)delay->low.max_ns, (double)delay->high.max_ns);
}

/* With its error, unless that is too small to matter. */
static void put_jitter(const struct style *style, double median, double q95)
{
	char jitter[OW_DURATION_TEXT], error[OW_DURATION_TEXT];
	double error_ns = ow_delay_jitter_error(median, q95);
	bool rough = error_ns > 0.01 * (q95 - median);
	ow_duration_text(q95 - median, jitter);
	ow_duration_text(error_ns, error);
	fprintf(style->out, "    %-8s %s%10s    %sP95-P50%s%s\n", "jitter", style->right, jitter, style->left,
	        rough ? " +- " : "", rough ? error : "");
}

/* A line of a name and a delay, or the half of one. */
struct delay_row {
	char name[OW_FORMAT + 1];
	double delay_ns;
};

/* The percentiles that were asked for, or the usual ones. Returns how many. */
static size_t percentile_rows(const struct ow_match_report *report, int direction, struct delay_row *row)
{
	static const struct {
		const char *name;
		enum ow_quantile quantile;
	} usual[] = {{"p90", OW_Q90}, {"p95", OW_Q95}, {"p99", OW_Q99}, {"p99.9", OW_Q999}};
	size_t count = report->percentiles ? report->percentiles : sizeof usual / sizeof *usual;
	char number[OW_FORMAT];
	for (size_t i = 0; i < count; i++) {
		const struct ow_percentile *asked = &report->percentile[direction][i];
		if (report->percentiles)
			snprintf(row[i].name, sizeof row[i].name, "p%s", ow_format_number(asked->percent, number));
		else
			snprintf(row[i].name, sizeof row[i].name, "%s", usual[i].name);
		row[i].delay_ns = report->percentiles
		                          ? asked->delay_ns
		                          : report->direction[direction].delay.quantile_ns[usual[i].quantile];
	}
	return count;
}

static void put_delay(const struct style *style, const struct ow_match_report *report, int direction)
{
	const struct ow_result *result = &report->direction[direction];
	const struct ow_delay *delay = &result->delay;
	char text[OW_DURATION_TEXT], count[OW_FORMAT];
	if (!delay->samples) {
		fprintf(style->out, "  delay       no sample%s\n", result->matched ? ": no delay is known" : "");
		return;
	}
	const struct delay_row left[] = {{"min", (double)delay->min_ns},
	                                 {"median", delay->quantile_ns[OW_Q50]},
	                                 {"mean", delay->mean_ns},
	                                 {"stddev", delay->stddev_ns},
	                                 {"max", (double)delay->max_ns}};
	struct delay_row right[OW_PERCENTILES_MAX];
	size_t lefts = sizeof left / sizeof *left, rights = percentile_rows(report, direction, right);
	fprintf(style->out, "  delay of %s %s\n", ow_format_count(delay->samples, count),
	        ow_plural(delay->samples, "packet", "packets"));
	bool narrow = style->width < WIDTH_DELAYS;
	size_t name = narrow ? 8 : 7;
	for (size_t i = 0; i < rights; i++)
		name = strlen(right[i].name) > name ? strlen(right[i].name) : name;
	for (size_t i = 0; i < lefts || i < rights; i++) {
		ow_duration_text(i < lefts ? left[i].delay_ns : 0, text);
		if (i < lefts)
			fprintf(style->out, "    %-8s %s%10s%s", left[i].name, style->right, text,
			        narrow || i >= rights ? "\n" : "");
		else if (!narrow)
			fprintf(style->out, "%s%*s", style->right, 23, "");
		ow_duration_text(i < rights ? right[i].delay_ns : 0, text);
		if (i < rights)
			fprintf(style->out, "%s    %-*s %s%10s\n", narrow ? "" : style->left, (int)name, right[i].name,
			        style->right, text);
	}
	put_jitter(style, delay->quantile_ns[OW_Q50], delay->quantile_ns[OW_Q95]);
	put_bounds(style, report, direction);
}

/* A direction without packets has no block of its own, unless the other one has no packets either. */
static bool is_shown(const struct ow_match_report *report, int direction)
{
	return report->has_direction[direction] &&
	       (report->direction[direction].sent || report->direction[direction].received ||
	        !report->has_direction[!direction]);
}

/* Packets of this direction may be among those that were not counted. */
static void put_no_packets(const struct style *style, const struct ow_match_report *report, int direction)
{
	int from = ow_sender_of(direction);
	bool aside = report->unclassified[from] || report->outside_overlap[from];
	fprintf(style->out, "\nno packets from %s%s\n", direction_title[direction],
	        aside ? ", but see \"not counted\"" : "");
}

static void put_direction(const struct style *style, const struct ow_match_report *report, int direction)
{
	if (!is_shown(report, direction)) {
		put_no_packets(style, report, direction);
		return;
	}
	fprintf(style->out, "\n%s%s%s\n", style->bold, direction_title[direction], style->plain);
	put_counters(style, report, direction);
	put_delay(style, report, direction);
	if (report->details[direction])
		ow_report_match_details_text(style->out, report->details[direction], style->width,
		                             *style->left ? OW_LOOK_MARKED : OW_LOOK_PLAIN);
}

enum { SENT, LOST, LOSS, MEDIAN, P99, MAX, NUMBERS };

static const struct ow_table_column columns[NUMBERS] = {
	[SENT] = {"sent", 11, 3},     [LOST] = {"lost", 9, 0}, [LOSS] = {"loss", 9, 4},
	[MEDIAN] = {"median", 10, 2}, [P99] = {"p99", 10, 1},  [MAX] = {"max", 10, 5},
};
/* Columns of the start, with what is before it: a time of day; with a date, if there are several days. */
#define START       14
#define START_DATED 25
#define FOLD_FROM   3 /* so many intervals without packets become one line */

static void cells_of(const struct ow_result *result, ow_table_cells cell)
{
	for (int i = 0; i < NUMBERS; i++)
		snprintf(cell[i], OW_TABLE_CELL, "-");
	ow_format_count(result->sent, cell[SENT]);
	ow_format_count(result->lost, cell[LOST]);
	if (result->sent)
		ow_format_share(result->lost, result->sent, cell[LOSS]);
	if (result->delay.samples) {
		ow_duration_text(result->delay.quantile_ns[OW_Q50], cell[MEDIAN]);
		ow_duration_text(result->delay.quantile_ns[OW_Q99], cell[P99]);
		ow_duration_text((double)result->delay.max_ns, cell[MAX]);
	}
}

/* The number of intervals from the i-th on in which a direction has no packets. */
static size_t empty_run(const struct ow_match_report *report, int direction, size_t i)
{
	size_t run = 0;
	for (; i + run < report->intervals; run++) {
		const struct ow_result *result = &report->interval[i + run].direction[direction];
		if (result->sent || result->received)
			break;
	}
	return run;
}

static void put_intervals(const struct style *style, const struct ow_match_report *report, int direction)
{
	char time[OW_FORMAT], last[OW_FORMAT], zone[OW_FORMAT];
	const struct ow_interval *interval = report->interval;
	ow_format_local(interval[report->intervals - 1].start_ns, "%Y-%m-%d", last);
	ow_format_local(interval[0].start_ns, "%Y-%m-%d", time);
	ow_format_local(interval[0].start_ns, "%Z", zone);
	int start = strcmp(time, last) == 0 ? START : START_DATED;
	const char *format = start == START ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S";
	struct ow_table table = {style->out, columns, NUMBERS, .colour = *style->red, .marked = *style->left};
	ow_table_fit(&table, (unsigned)(style->width > start ? style->width - start : 0));
	fprintf(style->out, "\n%s%s, interval by interval from %s (%s)%s\n", style->bold, direction_title[direction],
	        time, zone, style->plain);
	fprintf(style->out, "  %-*s", start - 2, "start");
	ow_table_heading(&table);
	fputc('\n', style->out);
	for (size_t i = 0; i < report->intervals; i++) {
		size_t empty = empty_run(report, direction, i);
		fprintf(style->out, "  %-*s", start - 2, ow_format_local(interval[i].start_ns, format, time));
		if (empty >= FOLD_FROM) {
			fprintf(style->out, "%s %s intervals without packets\n", style->left,
			        ow_format_count(empty, time));
			i += empty - 1;
			continue;
		}
		const struct ow_result *result = &interval[i].direction[direction];
		ow_table_cells cell;
		cells_of(result, cell);
		ow_table_row(&table, cell, result->lost ? 1u << LOST : 0);
	}
}

/* Packets that are in no result; prints nothing if there are none. */
static void put_aside(const struct style *style, const char *name, const uint64_t count[OW_SIDES], const char *meaning)
{
	char text[200], a[OW_FORMAT], b[OW_FORMAT];
	if (!count[OW_SIDE_A] && !count[OW_SIDE_B])
		return;
	snprintf(text, sizeof text, "%s at A, %s at B: %s", ow_format_count(count[OW_SIDE_A], a),
	         ow_format_count(count[OW_SIDE_B], b), meaning);
	put_wrapped(style, "", name, text, 16);
}

static void put_asides(const struct style *style, const struct ow_match_report *report)
{
	uint64_t all = 0;
	for (int side = 0; side < OW_SIDES; side++)
		all += report->unclassified[side] + report->outside_overlap[side] + report->skipped[side] +
		       report->filtered[side];
	if (!all)
		return;
	fprintf(style->out, "\n%snot counted%s\n", style->bold, style->plain);
	put_aside(style, "  outside", report->outside_overlap, "while the other capture showed nothing");
	put_aside(style, "  unclassified", report->unclassified, "in flows that the other capture never saw");
	put_aside(style, "  skipped", report->skipped, "not comparable at this level, or copies");
	put_aside(style, "  filtered", report->filtered, "not accepted by the filter");
}

void ow_report_match_text(FILE *out, const struct ow_match_report *report, const char *const *name, int width,
                          enum ow_look look)
{
	bool terminal = width > 0;
	struct style style = {out, !terminal ? WIDTH_FILE : width < WIDTH_MIN ? WIDTH_MIN : width, "", "", "", "", ""};
	if (look != OW_LOOK_PLAIN) {
		style.bold = "\033[1m";
		style.red = "\033[31m";
		style.plain = "\033[0m";
	}
	if (look == OW_LOOK_MARKED) {
		style.left = OW_MARK_LEFT;
		style.right = OW_MARK_RIGHT;
	}
	put_captures(&style, report, name);
	put_identity(&style, report);
	put_clock(&style, report);
	for (int d = 0; d < OW_DIRECTIONS; d++) {
		if (report->has_direction[d])
			put_direction(&style, report, d);
	}
	for (int d = 0; d < OW_DIRECTIONS; d++) {
		if (is_shown(report, d) && report->intervals)
			put_intervals(&style, report, d);
	}
	put_asides(&style, report);
	if (report->warnings)
		fputc('\n', out);
	if (!terminal)
		style.width = INT_MAX; /* one line for each, for grep */
	for (size_t i = 0; i < report->warnings; i++)
		put_wrapped(&style, style.red, "warning: ", report->warning[i], 9);
}
