/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as JSON. The names are those of docs/json.md. Counts and nanoseconds that are integers are written as
 * integers, other numbers with the fewest digits that read back as the same double. No samples: null, never 0 or NaN.
 */
#include "base/utf8.h"
#include "result/interval_result.h"
#include "result/json.h"
#include "base/format.h"

#include <math.h>
#include <oneway/oneway.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* File names are bytes: what is no UTF-8 becomes U+FFFD, so that the document stays valid. Characters that are not
 * shown as themselves are escaped: the value is the same, and a terminal does not obey it. */
void ow_report_json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const char *p = text ? text : ""; *p;) {
		uint32_t code;
		size_t length = ow_utf8_next(p, &code);
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (!length)
			fputs("\\ufffd", out);
		else if (ow_utf8_printable(code))
			fwrite(p, 1, length, out);
		else if (code < 0x10000)
			fprintf(out, "\\u%04x", code);
		else
			fprintf(out, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
		p += length ? length : 1;
	}
	fputc('"', out);
}

void ow_report_json_number(FILE *out, double value)
{
	char text[OW_FORMAT];
	fputs(isfinite(value) ? ow_format_number(value, text) : "null", out);
}

void ow_report_json_name(FILE *out, int indent, const char *name, bool first)
{
	if (indent < 0)
		fprintf(out, "%s\"%s\": ", first ? "" : ", ", name);
	else
		fprintf(out, "%s\n%*s\"%s\": ", first ? "" : ",", indent, "", name);
}

double ow_report_json_known(const struct ow_value *value)
{
	return value->status == OW_VALUE_NONE ? NAN : value->value;
}

void ow_report_json_bounds(FILE *out, const struct ow_value *value)
{
	if (value->status == OW_VALUE_NONE) {
		fputs("null", out);
		return;
	}
	fputc('[', out);
	ow_report_json_number(out, value->low);
	fputs(", ", out);
	ow_report_json_number(out, value->high);
	fputc(']', out);
}

void ow_report_json_quantiles(FILE *out, const double quantile_ns[OW_QUANTILES])
{
	fputc('{', out);
	for (int i = 0; i < OW_QUANTILES; i++) {
		ow_report_json_name(out, -1, ow_quantile_name[i], i == 0);
		ow_report_json_number(out, quantile_ns ? quantile_ns[i] : NAN);
	}
	fputc('}', out);
}

static void put_count(FILE *out, int indent, const char *name, uint64_t count, bool first)
{
	ow_report_json_name(out, indent, name, first);
	if (count == OW_RESULT_NOT_COUNTED)
		fputs("null", out);
	else
		fprintf(out, "%" PRIu64, count);
}

/* Of the members of an object; negative = all on one line. */
static int deeper(int indent)
{
	return indent < 0 ? indent : indent + 2;
}

static void put_close(FILE *out, int indent)
{
	if (indent >= 0)
		fprintf(out, "\n%*s", indent, "");
	fputc('}', out);
}

static void put_range(FILE *out, const char *name, double low, double high, bool first)
{
	ow_report_json_name(out, -1, name, first);
	fputc('[', out);
	ow_report_json_number(out, low);
	fputs(", ", out);
	ow_report_json_number(out, high);
	fputc(']', out);
}

/* Between what the numbers are, because identical packets leave some delays open. */
static void put_bounds(FILE *out, const struct ow_delay *delay, int indent)
{
	const struct ow_delay_bound *low = &delay->low, *high = &delay->high;
	ow_report_json_name(out, indent, "uncertain", false);
	fprintf(out, "%" PRIu64, delay->uncertain);
	ow_report_json_name(out, indent, "period", false);
	delay->period_ns ? fprintf(out, "%" PRId64, delay->period_ns) : fputs("null", out);
	ow_report_json_name(out, indent, "bounds", false);
	fputc('{', out);
	put_range(out, "mean", low->mean_ns, high->mean_ns, true);
	put_range(out, "min", (double)low->min_ns, (double)high->min_ns, false);
	put_range(out, "max", (double)low->max_ns, (double)high->max_ns, false);
	ow_report_json_name(out, -1, "quantiles", false);
	fputc('{', out);
	for (int i = 0; i < OW_QUANTILES; i++)
		put_range(out, ow_quantile_name[i], low->quantile_ns[i], high->quantile_ns[i], i == 0);
	fputs("}}", out);
}

static void put_delay(FILE *out, const struct ow_delay *delay, int indent)
{
	bool known = delay->samples > 0;
	fputc('{', out);
	ow_report_json_name(out, deeper(indent), "mean", true);
	ow_report_json_number(out, known ? delay->mean_ns : NAN);
	ow_report_json_name(out, deeper(indent), "stddev", false);
	ow_report_json_number(out, known ? delay->stddev_ns : NAN);
	ow_report_json_name(out, deeper(indent), "min", false);
	known ? fprintf(out, "%" PRId64, delay->min_ns) : fputs("null", out);
	ow_report_json_name(out, deeper(indent), "max", false);
	known ? fprintf(out, "%" PRId64, delay->max_ns) : fputs("null", out);
	ow_report_json_name(out, deeper(indent), "quantiles", false);
	ow_report_json_quantiles(out, known ? delay->quantile_ns : NULL);
	if (delay->uncertain)
		put_bounds(out, delay, deeper(indent));
	put_close(out, indent);
}

/* The members of RESULT without the braces. */
void ow_report_json_members(FILE *out, const struct ow_result *result, int indent, bool first)
{
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"sent", result->sent},           {"received", result->received},   {"matched", result->matched},
		{"lost", result->lost},           {"extra", result->extra},         {"duplicated", result->duplicated},
		{"ambiguous", result->ambiguous}, {"reordered", result->reordered}, {"samples", result->delay.samples},
	};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		put_count(out, indent, counts[i].name, counts[i].value, first && i == 0);
	ow_report_json_name(out, indent, "loss_ratio", false);
	ow_report_json_number(out, result->sent ? (double)result->lost / (double)result->sent : NAN);
	ow_report_json_name(out, indent, "delay_ns", false);
	put_delay(out, &result->delay, indent);
	ow_report_json_name(out, indent, "jitter_ns", false);
	const double *quantile = result->delay.quantile_ns;
	ow_report_json_number(out, result->delay.samples ? quantile[OW_Q95] - quantile[OW_Q50] : NAN);
	ow_report_json_name(out, indent, "exact", false);
	fputs(result->exact ? "true" : "false", out);
}

void ow_report_result_json(FILE *out, const struct ow_result *result, int indent)
{
	fputc('{', out);
	ow_report_json_members(out, result, deeper(indent), true);
	put_close(out, indent);
}
