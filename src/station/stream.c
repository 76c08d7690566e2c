/* SPDX-License-Identifier: Apache-2.0 */
/* Results from the bus of a fleet, and incidents onto it. */
#include "station/stream.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/time.h"
#include "fleet/authority.h"
#include "fleet/bus.h"
#include "fleet/collector.h"
#include "fleet/point_limit.h"
#include "fleet/result_batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RESULTS     "ow.r."
#define EVENTS      "ow.e.station"
#define WAITING_MAX 10000
#define LAST_NS     OW_NS_PER_S

/* An event that the stream does not have yet. */
struct event {
	struct ow_station_stream *stream;
	char id[33]; /* random: nobody can publish another event with it before */
	char *json;
	size_t length;
	bool sent; /* and not answered */
	bool stored;
};

struct ow_station_stream {
	struct ow_bus *bus;
	struct event **event; /* in order */
	size_t events, room;
	bool has_news;
	struct ow_error news;
	/* While it is polled: */
	ow_station_sink *sink;
	void *arg;
	const char *point; /* that the message is of */
	size_t rows;       /* of the message */
	int result;
	uint64_t refused; /* messages that are no batch of results of their point, or too many */
	struct ow_point_limit limit;
};

static void tell(struct ow_station_stream *stream, const char *line)
{
	stream->has_news = true;
	ow_error_set(&stream->news, 0, "%.400s", line);
}

static void on_news(void *arg, const char *line)
{
	tell(arg, line);
}

/* -- results ----------------------------------------------------------------------------------------------------------
 */

/* A point may speak only of its own segments. */
static int on_result(void *arg, enum ow_period period, const struct ow_interval_result *result)
{
	struct ow_station_stream *stream = arg;
	stream->rows++;
	if (strcmp(result->from, stream->point) != 0 && strcmp(result->to, stream->point) != 0)
		return -EPERM;
	if (!result->final || period > OW_PERIOD_MINUTE)
		return 0;
	stream->result = stream->sink(stream->arg, result);
	return stream->result;
}

/* One point that floods the stream must not be the end of the station. The limit is that of collectors. */
static int take_batch(struct ow_station_stream *stream, const struct ow_bus_message *message, struct ow_error *err)
{
	int64_t now_ns = ow_clock_steady_ns();
	stream->point = message->subject + strlen(RESULTS);
	stream->rows = 0;
	if (!ow_point_limit_allow(&stream->limit, stream->point, 0, now_ns))
		return ow_error_set(err, EDQUOT, "more than %d rows a second", OW_COLLECTOR_POINT_RATE);
	int r = ow_result_batch_decode(message->data, message->size, on_result, stream, err);
	(void)ow_point_limit_allow(&stream->limit, stream->point, stream->rows, now_ns);
	return r;
}

static void on_message(void *arg, const struct ow_bus_message *message)
{
	struct ow_station_stream *stream = arg;
	struct ow_error why, line;
	if (message->status || stream->result || strncmp(message->subject, RESULTS, strlen(RESULTS)) != 0)
		return;
	int r = take_batch(stream, message, &why);
	if (r >= 0 || stream->result || stream->refused++)
		return;
	ow_error_set(&line, -r, "%.100s: a message is refused: %.200s", message->subject,
	             r == -EPERM ? "results of other points" : why.text);
	tell(stream, line.text);
}

/* -- incidents --------------------------------------------------------------------------------------------------------
 */

static void event_free(struct event *event)
{
	free(event->json);
	free(event);
}

static void on_published(void *arg, enum ow_bus_outcome outcome, const char *why)
{
	struct event *event = arg;
	event->sent = false;
	event->stored = outcome == OW_BUS_STORED || outcome == OW_BUS_DUPLICATE;
	if (outcome == OW_BUS_REFUSED)
		tell(event->stream, why);
}

/* Publishes what waits, one after the other so that it stays in order, and forgets what the stream has. */
static void publish(struct ow_station_stream *stream)
{
	size_t kept = 0;
	struct ow_error err;
	for (size_t i = 0; i < stream->events; i++) {
		struct event *event = stream->event[i];
		if (event->stored) {
			event_free(event);
			continue;
		}
		stream->event[kept++] = event;
		if (kept == 1 && !event->sent && ow_bus_room(stream->bus) > 0)
			event->sent = ow_bus_publish(stream->bus, EVENTS, event->id, event->json, event->length,
			                             on_published, event, &err) == 0;
	}
	stream->events = kept;
}

int ow_station_stream_publish(struct ow_station_stream *stream, const char *json, size_t length)
{
	uint64_t id[2];
	if (stream->events == WAITING_MAX)
		return -E2BIG;
	struct event *event = calloc(1, sizeof(*event));
	if (!event || !(event->json = malloc(length + 1)) ||
	    OW_GROW(stream->event, stream->room, stream->events + 1) < 0 ||
	    getrandom(id, sizeof(id), 0) != (ssize_t)sizeof(id)) {
		if (event)
			event_free(event);
		return -ENOMEM;
	}
	memcpy(event->json, json, length);
	event->stream = stream;
	event->length = length;
	snprintf(event->id, sizeof(event->id), "%016llx%016llx", (unsigned long long)id[0], (unsigned long long)id[1]);
	stream->event[stream->events++] = event;
	return 0;
}

/* -- the stream -------------------------------------------------------------------------------------------------------
 */

int ow_station_stream_open(const char *url, const struct ow_station_access *access,
                           struct ow_station_stream **ret_stream, struct ow_error *err)
{
	struct ow_station_stream *stream = calloc(1, sizeof(*stream));
	if (!stream)
		return ow_error_set(err, ENOMEM, "out of memory");
	ow_point_limit_init(&stream->limit, OW_COLLECTOR_POINT_BURST, OW_COLLECTOR_POINT_RATE);
	struct ow_bus_options options = {
		.urls = url,
		.ca = access->ca,
		.certificate = access->certificate,
		.key = access->key,
		.server = access->ca ? OW_BUS_NAME : NULL,
		.name = "service.station",
		.news = on_news,
		.arg = stream,
	};
	int r = ow_bus_create(&options, &stream->bus, err);
	if (r == 0)
		r = ow_bus_subscribe(stream->bus, RESULTS "*", on_message, stream, err);
	if (r < 0) {
		ow_bus_free(stream->bus);
		free(stream);
		return r;
	}
	*ret_stream = stream;
	return 0;
}

void ow_station_stream_close(struct ow_station_stream *stream)
{
	if (!stream)
		return;
	int64_t until_ns = ow_clock_steady_ns() + LAST_NS;
	stream->result = -ECANCELED;
	for (publish(stream); stream->events && ow_clock_steady_ns() < until_ns; publish(stream))
		ow_bus_poll(stream->bus, 50);
	ow_bus_free(stream->bus);
	for (size_t i = 0; i < stream->events; i++)
		event_free(stream->event[i]);
	ow_point_limit_done(&stream->limit);
	free(stream->event);
	free(stream);
}

int ow_station_stream_poll(struct ow_station_stream *stream, ow_station_sink *sink, void *arg, struct ow_error *err)
{
	(void)err;
	stream->sink = sink;
	stream->arg = arg;
	stream->result = 0;
	ow_bus_poll(stream->bus, 0);
	publish(stream);
	return stream->result;
}

bool ow_station_stream_news(struct ow_station_stream *stream, struct ow_error *ret_line)
{
	bool has = stream->has_news;
	stream->has_news = false;
	*ret_line = stream->news;
	return has;
}
