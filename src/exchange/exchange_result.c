/* SPDX-License-Identifier: Apache-2.0 */
/* Converts live results to messages, and back. */
#include "base/coder.h"
#include "exchange/exchange_private.h"
#include "result/cause.h"
#include "result/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

void ow_result_from_message(const struct ow_interval_result *message, struct ow_interval_result *result)
{
	for (size_t i = 0; i < ow_field_count; i++) {
		if (ow_fields[i].wire)
			memcpy(ow_field_at(&ow_fields[i], result), ow_field_of(&ow_fields[i], message),
			       ow_fields[i].size);
	}
}
