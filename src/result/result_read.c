/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines of JSON results. */
#include "result/result_read.h"

#include "result/fields.h"
#include <jansson.h>
#include <errno.h>
#include <math.h>
#include <string.h>

/* The member of a field, possibly inside an object. NULL if it is missing. */
static const json_t *find(const json_t *object, const struct ow_field *field)
{
	char name[OW_RESULT_NAME];
	if (*ow_field_object(field, name))
		object = json_object_get(object, name);
	return json_object_get(object, ow_field_name(field));
}

/* A text that fits, or an error: a truncated name could be the name of another lane. */
static int read_text(const json_t *member, const struct ow_field *field, char *text, struct ow_error *err)
{
	const char *value = json_string_value(member);
	if (!value)
		return 0;
	if (strlen(value) >= field->size)
		return ow_error_set(err, EINVAL, "%s has more than %zu bytes", field->json, field->size - 1);
	memcpy(text, value, strlen(value) + 1);
	return 0;
}

static uint64_t count_of(const json_t *member, uint64_t otherwise)
{
	return json_is_integer(member) && json_integer_value(member) >= 0 ? (uint64_t)json_integer_value(member)
	                                                                  : otherwise;
}

static uint32_t number_of(const json_t *member, uint32_t most)
{
	uint64_t count = count_of(member, 0);
	return count < most ? (uint32_t)count : most;
}

/* bounds: [low, high]; reason: a text. Both may be NULL. */
static struct ow_value value_of(const json_t *number, const json_t *bounds, const json_t *reason)
{
	const json_t *low = json_array_get(bounds, 0), *high = json_array_get(bounds, 1);
	double value = json_is_number(number) ? json_number_value(number) : NAN;
	if (!isfinite(value))
		return ow_value_none(json_is_string(reason) ? ow_reason_of(json_string_value(reason), OW_REASON_OTHER)
		                                            : OW_REASON_NOT_IN_LINE);
	if (!json_is_array(bounds))
		return ow_value_exact(value);
	/* Infinity is null. */
	double least = json_is_number(low) ? json_number_value(low) : -INFINITY;
	double most = json_is_number(high) ? json_number_value(high) : INFINITY;
	return (struct ow_value){least == most ? OW_VALUE_EXACT : OW_VALUE_ESTIMATED, value, least, most, OW_NO_REASON};
}

static void read_quantiles(const json_t *numbers, const json_t *bounds, const json_t *reason,
                           struct ow_value quantile[OW_QUANTILES])
{
	for (int i = 0; i < OW_QUANTILES; i++)
		quantile[i] = value_of(json_object_get(numbers, ow_quantile_name[i]),
		                       json_object_get(bounds, ow_quantile_name[i]), reason);
}

static struct ow_clock_state clock_of(const json_t *clock)
{
	const json_t *error = json_object_get(clock, "error_ns");
	return (struct ow_clock_state){json_is_true(json_object_get(clock, "synchronised")),
	                               json_is_integer(error) ? json_integer_value(error) : OW_CLOCK_UNKNOWN};
}

static int read_histogram(const json_t *json, struct ow_delay_histogram *ret_histogram, struct ow_error *err)
{
	static const char digits[] = "0123456789abcdef";
	const char *text = json_string_value(json);
	uint8_t bytes[OW_DELAY_HISTOGRAM_BYTES] = {0};
	size_t length = text ? strlen(text) : 0;
	if (length > 2 * sizeof bytes || length % 2)
		return ow_error_set(err, EINVAL, "histogram: %zu digits", length);
	for (size_t i = 0; i < length; i++) {
		const char *digit = strchr(digits, text[i]);
		if (!digit)
			return ow_error_set(err, EINVAL, "histogram: not hexadecimal digits");
		bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (digit - digits));
	}
	return ow_delay_histogram_decode(bytes, length / 2, ret_histogram, err);
}

static int read_field(const json_t *object, const struct ow_field *field, void *member, struct ow_error *err)
{
	const json_t *json = find(object, field);
	const json_t *bounds = json_object_get(json_object_get(object, "ci95"), ow_field_name(field));
	const json_t *reason = json_object_get(json_object_get(object, "not_estimated"), ow_field_name(field));
	int status;
	switch (field->type) {
	case OW_FIELD_NAME:
	case OW_FIELD_TEXT:
		return read_text(json, field, member, err);
	case OW_FIELD_INTEGER:
		*(int64_t *)member = json_integer_value(json);
		break;
	case OW_FIELD_FLAG:
		*(bool *)member = json_is_true(json);
		break;
	case OW_FIELD_STATUS:
		status = ow_result_status_of(json_string_value(json));
		if (status < 0)
			return ow_error_set(err, EINVAL, "status is not measured, partial or unknown");
		*(enum ow_result_status *)member = (enum ow_result_status)status;
		break;
	case OW_FIELD_COUNT:
		*(uint64_t *)member = count_of(json, field->flags & OW_FIELD_NOT_COUNTED ? OW_RESULT_NOT_COUNTED : 0);
		break;
	case OW_FIELD_SHIFT:
		*(uint32_t *)member = number_of(json, 63);
		break;
	case OW_FIELD_NUMBER:
		*(uint32_t *)member = number_of(json, UINT32_MAX);
		break;
	case OW_FIELD_SHARE:
		*(double *)member = json_number_value(json);
		break;
	case OW_FIELD_VALUE:
		*(struct ow_value *)member = value_of(json, bounds, reason);
		break;
	case OW_FIELD_QUANTILES:
		read_quantiles(json, bounds, reason, member);
		break;
	case OW_FIELD_CLOCK:
		*(struct ow_clock_state *)member = clock_of(json);
		break;
	case OW_FIELD_HISTOGRAM:
		return read_histogram(json, member, err);
	default: /* computed from others */
		break;
	}
	return 0;
}

static int read_result(const json_t *object, struct ow_interval_result *result, struct ow_error *err)
{
	const json_t *start = json_object_get(object, "start_ns"), *length = json_object_get(object, "length_ns");
	int r = 0;
	*result = (struct ow_interval_result){.length_ns = 0};
	if (!json_is_integer(start) || !json_is_integer(length) || json_integer_value(length) <= 0)
		return ow_error_set(err, EINVAL, "start_ns and length_ns must be whole numbers, length_ns above 0");
	for (size_t i = 0; i < ow_field_count && r == 0; i++)
		r = read_field(object, &ow_fields[i], ow_field_at(&ow_fields[i], result), err);
	return r;
}

int ow_result_json_read(const char *line, size_t length, struct ow_interval_result *ret_result, struct ow_error *err)
{
	json_error_t why;
	if (length > OW_RESULT_LINE_MAX)
		return ow_error_set(err, EINVAL, "a line of more than %u bytes", OW_RESULT_LINE_MAX);
	json_t *root = json_loadb(line, length, 0, &why);
	if (!root)
		return ow_error_set(err, EINVAL, "not JSON: %.200s", why.text);
	/* In the output of `oneway lab` the result is inside an object. */
	const json_t *object = json_object_get(root, "result");
	if (!json_is_object(object))
		object = root;
	int r = 0;
	if (json_object_get(object, "segment") && json_object_get(object, "start_ns"))
		r = read_result(object, ret_result, err) < 0 ? -EINVAL : 1;
	json_decref(root);
	return r;
}
