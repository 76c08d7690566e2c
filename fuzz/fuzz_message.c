/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a frame: what decodes must encode to the same bytes, and what does not decode must give a reason. A
 * RESULT may have reasons and fields that this version does not know. fuzz/wire_corpus.c makes the seeds.
 */
#include "exchange/message.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

/* A result that was encoded again decodes to the same numbers, and from then on to the same bytes. */
static void check_result(const struct ow_message *message, const uint8_t *frame, size_t size)
{
	struct ow_message second;
	uint8_t *again = NULL;
	size_t again_size = 0;
	check(message->type == OW_MESSAGE_RESULT);
	check(ow_message_decode(frame, size, &second, NULL) == 0);
	/* NOLINTNEXTLINE: what is decoded began as zeros; padding is equal */
	check(memcmp(&second.told.result, &message->told.result, sizeof second.told.result) == 0);
	check(ow_message_encode(&second, &again, &again_size, NULL) == 0);
	check(again_size == size && memcmp(again, frame, size) == 0);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_message message;
	struct ow_error err = {""};
	enum ow_message_type type;
	uint32_t lane;
	int peeked = ow_message_peek(data, size, &type, &lane, &err);
	check(peeked == 0 || err.text[0]);
	err.text[0] = 0;
	if (ow_message_decode(data, size, &message, &err) < 0) {
		check(err.text[0] != 0);
		return 0;
	}
	uint8_t *again = NULL;
	size_t again_size = 0;
	check(peeked == 0 && type == message.type && lane == message.lane);
	check(ow_message_encode(&message, &again, &again_size, &err) == 0);
	bool same = again_size == size && memcmp(again, data, size) == 0;
	if (!same)
		check_result(&message, again, again_size);
	free(again);
	ow_message_done(&message);
	return 0;
}
