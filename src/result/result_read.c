/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of JSON results, read back. */
#include "result/result_read.h"
#include "result/json_read.h"
#include "result/result_json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A text that fits, or an error: half a name would be another's. */
static int text_of(const json_t *object, const char *name, char *text, size_t size, struct ow_error *err)
{
	const char *value = json_string_value(json_object_get(object, name));
	text[0] = 0;
	if (!value)
		return 0;
	if (strlen(value) >= size)
		return ow_error_set(err, EINVAL, "%s has more than %zu bytes", name, size - 1);
	memcpy(text, value, strlen(value) + 1);
	return 0;
}

static struct ow_value value_of(double value, const json_t *bounds, const char *name)
{
	const json_t *pair = json_object_get(bounds, name);
	const json_t *low = json_array_get(pair, 0), *high = json_array_get(pair, 1);
	if (!isfinite(value))
		return ow_value_none(OW_REASON_NOT_IN_LINE);
	if (!json_is_number(low))
		return ow_value_exact(value);
	double least = json_number_value(low), most = json_is_number(high) ? json_number_value(high) : INFINITY;
	return (struct ow_value){least == most ? OW_VALUE_EXACT : OW_VALUE_ESTIMATED, value, least, most, OW_NO_REASON};
}

static void read_numbers(const json_t *object, struct ow_interval_result *result)
{
	const json_t *delay = json_object_get(object, "delay_ns"), *bounds = json_object_get(object, "ci95");
	result->sent = ow_json_get_count(object, "sent");
	result->received = ow_json_get_count(object, "received");
	result->matched = ow_json_get_count(object, "matched");
	result->late = ow_json_get_count(object, "late");
	result->late_received = ow_json_get_count(object, "late_received");
	result->lost = ow_json_get_count(object, "lost");
	result->pending = ow_json_get_count(object, "pending");
	result->extra = ow_json_get_count(object, "extra");
	result->samples = ow_json_get_count(object, "samples");
	result->bytes = ow_json_get_count(object, "bytes");
	result->mean_ns = value_of(ow_json_get_number(delay, "mean"), bounds, "mean");
	result->stddev_ns = value_of(ow_json_get_number(delay, "stddev"), bounds, "stddev");
	result->loss_ratio = value_of(ow_json_get_number(object, "loss_ratio"), bounds, "loss_ratio");
	result->min_ns = value_of(ow_json_get_number(delay, "min"), NULL, "");
	result->max_ns = value_of(ow_json_get_number(delay, "max"), NULL, "");
	result->exact = json_is_true(json_object_get(object, "exact"));
	result->active = json_is_true(json_object_get(object, "active"));
}

static struct ow_clock_state clock_of(const json_t *object, const char *name)
{
	const json_t *clock = json_object_get(json_object_get(object, "clock"), name);
	const json_t *error = json_object_get(clock, "error_ns");
	return (struct ow_clock_state){json_is_true(json_object_get(clock, "synchronised")),
	                               json_is_integer(error) ? json_integer_value(error) : OW_CLOCK_UNKNOWN};
}

static int read_status(const json_t *object, struct ow_interval_result *result, struct ow_error *err)
{
	const char *status = json_string_value(json_object_get(object, "status"));
	for (int i = OW_RESULT_MEASURED; status && i <= OW_RESULT_UNKNOWN; i++) {
		if (strcmp(status, ow_result_status_name[i]) == 0) {
			result->status = (enum ow_result_status)i;
			return 0;
		}
	}
	return ow_error_set(err, EINVAL, "status is not measured, partial or unknown");
}

static int read_result(const json_t *object, struct ow_interval_result *result, struct ow_error *err)
{
	const json_t *start = json_object_get(object, "start_ns"), *length = json_object_get(object, "length_ns");
	*result = (struct ow_interval_result){.reordered = OW_RESULT_NOT_COUNTED};
	if (!json_is_integer(start) || !json_is_integer(length) || json_integer_value(length) <= 0)
		return ow_error_set(err, EINVAL, "start_ns and length_ns must be whole numbers, length_ns above 0");
	result->start_ns = json_integer_value(start);
	result->length_ns = json_integer_value(length);
	result->interval = json_integer_value(json_object_get(object, "interval"));
	result->final = json_is_true(json_object_get(object, "final"));
	int r = read_status(object, result, err);
	if (r == 0)
		r = text_of(object, "segment", result->segment, sizeof(result->segment), err);
	if (r == 0)
		r = text_of(object, "class", result->class_name, sizeof(result->class_name), err);
	if (r == 0)
		r = text_of(object, "from", result->from, sizeof(result->from), err);
	if (r == 0)
		r = text_of(object, "to", result->to, sizeof(result->to), err);
	if (r == 0)
		r = text_of(object, "cause", result->cause, sizeof(result->cause), err);
	read_numbers(object, result);
	result->clock_from = clock_of(object, "from");
	result->clock_to = clock_of(object, "to");
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
	/* `oneway lab` has the result inside. */
	const json_t *object = json_object_get(root, "result");
	if (!json_is_object(object))
		object = root;
	int r = 0;
	if (json_object_get(object, "segment") && json_object_get(object, "start_ns"))
		r = read_result(object, ret_result, err) < 0 ? -EINVAL : 1;
	json_decref(root);
	return r;
}
