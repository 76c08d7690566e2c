/* SPDX-License-Identifier: Apache-2.0 */
/* The bus with a real nats-server: messages, streams, keys, pulls, and a server that goes away and comes back. */
#include "fleet/streams.h"
#include "nats_server.h"

#include "base/clock.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static struct nats_server server;
static char news[2000];

static void on_news(void *arg, const char *line)
{
	(void)arg;
	snprintf(news + strlen(news), sizeof news - strlen(news), "%s\n", line);
}

static struct ow_bus *connect_as(const char *name)
{
	struct ow_bus_options options = {.urls = server.url, .name = name, .news = on_news};
	struct ow_error err;
	struct ow_bus *bus = NULL;
	news[0] = '\0';
	assert_int_equal(ow_bus_create(&options, &bus, &err), 0);
	assert_int_equal(ow_bus_wait(bus, 5000, &err), 0);
	return bus;
}

/* Polls until the number is reached, for ten seconds at most. */
static void poll_until(struct ow_bus *bus, const unsigned *number, unsigned wanted)
{
	int64_t until = ow_clock_steady_ns() + INT64_C(10000000000);
	while (*number < wanted && ow_clock_steady_ns() < until)
		ow_bus_poll(bus, 20);
	assert_int_equal(*number, wanted);
}

struct outcomes {
	unsigned all, of[4];
};

static void on_published(void *arg, enum ow_bus_outcome outcome, const char *why)
{
	struct outcomes *o = arg;
	(void)why;
	o->all++;
	o->of[outcome]++;
}

static void streams_are_made_twice(void **state)
{
	(void)state;
	struct ow_error err = {{0}};
	struct ow_bus *bus = connect_as("test");
	struct ow_streams_options options = {.replicas = 1, .max_bytes = 100 << 20};
	assert_non_null(strstr(news, "connected to"));
	for (int i = 0; i < 2; i++)
		if (ow_streams_make(bus, &options, &err) < 0)
			fail_msg("%s", err.text);
	ow_bus_free(bus);
}

static void a_stream_takes_a_message_once(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_bus *bus = connect_as("a");
	struct outcomes o = {0};
	assert_int_equal(ow_bus_publish(bus, "ow.e.a", "id-1", "x", 1, on_published, &o, &err), 0);
	assert_int_equal(ow_bus_publish(bus, "ow.e.a", "id-1", "x", 1, on_published, &o, &err), 0);
	assert_int_equal(ow_bus_publish(bus, "ow.e.a", "id-2", "x", 1, on_published, &o, &err), 0);
	poll_until(bus, &o.all, 3);
	assert_int_equal(o.of[OW_BUS_STORED], 2);
	assert_int_equal(o.of[OW_BUS_DUPLICATE], 1);
	assert_true(ow_bus_room(bus) > 200);
	ow_bus_free(bus);
}

/* Nobody takes the message: the answer comes at once, and then there is a pause for the whole connection. */
static void without_a_stream_publishing_pauses(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_bus *bus = connect_as("a");
	struct outcomes o = {0};
	unsigned sent = 0;
	int64_t until = ow_clock_steady_ns() + INT64_C(1000000000);
	while (ow_clock_steady_ns() < until) {
		if (ow_bus_room(bus)) {
			assert_int_equal(ow_bus_publish(bus, "nobody.listens", NULL, "x", 1, on_published, &o, &err),
			                 0);
			sent++;
		}
		ow_bus_poll(bus, 1);
	}
	assert_true(sent > 1);
	/* Pauses of 75 ms or more that double: at most four in a second; between two, some more may leave. */
	assert_true(o.of[OW_BUS_NO_ANSWER] == o.all && sent < 400);
	ow_bus_free(bus);
}

struct got {
	unsigned count;
	uint64_t sequence;
	char last[100];
	struct ow_bus *acknowledge;
};

static void on_message(void *arg, const struct ow_bus_message *message)
{
	struct got *got = arg;
	got->count++;
	got->sequence = message->sequence;
	snprintf(got->last, sizeof got->last, "%.*s", (int)message->size, (const char *)message->data);
	if (got->acknowledge)
		ow_bus_acknowledge(got->acknowledge, message->reply);
}

static void keys_have_revisions(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_bus *bus = connect_as("controller"), *point = connect_as("paris");
	uint64_t first = 0, second = 0, seen = 0;
	char *data = NULL;
	size_t size = 0;
	struct got got = {0};
	assert_int_equal(ow_bus_get_key(bus, "cfg", "paris", &data, &size, &seen, &err), -ENOENT);
	assert_int_equal(ow_bus_subscribe(point, "cfg.paris", on_message, &got, &err), 0);
	ow_bus_poll(point, 100);
	assert_int_equal(ow_bus_put_key(bus, "cfg", "paris", "one", 3, 0, &first, &err), 0);
	assert_int_equal(ow_bus_put_key(bus, "cfg", "paris", "two", 3, 0, &second, &err), -ESTALE);
	assert_int_equal(ow_bus_put_key(bus, "cfg", "paris", "two", 3, first, &second, &err), 0);
	assert_int_equal(ow_bus_put_key(bus, "cfg", "paris", "three", 5, OW_BUS_ANY, &second, &err), 0);
	assert_int_equal(ow_bus_get_key(point, "cfg", "paris", &data, &size, &seen, &err), 0);
	assert_string_equal(data, "three");
	assert_int_equal(seen, second);
	free(data);
	poll_until(point, &got.count, 3);
	assert_string_equal(got.last, "three");
	assert_int_equal(got.sequence, second);
	ow_bus_free(point);
	ow_bus_free(bus);
}

static void requests_are_answered_or_end(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_bus *bus = connect_as("a");
	char *answer = NULL;
	assert_int_equal(ow_bus_api(bus, "$JS.API.STREAM.INFO.NONE", NULL, &answer, &err), -ENOENT);
	assert_non_null(strstr(err.text, "stream not found"));
	assert_int_equal(ow_bus_api(bus, "$JS.API.INFO", NULL, &answer, &err), 0);
	assert_non_null(strstr(answer, "account_info_response"));
	free(answer);
	ow_bus_free(bus);
}

static void each_message_is_listed(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_bus *bus = connect_as("a");
	struct outcomes o = {0};
	for (unsigned i = 0; i < 1200; i++) {
		char subject[40];
		snprintf(subject, sizeof subject, "ow.h.p%u", i % 700);
		assert_int_equal(ow_bus_publish(bus, subject, NULL, subject, strlen(subject), on_published, &o, &err),
		                 0);
	}
	poll_until(bus, &o.all, 1200);
	assert_int_equal(o.of[OW_BUS_STORED], 1200);
	struct got got = {0};
	assert_int_equal(ow_bus_each(bus, "OW_HEALTH", "ow.h.>", true, on_message, &got, &err), 0);
	assert_int_equal(got.count, 700);
	got.count = 0;
	assert_int_equal(ow_bus_each(bus, "OW_HEALTH", "ow.h.p7", true, on_message, &got, &err), 0);
	assert_int_equal(got.count, 1);
	assert_int_equal(got.sequence, 708);
	got.count = 0;
	assert_int_equal(ow_bus_each(bus, "OW_HEALTH", "ow.h.none", true, on_message, &got, &err), 0);
	assert_int_equal(got.count, 0);
	assert_int_equal(ow_bus_each(bus, "OW_NONE", "x", true, on_message, &got, &err), -ENOENT);
	ow_bus_free(bus);
}

/* Plays a stream that is slow: answers one message after the other, when it is told to. */
struct slow_stream {
	struct ow_bus *bus;
	char reply[40][OW_BUS_SUBJECT];
	unsigned taken, answered;
};

static void take_slowly(void *arg, const struct ow_bus_message *message)
{
	struct slow_stream *slow = arg;
	if (slow->taken < 40)
		snprintf(slow->reply[slow->taken++], OW_BUS_SUBJECT, "%s", message->reply);
}

static void answer_one(struct slow_stream *slow, const char *skip)
{
	static const char text[] = "{\"stream\": \"SLOW\", \"seq\": 7}";
	if (slow->answered < slow->taken && strcmp(slow->reply[slow->answered], skip) != 0)
		assert_int_equal(ow_bus_send(slow->bus, slow->reply[slow->answered], text, sizeof text - 1, NULL), 0);
	slow->answered += slow->answered < slow->taken;
}

/* Keeps the first messages, and answers others at once. */
static void take_or_answer(void *arg, const struct ow_bus_message *message)
{
	static const char text[] = "{\"stream\": \"SLOW\", \"seq\": 7, \"duplicate\": true}";
	struct slow_stream *slow = arg;
	if (slow->taken++ >= 5)
		assert_int_equal(ow_bus_send(slow->bus, message->reply, text, sizeof text - 1, NULL), 0);
}

/*
 * 30 answers in 6 s are slow, and nothing is given up. Of a stream that says nothing, one message is given up, and then
 * another one. What was sent before a message that is answered is lost; but duplicates are answered out of turn.
 */
static void slow_is_not_lost(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_bus *bus = connect_as("a"), *server_bus = connect_as("slow");
	struct slow_stream slow = {.bus = server_bus}, holes = {.bus = server_bus}, mute = {.bus = server_bus},
			   twice = {.bus = server_bus};
	struct outcomes of_slow = {0}, of_holes = {0}, of_mute = {0}, of_first = {0}, of_twice = {0};
	assert_int_equal(ow_bus_subscribe(server_bus, "slow.a.>", take_slowly, &slow, &err), 0);
	assert_int_equal(ow_bus_subscribe(server_bus, "holes.a.>", take_slowly, &holes, &err), 0);
	assert_int_equal(ow_bus_subscribe(server_bus, "mute.a.>", take_slowly, &mute, &err), 0);
	assert_int_equal(ow_bus_subscribe(server_bus, "twice.a.>", take_or_answer, &twice, &err), 0);
	ow_bus_poll(server_bus, 100);
	for (int i = 0; i < 30; i++) {
		assert_int_equal(ow_bus_publish(bus, "slow.a.x", NULL, "x", 1, on_published, &of_slow, &err), 0);
		assert_int_equal(ow_bus_publish(bus, "mute.a.x", NULL, "x", 1, on_published, &of_mute, &err), 0);
	}
	for (int i = 0; i < 5; i++)
		assert_int_equal(ow_bus_publish(bus, "twice.a.x", NULL, "x", 1, on_published, &of_first, &err), 0);
	int64_t begin = ow_clock_steady_ns(), next = begin;
	for (unsigned sent = 0; slow.answered < 30 || of_slow.all < 30;) {
		assert_true(ow_clock_steady_ns() - begin < INT64_C(20000000000));
		if (ow_clock_steady_ns() >= next) {
			next += 200000000;
			answer_one(&slow, "");
			assert_int_equal(ow_bus_publish(bus, "twice.a.x", NULL, "x", 1, on_published, &of_twice, &err),
			                 0);
			if (sent++ < 20)
				assert_int_equal(
					ow_bus_publish(bus, "holes.a.x", NULL, "x", 1, on_published, &of_holes, &err),
					0);
			answer_one(&holes, holes.reply[3]);
		}
		ow_bus_poll(bus, 5);
		ow_bus_poll(server_bus, 5);
	}
	assert_int_equal(of_slow.of[OW_BUS_STORED], 30);
	assert_int_equal(of_holes.of[OW_BUS_STORED], 19);
	assert_int_equal(of_holes.of[OW_BUS_NO_ANSWER], 1);
	assert_in_range(of_mute.of[OW_BUS_NO_ANSWER], 1, 2);
	assert_int_equal(of_mute.all, of_mute.of[OW_BUS_NO_ANSWER]);
	assert_int_equal(of_first.all, 0);
	assert_true(of_twice.of[OW_BUS_DUPLICATE] >= 20);
	ow_bus_free(bus);
	ow_bus_free(server_bus);
}

/* Two collectors share the messages; the server is killed meanwhile; nothing is lost. */
static void pulls_go_on_after_the_server_died(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_bus *bus = connect_as("a"), *c[2] = {connect_as("c1"), connect_as("c2")};
	struct outcomes o = {0};
	struct got got[2] = {{.acknowledge = c[0]}, {.acknowledge = c[1]}};
	for (int i = 0; i < 2; i++)
		assert_int_equal(ow_bus_pull(c[i], "OW_RESULTS", "pg", 100, on_message, &got[i], &err), 0);
	unsigned sent = 0, id = 0;
	int64_t until = ow_clock_steady_ns() + INT64_C(30000000000), killed = 0;
	while ((o.of[OW_BUS_STORED] < 2000 || got[0].count + got[1].count < 2000) && ow_clock_steady_ns() < until) {
		for (unsigned room = ow_bus_room(bus); room && sent - o.all < 100 && o.of[OW_BUS_STORED] < 2000;
		     room--) {
			char name[20];
			snprintf(name, sizeof name, "m%u", id++);
			assert_int_equal(
				ow_bus_publish(bus, "ow.r.a", name, name, strlen(name), on_published, &o, &err), 0);
			sent++;
		}
		ow_bus_poll(bus, 2);
		ow_bus_poll(c[0], 2);
		ow_bus_poll(c[1], 2);
		if (!killed && o.of[OW_BUS_STORED] > 500) {
			nats_server_end(&server, SIGKILL);
			nats_server_start(&server);
			killed = ow_clock_steady_ns();
		}
	}
	/* What was not acknowledged to us may be stored as well. */
	assert_true(o.of[OW_BUS_STORED] >= 2000);
	assert_true(got[0].count + got[1].count >= 2000);
	assert_true(got[0].count > 0 && got[1].count > 0);
	assert_non_null(strstr(news, "connect"));
	ow_bus_free(bus);
	ow_bus_free(c[0]);
	ow_bus_free(c[1]);
}

/* What is said of servers has no password. */
static void passwords_are_not_told(void **state)
{
	(void)state;
	struct ow_bus_options options = {
		.urls = "nats://u:sec@ret@127.0.0.1:1,nats://secret@127.0.0.1:2", .name = "test", .news = on_news};
	struct ow_error err = {""};
	struct ow_bus *dead = NULL;
	news[0] = '\0';
	assert_int_equal(ow_bus_create(&options, &dead, &err), 0);
	for (int i = 0; i < 100 && !*news; i++)
		ow_bus_poll(dead, 20);
	assert_non_null(strstr(news, "nats://127.0.0.1:1,nats://127.0.0.1:2: no server"));
	assert_null(strstr(news, "sec"));
	ow_bus_free(dead);
}

static void wrong_options_are_refused(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_bus *bus = NULL;
	struct ow_bus_options options = {.urls = server.url, .name = "a b"};
	assert_int_equal(ow_bus_create(&options, &bus, &err), -EINVAL);
	options.name = "a";
	options.certificate = "x";
	assert_int_equal(ow_bus_create(&options, &bus, &err), -EINVAL);
	options = (struct ow_bus_options){
		.urls = "nats://127.0.0.1:1\nnats://127.0.0.1:2\n", .name = "a", .news = on_news};
	assert_int_equal(ow_bus_create(&options, &bus, &err), 0);
	assert_int_equal(ow_bus_wait(bus, 200, &err), -ETIMEDOUT);
	assert_string_equal(
		err.text,
		"nats://127.0.0.1:1,nats://127.0.0.1:2: no server of the bus answers: does nats-server run there?");
	assert_int_equal(ow_bus_send(bus, "x", "y", 1, &err), -ENOTCONN);
	assert_int_equal(ow_bus_room(bus), 0);
	ow_bus_free(bus);
	options =
		(struct ow_bus_options){.urls = server.url, .name = "a", .ca = "/nonexistent/ca.pem", .news = on_news};
	assert_int_equal(ow_bus_create(&options, &bus, &err), 0);
	assert_int_equal(ow_bus_wait(bus, 200, &err), -ETIMEDOUT);
	ow_bus_free(bus);
}

static int stop(void **state)
{
	(void)state;
	nats_server_remove(&server);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_are_made_twice),
		cmocka_unit_test(a_stream_takes_a_message_once),
		cmocka_unit_test(without_a_stream_publishing_pauses),
		cmocka_unit_test(keys_have_revisions),
		cmocka_unit_test(requests_are_answered_or_end),
		cmocka_unit_test(each_message_is_listed),
		cmocka_unit_test(wrong_options_are_refused),
		cmocka_unit_test(passwords_are_not_told),
		cmocka_unit_test(slow_is_not_lost),
		cmocka_unit_test(pulls_go_on_after_the_server_died),
	};
	if (!nats_server_make(&server))
		return 77;
	nats_server_start(&server);
	return cmocka_run_group_tests(tests, NULL, stop);
}
