/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_corpus SCOPE MESSAGES: makes the seeds of fuzz_scope (what each end of a lane hears about flows, in order) and
 * two of fuzz_message. To be run again only when the protocol changes.
 */
#include "exchange/message_scope.h"
#include "scope_flows.h"
#include "save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTERVALS 40

struct heard {
	uint8_t bytes[60000];
	size_t size;
};

static void check(int r)
{
	if (r < 0)
		exit(1);
}

static void hear(struct heard *heard, const struct ow_message *message, const char *directory, const char *name)
{
	uint8_t *frame;
	size_t size;
	check(ow_message_encode(message, &frame, &size, NULL));
	if (heard->size + 2 + size <= sizeof heard->bytes) {
		heard->bytes[heard->size] = (uint8_t)size;
		heard->bytes[heard->size + 1] = (uint8_t)(size >> 8);
		memcpy(heard->bytes + heard->size + 2, frame, size);
		heard->size += 2 + size;
	}
	if (name)
		save(directory, name, frame, size);
	free(frame);
}

int main(int argc, char **argv)
{
	static struct heard receiving = {{0}, 1}, sending = {{1}, 1};
	static struct ow_scope_flow flows[INTERVALS][FLOWS];
	struct ow_scope_options options = {.hold = 1, .overlap = 2};
	struct ow_scope_announcer *announcer;
	struct ow_scope_receiver *receiver;
	if (argc != 3) {
		fprintf(stderr, "usage: scope_corpus SCOPE MESSAGES\n");
		return 2;
	}
	check(ow_scope_announcer_create(&options, &announcer));
	check(ow_scope_receiver_create(&options, &receiver));
	for (int64_t i = 0; i < INTERVALS; i++) {
		const struct ow_scope_update *update;
		struct ow_scope_answer answer;
		struct ow_scope_held held[1];
		size_t helds;
		uint8_t in_scope[FLOWS], *bytes;
		struct ow_message m = {.type = OW_MESSAGE_SCOPE, .lane = 1, .interval = i};
		make_flows(flows[i], i);
		check(ow_scope_announce(announcer, i, flows[i], FLOWS, &update));
		check(ow_message_of_scope_update(update, &m.scope, &bytes));
		hear(&receiving, &m, argv[2], i == 3 ? "SCOPE" : NULL);
		free(bytes);
		/* Half of the flows arrive. */
		check(ow_scope_receive(receiver, i, update, flows[i], FLOWS / 2, in_scope, held, &helds, &answer,
		                       NULL));
		for (unsigned k = 0; k < 8 && i % 8 == 5; k++)
			ow_scope_received_only(receiver, &flows[i][k], 3);
		m = (struct ow_message){.type = OW_MESSAGE_SYNOPSIS, .lane = 1, .interval = i};
		check(ow_message_of_scope_answer(&answer, &m.synopsis.scope, &bytes));
		hear(&sending, &m, argv[2], i == 6 ? "SYNOPSIS-scope" : NULL);
		free(bytes);
		check(ow_scope_confirm(announcer, i, &answer, flows[i], FLOWS, in_scope, NULL));
		ow_scope_answer_done(&answer);
	}
	save(argv[1], "receiving", receiving.bytes, receiving.size);
	save(argv[1], "sending", sending.bytes, sending.size);
	ow_scope_announcer_free(announcer);
	ow_scope_receiver_free(receiver);
	return 0;
}
