/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/streams.h"

#include "base/json_writer.h"
#include "base/time.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define HOUR_NS (3600 * OW_NS_PER_S)
/* A message that is sent again within this time is recognised by its id. Later the database recognises its rows. */
#define DUPLICATES_NS (120 * OW_NS_PER_S)
/* Messages of one point that wait for a collector: a point that floods the stream fills its own share only. It is more than
 * a day of minutes. */
#define POINT_MESSAGES 2000
#define POINT_SAMPLES  8192 /* 64 vantages for 20 minutes */
#define POINT_EVENTS   5000
/* The most that one point can fill is a part of the stream. */
#define MESSAGE_BYTES (600 << 10)
#define SAMPLE_BYTES  (100 << 10)
#define EVENT_BYTES   (64 << 10)
/* Messages that collectors may have without acknowledging them, and how long, before others get them. */
#define ACK_PENDING_MAX 20000
#define ACK_WAIT_NS     (30 * OW_NS_PER_S)

struct stream {
	const char *name, *subjects;
	const char *retention; /* "workqueue": until it is acknowledged */
	const char *discard;   /* when it is full: "new" refuses, "old" forgets */
	unsigned share;        /* of max_bytes: one part in this many */
	int64_t age_ns;        /* 0 = for ever */
	int64_t each;          /* messages of a subject */
	int64_t bytes;         /* of a message */
	bool direct;           /* the last message of a subject can be asked for */
	bool consumer;         /* collectors have one */
	const char *send_on;   /* destination of what is stored; NULL = none */
};

static const struct stream streams[] = {
	/* A server that was killed may keep acknowledged messages for ever (2.9.10), so that there must be an end. */
	{OW_STREAM_RESULTS, "ow.r.>", "workqueue", "new", 1, 31 * 24 * HOUR_NS, POINT_MESSAGES, MESSAGE_BYTES, false,
         true, NULL},
	/* As long as the join remembers; a point that floods it displaces its own. */
	{OW_STREAM_SAMPLES, "ow.s.>", "limits", "old", 4, HOUR_NS / 4, POINT_SAMPLES, SAMPLE_BYTES, false, false, NULL},
	{OW_STREAM_EVENTS, "ow.e.>", "limits", "old", 16, 31 * 24 * HOUR_NS, POINT_EVENTS, EVENT_BYTES, false, true,
         NULL},
	{OW_STREAM_HEALTH, "ow.h.>", "limits", "old", 16, 0, 1, EVENT_BYTES, true, false, NULL},
	{"KV_" OW_BUCKET_CONFIG, "$KV." OW_BUCKET_CONFIG ".>", "limits", "new", 16, 0, 8, MESSAGE_BYTES, true, false,
         OW_BUCKET_CONFIG ".>"},
};

static void put_stream(struct ow_json *json, const struct stream *stream, const struct ow_streams_options *options)
{
	ow_json_object(json, NULL);
	ow_json_string(json, "name", stream->name);
	ow_json_array(json, "subjects");
	ow_json_string(json, NULL, stream->subjects);
	ow_json_end(json);
	ow_json_string(json, "retention", stream->retention);
	ow_json_string(json, "discard", stream->discard);
	ow_json_string(json, "storage", "file");
	ow_json_count(json, "num_replicas", options->replicas);
	ow_json_integer(json, "max_consumers", -1);
	ow_json_integer(json, "max_msgs", -1);
	ow_json_count(json, "max_bytes", options->max_bytes / stream->share);
	ow_json_integer(json, "max_age", stream->age_ns);
	ow_json_integer(json, "max_msgs_per_subject", stream->each);
	ow_json_flag(json, "discard_new_per_subject", stream->each == POINT_MESSAGES);
	ow_json_integer(json, "max_msg_size", stream->bytes);
	ow_json_integer(json, "duplicate_window", DUPLICATES_NS);
	ow_json_flag(json, "allow_direct", stream->direct);
	/* A server's answer goes where the asker wants, and by that to its interface, too, whatever the permissions of the
	 * asker: an answer that has a "seq" would delete messages of others. */
	ow_json_flag(json, "deny_delete", true);
	ow_json_flag(json, "deny_purge", true);
	if (stream->send_on) {
		ow_json_object(json, "republish");
		ow_json_string(json, "src", stream->subjects);
		ow_json_string(json, "dest", stream->send_on);
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void put_consumer(struct ow_json *json, const struct stream *stream, const struct ow_streams_options *options)
{
	ow_json_object(json, NULL);
	ow_json_string(json, "stream_name", stream->name);
	ow_json_object(json, "config");
	ow_json_string(json, "durable_name", OW_CONSUMER_COLLECT);
	ow_json_string(json, "deliver_policy", "all");
	ow_json_string(json, "ack_policy", "explicit");
	ow_json_string(json, "replay_policy", "instant");
	ow_json_integer(json, "ack_wait", ACK_WAIT_NS);
	ow_json_integer(json, "max_ack_pending", ACK_PENDING_MAX);
	ow_json_integer(json, "max_deliver", -1);
	ow_json_integer(json, "max_waiting", 512);
	ow_json_count(json, "num_replicas", options->replicas);
	ow_json_end(json);
	ow_json_end(json);
}

typedef void put_text(struct ow_json *json, const struct stream *stream, const struct ow_streams_options *options);

static int tell(struct ow_bus *bus, const char *subject, put_text *put, const struct stream *stream,
                const struct ow_streams_options *options, struct ow_error *err)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return ow_error_set(err, ENOMEM, "out of memory");
	put(&(struct ow_json){.out = out}, stream, options);
	int r = fclose(out) == 0 ? ow_bus_api(bus, subject, text, NULL, err)
	                         : ow_error_set(err, ENOMEM, "out of memory");
	free(text);
	return r;
}

static int make_stream(struct ow_bus *bus, const struct stream *stream, const struct ow_streams_options *options,
                       struct ow_error *err)
{
	char subject[OW_BUS_SUBJECT];
	snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", stream->name);
	int r = ow_bus_api(bus, subject, NULL, NULL, err);
	if (r < 0 && r != -ENOENT)
		return r;
	snprintf(subject, sizeof subject, "$JS.API.STREAM.%s.%s", r == -ENOENT ? "CREATE" : "UPDATE", stream->name);
	r = tell(bus, subject, put_stream, stream, options, err);
	if (r < 0 || !stream->consumer)
		return r;
	snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DURABLE.CREATE.%s.%s", stream->name, OW_CONSUMER_COLLECT);
	return tell(bus, subject, put_consumer, stream, options, err);
}

int ow_streams_make(struct ow_bus *bus, const struct ow_streams_options *options, struct ow_error *err)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < sizeof streams / sizeof *streams; i++)
		r = make_stream(bus, &streams[i], options, err);
	return r;
}
