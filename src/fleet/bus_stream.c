/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to streams that wait for their answer. */
#include "fleet/bus_private.h"

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/time.h"
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of messages that are asked for at a time; a batch ends before. */
#define PULL_BYTES (16 << 20)
/* Messages that ow_bus_each asks for at a time. */
#define EACH_BATCH 500

/* An answer that is waited for. */
struct answer {
	bool done;
	int status;
	char *data; /* with a 0 at its end */
	size_t size;
	uint64_t sequence;
};

static void keep_answer(void *arg, const struct ow_bus_message *message)
{
	struct answer *answer = arg;
	answer->done = true;
	answer->status = message->status;
	answer->sequence = message->sequence;
	answer->data = malloc(message->size + 1);
	if (!answer->data) {
		answer->status = 500;
		return;
	}
	if (message->size)
		memcpy(answer->data, message->data, message->size);
	answer->data[message->size] = '\0';
	answer->size = message->size;
}

static int explain(int status, const char *subject, struct ow_error *err)
{
	switch (status) {
	case 0:
		return 0;
	case 404:
		return ow_error_set(err, ENOENT, "%s: there is no such message", subject);
	case 408:
		return ow_error_set(err, ETIMEDOUT, "%s: no answer; the permissions may not allow it", subject);
	case 503:
		return ow_error_set(err, ENOENT, "%s: nobody answers; the stream may be missing", subject);
	default:
		return ow_error_set(err, EIO, "%s: status %d", subject, status);
	}
}

static int ask_and_wait(struct ow_bus *bus, const char *subject, const void *data, size_t size,
                        struct answer *ret_answer, struct ow_error *err)
{
	*ret_answer = (struct answer){0};
	int r = bus->connected ? 0 : ow_bus_wait(bus, OW_BUS_WAIT_MS, err);
	if (r == 0)
		r = ow_bus_request(bus, subject, data, size, keep_answer, ret_answer, err);
	if (r < 0)
		return r;
	/* Every request is answered or ends. */
	while (!ret_answer->done)
		ow_bus_poll(bus, 50);
	r = explain(ret_answer->status, subject, err);
	if (r < 0) {
		free(ret_answer->data);
		ret_answer->data = NULL;
	}
	return r;
}

void ow_bus_get_subject(const char *stream, const char *subject, char ret_subject[OW_BUS_SUBJECT])
{
	snprintf(ret_subject, OW_BUS_SUBJECT, "$JS.API.DIRECT.GET.%s.%s", stream, subject);
}

int ow_bus_get_last(struct ow_bus *bus, const char *stream, const char *subject, char **ret_data, size_t *ret_size,
                    uint64_t *ret_sequence, struct ow_error *err)
{
	char request[OW_BUS_SUBJECT];
	struct answer answer;
	ow_bus_get_subject(stream, subject, request);
	int r = ask_and_wait(bus, request, NULL, 0, &answer, err);
	if (r < 0)
		return r;
	*ret_data = answer.data;
	*ret_size = answer.size;
	*ret_sequence = answer.sequence;
	return 0;
}

int ow_bus_get_key(struct ow_bus *bus, const char *bucket, const char *key, char **ret_data, size_t *ret_size,
                   uint64_t *ret_revision, struct ow_error *err)
{
	char stream[OW_BUS_SUBJECT / 2], subject[OW_BUS_SUBJECT / 2];
	snprintf(stream, sizeof stream, "KV_%s", bucket);
	snprintf(subject, sizeof subject, "$KV.%s.%s", bucket, key);
	return ow_bus_get_last(bus, stream, subject, ret_data, ret_size, ret_revision, err);
}

/* The error of an answer of JetStream. */
static int error_of(const json_t *json, const char *subject, struct ow_error *err)
{
	const json_t *error = json_object_get(json, "error");
	const char *text = json_string_value(json_object_get(error, "description"));
	json_int_t code = json_integer_value(json_object_get(error, "err_code"));
	if (!error)
		return 0;
	/* 10071: wrong last sequence, 10059: stream not found, 10014: consumer not found */
	return ow_error_set(err,
	                    code == 10071                    ? ESTALE
	                    : code == 10059 || code == 10014 ? ENOENT
	                                                     : EREMOTEIO,
	                    "%s: %.300s", subject, text ? text : "an error without a reason");
}

int ow_bus_put_key(struct ow_bus *bus, const char *bucket, const char *key, const void *data, size_t size,
                   uint64_t expected, uint64_t *ret_revision, struct ow_error *err)
{
	char subject[OW_BUS_SUBJECT], number[24];
	struct answer answer = {0};
	snprintf(subject, sizeof subject, "$KV.%s.%s", bucket, key);
	snprintf(number, sizeof number, "%ju", (uintmax_t)expected);
	int r = bus->connected ? 0 : ow_bus_wait(bus, OW_BUS_WAIT_MS, err);
	if (r == 0)
		r = ow_bus_request_with(bus, subject,
		                        expected == OW_BUS_ANY ? NULL : "Nats-Expected-Last-Subject-Sequence", number,
		                        data, size, keep_answer, &answer, err);
	if (r < 0)
		return r;
	while (!answer.done)
		ow_bus_poll(bus, 50);
	r = explain(answer.status, subject, err);
	json_t *json = r == 0 ? json_loadb(answer.data, answer.size, 0, NULL) : NULL;
	if (r == 0)
		r = error_of(json, subject, err);
	if (r == 0 && !json_is_integer(json_object_get(json, "seq")))
		r = ow_error_set(err, EPROTO, "%s: an answer that is no acknowledgement", subject);
	if (r == 0)
		*ret_revision = (uint64_t)json_integer_value(json_object_get(json, "seq"));
	json_decref(json);
	free(answer.data);
	return r;
}

int ow_bus_api(struct ow_bus *bus, const char *subject, const char *json, char **ret_answer, struct ow_error *err)
{
	struct answer answer;
	int r = ask_and_wait(bus, subject, json, json ? strlen(json) : 0, &answer, err);
	if (r < 0)
		return r;
	json_t *parsed = json_loadb(answer.data, answer.size, 0, NULL);
	r = parsed ? error_of(parsed, subject, err)
	           : ow_error_set(err, EPROTO, "%s: an answer that is not JSON", subject);
	json_decref(parsed);
	if (r < 0 || !ret_answer)
		free(answer.data);
	else
		*ret_answer = answer.data;
	return r;
}

/* -- pulls -------------------------------------------------------------------------------------------------------- */

int ow_bus_pull(struct ow_bus *bus, const char *stream, const char *consumer, unsigned batch, ow_bus_handler *handler,
                void *arg, struct ow_error *err)
{
	if (bus->pulls == sizeof bus->pull / sizeof *bus->pull)
		return ow_error_set(err, EMFILE, "too many consumers");
	struct ow_bus_pull *pull = &bus->pull[bus->pulls];
	*pull = (struct ow_bus_pull){.batch = batch, .handler = handler, .arg = arg};
	snprintf(pull->subject, sizeof pull->subject, "$JS.API.CONSUMER.MSG.NEXT.%s.%s", stream, consumer);
	snprintf(pull->inbox, sizeof pull->inbox, "%s.pull.%u", bus->inbox, bus->pulls);
	FILE *out = fmemopen(pull->request, sizeof pull->request, "w");
	if (!out)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_count(&json, "batch", batch);
	ow_json_integer(&json, "expires", OW_BUS_PULL_EXPIRES_NS);
	ow_json_integer(&json, "max_bytes", PULL_BYTES);
	ow_json_end(&json);
	fclose(out);
	bus->pulls++;
	/* Messages come with the subjects under which they are stored, so that only the subscription tells them apart. */
	return ow_bus_subscribe(bus, pull->inbox, ow_bus_pulled, pull, err);
}

static void end_pull(struct ow_bus *bus)
{
	ow_bus_unsubscribe(bus);
	bus->pulls--;
}

/* -- every message of a stream ------------------------------------------------------------------------------------ */

struct each {
	ow_bus_handler *handler;
	void *arg;
	uint64_t count;
	bool done;
};

/* $JS.ACK.STREAM.CONSUMER.DELIVERIES.SEQUENCE.NUMBER.TIME.PENDING: the field `index` from the end. */
static uint64_t field_of(const char *reply, unsigned index)
{
	const char *at = reply + strlen(reply);
	for (unsigned i = 0; i <= index; i++) {
		while (at > reply && at[-1] != '.')
			at--;
		if (i < index && at > reply)
			at--;
	}
	return strtoull(at, NULL, 10);
}

static void pass_on(void *arg, const struct ow_bus_message *message)
{
	struct each *each = arg;
	struct ow_bus_message with = *message;
	with.sequence = field_of(message->reply, 3);
	with.stored_ns = (int64_t)field_of(message->reply, 1);
	each->count++;
	each->done |= field_of(message->reply, 0) == 0;
	each->handler(each->arg, &with);
}

/* A consumer that the server forgets by itself. */
static char *consumer_text(const char *stream, const char *filter, bool last)
{
	struct ow_text text;
	FILE *out = ow_text_open(&text);
	if (!out)
		return NULL;
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_string(&json, "stream_name", stream);
	ow_json_object(&json, "config");
	ow_json_string(&json, "deliver_policy", last ? "last_per_subject" : "all");
	ow_json_string(&json, "ack_policy", "none");
	ow_json_string(&json, "replay_policy", "instant");
	ow_json_string(&json, "filter_subject", filter);
	ow_json_integer(&json, "inactive_threshold", 30 * OW_NS_PER_S);
	ow_json_integer(&json, "num_replicas", 1);
	ow_json_flag(&json, "mem_storage", true);
	ow_json_end(&json);
	ow_json_end(&json);
	return ow_text_close(&text);
}

static int create_consumer(struct ow_bus *bus, const char *stream, const char *filter, bool last, char ret_name[80],
                           uint64_t *ret_pending, struct ow_error *err)
{
	char subject[OW_BUS_SUBJECT], *answer = NULL, *text = consumer_text(stream, filter, last);
	snprintf(subject, sizeof subject, "$JS.API.CONSUMER.CREATE.%s", stream);
	int r = text ? ow_bus_api(bus, subject, text, &answer, err) : ow_error_set(err, ENOMEM, "out of memory");
	free(text);
	if (r < 0)
		return r;
	json_t *json = json_loads(answer, 0, NULL);
	const char *name = json_string_value(json_object_get(json, "name"));
	snprintf(ret_name, 80, "%s", name ? name : "");
	*ret_pending = (uint64_t)json_integer_value(json_object_get(json, "num_pending"));
	json_decref(json);
	free(answer);
	return *ret_name ? 0 : ow_error_set(err, EPROTO, "%s: a consumer without a name", subject);
}

int ow_bus_each(struct ow_bus *bus, const char *stream, const char *filter, bool last, ow_bus_handler *handler,
                void *arg, struct ow_error *err)
{
	struct each each = {.handler = handler, .arg = arg};
	char name[80];
	uint64_t pending = 0;
	int r = create_consumer(bus, stream, filter, last, name, &pending, err);
	if (r == 0)
		r = ow_bus_pull(bus, stream, name, EACH_BATCH, pass_on, &each, err);
	if (r < 0)
		return r;
	int64_t heard_ns = ow_clock_steady_ns();
	/* What comes in the meantime does not count: a busy stream would have no end. */
	while (each.count < pending && !each.done && r == 0) {
		uint64_t before = each.count;
		ow_bus_poll(bus, 50);
		if (each.count > before)
			heard_ns = ow_clock_steady_ns();
		else if (ow_clock_steady_ns() - heard_ns > OW_BUS_WAIT_MS * OW_NS_PER_MS)
			r = ow_error_set(err, ETIMEDOUT, "stream %s: no answer", stream);
	}
	end_pull(bus);
	return r;
}
