/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the comparison of methods as text and JSON. The first table shows the error relative to the exact value, and
 * half of the 95 % interval relative to the estimate, so that one can see whether a method knows its error. The second
 * table shows the costs. A dash stands for a value that a method cannot give; the reason is below the table.
 */
#include "base/word.h"
#include "papers/compare_text.h"

#include "base/time.h"
#include "result/json.h"
#include "base/format.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Widths of the tables: of the first column, and of each value. Below this width the table of costs is a short one. */
#define WIDTH_FIRST 19
#define WIDTH_VALUE 15
#define WIDTH_COSTS 80
#define WIDTH_ALL   1000
/* Bytes of the text of a cell, and of a reason. */
#define CELL   24
#define REASON 200

static const char *const direction_title[] = {"A to B", "B to A"};

/* -- text --------------------------------------------------------------------------------------------------------- */

/* The columns of a row: value, truth. */
struct column {
	const char *title;
	const struct ow_value *value;
	double truth;
};

#define COLUMNS 5

/* As many columns as fit: the median is dropped last, before it the others from the right. */
static int columns_of(const struct ow_method_comparison *c, const struct ow_compare_row *row, int width,
                      struct column ret_column[COLUMNS])
{
	int most = (width - WIDTH_FIRST) / WIDTH_VALUE;
	const struct ow_result *exact = c->exact;
	const struct ow_estimate *e = &row->estimate;
	int n = 0;
	ret_column[n++] = (struct column){"mean", &e->mean_ns, exact->delay.mean_ns};
	ret_column[n++] = (struct column){"stddev", &e->stddev_ns, exact->delay.stddev_ns};
	ret_column[n++] = (struct column){"loss", &e->loss_ratio, (double)exact->lost / (double)exact->sent};
	if (most >= COLUMNS)
		ret_column[n++] = (struct column){"p50", &e->quantile_ns[OW_Q50], exact->delay.quantile_ns[OW_Q50]};
	ret_column[n++] = (struct column){"p99", &e->quantile_ns[OW_Q99], exact->delay.quantile_ns[OW_Q99]};
	return most < 1 ? 1 : most < n ? most : n;
}

/* At least two significant digits, and no exponent below 10000 %. */
static void percent_text(double ratio, bool sign, char text[CELL])
{
	double percent = 100 * ratio, size = fabs(percent);
	if (!isfinite(percent)) {
		snprintf(text, CELL, "%s", isnan(percent) ? "-" : "inf");
		return;
	}
	if (size >= 9999.5) {
		snprintf(text, CELL, sign ? "%+.0e%%" : "%.0e%%", percent);
		return;
	}
	int decimals = size >= 9.95 ? 0 : size >= 0.995 ? 1 : size >= 0.0995 ? 2 : 3;
	if (size < 0.0005)
		snprintf(text, CELL, "0%%");
	else
		snprintf(text, CELL, sign ? "%+.*f%%" : "%.*f%%", decimals, percent);
}

static void bytes_text(double bytes, char text[CELL])
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB"};
	int i = 0;
	for (; i < 3 && bytes >= 1023.5; i++)
		bytes /= 1024;
	snprintf(text, CELL, "%.*f %s",
	         bytes == floor(bytes) || bytes >= 100 ? 0
	         : bytes >= 10                         ? 1
	                                               : 2,
	         bytes, unit[i]);
}

/* Half of an interval, in five characters. */
static void half_text(double ratio, char text[CELL])
{
	if (ratio > 0 && ratio < 0.00005)
		snprintf(text, CELL, "<.01%%");
	else if (ratio < 0.000995)
		snprintf(text, CELL, "%.2f%%", 100 * ratio);
	else
		percent_text(ratio, false, text);
}

static void put_value(FILE *out, const struct column *column, bool colour)
{
	char error[CELL], half[CELL] = "", both[CELL + 2];
	const struct ow_value *v = column->value;
	bool misses = v->status != OW_VALUE_NONE && !ow_compare_covers(v, column->truth);
	percent_text(ow_compare_error(v, column->truth), true, error);
	if (v->status == OW_VALUE_ESTIMATED) {
		double width = fmax(v->high - v->value, v->value - v->low);
		half_text(v->value != 0 ? width / fabs(v->value) : width > 0 ? INFINITY : 0, half);
	} else if (v->status == OW_VALUE_EXACT) {
		snprintf(half, sizeof half, "exact");
	}
	snprintf(both, sizeof both, "%s%s", half, misses ? "!" : " ");
	fprintf(out, " %7s %s%6s%s", error, misses && colour ? "\033[31m" : "", both,
	        misses && colour ? "\033[0m" : "");
}

static void put_errors(FILE *out, const struct ow_method_comparison *c, int width, bool colour)
{
	struct column column[COLUMNS];
	int columns = columns_of(c, &c->row[0], width, column);
	fputs("Error against the exact value, half of the 95 % interval (! if that misses it)\n\n", out);
	fprintf(out, "%-9s %9s", "", "samples");
	for (int i = 0; i < columns; i++)
		fprintf(out, " %7s %6s", column[i].title, "+-95% ");
	fputc('\n', out);
	for (size_t k = 0; k < c->rows; k++) {
		const struct ow_compare_row *row = &c->row[k];
		char samples[OW_FORMAT];
		ow_format_count(row->estimate.useful, samples);
		fprintf(out, "%-9s ", row->name);
		if (*row->failure) {
			fprintf(out, "%9s\n", "-");
			continue;
		}
		fprintf(out, "%9s", samples);
		columns_of(c, row, width, column);
		for (int i = 0; i < columns; i++)
			put_value(out, &column[i], colour);
		fputc('\n', out);
	}
}

static void put_costs(FILE *out, const struct ow_method_comparison *c, int width)
{
	bool narrow = width < WIDTH_COSTS;
	if (narrow)
		fprintf(out, "\n%-9s %9s %9s\n", "", "memory", "on wire");
	else
		fprintf(out, "\n%-9s %9s %9s %9s %8s %9s  %s\n", "", "memory", "cache", "on wire", "insert", "decode",
		        "parameters");
	for (size_t k = 0; k < c->rows; k++) {
		const struct ow_compare_row *row = &c->row[k];
		if (*row->failure)
			continue;
		char memory[CELL] = "-", cache[CELL] = "-", wire[CELL], insert[OW_DURATION_TEXT] = "-",
		     decode[OW_DURATION_TEXT] = "-";
		if (row->memory_bytes)
			bytes_text((double)row->memory_bytes, memory);
		if (row->cache_bytes)
			bytes_text((double)row->cache_bytes, cache);
		bytes_text((double)row->wire_bytes, wire);
		if (!isnan(row->insert_ns))
			snprintf(insert, sizeof insert, "%.1f ns", row->insert_ns);
		if (!isnan(row->decode_us))
			ow_duration_text(row->decode_us * 1e3, decode);
		if (narrow) {
			fprintf(out, "%-9s %9s %9s\n", row->name, memory, wire);
			continue;
		}
		fprintf(out, "%-9s %9s %9s %9s %8s %9s  %.*s\n", row->name, memory, cache, wire, insert, decode,
		        width - 60, row->params);
	}
}

/*
 * "no p50, p99: the reason": the values that the row lacks for the same reason as its column `first`. Empty if `first`
 * is not the first column with this reason.
 */
static void reason_text(const struct ow_method_comparison *c, const struct ow_compare_row *row, int first,
                        char text[REASON])
{
	struct column column[COLUMNS];
	int columns = columns_of(c, row, WIDTH_ALL, column), length = 0;
	text[0] = 0;
	enum ow_reason reason = first < columns ? column[first].value->reason : OW_NO_REASON;
	if (*row->failure || !reason || column[first].value->status != OW_VALUE_NONE)
		return;
	for (int i = 0; i < columns; i++) {
		const struct ow_value *value = column[i].value;
		if (value->status != OW_VALUE_NONE || value->reason != reason)
			continue;
		if (i < first) {
			text[0] = 0;
			return;
		}
		length += snprintf(text + length, REASON - (size_t)length, "%s%s", length ? ", " : "no ",
		                   column[i].title);
	}
	snprintf(text + length, REASON - (size_t)length, ": %s", ow_reason_text(reason));
}

/* Whether an earlier row, or an earlier column of this row, has printed the same. */
static bool is_said(const struct ow_method_comparison *c, size_t row, const char *text)
{
	char other[REASON];
	for (size_t k = 0; k < row; k++) {
		for (int i = 0; i < COLUMNS; i++) {
			reason_text(c, &c->row[k], i, other);
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
		for (int i = 0; i < COLUMNS; i++) {
			reason_text(c, &c->row[k], i, other);
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
		for (int i = 0; i < COLUMNS; i++) {
			reason_text(c, &c->row[k], i, text);
			if (*text && !is_said(c, k, text))
				put_reason(out, c, k, text, width);
		}
	}
}

static void put_exact(FILE *out, const struct ow_method_comparison *c, int width)
{
	char line[300];
	const struct ow_result *x = c->exact;
	char sent[OW_FORMAT], matched[OW_FORMAT], lost[OW_FORMAT], extra[OW_FORMAT], samples[OW_FORMAT], memory[CELL],
		ratio[CELL];
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
	for (size_t i = 0; i < comparison->match->warnings; i++)
		fprintf(out, "warning: %s\n", comparison->match->warning[i]);
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
