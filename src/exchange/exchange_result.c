/* SPDX-License-Identifier: Apache-2.0 */
/* Live results for messages. */
#include "base/coder.h"
#include "exchange/exchange_private.h"
#include "result/cause.h"
#include "result/fields.h"

#include <math.h>
#include <stdio.h>

/* Drops values that the codec would refuse: not a number, or not within its interval. */
static void drop_impossible(struct ow_value *value, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ow_value *v = &value[i];
		if (v->status != OW_VALUE_NONE && !(isfinite(v->value) && v->low <= v->value && v->value <= v->high))
			*v = ow_value_none(OW_NO_REASON);
	}
}

void ow_result_to_message(const struct ow_interval_result *result, struct ow_interval_result *ret_message)
{
	*ret_message = *result;
	for (size_t i = 0; i < ow_field_count; i++) {
		const struct ow_field *field = &ow_fields[i];
		if (field->type == OW_FIELD_VALUE || field->type == OW_FIELD_QUANTILES)
			drop_impossible(ow_field_at(field, ret_message), field->size / sizeof(struct ow_value));
	}
	/* A name may have been cut within a multi-byte character. */
	ow_coder_cut(ret_message->cause);
	if (!ret_message->cause[0] && result->status != OW_RESULT_MEASURED)
		snprintf(ret_message->cause, sizeof ret_message->cause, ow_cause_not_known);
}

/* An interval of confidence of this width is not changed by one more at each end. */
#define ROUND_WIDTH 16

static void round_values(struct ow_value *value, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ow_value *v = &value[i];
		if (v->status != OW_VALUE_ESTIMATED || !(v->high - v->low >= ROUND_WIDTH))
			continue;
		v->value = rint(v->value);
		v->low = fmin(floor(v->low), v->value);
		v->high = fmax(ceil(v->high), v->value);
	}
}

void ow_result_round(struct ow_interval_result *result)
{
	for (size_t i = 0; i < ow_field_count; i++) {
		const struct ow_field *field = &ow_fields[i];
		if (field->type == OW_FIELD_VALUE || field->type == OW_FIELD_QUANTILES)
			round_values(ow_field_at(field, result), field->size / sizeof(struct ow_value));
	}
}
