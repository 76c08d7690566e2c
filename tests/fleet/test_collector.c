/* SPDX-License-Identifier: Apache-2.0 */
/* The collector between a real nats-server and a real PostgreSQL: what it stores, and what it does with what points
 * should not send. ONEWAY_POSTGRES is the URL of a server (tests/system/servers.py). */
#include "base/clock.h"
#include "fleet/collector.h"
#include "fleet/result_batch.h"
#include "fleet/streams.h"
#include "nats_server.h"
#include "store/postgres.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)

static struct nats_server server;
static struct ow_bus *bus;
static struct ow_collector *collector[2];
static struct ow_postgres *database;
static char said[4000];

static void on_log(void *arg, bool warning, const char *line)
{
	(void)arg;
	size_t used = strlen(said);
	if (warning && used + strlen(line) + 2 < sizeof said)
		snprintf(said + used, sizeof said - used, "%s\n", line);
}

static struct ow_interval_result minute_of(const char *from, const char *to, int64_t start_ns, uint64_t sent)
{
	struct ow_interval_result r;
	ow_result_blank(start_ns / MINUTE, start_ns, MINUTE, &r);
	snprintf(r.segment, sizeof r.segment, "s");
	snprintf(r.class_name, sizeof r.class_name, "c");
	snprintf(r.from, sizeof r.from, "%s", from);
	snprintf(r.to, sizeof r.to, "%s", to);
	r.status = OW_RESULT_MEASURED;
	r.final = true;
	r.coverage = 1;
	r.intervals = 60;
	r.sent = r.matched = r.received = sent;
	return r;
}

static void on_published(void *arg, enum ow_bus_outcome outcome, const char *why)
{
	(void)why;
	*(int *)arg = outcome == OW_BUS_STORED ? 1 : 2;
}

static void publish_bytes(const char *subject, const void *bytes, size_t size)
{
	int done = 0;
	struct ow_error err;
	int64_t until = ow_clock_steady_ns() + 10 * SECOND;
	assert_int_equal(ow_bus_wait(bus, 5000, &err), 0);
	assert_int_equal(ow_bus_publish(bus, subject, NULL, bytes, size, on_published, &done, &err), 0);
	while (!done && ow_clock_steady_ns() < until)
		ow_bus_poll(bus, 10);
	assert_int_equal(done, 1);
}

static void publish(const char *point, const struct ow_interval_result *result)
{
	struct ow_result_batch batch = {0};
	struct ow_error err;
	const uint8_t *bytes = NULL;
	size_t size = 0;
	char subject[80];
	snprintf(subject, sizeof subject, "ow.r.%s", point);
	assert_int_equal(ow_result_batch_add(&batch, OW_PERIOD_MINUTE, result, &err), 0);
	assert_int_equal(ow_result_batch_encode(&batch, &bytes, &size, &err), 0);
	publish_bytes(subject, bytes, size);
	ow_result_batch_done(&batch);
}

static struct ow_collector_counts counts(void)
{
	struct ow_collector_counts a, b;
	ow_collector_counts(collector[0], &a);
	ow_collector_counts(collector[1], &b);
	a.stored += b.stored;
	a.kept += b.kept;
	a.refused += b.refused;
	a.undecodable += b.undecodable;
	a.events += b.events;
	a.postponed += b.postponed;
	return a;
}

/* Works until so many rows and messages were dealt with. */
static void work_until(uint64_t dealt)
{
	int64_t until = ow_clock_steady_ns() + 20 * SECOND;
	struct ow_collector_counts c = counts();
	while (c.stored + c.kept + c.refused + c.undecodable < dealt && ow_clock_steady_ns() < until) {
		ow_collector_work(collector[0], 10);
		ow_collector_work(collector[1], 10);
		c = counts();
	}
	assert_int_equal(c.stored + c.kept + c.refused + c.undecodable, dealt);
}

static int64_t ask(const char *sql)
{
	struct ow_error err;
	int64_t value = -1;
	if (ow_postgres_ask(database, sql, &value, &err) < 0)
		fail_msg("%s", err.text);
	return value;
}

/* From both ends, twice, to two collectors, the better one first: one row, the better one. */
static void one_row_remains(void **state)
{
	(void)state;
	int64_t start = ow_clock_real_ns() / MINUTE * MINUTE - 10 * MINUTE;
	struct ow_interval_result r = minute_of("london", "paris", start, 600);
	publish("london", &r);
	publish("paris", &r);
	r.intervals = 59;
	r.intervals_unknown = 1;
	r.sent = r.matched = r.received = 580;
	publish("london", &r);
	work_until(3);
	assert_int_equal(ask("SELECT count(*) FROM minute"), 1);
	assert_int_equal(ask("SELECT sent FROM minute"), 600);
	assert_true(counts().undecodable == 0 && counts().refused == 0);
}

/* Garbage, lanes of others, rows of a year ago and of next year, a subject without a point: dropped, counted, logged, and
 * acknowledged, and the next good row is stored. */
static void what_is_wrong_is_dropped(void **state)
{
	(void)state;
	int64_t now = ow_clock_real_ns() / MINUTE * MINUTE;
	struct ow_collector_counts before = counts();
	uint64_t dealt = before.stored + before.kept + before.refused + before.undecodable;
	struct ow_interval_result r = minute_of("london", "paris", now - 9 * MINUTE, 1);
	publish_bytes("ow.r.berlin", "garbage", 7);
	publish_bytes("ow.r.berlin", "", 0);
	publish_bytes("ow.r.berlin", "\x01\x00\x00\x00", 4);
	publish("berlin", &r);
	r = minute_of("berlin", "rome", now - 366 * 1440 * MINUTE, 1);
	publish("berlin", &r);
	r.start_ns = now + 3 * 1440 * MINUTE;
	publish("berlin", &r);
	r.start_ns = now - 9 * MINUTE + SECOND;
	publish("berlin", &r);
	r = minute_of("berlin", "rome", now - 9 * MINUTE, 77);
	publish("berlin", &r);
	work_until(dealt + 8);
	assert_int_equal(counts().undecodable - before.undecodable, 3);
	assert_int_equal(
		ask("SELECT count(*) FROM minute JOIN lane ON lane.id = minute.lane WHERE from_point = 'berlin'"), 1);
	assert_int_equal(ask("SELECT count(*) FROM minute"), 2);
	assert_non_null(strstr(said, "ow.r.berlin"));
	assert_non_null(strstr(said, "refused"));
}

/* Times at the end of the world move no count, and nonsense of many kinds does not fill the log. */
static void a_point_full_of_nonsense(void **state)
{
	(void)state;
	int64_t now = ow_clock_real_ns() / MINUTE * MINUTE;
	struct ow_collector_counts before = counts(), c;
	uint64_t dealt = before.stored + before.kept + before.refused + before.undecodable;
	unsigned lines = 0;
	char text[20];
	said[0] = 0;
	struct ow_interval_result r = minute_of("bern", "rome", now - 5 * MINUTE, 1);
	publish("bern", &r);
	r = minute_of("bern", "rome", now + 60 * MINUTE, 1);
	publish("bern", &r);
	r.start_ns = INT64_MAX - 5;
	publish("bern", &r);
	r.start_ns = INT64_MIN;
	publish("bern", &r);
	for (unsigned i = 0; i < 50; i++) {
		size_t size = (size_t)snprintf(text, sizeof text, "%c%u", i % 2 ? 1 : 9, i);
		publish_bytes("ow.r.bern", text, size);
	}
	work_until(dealt + 54);
	assert_int_equal(counts().refused - before.refused, 2);
	for (const char *at = said; (at = strstr(at, "ow.r.bern")); at++)
		lines++;
	assert_in_range(lines, 1, 15); /* of two collectors */
	for (int i = 0; i < 2; i++) {
		ow_collector_counts(collector[i], &c);
		assert_true(c.lag_ns >= 0);
	}
}

/* A message that is larger than any of its kind would leave less room for others. */
static void large_messages_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *subject;
		size_t most;
	} kinds[] = {{"ow.e.bern", 64 << 10}, {"ow.s.bern", 100 << 10}, {"ow.h.bern", 64 << 10}};
	char *bytes = calloc(1, 200 << 10);
	struct ow_error err;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		int done = 0;
		int64_t until = ow_clock_steady_ns() + 10 * SECOND;
		assert_int_equal(ow_bus_publish(bus, kinds[i].subject, NULL, bytes, kinds[i].most + 1, on_published,
		                                &done, &err),
		                 0);
		while (!done && ow_clock_steady_ns() < until)
			ow_bus_poll(bus, 10);
		assert_int_equal(done, 2);
	}
	free(bytes);
}

static void events_are_stored(void **state)
{
	(void)state;
	static const char text[] =
		"{\"event\": {\"kind\": \"stopped\", \"segment\": \"s\", \"class\": \"c\", \"from\": \"london\", "
		"\"to\": \"paris\", "
		"\"interval\": 5, \"time_ns\": 1700000000000000000, \"network\": \"10.1.0.0/16\", \"flows\": 17}}";
	char now[sizeof text];
	snprintf(now, sizeof now, "%s", text);
	char *at = strstr(now, "1700000000000000000");
	char digits[24];
	snprintf(digits, sizeof digits, "%019lld", (long long)ow_clock_real_ns());
	memcpy(at, digits, 19);
	publish_bytes("ow.e.london", now, strlen(now));
	publish_bytes("ow.e.london", now, strlen(now));
	publish_bytes("ow.e.station", "{\"incident\": 1}", 15);
	publish_bytes("ow.e.london", "{\"event\": {}}", 13);
	int64_t until = ow_clock_steady_ns() + 20 * SECOND;
	while (counts().events < 2 && ow_clock_steady_ns() < until) {
		ow_collector_work(collector[0], 10);
		ow_collector_work(collector[1], 10);
	}
	for (int i = 0; i < 100; i++) {
		ow_collector_work(collector[0], 10);
		ow_collector_work(collector[1], 10);
	}
	assert_int_equal(ask("SELECT count(*) FROM event"), 1);
	assert_int_equal(ask("SELECT flows FROM event"), 17);
}

/* Minutes that are missing between others: both points are asked, once. */
static char asked[400];
static unsigned questions;

static void on_question(void *arg, const struct ow_bus_message *message)
{
	(void)arg;
	questions++;
	snprintf(asked, sizeof asked, "%.*s", (int)message->size, (const char *)message->data);
}

static void gaps_are_asked_for(void **state)
{
	(void)state;
	struct ow_error err;
	int64_t start = ow_clock_real_ns() / MINUTE * MINUTE - 60 * MINUTE;
	struct ow_collector_counts before = counts();
	struct ow_interval_result r = minute_of("oslo", "rome", start, 1);
	publish("oslo", &r);
	r = minute_of("oslo", "rome", start + 5 * MINUTE, 1);
	publish("oslo", &r);
	work_until(before.stored + before.kept + before.refused + before.undecodable + 2);
	assert_int_equal(ow_bus_subscribe(bus, "ow.q.oslo", on_question, NULL, &err), 0);
	ow_bus_poll(bus, 100);
	/* The next collector looks when it starts. */
	ow_collector_drain(collector[1], 1000);
	ow_collector_free(collector[1]);
	struct ow_collector_options o = {.bus = {.urls = server.url, .name = "service.collector"},
	                                 .database = {.url = getenv("ONEWAY_POSTGRES")},
	                                 .log = on_log};
	assert_int_equal(ow_collector_create(&o, &collector[1], &err), 0);
	int64_t until = ow_clock_steady_ns() + 10 * SECOND;
	while (questions == 0 && ow_clock_steady_ns() < until) {
		ow_collector_work(collector[1], 10);
		ow_bus_poll(bus, 10);
	}
	char expected[100];
	snprintf(expected, sizeof expected, "\"since_ns\": %lld, \"until_ns\": %lld}", (long long)start + MINUTE,
	         (long long)start + 5 * MINUTE);
	assert_int_equal(questions, 1);
	assert_non_null(strstr(asked, expected));
	assert_non_null(strstr(asked, "\"minute\""));
}

/* The connection to the database breaks while there are no rows: the next ones are stored all the same. */
static void a_failure_without_rows_is_no_end(void **state)
{
	(void)state;
	struct ow_collector_counts before = counts();
	struct ow_interval_result r = minute_of("wien", "rome", ow_clock_real_ns() / MINUTE * MINUTE - 3 * MINUTE, 5);
	ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename "
	    "IS NOT NULL"
	    " AND backend_type = 'client backend'");
	/* Longer than the pause between two looks at the partitions. */
	for (int64_t until = ow_clock_steady_ns() + 6 * SECOND; ow_clock_steady_ns() < until;) {
		ow_collector_work(collector[0], 20);
		ow_collector_work(collector[1], 20);
	}
	publish("wien", &r);
	work_until(before.stored + before.kept + before.refused + before.undecodable + 1);
}

static int start(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_streams_options streams = {.replicas = 1, .max_bytes = 100 << 20};
	struct ow_bus_options o = {.urls = server.url, .name = "test"};
	assert_int_equal(ow_bus_create(&o, &bus, &err), 0);
	assert_int_equal(ow_streams_make(bus, &streams, &err), 0);
	for (int i = 0; i < 2; i++) {
		struct ow_collector_options how = {
			.bus = {.urls = server.url, .name = "service.collector"},
			.database = {.url = getenv("ONEWAY_POSTGRES"),
		                     .retention_ns = {[OW_PERIOD_INTERVAL] = 7 * 1440 * MINUTE,
		                                      [OW_PERIOD_MINUTE] = 90 * 1440 * MINUTE}},
			.wait_ns = SECOND / 20,
			.log = on_log};
		assert_int_equal(ow_collector_create(&how, &collector[i], &err), 0);
	}
	return ow_postgres_open(getenv("ONEWAY_POSTGRES"), &database, &err);
}

static int stop(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ow_collector_drain(collector[i], 5000), 0);
		ow_collector_free(collector[i]);
	}
	ow_bus_free(bus);
	ow_postgres_close(database);
	nats_server_remove(&server);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_row_remains),
		cmocka_unit_test(what_is_wrong_is_dropped),
		cmocka_unit_test(a_point_full_of_nonsense),
		cmocka_unit_test(large_messages_are_refused),
		cmocka_unit_test(events_are_stored),
		cmocka_unit_test(gaps_are_asked_for),
		cmocka_unit_test(a_failure_without_rows_is_no_end),
	};
	if (!getenv("ONEWAY_POSTGRES") || !nats_server_make(&server))
		return 77;
	nats_server_start(&server);
	return cmocka_run_group_tests(tests, start, stop);
}
