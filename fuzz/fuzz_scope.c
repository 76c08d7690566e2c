/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the other point says about flows. The first byte: 0 = this is the receiving point and gets SCOPE, else the
 * sending one and gets SYNOPSIS. Then frames, each with its length (2). Whatever they say, the lists are decoded and
 * encoded to the same bytes, and both sets stay within their limits. fuzz/scope_corpus.c makes the seeds.
 */
#include "exchange/message_scope.h"
#include "scope_flows.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static void get_scope(struct ow_scope_receiver *receiver, int64_t interval, const struct ow_message *message)
{
	static struct ow_scope_flow flows[2][FLOWS]; /* those of the interval before must stay */
	struct ow_scope_update update;
	struct ow_scope_answer answer;
	struct ow_scope_held held[1];
	struct ow_error err = {""};
	uint8_t in_scope[FLOWS], *bytes = NULL;
	size_t helds = 0;
	struct ow_message_scope again;
	bool good = ow_scope_update_of_message(&message->scope, &update, &err) == 0;
	check(good || err.text[0]);
	if (good) {
		check(ow_message_of_scope_update(&update, &again, &bytes) == 0);
		check(again.keys_size == message->scope.keys_size && again.hot_size == message->scope.hot_size);
		check(!again.keys_size || memcmp(again.keys, message->scope.keys, again.keys_size) == 0);
		free(bytes);
	}
	make_flows(flows[interval % 2], interval);
	int r = ow_scope_receive(receiver, interval, good ? &update : NULL, flows[interval % 2], FLOWS, in_scope, held,
	                         &helds, &answer, &err);
	check(helds <= 1 && (r == 0 || err.text[0]));
	for (unsigned i = 0; i < FLOWS; i++)
		check(in_scope[i] == OW_SCOPE_JOINS || in_scope[i] == OW_SCOPE_HOLDS);
	if (r == 0 && good)
		check(answer.seen_bytes == (update.keys.count + 7) / 8);
	ow_scope_answer_done(&answer);
	ow_scope_update_done(&update);
}

static void get_answer(struct ow_scope_announcer *announcer, int64_t interval, const struct ow_message *message)
{
	struct ow_scope_flow flows[FLOWS];
	struct ow_scope_answer answer;
	const struct ow_scope_update *update;
	struct ow_scope_announcer_counts counts;
	struct ow_error err = {""};
	uint8_t in_scope[FLOWS];
	make_flows(flows, interval);
	check(ow_scope_announce(announcer, interval, flows, FLOWS, &update) == 0);
	int r = ow_scope_answer_of_message(&message->synopsis.scope, &answer, &err);
	if (r == 0)
		r = ow_scope_confirm(announcer, interval, &answer, flows, FLOWS, in_scope, &err);
	check(r == 0 || err.text[0]);
	if (r < 0)
		ow_scope_announcer_reset(announcer);
	ow_scope_announcer_counts(announcer, &counts);
	check(counts.live <= OW_SCOPE_LIVE_MAX && counts.fine <= OW_SCOPE_LISTED_MAX);
	ow_scope_answer_done(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_scope_options options = {.hold = 1, .overlap = 2};
	struct ow_scope_receiver *receiver;
	struct ow_scope_announcer *announcer;
	if (!size)
		return 0;
	bool sending = data[0];
	check(ow_scope_receiver_create(&options, &receiver) == 0);
	check(ow_scope_announcer_create(&options, &announcer) == 0);
	size_t at = 1;
	for (int64_t interval = 0; interval < 100 && size - at >= 2; interval++) {
		size_t length = data[at] | (size_t)data[at + 1] << 8;
		struct ow_message message;
		length = length < size - at - 2 ? length : size - at - 2;
		if (ow_message_decode(data + at + 2, length, &message, NULL) == 0) {
			if (sending && message.type == OW_MESSAGE_SYNOPSIS)
				get_answer(announcer, interval, &message);
			else if (!sending && message.type == OW_MESSAGE_SCOPE)
				get_scope(receiver, interval, &message);
			ow_message_done(&message);
		}
		at += 2 + length;
	}
	ow_scope_receiver_free(receiver);
	ow_scope_announcer_free(announcer);
	return 0;
}
