/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live result as one line of JSON, names as in docs/json.md. What is not known is null: all counts of an interval
 * without result, what the method does not count, and numbers that cannot be estimated, whose reasons stand in
 * "not_estimated".
 */
#include "result/result_json.h"

#include "estimate/clock_words.h"
#include "result/json.h"
#include "result/result_clock.h"
#include <inttypes.h>
#include <math.h>

const char *const ow_result_status_name[] = {"measured", "partial", "unknown"};

static void put_name(FILE *out, const char *name)
{
	ow_report_json_name(out, -1, name, false);
}

static void put_string(FILE *out, const char *name, const char *text)
{
	put_name(out, name);
	ow_report_json_string(out, text);
}

static void put_number(FILE *out, const char *name, double value)
{
	put_name(out, name);
	ow_report_json_number(out, value);
}

static void put_integer(FILE *out, const char *name, int64_t value)
{
	put_name(out, name);
	fprintf(out, "%" PRId64, value);
}

static void put_count(FILE *out, const char *name, uint64_t count)
{
	put_name(out, name);
	if (count == OW_RESULT_NOT_COUNTED)
		fputs("null", out);
	else
		fprintf(out, "%" PRIu64, count);
}

static void put_flag(FILE *out, const char *name, bool flag)
{
	put_name(out, name);
	fputs(flag ? "true" : "false", out);
}

static void put_counts(FILE *out, const struct ow_interval_result *r)
{
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"sent", r->sent},
		{"received", r->received},
		{"matched", r->matched},
		{"late", r->late},
		{"late_received", r->late_received},
		{"lost", r->lost},
		{"pending", r->pending},
		{"extra", r->extra},
		{"duplicated", r->duplicated},
		{"ambiguous", r->ambiguous},
		{"reordered", r->reordered},
		{"samples", r->samples},
		{"bytes", r->bytes},
	};
	bool known = r->status != OW_RESULT_UNKNOWN;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		put_count(out, counts[i].name, known ? counts[i].value : OW_RESULT_NOT_COUNTED);
}

static void put_delay(FILE *out, const struct ow_interval_result *r)
{
	double quantile[OW_QUANTILES];
	for (int i = 0; i < OW_QUANTILES; i++)
		quantile[i] = ow_report_json_known(&r->quantile_ns[i]);
	put_number(out, "loss_ratio", ow_report_json_known(&r->loss_ratio));
	put_name(out, "delay_ns");
	fputs("{\"mean\": ", out);
	ow_report_json_number(out, ow_report_json_known(&r->mean_ns));
	put_number(out, "stddev", ow_report_json_known(&r->stddev_ns));
	put_number(out, "min", ow_report_json_known(&r->min_ns));
	put_number(out, "max", ow_report_json_known(&r->max_ns));
	put_name(out, "quantiles");
	ow_report_json_quantiles(out, quantile);
	fputc('}', out);
	put_number(out, "jitter_ns", quantile[OW_Q95] - quantile[OW_Q50]);
}

static void put_bounds(FILE *out, const struct ow_interval_result *r)
{
	put_name(out, "ci95");
	fputs("{\"mean\": ", out);
	ow_report_json_bounds(out, &r->mean_ns);
	put_name(out, "stddev");
	ow_report_json_bounds(out, &r->stddev_ns);
	put_name(out, "loss_ratio");
	ow_report_json_bounds(out, &r->loss_ratio);
	put_name(out, "quantiles");
	fputc('{', out);
	for (int i = 0; i < OW_QUANTILES; i++) {
		ow_report_json_name(out, -1, ow_quantile_name[i], i == 0);
		ow_report_json_bounds(out, &r->quantile_ns[i]);
	}
	fputs("}}", out);
}

void ow_result_json_reasons(FILE *out, const struct ow_interval_result *r)
{
	const struct {
		const char *name;
		const struct ow_value *value;
	} list[] = {
		{"mean", &r->mean_ns}, {"stddev", &r->stddev_ns},         {"min", &r->min_ns},
		{"max", &r->max_ns},   {"quantiles", &r->quantile_ns[0]}, {"loss_ratio", &r->loss_ratio},
	};
	bool first = true;
	fputc('{', out);
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		if (list[i].value->status != OW_VALUE_NONE || !list[i].value->reason)
			continue;
		ow_report_json_name(out, -1, list[i].name, first);
		ow_report_json_string(out, ow_reason_text(list[i].value->reason));
		first = false;
	}
	fputc('}', out);
}

static void put_clock(FILE *out, const char *name, const struct ow_clock_state *clock, bool first)
{
	ow_report_json_name(out, -1, name, first);
	fprintf(out, "{\"synchronised\": %s", clock->synchronised ? "true" : "false");
	if (clock->error_ns == OW_CLOCK_UNKNOWN)
		fputs(", \"error_ns\": null}", out);
	else
		fprintf(out, ", \"error_ns\": %" PRId64 "}", clock->error_ns);
}

/* What the clocks make of the delays. */
static void put_warnings(FILE *out, const struct ow_interval_result *r)
{
	struct ow_clock_words words;
	ow_result_clock_words(r, r->to, &words);
	put_name(out, "warnings");
	fputc('[', out);
	if (*words.beyond)
		ow_report_json_string(out, words.beyond);
	if (*words.beyond && *words.negative)
		fputs(", ", out);
	if (*words.negative)
		ow_report_json_string(out, words.negative);
	fputc(']', out);
}

static void put_cost(FILE *out, const struct ow_result_cost *cost)
{
	const struct {
		const char *name;
		int64_t ns;
	} stages[] = {
		{"transmit_ns", cost->transmit_ns}, {"decode_ns", cost->decode_ns},   {"missing_ns", cost->missing_ns},
		{"erase_ns", cost->erase_ns},       {"compute_ns", cost->compute_ns}, {"ready_ns", cost->ready_ns},
	};
	put_name(out, "cost");
	fprintf(out, "{\"bytes\": %" PRIu64 ", \"round_trips\": %u", cost->bytes, cost->round_trips);
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		put_integer(out, stages[i].name, stages[i].ns);
	fputc('}', out);
}

static void put_sampling(FILE *out, const struct ow_interval_result *r)
{
	put_name(out, "sample");
	fputs("{\"rate\": ", out);
	ow_report_json_number(out, ldexp(1, -(int)r->sample_shift));
	fprintf(out, ", \"shift\": %u", r->sample_shift);
	put_count(out, "total_sent", r->total_sent);
	put_count(out, "total_received", r->total_received);
	fputc('}', out);
	put_number(out, "coverage", r->coverage);
	put_name(out, "ring_drops");
	fprintf(out, "{\"from\": %" PRIu64 ", \"to\": %" PRIu64 "}", r->ring_drops_from, r->ring_drops_to);
	put_count(out, "unreadable", r->unreadable);
}

void ow_result_json_object(FILE *out, const struct ow_interval_result *r)
{
	fputs("{\"segment\": ", out);
	ow_report_json_string(out, r->segment);
	put_string(out, "class", r->class_name);
	put_string(out, "from", r->from);
	put_string(out, "to", r->to);
	put_integer(out, "interval", r->interval);
	put_integer(out, "start_ns", r->start_ns);
	put_integer(out, "length_ns", r->length_ns);
	put_flag(out, "final", r->final);
	put_string(out, "status", ow_result_status_name[r->status]);
	if (*r->cause)
		put_string(out, "cause", r->cause);
	put_counts(out, r);
	put_delay(out, r);
	put_bounds(out, r);
	put_name(out, "not_estimated");
	ow_result_json_reasons(out, r);
	put_flag(out, "exact", r->exact);
	if (r->active)
		put_flag(out, "active", true);
	put_sampling(out, r);
	put_name(out, "clock");
	fputc('{', out);
	put_clock(out, "from", &r->clock_from, true);
	put_clock(out, "to", &r->clock_to, false);
	fputc('}', out);
	put_warnings(out, r);
	put_string(out, "synopsis", r->synopsis);
	put_cost(out, &r->cost);
	fputc('}', out);
}

void ow_result_json(FILE *out, const struct ow_interval_result *result)
{
	ow_result_json_object(out, result);
	fputc('\n', out);
}
