/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and their answers: the same for questions, for messages to streams, and for pulls. */
#include "fleet/bus_private.h"

#include "base/clock.h"
#include "base/time.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If the stream does not take messages: pauses grow from the first to the second. */
#define PUBLISH_LEAST_NS (100 * OW_NS_PER_MS)
#define PUBLISH_MOST_NS  (10 * OW_NS_PER_S)
#define WINDOW_LEAST     4.0
/* A message is lost if the stream has answered one that was sent so much later. */
#define ORDER_NS OW_NS_PER_S
/* Refusals and duplicates are answered at once, though earlier messages may still wait for copies to be made: they count
 * as answers to a message that was sent earlier by this much. */
#define AT_ONCE_NS (9 * OW_NS_PER_S)
/* If a stream is silent, its oldest message is sent again; pauses grow from the first to the second. */
#define SILENCE_LEAST_NS (3 * OW_NS_PER_S)
#define SILENCE_MOST_NS  (30 * OW_NS_PER_S)
/* Requests that wait are looked at this often. */
#define LOOK_NS (20 * OW_NS_PER_MS)
/* States of requests that are given up. */
enum { LATE = 408, SILENT = 598 };
/* A pull that the server forgot is asked for again. */
#define PULL_AGAIN_NS (OW_BUS_PULL_EXPIRES_NS + OW_NS_PER_S)
/* The least time between two requests of a pull that is refused. */
#define PULL_PAUSE_NS (200 * OW_NS_PER_MS)

static struct ow_bus_open *slot_of(struct ow_bus *bus, uint64_t id)
{
	return &bus->open[id % OW_BUS_OPEN_MAX];
}

/* Sets the subject of its answer. -EAGAIN: too many are open. */
static int open_request(struct ow_bus *bus, const struct ow_bus_open *request, char ret_reply[OW_BUS_SUBJECT],
                        struct ow_error *err)
{
	struct ow_bus_open *slot = slot_of(bus, bus->next_id);
	if (slot->id)
		return ow_error_set(err, EAGAIN, "too many requests are open");
	*slot = *request;
	slot->id = bus->next_id++;
	slot->sent_ns = ow_clock_steady_ns();
	bus->open_count++;
	snprintf(ret_reply, OW_BUS_SUBJECT, "%s.%" PRIx64, bus->inbox, slot->id);
	return 0;
}

static void close_request(struct ow_bus *bus, struct ow_bus_open *slot)
{
	slot->id = 0;
	bus->open_count--;
}

/* Sends it, or takes the request back. */
static int send_request(struct ow_bus *bus, natsMsg *message, struct ow_error *err)
{
	natsStatus s = natsConnection_PublishMsg(bus->connection, message);
	if (s != NATS_OK)
		close_request(bus, slot_of(bus, --bus->next_id));
	return s == NATS_OK ? 0 : ow_bus_fail(s, natsMsg_GetSubject(message), err);
}

static int not_connected(const struct ow_bus *bus, struct ow_error *err)
{
	return ow_error_set(err, ENOTCONN, "%.480s", bus->last.text[0] ? bus->last.text : "not connected to the fleet");
}

int ow_bus_send(struct ow_bus *bus, const char *subject, const void *data, size_t size, struct ow_error *err)
{
	if (!bus->connection)
		return not_connected(bus, err);
	natsStatus s = natsConnection_Publish(bus->connection, subject, data, (int)size);
	return s == NATS_OK ? 0 : ow_bus_fail(s, subject, err);
}

static int ask(struct ow_bus *bus, const char *subject, const char *header, const char *value, const void *data,
               size_t size, const struct ow_bus_open *request, struct ow_error *err)
{
	natsMsg *message = NULL;
	char reply[OW_BUS_SUBJECT];
	if (!bus->connection)
		return not_connected(bus, err);
	if (size > INT32_MAX)
		return ow_error_set(err, EMSGSIZE, "%s: a message of %zu bytes", subject, size);
	int r = open_request(bus, request, reply, err);
	if (r < 0)
		return r;
	natsStatus s = natsMsg_Create(&message, subject, reply, data, (int)size);
	if (s == NATS_OK && header)
		s = natsMsgHeader_Set(message, header, value);
	if (s == NATS_OK) {
		r = send_request(bus, message, err);
	} else {
		close_request(bus, slot_of(bus, --bus->next_id));
		r = ow_bus_fail(s, subject, err);
	}
	natsMsg_Destroy(message);
	return r;
}

int ow_bus_request_with(struct ow_bus *bus, const char *subject, const char *header, const char *value,
                        const void *data, size_t size, ow_bus_handler *handler, void *arg, struct ow_error *err)
{
	struct ow_bus_open request = {.handler = handler, .arg = arg};
	return ask(bus, subject, header, value, data, size, &request, err);
}

int ow_bus_request(struct ow_bus *bus, const char *subject, const void *data, size_t size, ow_bus_handler *handler,
                   void *arg, struct ow_error *err)
{
	return ow_bus_request_with(bus, subject, NULL, NULL, data, size, handler, arg, err);
}

/* -- publishing --------------------------------------------------------------------------------------------------- */

unsigned ow_bus_room(const struct ow_bus *bus)
{
	if (!bus->connected || ow_clock_steady_ns() < bus->publish_ns)
		return 0;
	return bus->open_count < (unsigned)bus->window ? (unsigned)bus->window - bus->open_count : bus->probe;
}

static struct ow_bus_flow *flow_of(struct ow_bus *bus, const char *subject)
{
	const char *dot = strchr(subject, '.'), *second = dot ? strchr(dot + 1, '.') : NULL;
	size_t most = sizeof bus->flow->subject - 1, length = second ? (size_t)(second + 1 - subject) : strlen(subject);
	length = length < most ? length : most;
	for (unsigned i = 0; i < bus->flows; i++) {
		const char *known = bus->flow[i].subject;
		if (strlen(known) == length && memcmp(known, subject, length) == 0)
			return &bus->flow[i];
	}
	bool room = bus->flows < sizeof bus->flow / sizeof *bus->flow;
	struct ow_bus_flow *flow = &bus->flow[room ? bus->flows++ : bus->flows - 1];
	*flow = (struct ow_bus_flow){.wait_ns = SILENCE_LEAST_NS};
	memcpy(flow->subject, subject, length);
	return flow;
}

void ow_bus_flows_reset(struct ow_bus *bus, int64_t now_ns)
{
	for (unsigned i = 0; i < bus->flows; i++) {
		bus->flow[i].heard_ns = now_ns;
		bus->flow[i].wait_ns = SILENCE_LEAST_NS;
	}
}

/* Fewer messages at a time after a failure, more after each that was stored: as TCP does, so that the bus is not flooded with
 * repetitions when it is slow. */
static void note_outcome(struct ow_bus *bus, const struct ow_bus_open *request, bool stored)
{
	int64_t now_ns = ow_clock_steady_ns();
	if (stored) {
		bus->window = bus->window + 1 < OW_BUS_OPEN_MAX ? bus->window + 1 : OW_BUS_OPEN_MAX;
		/* What was sent before the pause says nothing about now. */
		if (request->sent_ns >= bus->publish_ns)
			bus->publish_pause_ns = 0;
		return;
	}
	/* All that were sent before the pause fail together: they are one failure. */
	if (request->sent_ns < bus->failed_ns)
		return;
	bus->failed_ns = now_ns;
	bus->window = bus->window / 2 > WINDOW_LEAST ? bus->window / 2 : WINDOW_LEAST;
	bus->publish_ns = ow_bus_pause_until(&bus->publish_pause_ns, PUBLISH_LEAST_NS, PUBLISH_MOST_NS, now_ns);
}

int ow_bus_publish(struct ow_bus *bus, const char *subject, const char *id, const void *data, size_t size,
                   ow_bus_published *published, void *arg, struct ow_error *err)
{
	struct ow_bus_open request = {.flow = flow_of(bus, subject), .published = published, .arg = arg};
	bus->probe = false;
	return ask(bus, subject, id ? "Nats-Msg-Id" : NULL, id, data, size, &request, err);
}

/* {"stream": "OW_RESULTS", "seq": 7, "duplicate": true} or {"error": {"description": "..."}} */
static enum ow_bus_outcome outcome_of(const struct ow_bus_message *message, char *why, size_t size)
{
	if (message->status) {
		snprintf(why, size, message->status == 503 ? "no stream takes the message" : "no acknowledgement");
		return OW_BUS_NO_ANSWER;
	}
	json_t *answer = json_loadb(message->data, message->size, 0, NULL);
	const json_t *error = json_object_get(answer, "error");
	enum ow_bus_outcome outcome = OW_BUS_NO_ANSWER;
	snprintf(why, size, "an answer that is no acknowledgement");
	if (error) {
		const char *text = json_string_value(json_object_get(error, "description"));
		snprintf(why, size, "refused: %.160s", text ? text : "no reason given");
		outcome = OW_BUS_REFUSED;
	} else if (json_is_integer(json_object_get(answer, "seq"))) {
		outcome = json_is_true(json_object_get(answer, "duplicate")) ? OW_BUS_DUPLICATE : OW_BUS_STORED;
		snprintf(why, size, outcome == OW_BUS_DUPLICATE ? "the stream has a message with this id" : "");
	}
	json_decref(answer);
	return outcome;
}

static void note_answer(struct ow_bus_flow *flow, int64_t sent_ns)
{
	flow->heard_ns = ow_clock_steady_ns();
	flow->wait_ns = SILENCE_LEAST_NS;
	flow->answered_ns = flow->answered_ns > sent_ns ? flow->answered_ns : sent_ns;
}

static void finish(struct ow_bus *bus, struct ow_bus_open *slot, const struct ow_bus_message *message)
{
	struct ow_bus_open request = *slot;
	char why[200];
	close_request(bus, slot);
	if (request.handler) {
		request.handler(request.arg, message);
		return;
	}
	enum ow_bus_outcome outcome = outcome_of(message, why, sizeof why);
	if (!message->status)
		note_answer(request.flow, request.sent_ns - (outcome == OW_BUS_STORED ? 0 : AT_ONCE_NS));
	if (message->status != SILENT)
		note_outcome(bus, &request, outcome == OW_BUS_STORED || outcome == OW_BUS_DUPLICATE);
	request.published(request.arg, outcome, why);
}

/*
 * Why an open request is given up; 0: it is not. A slow stream is no reason: if everything were sent again, it would be
 * slower. A message is lost if later ones have been answered. If there is no answer at all, the oldest message is given
 * up, and sent again: when that is answered, the others are known to be lost.
 */
static int give_up(struct ow_bus *bus, const struct ow_bus_open *slot, int64_t now_ns)
{
	struct ow_bus_flow *flow = slot->flow;
	if (!flow)
		return now_ns - slot->sent_ns >= OW_BUS_WAIT_MS * OW_NS_PER_MS ? LATE : 0;
	if (slot->sent_ns + ORDER_NS < flow->answered_ns)
		return LATE;
	int64_t since_ns = flow->heard_ns > slot->sent_ns ? flow->heard_ns : slot->sent_ns;
	if (!bus->connected || now_ns - since_ns < flow->wait_ns)
		return 0;
	flow->heard_ns = now_ns;
	flow->wait_ns = flow->wait_ns * 2 < SILENCE_MOST_NS ? flow->wait_ns * 2 : SILENCE_MOST_NS;
	bus->probe = true;
	return SILENT;
}

void ow_bus_requests_tick(struct ow_bus *bus, int64_t now_ns)
{
	struct ow_bus_message none = {.subject = "", .reply = ""};
	if (now_ns - bus->looked_ns < LOOK_NS)
		return;
	bus->looked_ns = now_ns;
	while (bus->oldest_id < bus->next_id && slot_of(bus, bus->oldest_id)->id != bus->oldest_id)
		bus->oldest_id++;
	for (uint64_t id = bus->oldest_id, end = bus->next_id; id < end; id++) {
		struct ow_bus_open *slot = slot_of(bus, id);
		if (slot->id == id && (none.status = give_up(bus, slot, now_ns)))
			finish(bus, slot, &none);
	}
}

/* -- pulls -------------------------------------------------------------------------------------------------------- */

void ow_bus_pulled(void *arg, const struct ow_bus_message *message)
{
	struct ow_bus_pull *pull = arg;
	if (message->status) {
		/* 408: nothing more came; 409: the bytes are full, or too many are not acknowledged. Then asking at once
		 * would not help. */
		int64_t now_ns = ow_clock_steady_ns();
		bool refused = pull->wanted == pull->batch && now_ns - pull->asked_ns < PULL_PAUSE_NS;
		pull->asked_ns = refused ? now_ns + PULL_PAUSE_NS : now_ns;
		pull->wanted = 0;
		return;
	}
	pull->wanted -= pull->wanted > 0;
	pull->handler(pull->arg, message);
}

static void pull_more(struct ow_bus *bus, struct ow_bus_pull *pull, int64_t now_ns)
{
	natsStatus s = natsConnection_PublishRequestString(bus->connection, pull->subject, pull->inbox, pull->request);
	pull->asked_ns = now_ns;
	pull->wanted = s == NATS_OK ? pull->batch : 0;
}

void ow_bus_pulls_tick(struct ow_bus *bus, int64_t now_ns)
{
	for (unsigned i = 0; bus->connected && !bus->paused && i < bus->pulls; i++) {
		struct ow_bus_pull *pull = &bus->pull[i];
		if (pull->wanted == 0 ? now_ns >= pull->asked_ns : now_ns - pull->asked_ns > PULL_AGAIN_NS)
			pull_more(bus, pull, now_ns);
	}
}

void ow_bus_pulls_reset(struct ow_bus *bus)
{
	for (unsigned i = 0; i < bus->pulls; i++)
		bus->pull[i].wanted = 0;
}

void ow_bus_pause(struct ow_bus *bus, bool pause)
{
	bus->paused = pause;
}

bool ow_bus_pulling(const struct ow_bus *bus)
{
	for (unsigned i = 0; bus->connected && i < bus->pulls; i++) {
		const struct ow_bus_pull *pull = &bus->pull[i];
		if (pull->wanted && ow_clock_steady_ns() - pull->asked_ns <= PULL_AGAIN_NS)
			return true;
	}
	return false;
}

int ow_bus_acknowledge(struct ow_bus *bus, const char *reply)
{
	return ow_bus_send(bus, reply, "+ACK", 4, NULL);
}

int ow_bus_postpone(struct ow_bus *bus, const char *reply, int64_t delay_ns)
{
	char text[64];
	int size = snprintf(text, sizeof text, "-NAK {\"delay\": %" PRId64 "}", delay_ns);
	return ow_bus_send(bus, reply, text, (size_t)size, NULL);
}

void ow_bus_answer(void *arg, const struct ow_bus_message *message)
{
	struct ow_bus *bus = arg;
	const char *token = strrchr(message->subject, '.');
	uint64_t id = token ? strtoull(token + 1, NULL, 16) : 0;
	struct ow_bus_open *slot = slot_of(bus, id);
	if (id && slot->id == id)
		finish(bus, slot, message);
}
