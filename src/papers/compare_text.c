/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the comparison of methods as text and JSON. The first table shows the error relative to the exact value, and
 * half of the 95 % interval relative to the estimate, so that one can see whether a method knows its error. The second
 * table shows the costs. A dash stands for a value that a method cannot give; the reason is below the table.
 */
#include "papers/compare_text.h"

#include "base/format.h"
#include "base/table.h"
#include "base/time.h"
#include "base/word.h"
#include "result/json.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Columns of the name of a method. Its parameters are shown if there are so many columns for them. */
#define NAME       9
#define PARAMETERS 20
/* Bytes of a reason. */
#define REASON 200

static const char *const direction_title[] = {"A to B", "B to A"};

/* -- text --------------------------------------------------------------------------------------------------------- */

enum { SAMPLES, MEAN, STDDEV, LOSS, P50, P99, COLUMNS };

static const struct ow_table_column error_column[COLUMNS] = {
	[SAMPLES] = {"samples", 9, 0},   [MEAN] = {"mean +-95% ", 14, 1}, [STDDEV] = {"stddev +-95% ", 14, 2},
	[LOSS] = {"loss +-95% ", 14, 3}, [P50] = {"p50 +-95% ", 14, 5},   [P99] = {"p99 +-95% ", 14, 4},
};

static const char *const value_name[COLUMNS] = {
	[MEAN] = "mean", [STDDEV] = "stddev", [LOSS] = "loss", [P50] = "p50", [P99] = "p99"};

static const struct ow_value *value_of(const struct ow_compare_row *row, int column)
{
	const struct ow_estimate *e = &row->estimate;
	const struct ow_value *const value[COLUMNS] = {[MEAN] = &e->mean_ns,
	                                               [STDDEV] = &e->stddev_ns,
	                                               [LOSS] = &e->loss_ratio,
	                                               [P50] = &e->quantile_ns[OW_Q50],
	                                               [P99] = &e->quantile_ns[OW_Q99]};
	return value[column];
}

static double truth_of(const struct ow_result *exact, int column)
{
	const double truth[COLUMNS] = {[MEAN] = exact->delay.mean_ns,
	                               [STDDEV] = exact->delay.stddev_ns,
	                               [LOSS] = (double)exact->lost / (double)exact->sent,
	                               [P50] = exact->delay.quantile_ns[OW_Q50],
	                               [P99] = exact->delay.quantile_ns[OW_Q99]};
	return truth[column];
}

/* At least two significant digits, and no exponent below 10000 %. */
static void percent_text(double ratio, bool sign, char text[OW_FORMAT])
{
	double percent = 100 * ratio, size = fabs(percent);
	if (!isfinite(percent)) {
		snprintf(text, OW_FORMAT, "%s", isnan(percent) ? "-" : "inf");
		return;
	}
	if (size >= 9999.5) {
		snprintf(text, OW_FORMAT, sign ? "%+.0e%%" : "%.0e%%", percent);
		return;
	}
	int decimals = size >= 9.95 ? 0 : size >= 0.995 ? 1 : size >= 0.0995 ? 2 : 3;
	if (size < 0.0005)
		snprintf(text, OW_FORMAT, "0%%");
	else
		snprintf(text, OW_FORMAT, sign ? "%+.*f%%" : "%.*f%%", decimals, percent);
}

static void bytes_text(double bytes, char text[OW_FORMAT])
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB"};
	int i = 0;
	for (; i < 3 && bytes >= 1023.5; i++)
		bytes /= 1024;
	snprintf(text, OW_FORMAT, "%.*f %s",
	         bytes == floor(bytes) || bytes >= 100 ? 0
	         : bytes >= 10                         ? 1
	                                               : 2,
	         bytes, unit[i]);
}

/* Half of an interval, in five characters. */
static void half_text(double ratio, char text[OW_FORMAT])
{
	if (ratio > 0 && ratio < 0.00005)
		snprintf(text, OW_FORMAT, "<.01%%");
	else if (ratio < 0.000995)
		snprintf(text, OW_FORMAT, "%.2f%%", 100 * ratio);
	else
		percent_text(ratio, false, text);
}

/* Returns whether the interval misses the truth. */
static bool error_text(const struct ow_value *v, double truth, char cell[OW_TABLE_CELL])
{
	char error[OW_FORMAT], half[OW_FORMAT] = "";
	bool misses = v->status != OW_VALUE_NONE && !ow_compare_covers(v, truth);
	percent_text(ow_compare_error(v, truth), true, error);
	if (v->status == OW_VALUE_ESTIMATED) {
		double width = fmax(v->high - v->value, v->value - v->low);
		half_text(v->value != 0 ? width / fabs(v->value) : width > 0 ? INFINITY : 0, half);
	} else if (v->status == OW_VALUE_EXACT) {
		snprintf(half, sizeof half, "exact");
	}
	snprintf(cell, OW_TABLE_CELL, "%7.15s %5.15s%s", error, half, misses ? "!" : " ");
	return misses;
}

static void put_errors(FILE *out, const struct ow_method_comparison *c, int width, bool colour)
{
	struct ow_table table = {out, error_column, COLUMNS, .colour = colour};
	ow_table_fit(&table, width > NAME ? (unsigned)width - NAME : 0);
	fputs("Error against the exact value, half of the 95 % interval (! if that misses it)\n\n", out);
	ow_table_bold(&table);
	ow_table_name(out, "", NAME);
	ow_table_titles(&table);
	for (size_t k = 0; k < c->rows; k++) {
		const struct ow_compare_row *row = &c->row[k];
		ow_table_cells cell = {[SAMPLES] = "-"};
		unsigned misses = 0;
		if (!*row->failure)
			ow_format_count(row->estimate.useful, cell[SAMPLES]);
		for (int i = MEAN; i < COLUMNS && !*row->failure; i++)
			misses |= (unsigned)error_text(value_of(row, i), truth_of(c->exact, i), cell[i]) << i;
		ow_table_name(out, row->name, NAME);
		ow_table_row(&table, cell, misses);
	}
}

enum { MEMORY, CACHE, WIRE, INSERT, DECODE, COSTS };

static const struct ow_table_column cost_column[COSTS] = {
	[MEMORY] = {"memory", 9, 0}, [CACHE] = {"cache", 9, 2},   [WIRE] = {"on wire", 9, 1},
	[INSERT] = {"insert", 8, 3}, [DECODE] = {"decode", 9, 4},
};

static void put_costs(FILE *out, const struct ow_method_comparison *c, int width)
{
	struct ow_table table = {out, cost_column, COSTS, .colour = false};
	int used = (int)ow_table_fit(&table, width > NAME ? (unsigned)width - NAME : 0), left = width - NAME - used - 2;
	bool parameters = left >= PARAMETERS;
	fputc('\n', out);
	ow_table_name(out, "", NAME);
	ow_table_heading(&table);
	fputs(parameters ? "  parameters\n" : "\n", out);
	for (size_t k = 0; k < c->rows; k++) {
		const struct ow_compare_row *row = &c->row[k];
		ow_table_cells cell = {[MEMORY] = "-", [CACHE] = "-", [INSERT] = "-", [DECODE] = "-"};
		if (*row->failure)
			continue;
		if (row->memory_bytes)
			bytes_text((double)row->memory_bytes, cell[MEMORY]);
		if (row->cache_bytes)
			bytes_text((double)row->cache_bytes, cell[CACHE]);
		bytes_text((double)row->wire_bytes, cell[WIRE]);
		if (!isnan(row->insert_ns))
			snprintf(cell[INSERT], OW_TABLE_CELL, "%.1f ns", row->insert_ns);
		if (!isnan(row->decode_us))
			ow_duration_text(row->decode_us * 1e3, cell[DECODE]);
		ow_table_name(out, row->name, NAME);
		ow_table_numbers(&table, cell, 0);
		fputs(parameters ? "  " : "\n", out);
		if (parameters)
			ow_format_wrap(out, row->params, width - left, width);
	}
}

/*
 * "no p50, p99: the reason": the values that the row lacks for the same reason as the column `first`. Empty if `first`
 * is not the first column with this reason.
 */
static void reason_text(const struct ow_compare_row *row, int first, char text[REASON])
{
	size_t length = 0;
	text[0] = 0;
	enum ow_reason reason = value_of(row, first)->reason;
	if (*row->failure || !reason || value_of(row, first)->status != OW_VALUE_NONE)
		return;
	for (int i = MEAN; i < COLUMNS; i++) {
		const struct ow_value *value = value_of(row, i);
		if (value->status != OW_VALUE_NONE || value->reason != reason)
			continue;
		if (i < first) {
			text[0] = 0;
			return;
		}
		length +=
			(size_t)snprintf(text + length, REASON - length, "%s%s", length ? ", " : "no ", value_name[i]);
	}
	snprintf(text + length, REASON - length, ": %s", ow_reason_text(reason));
}

/* Whether an earlier row, or an earlier column of this row, has printed the same. */
static bool is_said(const struct ow_method_comparison *c, size_t row, const char *text)
{
	char other[REASON];
	for (size_t k = 0; k < row; k++) {
		for (int i = MEAN; i < COLUMNS; i++) {
			reason_text(&c->row[k], i, other);
			if (strcmp(text, other) == 0)
				return true;
		}
	}
	return false;
}

static void put_reason(FILE *out, const struct ow_method_comparison *c, size_t row, const char *text, int width)
{
	char other[REASON], line[4 * REASON];
	size_t used = (size_t)snprintf(line, sizeof line, "%s", c->row[row].name);
	for (size_t k = row + 1; k < c->rows; k++) {
		for (int i = MEAN; i < COLUMNS; i++) {
			reason_text(&c->row[k], i, other);
			if (strcmp(text, other) == 0 && used < sizeof line)
				used += (size_t)snprintf(line + used, sizeof line - used, ", %s", c->row[k].name);
		}
	}
	if (used < sizeof line)
		snprintf(line + used, sizeof line - used, ": %s", text);
	ow_format_wrap(out, line, 0, width);
}

static void put_reasons(FILE *out, const struct ow_method_comparison *c, int width)
{
	char text[REASON];
	fputc('\n', out);
	for (size_t k = 0; k < c->rows; k++) {
		if (*c->row[k].failure)
			fprintf(out, "%s: not tried: %s\n", c->row[k].name, c->row[k].failure);
		for (int i = MEAN; i < COLUMNS; i++) {
			reason_text(&c->row[k], i, text);
			if (*text && !is_said(c, k, text))
				put_reason(out, c, k, text, width);
		}
	}
}

static void put_exact(FILE *out, const struct ow_method_comparison *c, int width)
{
	char line[300];
	const struct ow_result *x = c->exact;
	char sent[OW_FORMAT], matched[OW_FORMAT], lost[OW_FORMAT], extra[OW_FORMAT], samples[OW_FORMAT],
		memory[OW_FORMAT], ratio[OW_FORMAT];
	char text[4][OW_DURATION_TEXT];
	ow_format_count(x->sent, sent);
	ow_format_count(x->matched, matched);
	ow_format_count(x->lost, lost);
	ow_format_count(x->extra, extra);
	ow_format_count(x->delay.samples, samples);
	percent_text((double)x->lost / (double)x->sent, false, ratio);
	bytes_text((double)c->memory_bytes, memory);
	fprintf(out, "%s: %s sent, %s matched, %s lost (%s), %s extra\n", direction_title[c->direction], sent, matched,
	        lost, ratio, extra);
	if (x->delay.samples) {
		ow_duration_text(x->delay.mean_ns, text[0]);
		ow_duration_text(x->delay.stddev_ns, text[1]);
		ow_duration_text(x->delay.quantile_ns[OW_Q50], text[2]);
		ow_duration_text(x->delay.quantile_ns[OW_Q99], text[3]);
		snprintf(line, sizeof line, "delay of %s %s: mean %s, stddev %s, p50 %s, p99 %s", samples,
		         ow_plural(x->delay.samples, "packet", "packets"), text[0], text[1], text[2], text[3]);
		ow_format_wrap(out, line, 0, width);
	}
	fprintf(out, "%s for each synopsis, seed %" PRIu64 "\n\n", memory, c->seed);
}

void ow_report_compare_text(FILE *out, const struct ow_method_comparison *comparison, int width, bool colour)
{
	put_exact(out, comparison, width);
	put_errors(out, comparison, width, colour);
	put_costs(out, comparison, width);
	put_reasons(out, comparison, width);
	for (size_t i = 0; i < comparison->match->warnings; i++) {
		fputs("warning: ", out);
		ow_format_wrap(out, comparison->match->warning[i], 9, width);
	}
}

/* -- JSON --------------------------------------------------------------------------------------------------------- */

static void put_intervals(struct ow_json *json, const struct ow_estimate *e)
{
	ow_json_line(json);
	ow_json_object(json, "ci95");
	ow_json_bounds(json, "mean", &e->mean_ns);
	ow_json_bounds(json, "stddev", &e->stddev_ns);
	ow_json_bounds(json, "loss", &e->loss_ratio);
	ow_json_bounds(json, "lost", &e->lost);
	ow_json_bounds(json, "extra", &e->extra);
	ow_json_line(json);
	ow_json_object(json, "quantiles");
	for (int i = 0; i < OW_QUANTILES; i++)
		ow_json_bounds(json, ow_quantile_name[i], &e->quantile_ns[i]);
	ow_json_end(json);
	ow_json_end(json);
}

static void put_missing(struct ow_json *json, const struct ow_estimate *e)
{
	const struct {
		const char *name;
		const struct ow_value *value;
	} list[] = {{"mean", &e->mean_ns},
	            {"stddev", &e->stddev_ns},
	            {"loss", &e->loss_ratio},
	            {"extra", &e->extra},
	            {"quantiles", &e->quantile_ns[0]}};
	ow_json_line(json);
	ow_json_object(json, "not_estimated");
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		if (list[i].value->status == OW_VALUE_NONE)
			ow_json_string(json, list[i].name, ow_reason_text(list[i].value->reason));
	}
	ow_json_end(json);
}

static void put_delay(struct ow_json *json, const struct ow_estimate *e)
{
	double quantile[OW_QUANTILES];
	for (int i = 0; i < OW_QUANTILES; i++)
		quantile[i] = ow_json_known(&e->quantile_ns[i]);
	ow_json_line(json);
	ow_json_object(json, "delay_ns");
	ow_json_number(json, "mean", ow_json_known(&e->mean_ns));
	ow_json_number(json, "stddev", ow_json_known(&e->stddev_ns));
	ow_json_null(json, "min");
	ow_json_null(json, "max");
	ow_json_quantiles(json, "quantiles", quantile);
	ow_json_end(json);
}

static void put_result(struct ow_json *json, const struct ow_method_comparison *c, const struct ow_estimate *e)
{
	const struct ow_result *x = c->exact;
	bool exact = e->mean_ns.status == OW_VALUE_EXACT && e->lost.status == OW_VALUE_EXACT;
	ow_json_line(json);
	ow_json_count(json, "sent", x->sent);
	ow_json_count(json, "received", x->received);
	ow_json_number(json, "matched", (double)x->sent - ow_json_known(&e->lost));
	ow_json_number(json, "lost", ow_json_known(&e->lost));
	ow_json_number(json, "extra", ow_json_known(&e->extra));
	ow_json_null(json, "duplicated");
	ow_json_null(json, "ambiguous");
	ow_json_null(json, "reordered");
	ow_json_count(json, "samples", e->useful);
	ow_json_number(json, "loss_ratio", ow_json_known(&e->loss_ratio));
	put_delay(json, e);
	ow_json_flag(json, "exact", exact);
	ow_json_flag(json, "complete", e->complete);
}

static void put_relative(struct ow_json *json, const struct ow_method_comparison *c, const struct ow_estimate *e)
{
	const struct ow_result *x = c->exact;
	double quantile[OW_QUANTILES];
	for (int i = 0; i < OW_QUANTILES; i++)
		quantile[i] = fabs(ow_compare_error(&e->quantile_ns[i], x->delay.quantile_ns[i]));
	ow_json_line(json);
	ow_json_object(json, "relative_error");
	ow_json_number(json, "mean", fabs(ow_compare_error(&e->mean_ns, x->delay.mean_ns)));
	ow_json_number(json, "stddev", fabs(ow_compare_error(&e->stddev_ns, x->delay.stddev_ns)));
	ow_json_number(json, "loss", fabs(ow_compare_error(&e->loss_ratio, (double)x->lost / (double)x->sent)));
	ow_json_quantiles(json, "quantiles", quantile);
	ow_json_end(json);
}

static void put_row(struct ow_json *json, const struct ow_method_comparison *c, const struct ow_compare_row *row)
{
	ow_json_object(json, NULL);
	ow_json_style(json, OW_JSON_PADDED);
	ow_json_string(json, "name", row->name);
	ow_json_string(json, "kind", row->baseline ? "baseline" : "synopsis");
	ow_json_string(json, "params", row->params);
	if (*row->failure)
		ow_json_string(json, "failure", row->failure);
	ow_json_line(json);
	ow_json_count(json, "memory_bytes", row->memory_bytes);
	ow_json_count(json, "cache_bytes", row->cache_bytes);
	ow_json_count(json, "wire_bytes", row->wire_bytes);
	ow_json_count(json, "round_trips", row->estimate.round_trips);
	ow_json_number(json, "insert_ns", row->insert_ns);
	ow_json_number(json, "decode_us", row->decode_us);
	put_result(json, c, &row->estimate);
	put_relative(json, c, &row->estimate);
	put_intervals(json, &row->estimate);
	put_missing(json, &row->estimate);
	ow_json_end(json);
}

static void put_head(struct ow_json *json, const struct ow_method_comparison *comparison)
{
	ow_json_line(json);
	ow_json_command(json, "compare");
	ow_json_line(json);
	ow_json_object(json, "inputs");
	ow_json_string(json, "a", comparison->match->capture[OW_SIDE_A].path);
	ow_json_string(json, "b", comparison->match->capture[OW_SIDE_B].path);
	ow_json_end(json);
	ow_json_line(json);
	ow_json_string(json, "direction", comparison->direction == OW_A_TO_B ? "a_to_b" : "b_to_a");
	ow_json_count(json, "memory_bytes", comparison->memory_bytes);
	ow_json_count(json, "seed", comparison->seed);
}

void ow_report_compare_json(FILE *out, const struct ow_method_comparison *comparison)
{
	const struct ow_match_report *match = comparison->match;
	struct ow_json json = {.out = out, .indent = 2};
	ow_json_object(&json, NULL);
	put_head(&json, comparison);
	ow_json_style(&json, OW_JSON_LINES);
	ow_json_result(&json, "exact", comparison->exact);
	ow_json_array(&json, "synopses");
	ow_json_style(&json, OW_JSON_LINES);
	for (size_t i = 0; i < comparison->rows; i++)
		put_row(&json, comparison, &comparison->row[i]);
	ow_json_end(&json);
	ow_json_array(&json, "warnings");
	for (size_t i = 0; i < match->warnings; i++)
		ow_json_string(&json, NULL, match->warning[i]);
	ow_json_end(&json);
	ow_json_end(&json);
}
