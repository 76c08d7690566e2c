/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/coder.h"
#include "exchange/message.h"
#include "reconcile/scope_keys.h"

/* Internal to the codec: SCOPE, and what SYNOPSIS has for scope after the synopsis. */
void ow_code_scope(struct ow_coder *coder, struct ow_message_scope *message);
void ow_code_scope_answer(struct ow_coder *coder, struct ow_message_scope_answer *message);

/* To messages: the lists are coded into *ret_bytes, to be freed after the message was encoded. -ENOMEM. */
int ow_message_of_scope_update(const struct ow_scope_update *update, struct ow_message_scope *ret_message,
                               uint8_t **ret_bytes);
int ow_message_of_scope_answer(const struct ow_scope_answer *answer, struct ow_message_scope_answer *ret_message,
                               uint8_t **ret_bytes);
/* The sum of hashes of the keys. */
uint32_t ow_scope_keys_check(const struct ow_scope_list *keys);
/* And back. -EPROTO with a line: a list is damaged, not in rising order, or too long. -ENOMEM. What they return is to
 * be freed by ow_scope_update_done, ow_scope_answer_done. */
int ow_scope_update_of_message(const struct ow_message_scope *message, struct ow_scope_update *ret_update,
                               struct ow_error *err);
int ow_scope_answer_of_message(const struct ow_message_scope_answer *message, struct ow_scope_answer *ret_answer,
                               struct ow_error *err);
