/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live result as one line of JSON, names as in docs/json.md. Unknown values are null: all counts of an interval
 * without a result, counts that the method does not have, and numbers that cannot be estimated, whose reasons are in
 * "not_estimated".
 */
#include "result/result_json.h"

#include "estimate/clock_words.h"
#include "result/cause.h"
#include "result/fields.h"
#include "result/json.h"
#include "result/result_clock.h"
#include <math.h>
#include <string.h>

static void put_count(struct ow_json *json, const struct ow_field *field, const struct ow_interval_result *r)
{
	uint64_t count = *(const uint64_t *)ow_field_of(field, r);
	bool counted = r->status != OW_RESULT_UNKNOWN || field->flags & OW_FIELD_ALWAYS;
	ow_json_count_if(json, ow_field_name(field), counted && count != OW_RESULT_NOT_COUNTED, count);
}

static void put_quantiles(struct ow_json *json, const char *name, const struct ow_value quantile[OW_QUANTILES])
{
	ow_json_object(json, name);
	for (int i = 0; i < OW_QUANTILES; i++)
		ow_json_number(json, ow_quantile_name[i], ow_json_known(&quantile[i]));
	ow_json_end(json);
}

static void put_clock(struct ow_json *json, const char *name, const struct ow_clock_state *clock)
{
	ow_json_object(json, name);
	ow_json_flag(json, "synchronised", clock->synchronised);
	ow_json_integer_if(json, "error_ns", clock->error_ns != OW_CLOCK_UNKNOWN, clock->error_ns);
	ow_json_end(json);
}

/* Its bytes as hexadecimal digits. */
static void put_histogram(struct ow_json *json, const char *name, const struct ow_delay_histogram *histogram)
{
	uint8_t bytes[OW_DELAY_HISTOGRAM_BYTES];
	char text[2 * sizeof bytes + 1] = "";
	size_t size = ow_delay_histogram_encode(histogram, bytes);
	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	ow_json_string(json, name, text);
}

/* In the order of the message. */
static void put_bounds(struct ow_json *json, const char *name, const struct ow_interval_result *r)
{
	ow_json_object(json, name);
	for (unsigned wire = 1; wire <= ow_field_count; wire++) {
		const struct ow_field *field = ow_field_wire(wire);
		if (!field || field->flags & OW_FIELD_NO_BOUNDS)
			continue;
		const struct ow_value *value = ow_field_of(field, r);
		if (field->type == OW_FIELD_VALUE) {
			ow_json_bounds(json, ow_field_name(field), value);
		} else if (field->type == OW_FIELD_QUANTILES) {
			ow_json_object(json, ow_field_name(field));
			for (int i = 0; i < OW_QUANTILES; i++)
				ow_json_bounds(json, ow_quantile_name[i], &value[i]);
			ow_json_end(json);
		}
	}
	ow_json_end(json);
}

/* A quantile of so few sampled packets that none of them is surely above it. */
static void put_open_quantiles(struct ow_json *json, const struct ow_value quantile[OW_QUANTILES])
{
	for (int i = 0; i < OW_QUANTILES; i++) {
		if (quantile[i].status == OW_VALUE_ESTIMATED && isinf(quantile[i].high))
			ow_json_string(json, ow_quantile_name[i], ow_reason_text(OW_REASON_SAMPLE_TOO_SMALL));
	}
}

void ow_result_json_reasons(struct ow_json *json, const char *name, const struct ow_interval_result *r)
{
	ow_json_object(json, name);
	for (size_t i = 0; i < ow_field_count; i++) {
		const struct ow_field *field = &ow_fields[i];
		if (field->type != OW_FIELD_VALUE && field->type != OW_FIELD_QUANTILES)
			continue;
		const struct ow_value *value = ow_field_of(field, r);
		if (value->status == OW_VALUE_NONE && value->reason)
			ow_json_string(json, ow_field_name(field), ow_reason_text(value->reason));
		if (field->type == OW_FIELD_QUANTILES)
			put_open_quantiles(json, value);
	}
	ow_json_end(json);
}

static void put_warnings(struct ow_json *json, const char *name, const struct ow_interval_result *r)
{
	struct ow_clock_words words;
	char note[OW_RESULT_CLOCK_NOTE];
	ow_result_clock_words(r, r->to, &words);
	ow_result_clock_note(r, r->to, note);
	ow_json_array(json, name);
	if (!ow_result_clock_known(r))
		ow_json_string(json, NULL, note);
	if (*words.beyond)
		ow_json_string(json, NULL, words.beyond);
	if (*words.negative)
		ow_json_string(json, NULL, words.negative);
	ow_json_end(json);
}

static void put_field(struct ow_json *json, const struct ow_field *field, const struct ow_interval_result *r)
{
	const char *name = ow_field_name(field);
	const void *member = ow_field_of(field, r);
	switch (field->type) {
	case OW_FIELD_NAME:
	case OW_FIELD_TEXT:
		ow_json_string(json, name, member);
		break;
	case OW_FIELD_INTEGER:
		ow_json_integer(json, name, *(const int64_t *)member);
		break;
	case OW_FIELD_FLAG:
		ow_json_flag(json, name, *(const bool *)member);
		break;
	case OW_FIELD_STATUS:
		ow_json_string(json, name, ow_result_status_name[r->status]);
		break;
	case OW_FIELD_COUNT:
		put_count(json, field, r);
		break;
	case OW_FIELD_SHIFT:
	case OW_FIELD_NUMBER:
		ow_json_count(json, name, *(const uint32_t *)member);
		break;
	case OW_FIELD_SHARE:
		ow_json_number(json, name, *(const double *)member);
		break;
	case OW_FIELD_VALUE:
		ow_json_number(json, name, ow_json_known(member));
		break;
	case OW_FIELD_QUANTILES:
		put_quantiles(json, name, member);
		break;
	case OW_FIELD_CLOCK:
		put_clock(json, name, member);
		break;
	case OW_FIELD_HISTOGRAM:
		put_histogram(json, name, member);
		break;
	case OW_FIELD_CAUSE:
		ow_json_string(json, name, ow_cause_name(ow_cause_of(member)));
		break;
	case OW_FIELD_ERROR:
		ow_json_number(json, name, ow_result_clock_error_ns(r));
		break;
	case OW_FIELD_RATE:
		ow_json_number(json, name, ldexp(1, -(int)r->sample_shift));
		break;
	case OW_FIELD_JITTER:
		ow_json_number(json, name,
		               ow_json_known(&r->quantile_ns[OW_Q95]) - ow_json_known(&r->quantile_ns[OW_Q50]));
		break;
	case OW_FIELD_BOUNDS:
		put_bounds(json, name, r);
		break;
	case OW_FIELD_REASONS:
		ow_result_json_reasons(json, name, r);
		break;
	case OW_FIELD_WARNINGS:
		put_warnings(json, name, r);
		break;
	}
}

/* Ends the object `open` and begins the next one, unless it is the same; "" means no object. */
static void change_object(struct ow_json *json, char open[OW_RESULT_NAME], const char *next)
{
	if (strcmp(open, next) == 0)
		return;
	if (*open)
		ow_json_end(json);
	if (*next)
		ow_json_object(json, next);
	snprintf(open, OW_RESULT_NAME, "%s", next);
}

void ow_result_json_put(struct ow_json *json, const char *name, const struct ow_interval_result *r)
{
	char open[OW_RESULT_NAME] = "", next[OW_RESULT_NAME];
	ow_json_object(json, name);
	for (size_t i = 0; i < ow_field_count; i++) {
		const struct ow_field *field = &ow_fields[i];
		if (field->flags & OW_FIELD_OPTIONAL && ow_field_is_empty(field, r))
			continue;
		change_object(json, open, ow_field_object(field, next));
		put_field(json, field, r);
	}
	change_object(json, open, "");
	ow_json_end(json);
}

void ow_result_json(FILE *out, const struct ow_interval_result *result)
{
	struct ow_json json = {.out = out};
	ow_result_json_put(&json, NULL, result);
}

void ow_result_json_summary(FILE *out, const struct ow_interval_result *total)
{
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_result_json_put(&json, "summary", total);
	ow_json_end(&json);
}
