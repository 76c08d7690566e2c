/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/coder.h"
#include "exchange/message.h"

/* Internal to the codec: the messages of an interval, field by field. */
void ow_code_clock(struct ow_coder *coder, struct ow_clock_state *clock);
void ow_code_synopsis(struct ow_coder *coder, struct ow_message_synopsis *message);
void ow_code_ask(struct ow_coder *coder, struct ow_message_ask *message);
void ow_code_names(struct ow_coder *coder, struct ow_message_names *message);
void ow_code_times(struct ow_coder *coder, struct ow_message_times *message);
void ow_code_result(struct ow_coder *coder, struct ow_message_result *message);
