/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_corpus MESSAGES EXCHANGE: makes the seeds of fuzz_message (each kind of frame of a conversation, and the
 * messages around it) and of fuzz_exchange (the frames that one end of a lane gets, in order). To be run again only
 * when the protocol changes.
 */
#include "lane.h"
#include "save.h"

#include <stdio.h>
#include <string.h>

#define SEED_BYTES_MAX 120000
#define DAMAGED        70 /* a byte of a synopsis, in the cells of the fold */

struct heard {
	uint8_t bytes[SEED_BYTES_MAX];
	size_t size;
};

struct talk {
	struct ow_exchange *x[2]; /* the receiving point, the sending one */
	struct heard heard[2];
	const char *messages; /* NULL = only the conversation is written */
	const char *name;
	bool damage; /* damages a cell of each pushed fold, so that the differences cannot be decoded */
	unsigned number;
};

struct end {
	struct talk *talk;
	int side;
};

/* Damages the synopsis of a frame. */
static void damage(uint8_t *frame, size_t size)
{
	struct ow_message m;
	if (ow_message_decode(frame, size, &m, NULL) < 0)
		exit(1);
	if (m.type == OW_MESSAGE_SYNOPSIS && m.synopsis.part == OW_MESSAGE_PUSHED && m.synopsis.synopsis_size > DAMAGED)
		frame[m.synopsis.synopsis - frame + DAMAGED] ^= 1;
	ow_message_done(&m);
}

static void on_send(void *arg, const uint8_t *frame, size_t size)
{
	struct end *end = arg;
	struct talk *talk = end->talk;
	struct heard *h = &talk->heard[!end->side];
	char name[64];
	snprintf(name, sizeof name, "%s-%02u-%s", talk->name, talk->number++, ow_message_name(frame[0]));
	if (size < 3000 && talk->messages)
		save(talk->messages, name, frame, size);
	if (h->size + 2 + size > sizeof h->bytes)
		return;
	h->bytes[h->size] = (uint8_t)size;
	h->bytes[h->size + 1] = (uint8_t)(size >> 8);
	memcpy(h->bytes + h->size + 2, frame, size);
	if (talk->damage)
		damage(h->bytes + h->size + 2, size);
	h->size += 2 + size;
}

static void on_result(void *arg, const struct ow_interval_result *result)
{
	(void)arg;
	(void)result;
}

/* Passes on unread frames until both ends are silent. */
static void converse(struct talk *talk, size_t at[2], int64_t now)
{
	for (bool more = true; more;) {
		more = false;
		for (int side = 0; side < 2; side++) {
			struct heard *h = &talk->heard[side];
			while (at[side] < h->size) {
				size_t length = h->bytes[at[side]] | (size_t)h->bytes[at[side] + 1] << 8;
				struct ow_error err;
				if (ow_exchange_frame(talk->x[side], h->bytes + at[side] + 2, length, now, &err) < 0) {
					fprintf(stderr, "%s\n", err.text);
					exit(1);
				}
				at[side] += 2 + length;
				more = true;
			}
		}
	}
}

/* The same with the first two frames in the other order: packets are named before their flows are announced. */
static void save_unannounced(const char *exchange, const struct heard *heard)
{
	static uint8_t bytes[SEED_BYTES_MAX];
	const uint8_t *first = heard->bytes + 1;
	size_t one = 2 + (first[0] | (size_t)first[1] << 8), two = 2 + (first[one] | (size_t)first[one + 1] << 8);
	memcpy(bytes, heard->bytes, heard->size);
	memcpy(bytes + 1, first + one, two);
	memcpy(bytes + 1 + two, first, one);
	save(exchange, "fold-shared-unannounced", bytes, heard->size);
}

static void record(const char *messages, const char *exchange, const char *name, enum ow_method method,
                   const unsigned shift[2], bool damage, bool shared)
{
	static struct talk talk;
	memset(&talk, 0, sizeof talk);
	talk.messages = messages;
	talk.name = name;
	talk.damage = damage;
	struct end end[2] = {{&talk, 0}, {&talk, 1}};
	struct ow_clock_state clock = {true, 1000};
	size_t at[2] = {1, 1};
	int64_t now = LANE_T0 + LANE_LENGTH;
	for (int side = 0; side < 2; side++) {
		struct ow_exchange_options options = lane_options(side == 1, method);
		options.shared = shared;
		options.identity.level = OW_LEVEL_IP;
		struct ow_exchange_sinks sinks = {.send = on_send, .result = on_result, .arg = &end[side]};
		talk.heard[side].bytes[0] =
			(uint8_t)(side | (method == OW_METHOD_RDA) << 1 | shift[side] << 2 | shared << 4);
		talk.heard[side].size = 1;
		if (ow_exchange_create(&options, &sinks, &talk.x[side]) < 0)
			exit(1);
	}
	for (int64_t i = 0; i < LANE_INTERVALS; i++, now += LANE_LENGTH) {
		for (int side = 0; side < 2; side++) {
			struct ow_interval_packets *page = lane_page(i, side == 1, shift[side]);
			if (shared)
				lane_flows(page);
			ow_exchange_packets(talk.x[side], page, &clock, now);
		}
		converse(&talk, at, now);
	}
	for (int side = 0; side < 2; side++)
		ow_exchange_finish(talk.x[side], NULL);
	converse(&talk, at, now);
	for (int side = 0; side < 2; side++) {
		char file[64];
		snprintf(file, sizeof file, "%s-%s", name, side ? "sending" : "receiving");
		save(exchange, file, talk.heard[side].bytes, talk.heard[side].size);
		ow_exchange_free(talk.x[side]);
	}
	if (shared)
		save_unannounced(exchange, &talk.heard[0]);
}

static void save_message(const char *directory, const struct ow_message *message)
{
	uint8_t *frame;
	size_t size;
	if (ow_message_encode(message, &frame, &size, NULL) < 0)
		exit(1);
	save(directory, ow_message_name(message->type), frame, size);
	free(frame);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: wire_corpus MESSAGES EXCHANGE\n");
		return 2;
	}
	record(argv[1], argv[2], "fold", OW_METHOD_FOLD, (unsigned[]){0, 0}, false, false);
	record(NULL, argv[2], "fold-finer", OW_METHOD_FOLD, (unsigned[]){0, 1}, false, false);
	record(NULL, argv[2], "fold-coarser", OW_METHOD_FOLD, (unsigned[]){1, 0}, false, false);
	record(argv[1], argv[2], "fold-damaged", OW_METHOD_FOLD, (unsigned[]){0, 0}, true, false);
	record(argv[1], argv[2], "rda", OW_METHOD_RDA, (unsigned[]){0, 0}, false, false);
	record(argv[1], argv[2], "fold-shared", OW_METHOD_FOLD, (unsigned[]){0, 0}, false, true);
	struct ow_message m = {.type = OW_MESSAGE_HELLO};
	m.hello = (struct ow_message_hello){1, 2, "london", 1, 2, {true, 3}, 4, "oneway"};
	save_message(argv[1], &m);
	m = (struct ow_message){.type = OW_MESSAGE_OPEN, .lane = 1};
	m.open = (struct ow_message_open){.segment = "s",
	                                  .class_name = "c",
	                                  .filter = "tcp",
	                                  .sends = true,
	                                  .level = OW_MESSAGE_LEVEL_IP,
	                                  .any_ip_id = true,
	                                  .tcp_headers = true,
	                                  .pieces = true,
	                                  .shared = true,
	                                  .exact = true,
	                                  .hash_limit = 64,
	                                  .identity_seed = 1,
	                                  .synopsis_seed = 2,
	                                  .t0_ns = 3,
	                                  .length_ns = 1000000000,
	                                  .wait_ns = 4,
	                                  .horizon = 2,
	                                  .buckets = 5,
	                                  .sample = 6};
	save_message(argv[1], &m);
	m = (struct ow_message){.type = OW_MESSAGE_SURVEY, .lane = 1};
	m.survey = (struct ow_message_survey){3, 1000000000, 7, 2};
	save_message(argv[1], &m);
	m = (struct ow_message){.type = OW_MESSAGE_SAMPLE, .lane = 1};
	m.sample = (struct ow_message_sample){.seed = 7};
	for (int i = 0; i < OW_MESSAGE_IDENTITIES; i++) {
		m.sample.sample_shift[i] = (uint8_t)i;
		m.sample.count[i] = (uint32_t)(i % 3);
		m.sample.ids[i] = (const uint8_t *)"12345678abcdefgh";
	}
	save_message(argv[1], &m);
	m = (struct ow_message){.type = OW_MESSAGE_WANTED};
	m.wanted = (struct ow_message_wanted){1, 2, 3, 4, (const uint8_t *)"info", 4};
	save_message(argv[1], &m);
	m = (struct ow_message){.type = OW_MESSAGE_EPOCH};
	m.epoch = (struct ow_message_epoch){1, 3, OW_MESSAGE_EPOCH_NEXT, 2, (const uint8_t *)"epoch", 5};
	save_message(argv[1], &m);
	m = (struct ow_message){.type = OW_MESSAGE_OPENED, .lane = 1};
	m.opened = (struct ow_message_opened){1, 2, 3, 4};
	save_message(argv[1], &m);
	static const enum ow_message_type texts[] = {OW_MESSAGE_REFUSED, OW_MESSAGE_NONE, OW_MESSAGE_BYE};
	for (int i = 0; i < 3; i++) {
		m = (struct ow_message){.type = texts[i]};
		snprintf(m.text.text, sizeof m.text.text, "%s", "caf\xc3\xa9");
		save_message(argv[1], &m);
	}
	m = (struct ow_message){.type = OW_MESSAGE_PING};
	m.ping = (struct ow_message_ping){1, true};
	save_message(argv[1], &m);
	return 0;
}
