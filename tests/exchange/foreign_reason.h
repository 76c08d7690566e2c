/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_FOREIGN_REASON_H
#define TEST_FOREIGN_REASON_H

#include "exchange/message.h"
#include "result/fields.h"

/*
 * What is decoded encodes to the same bytes, but for a RESULT that gives a reason which this version does not know:
 * that one is replaced, and the message then encodes to bytes that decode to it.
 */
static inline bool has_foreign_reason(const struct ow_message *message)
{
	for (size_t i = 0; message->type == OW_MESSAGE_RESULT && i < ow_field_count; i++) {
		const struct ow_field *field = &ow_fields[i];
		const struct ow_value *value = ow_field_of(field, &message->result);
		if (field->type != OW_FIELD_VALUE && field->type != OW_FIELD_QUANTILES)
			continue;
		for (size_t k = 0; k < field->size / sizeof *value; k++) {
			if (value[k].status == OW_VALUE_NONE && value[k].reason == OW_REASON_PEER_COULD_NOT_TELL)
				return true;
		}
	}
	return false;
}

#endif
