/* SPDX-License-Identifier: Apache-2.0 */
/* The station on a real bus: results as points publish them, events into the stream, a server that goes away. */
#include "base/clock.h"
#include "base/time.h"
#include "fleet/collector.h"
#include "fleet/nats_server.h"
#include "fleet/result_batch.h"
#include "fleet/streams.h"
#include "station/stream.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#define START (INT64_C(1794736800) * OW_NS_PER_S)

static struct nats_server server;
static struct ow_bus *points; /* may publish as any point */

static int start_server(void **state)
{
	(void)state;
	struct ow_streams_options options = {.replicas = 1, .max_bytes = 100 << 20};
	struct ow_error err = {""};
	if (!nats_server_make(&server))
		exit(77);
	nats_server_start(&server);
	struct ow_bus_options bus = {.urls = server.url, .name = "points"};
	if (ow_bus_create(&bus, &points, &err) < 0 || ow_bus_wait(points, 5000, &err) < 0 ||
	    ow_streams_make(points, &options, &err) < 0)
		return -1;
	return 0;
}

static int end_server(void **state)
{
	(void)state;
	ow_bus_free(points);
	nats_server_remove(&server);
	return 0;
}

struct seen {
	unsigned count;
	int64_t length_ns;
	char from[OW_RESULT_NAME];
};

static int on_result(void *arg, const struct ow_interval_result *result)
{
	struct seen *seen = arg;
	seen->count++;
	seen->length_ns = result->length_ns;
	memcpy(seen->from, result->from, sizeof(seen->from));
	return 0;
}

static void publish(const char *subject, enum ow_period period, bool final, const char *from, const char *to)
{
	struct ow_result_batch batch = {0};
	struct ow_interval_result result;
	struct ow_error err = {""};
	const uint8_t *bytes;
	size_t size;
	int64_t length_ns = period == OW_PERIOD_INTERVAL ? OW_NS_PER_S : ow_periods[period].length_ns;
	ow_result_blank(START / length_ns, START, length_ns, &result);
	snprintf(result.segment, sizeof result.segment, "a-b");
	snprintf(result.class_name, sizeof result.class_name, "all");
	snprintf(result.from, sizeof result.from, "%s", from);
	snprintf(result.to, sizeof result.to, "%s", to);
	result.final = final;
	assert_int_equal(ow_result_batch_add(&batch, period, &result, &err), 0);
	assert_int_equal(ow_result_batch_encode(&batch, &bytes, &size, &err), 0);
	assert_int_equal(ow_bus_send(points, subject, bytes, size, &err), 0);
	ow_result_batch_done(&batch);
}

#define NEWS 2000

static void append(char news[NEWS], const char *line)
{
	size_t used = strlen(news);
	snprintf(news + used, NEWS - used, "%s\n", line);
}

/* Polls for half a second, and until so many were seen. */
static void poll_for(struct ow_station_stream *stream, struct seen *seen, unsigned wanted, char *news)
{
	struct ow_error err, line;
	int64_t start_ns = ow_clock_steady_ns();
	for (;;) {
		int64_t gone_ns = ow_clock_steady_ns() - start_ns;
		if ((seen->count >= wanted && gone_ns > OW_NS_PER_S / 2) || gone_ns > 10 * OW_NS_PER_S)
			break;
		assert_int_equal(ow_station_stream_poll(stream, on_result, seen, &err), 0);
		ow_bus_poll(points, 0);
		if (ow_station_stream_news(stream, &line))
			append(news, line.text);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	assert_int_equal(seen->count, wanted);
}

static struct ow_station_stream *open_stream(void)
{
	struct ow_station_access none = {0};
	struct ow_station_stream *stream;
	struct ow_error err;
	assert_int_equal(ow_station_stream_open(server.url, &none, &stream, &err), 0);
	return stream;
}

static void results(void **state)
{
	(void)state;
	struct seen seen = {0};
	char news[NEWS] = "";
	struct ow_error err;
	struct ow_station_stream *stream = open_stream();
	poll_for(stream, &seen, 0, news);
	assert_non_null(strstr(news, "connected to"));
	publish("ow.r.a", OW_PERIOD_INTERVAL, true, "a", "b");
	publish("ow.r.b", OW_PERIOD_MINUTE, true, "a", "b");
	poll_for(stream, &seen, 2, news);
	assert_int_equal(seen.length_ns, 60 * OW_NS_PER_S);
	/* Not final, or too long: not for the station. */
	publish("ow.r.a", OW_PERIOD_INTERVAL, false, "a", "b");
	publish("ow.r.a", OW_PERIOD_HOUR, true, "a", "b");
	/* A point that speaks of others, and one that sends garbage: told once, and no harm. */
	publish("ow.r.c", OW_PERIOD_INTERVAL, true, "a", "b");
	assert_int_equal(ow_bus_send(points, "ow.r.c", "\xff\xff\xff\xff garbage", 12, &err), 0);
	publish("ow.r.a", OW_PERIOD_INTERVAL, true, "b", "a");
	poll_for(stream, &seen, 3, news);
	assert_string_equal(seen.from, "b");
	assert_non_null(strstr(news, "ow.r.c: a message is refused: results of other points"));
	assert_null(strstr(strstr(news, "refused") + 1, "refused"));
	ow_station_stream_close(stream);
}

/* One point sends far more than it may; the others are still heard. */
static void a_flood(void **state)
{
	(void)state;
	struct seen seen = {0};
	char news[NEWS] = "";
	struct ow_error err, line;
	struct ow_result_batch batch = {0};
	struct ow_interval_result result;
	const uint8_t *bytes;
	size_t size;
	struct ow_station_stream *stream = open_stream();
	poll_for(stream, &seen, 0, news);
	ow_result_blank(START / OW_NS_PER_S, START, OW_NS_PER_S, &result);
	snprintf(result.segment, sizeof result.segment, "c-d");
	snprintf(result.class_name, sizeof result.class_name, "all");
	snprintf(result.from, sizeof result.from, "c");
	snprintf(result.to, sizeof result.to, "d");
	result.final = true;
	for (unsigned i = 0; i < OW_RESULT_BATCH_ROWS; i++)
		assert_int_equal(ow_result_batch_add(&batch, OW_PERIOD_INTERVAL, &result, &err), 0);
	assert_int_equal(ow_result_batch_encode(&batch, &bytes, &size, &err), 0);
	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(ow_bus_send(points, "ow.r.c", bytes, size, &err), 0);
		ow_bus_poll(points, 0);
		assert_int_equal(ow_station_stream_poll(stream, on_result, &seen, &err), 0);
	}
	publish("ow.r.a", OW_PERIOD_INTERVAL, true, "a", "b");
	int64_t until_ns = ow_clock_steady_ns() + 10 * OW_NS_PER_S;
	while (strcmp(seen.from, "a") != 0 && ow_clock_steady_ns() < until_ns) {
		ow_bus_poll(points, 5);
		assert_int_equal(ow_station_stream_poll(stream, on_result, &seen, &err), 0);
		if (ow_station_stream_news(stream, &line))
			append(news, line.text);
	}
	assert_string_equal(seen.from, "a");
	assert_in_range(seen.count, OW_COLLECTOR_POINT_BURST, 2 * OW_COLLECTOR_POINT_BURST);
	assert_non_null(strstr(news, "ow.r.c: a message is refused: more than 5000 rows a second"));
	ow_result_batch_done(&batch);
	ow_station_stream_close(stream);
}

struct events {
	unsigned count;
	char text[4][100];
};

static void on_event(void *arg, const struct ow_bus_message *message)
{
	struct events *events = arg;
	assert_in_range(events->count, 0, 3);
	snprintf(events->text[events->count++], 100, "%.*s", (int)message->size, (const char *)message->data);
}

/* Events wait for a server that is away, and are stored once, in their order. */
static void events(void **state)
{
	(void)state;
	struct seen seen = {0};
	char news[NEWS] = "";
	struct ow_error err = {""};
	struct events events = {0};
	struct ow_station_stream *stream = open_stream();
	assert_int_equal(ow_station_stream_publish(stream, "{\"n\": 1}", 8), 0);
	poll_for(stream, &seen, 0, news);
	nats_server_end(&server, SIGTERM);
	assert_int_equal(ow_station_stream_publish(stream, "{\"n\": 2}", 8), 0);
	poll_for(stream, &seen, 0, news);
	assert_int_equal(ow_station_stream_publish(stream, "{\"n\": 3}", 8), 0);
	nats_server_start(&server);
	if (ow_bus_wait(points, 20000, &err) < 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < 40 && events.count < 3; i++) {
		poll_for(stream, &seen, 0, news);
		events.count = 0;
		if (ow_bus_each(points, OW_STREAM_EVENTS, "ow.e.station", false, on_event, &events, &err) < 0)
			fail_msg("%s", err.text);
	}
	assert_int_equal(events.count, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_true(strstr(events.text[i], "\"n\": ")[5] == (char)('1' + i));
	ow_station_stream_close(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(results), cmocka_unit_test(a_flood),
	                                   cmocka_unit_test(events)};
	return cmocka_run_group_tests(tests, start_server, end_server);
}
