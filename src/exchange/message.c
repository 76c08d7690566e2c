/* SPDX-License-Identifier: Apache-2.0 */
/* Frames, and the messages that open and close sessions and lanes. Those of an interval are in message_lane.c. */
#include "exchange/message.h"

#include "base/coder.h"
#include "exchange/message_lane.h"
#include "exchange/message_scope.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[OW_MESSAGE_TYPES] = {
	[OW_MESSAGE_HELLO] = "HELLO",     [OW_MESSAGE_OPEN] = "OPEN",         [OW_MESSAGE_OPENED] = "OPENED",
	[OW_MESSAGE_REFUSED] = "REFUSED", [OW_MESSAGE_SYNOPSIS] = "SYNOPSIS", [OW_MESSAGE_ASK] = "ASK",
	[OW_MESSAGE_NAMES] = "NAMES",     [OW_MESSAGE_TIMES] = "TIMES",       [OW_MESSAGE_RESULT] = "RESULT",
	[OW_MESSAGE_NONE] = "NONE",       [OW_MESSAGE_PING] = "PING",         [OW_MESSAGE_BYE] = "BYE",
	[OW_MESSAGE_SCOPE] = "SCOPE",     [OW_MESSAGE_SURVEY] = "SURVEY",     [OW_MESSAGE_SAMPLE] = "SAMPLE",
	[OW_MESSAGE_WANTED] = "WANTED",   [OW_MESSAGE_EPOCH] = "EPOCH",
};

const char *ow_message_name(enum ow_message_type type)
{
	return type > 0 && type < OW_MESSAGE_TYPES ? names[type] : "?";
}

static bool of_session(enum ow_message_type type)
{
	return type == OW_MESSAGE_HELLO || type == OW_MESSAGE_PING || type == OW_MESSAGE_WANTED ||
	       type == OW_MESSAGE_EPOCH;
}

static bool of_interval(enum ow_message_type type)
{
	return (type >= OW_MESSAGE_SYNOPSIS && type <= OW_MESSAGE_NONE) || type == OW_MESSAGE_BYE ||
	       type == OW_MESSAGE_SCOPE;
}

/* Real times: from 1970 to 2262, minus what intervals and waiting times add. */
#define REAL_NS_MAX (INT64_MAX / 2)

static void code_hello(struct ow_coder *c, struct ow_message_hello *m)
{
	ow_coder_u8(c, "least version", &m->version_min, 1, 255);
	ow_coder_u8(c, "most version", &m->version_max, 1, 255);
	if (m->version_max < m->version_min)
		ow_coder_fail(c, "most version", "is below the least");
	ow_coder_uint(c, "epoch", 8, &m->epoch, 0, UINT64_MAX);
	ow_coder_int(c, "time", &m->now_ns, 0, REAL_NS_MAX);
	ow_coder_bool(c, "clock", &m->clock.synchronised);
	ow_coder_int(c, "clock error", &m->clock.error_ns, 0, INT64_MAX);
	ow_coder_uint(c, "clock identity", 8, &m->clock_identity, 0, UINT64_MAX);
	ow_coder_text(c, "point", m->point, sizeof m->point, false);
	ow_coder_text(c, "software", m->software, sizeof m->software, true);
}

static void code_open(struct ow_coder *c, struct ow_message_open *m)
{
	ow_coder_bool(c, "direction", &m->sends);
	OW_CODER_ENUM(c, "method", m->method, 0, OW_MESSAGE_METHODS);
	OW_CODER_ENUM(c, "level", m->level, OW_MESSAGE_LEVEL_IP, OW_MESSAGE_LEVEL_NAT + 1);
	ow_coder_bool(c, "inner", &m->inner);
	ow_coder_u32(c, "hash limit", &m->hash_limit, 1, UINT32_MAX);
	ow_coder_uint(c, "identity seed", 8, &m->identity_seed, 0, UINT64_MAX);
	ow_coder_uint(c, "synopsis seed", 8, &m->synopsis_seed, 0, UINT64_MAX);
	ow_coder_int(c, "t0", &m->t0_ns, 0, REAL_NS_MAX);
	ow_coder_int(c, "length", &m->length_ns, OW_MESSAGE_LENGTH_MIN_NS, OW_MESSAGE_LENGTH_MAX_NS);
	ow_coder_int(c, "waiting time", &m->wait_ns, 0, OW_MESSAGE_LENGTH_MAX_NS * OW_MESSAGE_HORIZON_MAX);
	ow_coder_u32(c, "horizon", &m->horizon, 1, OW_MESSAGE_HORIZON_MAX);
	ow_coder_u32(c, "buckets", &m->buckets, 1, OW_MESSAGE_BUCKETS_MAX);
	ow_coder_u32(c, "sample", &m->sample, 1, OW_MESSAGE_SAMPLE_MAX);
	ow_coder_u8(c, "shift", &m->sample_shift, 0, OW_MESSAGE_SHIFT_MAX);
	ow_coder_bool(c, "TCP headers", &m->tcp_headers);
	ow_coder_bool(c, "scope", &m->shared);
	ow_coder_bool(c, "exact", &m->exact);
	ow_coder_bool(c, "any IP id", &m->any_ip_id);
	ow_coder_bool(c, "pieces", &m->pieces);
	ow_coder_text(c, "segment", m->segment, sizeof m->segment, false);
	ow_coder_text(c, "class", m->class_name, sizeof m->class_name, false);
	ow_coder_text(c, "filter", m->filter, sizeof m->filter, true);
}

static void code_opened(struct ow_coder *c, struct ow_message_opened *m)
{
	ow_coder_int(c, "time", &m->now_ns, 0, REAL_NS_MAX);
	ow_coder_int(c, "t0", &m->t0_ns, 0, REAL_NS_MAX);
	ow_coder_uint(c, "identity seed", 8, &m->identity_seed, 0, UINT64_MAX);
	ow_coder_uint(c, "synopsis seed", 8, &m->synopsis_seed, 0, UINT64_MAX);
}

static void code_survey(struct ow_coder *c, struct ow_message_survey *m)
{
	ow_coder_int(c, "t0", &m->t0_ns, 0, REAL_NS_MAX);
	ow_coder_int(c, "length", &m->length_ns, OW_MESSAGE_LENGTH_MIN_NS, OW_MESSAGE_SURVEY_MAX_NS);
	ow_coder_uint(c, "seed", 8, &m->seed, 0, UINT64_MAX);
	ow_coder_u8(c, "shift", &m->sample_shift, 0, OW_MESSAGE_SHIFT_MAX);
}

static void code_sample(struct ow_coder *c, struct ow_message_sample *m)
{
	ow_coder_uint(c, "seed", 8, &m->seed, 0, UINT64_MAX);
	for (unsigned i = 0; i < OW_MESSAGE_IDENTITIES; i++) {
		ow_coder_u8(c, "shift", &m->sample_shift[i], 0, OW_MESSAGE_SHIFT_MAX);
		ow_coder_u32(c, "count", &m->count[i], 0, OW_MESSAGE_IDS_MAX);
		ow_coder_bytes(c, "ids", &m->ids[i], (size_t)m->count[i] * 8);
	}
}

static void code_wanted(struct ow_coder *c, struct ow_message_wanted *m)
{
	ow_coder_u8(c, "recording", &m->recording, 0, OW_MESSAGE_RECORDINGS - 1);
	ow_coder_u8(c, "heading", &m->heading, 0, 2);
	ow_coder_varint(c, "epochs", &m->epochs, 0, UINT64_MAX);
	ow_coder_uint(c, "check", 8, &m->check, 0, UINT64_MAX);
	ow_coder_u32(c, "size", &m->info_size, 1, OW_MESSAGE_INFO_BYTES_MAX);
	ow_coder_bytes(c, "description", &m->info, m->info_size);
}

static void code_epoch(struct ow_coder *c, struct ow_message_epoch *m)
{
	bool next;
	ow_coder_u8(c, "recording", &m->recording, 0, OW_MESSAGE_RECORDINGS - 1);
	ow_coder_varint(c, "epochs", &m->epochs, 0, UINT64_MAX);
	OW_CODER_ENUM(c, "state", m->state, 0, OW_MESSAGE_EPOCH_STATES);
	next = m->state == OW_MESSAGE_EPOCH_NEXT;
	ow_coder_u32(c, "size", &m->size, next, next ? OW_MESSAGE_EPOCH_MAX : 0);
	ow_coder_u32(c, "size of counts", &m->count_bytes, 0, m->size);
	ow_coder_bytes(c, "epoch", &m->bytes, m->size);
}

static void code_ping(struct ow_coder *c, struct ow_message_ping *m)
{
	ow_coder_uint(c, "token", 8, &m->token, 0, UINT64_MAX);
	ow_coder_bool(c, "answer", &m->answer);
}

/* The same in all versions. */
static void code_version(struct ow_coder *c)
{
	uint8_t version = OW_WIRE_VERSION;
	ow_coder_u8(c, "version", &version, 0, 255);
	if (!c->failed && version != OW_WIRE_VERSION) {
		char wrong[80];
		snprintf(wrong, sizeof wrong, "is %u, but this point speaks version %d: install the same at both",
		         version, OW_WIRE_VERSION);
		ow_coder_fail(c, "version", wrong);
	}
	for (int i = 0; i < 7; i++)
		ow_coder_zeros(c, 2);
}

static void code_header(struct ow_coder *c, struct ow_message *m)
{
	uint64_t interval = (uint64_t)m->interval;
	OW_CODER_ENUM(c, "type", m->type, 1, OW_MESSAGE_TYPES);
	if (c->failed)
		return;
	c->message = names[m->type];
	if (m->type == OW_MESSAGE_HELLO) {
		if (m->lane || m->interval)
			ow_coder_fail(c, "lane", "is not 0");
		code_version(c);
		return;
	}
	ow_coder_varint32(c, "lane", &m->lane, 0, of_session(m->type) ? 0 : UINT32_MAX);
	ow_coder_varint(c, "interval", &interval, 0, of_interval(m->type) ? OW_MESSAGE_INTERVAL_MAX : 0);
	m->interval = (int64_t)interval;
}

static void code_message(struct ow_coder *c, struct ow_message *m)
{
	c->message = "of unknown type";
	code_header(c, m);
	if (c->failed)
		return;
	switch (m->type) {
	case OW_MESSAGE_HELLO:
		code_hello(c, &m->hello);
		break;
	case OW_MESSAGE_OPEN:
		code_open(c, &m->open);
		break;
	case OW_MESSAGE_OPENED:
		code_opened(c, &m->opened);
		break;
	case OW_MESSAGE_SYNOPSIS:
		ow_code_synopsis(c, &m->synopsis);
		break;
	case OW_MESSAGE_SCOPE:
		ow_code_scope(c, &m->scope);
		break;
	case OW_MESSAGE_ASK:
		ow_code_ask(c, &m->ask);
		break;
	case OW_MESSAGE_NAMES:
		ow_code_names(c, &m->names);
		break;
	case OW_MESSAGE_TIMES:
		ow_code_times(c, &m->times);
		break;
	case OW_MESSAGE_RESULT:
		ow_code_result(c, &m->told);
		break;
	case OW_MESSAGE_SURVEY:
		code_survey(c, &m->survey);
		break;
	case OW_MESSAGE_SAMPLE:
		code_sample(c, &m->sample);
		break;
	case OW_MESSAGE_WANTED:
		code_wanted(c, &m->wanted);
		break;
	case OW_MESSAGE_EPOCH:
		code_epoch(c, &m->epoch);
		break;
	case OW_MESSAGE_PING:
		code_ping(c, &m->ping);
		break;
	case OW_MESSAGE_REFUSED:
	case OW_MESSAGE_NONE:
	case OW_MESSAGE_BYE:
		ow_coder_text(c, "reason", m->text.text, sizeof m->text.text, true);
		break;
	case OW_MESSAGE_TYPES:
		break;
	}
}

int ow_message_encode(const struct ow_message *message, uint8_t **ret_frame, size_t *ret_size, struct ow_error *err)
{
	struct ow_message m = *message; /* the coder takes a pointer that is not const, because it also reads */
	struct ow_coder c = {.does = OW_CODER_MEASURES, .err = err};
	code_message(&c, &m);
	if (c.failed)
		return c.failed;
	if (c.at > OW_WIRE_FRAME_MAX)
		return ow_error_set(err, EMSGSIZE, "message %s: longer than %u bytes", c.message, OW_WIRE_FRAME_MAX);
	uint8_t *frame = malloc(c.at);
	if (!frame)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct ow_coder writer = {.does = OW_CODER_WRITES, .to = frame, .size = c.at, .err = err};
	code_message(&writer, &m);
	*ret_frame = frame;
	*ret_size = c.at;
	return 0;
}

int ow_message_decode(const uint8_t *frame, size_t size, struct ow_message *ret_message, struct ow_error *err)
{
	struct ow_message m;
	memset(&m, 0, sizeof m);
	if (size > OW_WIRE_FRAME_MAX)
		return ow_error_set(err, EPROTO, "a frame of more than %u bytes", OW_WIRE_FRAME_MAX);
	struct ow_coder c = {.does = OW_CODER_READS, .from = frame, .size = size, .err = err};
	code_message(&c, &m);
	if (c.at != size)
		ow_coder_fail(&c, "end", "comes before that of the frame");
	if (c.failed) {
		ow_message_done(&m);
		return c.failed;
	}
	*ret_message = m;
	return 0;
}

void ow_message_done(struct ow_message *message)
{
	if (message->type != OW_MESSAGE_TIMES)
		return;
	struct ow_message_times *t = &message->times;
	free((void *)t->time_ns);
	free((void *)t->place);
	free((void *)t->copy);
	free((void *)t->bucket);
	memset(t, 0, sizeof *t);
}

int ow_message_peek(const uint8_t *frame, size_t size, enum ow_message_type *ret_type, uint32_t *ret_lane,
                    struct ow_error *err)
{
	struct ow_message m;
	memset(&m, 0, sizeof m);
	struct ow_coder c = {.does = OW_CODER_READS, .from = frame, .size = size, .err = err, .message = "?"};
	code_header(&c, &m);
	if (c.failed)
		return c.failed;
	*ret_type = m.type;
	*ret_lane = m.lane;
	return 0;
}
