/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of stored results as text and as JSON. */
#include "base/word.h"
#include "store/stored_sum.h"

#include "base/time.h"
#include "estimate/clock_words.h"
#include "base/json_writer.h"
#include "report/interval_render.h"
#include "result/fields.h"
#include "result/json.h"
#include "base/format.h"
#include "base/table.h"
#include <math.h>
#include <string.h>

#define LANE_MIN 10
#define LANE_MAX 40
/* Width of the lane in a table that is written to a file. */
#define LANE_FILE  28
#define WIDTH_FILE 120

/* -- words -------------------------------------------------------------------------------------------------------- */

/* The title of a sum. */
static size_t title_of(const struct ow_stored *stored, const struct ow_stored_sum *sum, enum ow_stored_group group,
                       size_t columns, char text[OW_RENDER_LANE])
{
	size_t lanes;
	const struct ow_stored_lane *lane = ow_stored_lanes(stored, &lanes) + sum->lane;
	struct ow_interval_result names = {0};
	if (group == OW_STORED_SEGMENT) {
		ow_format_clean(lane->segment, false, text, OW_RENDER_LANE);
		ow_format_cut(text, columns);
		return ow_format_columns(text);
	}
	ow_stored_name(lane, &names);
	return ow_render_lane(&names, columns, false, text);
}

/* -- blocks ------------------------------------------------------------------------------------------------------- */

static void put_intervals(FILE *out, const struct ow_stored_sum *sum)
{
	char count[OW_FORMAT], share[OW_FORMAT], from[OW_FORMAT], to[OW_FORMAT], zone[OW_FORMAT];
	fprintf(out, "%s interval%s from %s to %s %s\n", ow_format_count(sum->intervals, count),
	        ow_plural(sum->intervals, "", "s"), ow_format_local(sum->start_ns, "%Y-%m-%d %T", from),
	        ow_format_local(sum->end_ns, "%Y-%m-%d %T", to), ow_format_local(sum->end_ns, "%Z", zone));
	fprintf(out, "%s measured (%s)", ow_format_count(sum->measured, count),
	        ow_format_percent(ow_stored_sum_availability(sum), share));
	const struct {
		uint64_t count;
		const char *name;
	} others[] = {{sum->partial, "partial"},
	              {sum->unknown, "unknown"},
	              {sum->missing, "missing in the store"},
	              {sum->provisional, "not final yet"}};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		if (others[i].count)
			fprintf(out, ", %s %s", ow_format_count(others[i].count, count), others[i].name);
	}
	fputc('\n', out);
}

/* As in the lines of intervals: what did not arrive may have gone to another peer. */
static bool loss_is_elsewhere(const struct ow_interval_result *n, double loss)
{
	return n->sent && !n->lost && !isfinite(loss);
}

static void put_counts(FILE *out, const struct ow_stored_sum *sum, const char *rows)
{
	struct ow_interval_result n = {.length_ns = 0};
	ow_stored_sum_counts(sum, &n);
	char a[OW_FORMAT], b[OW_FORMAT], c[OW_FORMAT], d[OW_FORMAT], share[OW_FORMAT] = "-";
	double loss = ow_stored_sum_loss(sum);
	if (isfinite(loss))
		ow_format_percent(loss, share);
	fprintf(out, "%s sent, %s received, ", ow_format_count(n.sent, a), ow_format_count(n.received, b));
	if (loss_is_elsewhere(&n, loss))
		fputs("loss not known", out);
	else
		fprintf(out, "%s lost (%s%s)", ow_format_count(n.lost, c), share, n.pending ? " of those decided" : "");
	fprintf(out, ", %s duplicate%s\n", ow_format_count(n.duplicated, d), ow_plural(n.duplicated, "", "s"));
	ow_render_counts(out, &n);
	if (n.late_received != n.late) /* without it, received does not follow from the other counts */
		fprintf(out, "%s received late: sent in an earlier interval\n", ow_format_count(n.late_received, a));
	if (n.pending)
		fprintf(out, "%s undecided\n", ow_format_count(n.pending, a));
	if (n.extra > n.duplicated)
		fprintf(out, "%s extra: not seen at the sending point\n", ow_format_count(n.extra - n.duplicated, a));
	if (n.reordered != OW_RESULT_NOT_COUNTED && n.reordered)
		fprintf(out, "%s reordered\n", ow_format_count(n.reordered, a));
	if (sum->sampled)
		fprintf(out, "sampled in %s %s: a packet of a sample counts as those that it stands for\n",
		        ow_format_count(sum->sampled, a), rows);
	if (n.ring_drops_from || n.ring_drops_to)
		fprintf(out, "the points' own rings lost frames: %s sending, %s receiving\n",
		        ow_format_count(n.ring_drops_from, a), ow_format_count(n.ring_drops_to, b));
	if (n.unreadable)
		fprintf(out, "%s %s could not be identified\n", ow_format_count(n.unreadable, a),
		        ow_plural(n.unreadable, "frame", "frames"));
}

/* A packet that returns to its sender has travelled in both directions. */
static const char *way_of(const struct ow_stored *stored, const struct ow_stored_sum *sum)
{
	size_t lanes;
	const struct ow_stored_lane *lane = ow_stored_lanes(stored, &lanes) + sum->lane;
	return strcmp(lane->from, lane->to) == 0 ? "round-trip" : "one-way";
}

/* Quantiles of all packets, and between which delays the p99 is. One that has no upper bound is at least the lower. */
static void put_quantiles(FILE *out, const struct ow_stored_sum *sum, const char *way)
{
	char text[OW_DURATION_TEXT], high[OW_DURATION_TEXT], count[OW_FORMAT], all[OW_FORMAT];
	struct ow_value p99 = ow_stored_sum_quantile(sum, ow_quantile_level[OW_Q99]);
	uint64_t without = sum->samples > sum->delays.packets ? sum->samples - sum->delays.packets : 0;
	if (p99.status != OW_VALUE_NONE) {
		fprintf(out, "%s delay p50/p90/p95/p99/p99.9 = ", way);
		for (int q = 0; q < OW_QUANTILES; q++) {
			struct ow_value v = ow_stored_sum_quantile(sum, ow_quantile_level[q]);
			bool bounded = v.status == OW_VALUE_NONE || isfinite(v.high);
			fprintf(out, "%s%s%s", q ? " / " : "", bounded ? "" : ">=",
			        ow_duration_cell(v.status == OW_VALUE_NONE ? NAN
			                         : bounded                 ? v.value
			                                                   : v.low,
			                         text));
		}
		fprintf(out, "\np99 is between %s and %s\n",
		        isfinite(p99.low) ? ow_duration_cell(p99.low, text) : "any",
		        isfinite(p99.high) ? ow_duration_cell(p99.high, high) : "any delay: too few are known");
	}
	if (without)
		fprintf(out, "%s: of %s %s of %s only the mean is known%s\n",
		        p99.status == OW_VALUE_NONE ? "no quantiles" : "quantiles are less certain",
		        ow_format_count(without, count), ow_plural(without, "packet", "packets"),
		        ow_format_count(sum->samples, all), sum->delays.packets ? "" : ", not the distribution");
}

static void put_delays(FILE *out, const struct ow_stored_sum *sum, const char *rows, const char *way)
{
	char a[OW_DURATION_TEXT], b[OW_DURATION_TEXT], low[OW_FORMAT], high[OW_FORMAT];
	if (!(sum->weight > 0)) {
		fputs("no delay is known\n", out);
		return;
	}
	fprintf(out, "%s delay mean/stddev = %s / %s of %s %s\n", way, ow_duration_cell(ow_stored_sum_mean(sum), a),
	        ow_duration_cell(ow_stored_sum_stddev(sum), b), ow_format_count(sum->samples, low),
	        ow_plural(sum->samples, "packet", "packets"));
	if (isnan(ow_stored_sum_stddev(sum)))
		fprintf(out, "no stddev: not all %s have one\n", rows);
	if (isfinite(ow_stored_sum_min(sum)) && isfinite(ow_stored_sum_max(sum)))
		fprintf(out, "%s delay min/max = %s / %s\n", way, ow_duration_cell(ow_stored_sum_min(sum), a),
		        ow_duration_cell(ow_stored_sum_max(sum), b));
	put_quantiles(out, sum, way);
	fprintf(out, "means of %s: %s at %s to %s at %s\n", rows, ow_duration_cell(sum->mean.low, a),
	        ow_format_local(sum->mean.low_ns, "%m-%d %T", low), ow_duration_cell(sum->mean.high, b),
	        ow_format_local(sum->mean.high_ns, "%m-%d %T", high));
	if (sum->p99_ns.count)
		fprintf(out, "worst p99 of %s: %s at %s\n", rows, ow_duration_cell(sum->p99_ns.high, b),
		        ow_format_local(sum->p99_ns.high_ns, "%m-%d %T", high));
}

static void put_rest(FILE *out, const struct ow_stored_sum *sum, const char *rows)
{
	char share[OW_FORMAT], at[OW_FORMAT], error[OW_DURATION_TEXT], count[OW_FORMAT];
	if (sum->loss.count && sum->loss.high > 0)
		fprintf(out, "worst loss of %s: %s at %s\n", rows, ow_format_percent(sum->loss.high, share),
		        ow_format_local(sum->loss.high_ns, "%m-%d %T", at));
	if (sum->clock_error_ns > 0)
		fprintf(out, "clock error: at most %s in each delay\n",
		        ow_duration_cell((double)sum->clock_error_ns, error));
	if (sum->clock_unknown && sum->weight > 0)
		fprintf(out, "clock error unknown in %s %s: a clock was not synchronised\n",
		        ow_format_count(sum->clock_unknown, count), rows);
	struct ow_clock_words words;
	ow_clock_words(sum->mean.count ? sum->mean.low : NAN, sum->weight > 0 ? ow_stored_sum_mean(sum) : NAN,
	               sum->clock_error_ns < 0 ? NAN : (double)sum->clock_error_ns, NULL, &words);
	if (*words.beyond)
		fprintf(out, "%s\n", words.beyond);
	if (*words.negative)
		fprintf(out, "%s\n", words.negative);
}

static void put_blocks(const struct ow_stored_show *show, const struct ow_stored *stored,
                       const struct ow_stored_sums *sums, enum ow_stored_group group)
{
	const char *rows = ow_stored_period_name[ow_stored_period(stored)];
	char title[OW_RENDER_LANE];
	for (size_t i = 0; i < sums->count; i++) {
		const struct ow_stored_sum *sum = &sums->sum[i];
		title_of(stored, sum, group, show->width > 20 ? show->width - 8 : 72, title);
		fprintf(show->out, "%s%s--- %s ---%s\n", i ? "\n" : "", show->colour ? "\033[1m" : "", title,
		        show->colour ? "\033[0m" : "");
		put_intervals(show->out, sum);
		if (!(sum->measured + sum->partial))
			continue;
		put_counts(show->out, sum, rows);
		put_delays(show->out, sum, rows, way_of(stored, sum));
		put_rest(show->out, sum, rows);
	}
}

/* -- table -------------------------------------------------------------------------------------------------------- */

enum { AVAILABLE, SENT, UNSHARED, LOST, WHOLE, LOSS, MEAN, STDDEV, P99, WORST, COLUMNS };

static const struct ow_table_column columns[COLUMNS] = {
	[AVAILABLE] = {"avail", 6, 3},   [SENT] = {"sent", 9, 5},       [LOST] = {"lost", 7, 6},
	[LOSS] = {"loss", 6, 0},         [MEAN] = {"mean", 9, 1},       [STDDEV] = {"stddev", 9, 8},
	[P99] = {"p99", 9, 2},           [WORST] = {"worst p99", 9, 9}, [WHOLE] = {"whole", 7, 4},
	[UNSHARED] = {"unshared", 9, 7},
};

/* The columns about scope in which all is 0. */
static unsigned hidden_columns(const struct ow_stored_sums *sums)
{
	unsigned hidden = 1u << UNSHARED | 1u << WHOLE;
	for (size_t i = 0; i < sums->count; i++) {
		struct ow_interval_result n = {.length_ns = 0};
		ow_stored_sum_counts(&sums->sum[i], &n);
		hidden &= ~((n.unshared_sent ? 1u << UNSHARED : 0) | (n.lost_whole_flows ? 1u << WHOLE : 0));
	}
	return hidden;
}

static void cells_of(const struct ow_stored_sum *sum, ow_table_cells cell)
{
	char text[OW_FORMAT];
	struct ow_interval_result n = {.length_ns = 0};
	ow_stored_sum_counts(sum, &n);
	double share = ow_stored_sum_availability(sum), loss = ow_stored_sum_loss(sum);
	struct ow_value p99 = ow_stored_sum_quantile(sum, ow_quantile_level[OW_Q99]);
	const double delays[] = {ow_stored_sum_mean(sum), ow_stored_sum_stddev(sum),
	                         p99.status == OW_VALUE_NONE || !isfinite(p99.high) ? NAN : p99.value,
	                         sum->p99_ns.count ? sum->p99_ns.high : NAN};
	snprintf(cell[AVAILABLE], OW_TABLE_CELL, "%s", isfinite(share) ? ow_format_percent(share, text) : "-");
	snprintf(cell[SENT], OW_TABLE_CELL, "%s", ow_format_short(n.sent, (int)columns[SENT].width, text));
	snprintf(cell[LOST], OW_TABLE_CELL, "%s",
	         loss_is_elsewhere(&n, loss) ? "-" : ow_format_short(n.lost, (int)columns[LOST].width, text));
	snprintf(cell[UNSHARED], OW_TABLE_CELL, "%s",
	         ow_format_short(n.unshared_sent, (int)columns[UNSHARED].width, text));
	snprintf(cell[WHOLE], OW_TABLE_CELL, "%s",
	         ow_format_short(n.lost_whole_flows, (int)columns[WHOLE].width, text));
	snprintf(cell[LOSS], OW_TABLE_CELL, "%s", isfinite(loss) ? ow_format_percent(loss, text) : "-");
	for (int i = 0; i < 4; i++)
		ow_duration_cell(delays[i], cell[MEAN + i]);
}

static void put_table(const struct ow_stored_show *show, const struct ow_stored *stored,
                      const struct ow_stored_sums *sums, enum ow_stored_group group)
{
	const char *format = group == OW_STORED_DAY ? "%Y-%m-%d" : "%Y-%m-%d %H:%M";
	unsigned time = group == OW_STORED_DAY ? 10 : 16;
	struct ow_table table = {show->out, columns, COLUMNS, .colour = show->colour, .hidden = hidden_columns(sums)};
	unsigned wide = ow_table_fit_name(&table, show->width ? show->width : WIDTH_FILE, time + 1, LANE_MIN, LANE_MAX);
	char text[OW_RENDER_LANE], when[OW_FORMAT];
	ow_table_cells cell;
	for (size_t i = 0; i < sums->count && !show->width; i++) {
		size_t taken = title_of(stored, &sums->sum[i], group, LANE_MAX, text);
		wide = i == 0 ? LANE_FILE : wide;
		wide = taken > wide ? (unsigned)taken : wide;
	}
	for (size_t i = 0; i < sums->count; i++) {
		const struct ow_stored_sum *sum = &sums->sum[i];
		if (i == 0) {
			ow_table_bold(&table);
			fprintf(show->out, "%-*s ", (int)time, ow_format_local(sum->start_ns, "%Z", when));
			ow_table_name(show->out, "lane", wide);
			ow_table_titles(&table);
		}
		size_t taken = title_of(stored, sum, group, show->width ? wide : OW_RENDER_LANE - 1, text);
		fprintf(show->out, "%s ", ow_format_local(sum->start_ns, format, when));
		ow_table_name(show->out, text, taken > wide ? taken : wide);
		cells_of(sum, cell);
		ow_table_row(&table, cell, sum->decided_lost > 0 ? 1u << LOST | 1u << LOSS : 0);
	}
}

/* -- causes ------------------------------------------------------------------------------------------------------- */

static void put_causes(const struct ow_stored_show *show, const struct ow_stored_sums *sums)
{
	char count[OW_FORMAT], first[OW_FORMAT], last[OW_FORMAT], clean[OW_RESULT_CAUSE];
	if (sums->causes)
		fputs("\nnot or not fully measured:\n", show->out);
	for (size_t i = 0; i < sums->causes; i++) {
		const struct ow_stored_cause *c = &sums->cause[i];
		ow_format_clean(c->text, false, clean, sizeof clean);
		fprintf(show->out, "  %s %s: %s, %s", ow_format_count(c->intervals, count),
		        ow_result_status_name[c->status], clean, ow_format_local(c->first_ns, "%m-%d %T", first));
		if (c->intervals > 1)
			fprintf(show->out, " to %s", ow_format_local(c->last_ns, "%m-%d %T", last));
		fputc('\n', show->out);
	}
}

void ow_stored_show(const struct ow_stored_show *show, const struct ow_stored *stored,
                    const struct ow_stored_sums *sums, enum ow_stored_group group)
{
	if (group >= OW_STORED_HOUR)
		put_table(show, stored, sums, group);
	else
		put_blocks(show, stored, sums, group);
	put_causes(show, sums);
}

/* -- JSON --------------------------------------------------------------------------------------------------------- */

static void json_counts(struct ow_json *json, const struct ow_stored_sum *sum)
{
	const struct {
		const char *name;
		uint64_t count;
	} counts[] = {
		{"intervals", sum->intervals}, {"measured", sum->measured}, {"partial", sum->partial},
		{"unknown", sum->unknown},     {"missing", sum->missing},   {"provisional", sum->provisional},
		{"sampled", sum->sampled},
	};
	struct ow_interval_result n = {.length_ns = 0};
	ow_stored_sum_counts(sum, &n);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		ow_json_count(json, counts[i].name, counts[i].count);
	for (size_t i = 0; i < ow_field_count; i++) {
		const uint64_t *count = ow_field_of(&ow_fields[i], &n);
		if (ow_fields[i].sum == OW_SUM_ADD)
			ow_json_count_if(json, ow_fields[i].columns, *count != OW_RESULT_NOT_COUNTED, *count);
	}
	ow_json_count(json, "clock_unknown", sum->clock_unknown);
	ow_json_number(json, "clock_error_ns", sum->clock_error_ns < 0 ? NAN : (double)sum->clock_error_ns);
}

/* {"low": .., "low_at_ns": .., "high": .., "high_at_ns": ..}, or null */
static void json_extreme(struct ow_json *json, const char *name, const struct ow_stored_extreme *e)
{
	if (!e->count) {
		ow_json_null(json, name);
		return;
	}
	ow_json_object(json, name);
	ow_json_count(json, "intervals", e->count);
	ow_json_number(json, "low", e->low);
	ow_json_integer(json, "low_at_ns", e->low_ns);
	ow_json_number(json, "high", e->high);
	ow_json_integer(json, "high_at_ns", e->high_ns);
	ow_json_end(json);
}

static void json_delay(struct ow_json *json, const struct ow_stored_sum *sum)
{
	struct ow_value quantile[OW_QUANTILES];
	for (int q = 0; q < OW_QUANTILES; q++)
		quantile[q] = ow_stored_sum_quantile(sum, ow_quantile_level[q]);
	ow_json_object(json, "delay_ns");
	ow_json_number(json, "mean", ow_stored_sum_mean(sum));
	ow_json_number(json, "stddev", ow_stored_sum_stddev(sum));
	ow_json_number(json, "min", ow_stored_sum_min(sum));
	ow_json_number(json, "max", ow_stored_sum_max(sum));
	ow_json_object(json, "quantiles");
	for (int q = 0; q < OW_QUANTILES; q++)
		ow_json_number(json, ow_quantile_name[q], ow_json_known(&quantile[q]));
	ow_json_end(json);
	ow_json_end(json);
	ow_json_object(json, "ci95");
	ow_json_object(json, "quantiles");
	for (int q = 0; q < OW_QUANTILES; q++)
		ow_json_bounds(json, ow_quantile_name[q], &quantile[q]);
	ow_json_end(json);
	ow_json_end(json);
}

void ow_stored_sum_json(struct ow_json *json, const struct ow_stored *stored, const struct ow_stored_sum *sum,
                        enum ow_stored_group group)
{
	size_t lanes;
	const struct ow_stored_lane *lane = ow_stored_lanes(stored, &lanes) + sum->lane;
	ow_json_string(json, "segment", lane->segment);
	if (group != OW_STORED_SEGMENT) {
		ow_json_string(json, "class", lane->class_name);
		ow_json_string(json, "from", lane->from);
		ow_json_string(json, "to", lane->to);
	}
	ow_json_integer(json, "start_ns", sum->start_ns);
	ow_json_integer(json, "end_ns", sum->end_ns);
	ow_json_string(json, "period",
	               ow_stored_period(stored) ? ow_periods[ow_stored_period(stored)].table : "interval");
	ow_json_number(json, "availability", ow_stored_sum_availability(sum));
	json_counts(json, sum);
	ow_json_number(json, "loss_ratio", ow_stored_sum_loss(sum));
	json_delay(json, sum);
	ow_json_object(json, "of_intervals");
	json_extreme(json, "mean_ns", &sum->mean);
	json_extreme(json, "p99_ns", &sum->p99_ns);
	json_extreme(json, "loss_ratio", &sum->loss);
	ow_json_end(json);
}

void ow_stored_cause_json(struct ow_json *json, const struct ow_stored_cause *cause)
{
	ow_json_string(json, "cause", cause->text);
	ow_json_string(json, "status", ow_result_status_name[cause->status]);
	ow_json_count(json, "intervals", cause->intervals);
	ow_json_integer(json, "first_ns", cause->first_ns);
	ow_json_integer(json, "last_ns", cause->last_ns);
}

void ow_stored_json(FILE *out, const struct ow_stored *stored, const struct ow_stored_sums *sums,
                    enum ow_stored_group group)
{
	struct ow_json json = {.out = out};
	for (size_t i = 0; i < sums->count; i++) {
		ow_json_object(&json, NULL);
		ow_stored_sum_json(&json, stored, &sums->sum[i], group);
		ow_json_end(&json);
	}
	for (size_t i = 0; i < sums->causes; i++) {
		ow_json_object(&json, NULL);
		ow_stored_cause_json(&json, &sums->cause[i]);
		ow_json_end(&json);
	}
}
