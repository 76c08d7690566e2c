/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent with a real nats-server: a store that a point writes, rows that arrive in the stream once in effect, a
 * server and an agent that are killed, questions, what is unusual, and message ids that somebody else has used.
 */
#include "base/clock.h"
#include "fleet/agent.h"
#include "fleet/bus.h"
#include "fleet/outbox.h"
#include "fleet/positions.h"
#include "fleet/question.h"
#include "fleet/result_batch.h"
#include "fleet/spool.h"
#include "fleet/streams.h"
#include "nats_server.h"
#include "store/store.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define LANES  4

static struct nats_server server;
static char folder[64], store_path[80];

static void on_log(void *arg, bool warning, const char *line)
{
	(void)arg;
	if (warning)
		print_message("%s\n", line);
}

/* -- the point ---------------------------------------------------------------------------------------------------- */

static struct ow_interval_result result_of(unsigned lane, int64_t start_ns, uint64_t sent)
{
	struct ow_interval_result r;
	ow_result_blank(start_ns / SECOND, start_ns, SECOND, &r);
	snprintf(r.segment, sizeof r.segment, "london-paris");
	snprintf(r.class_name, sizeof r.class_name, "class %u", lane);
	snprintf(r.from, sizeof r.from, "london");
	snprintf(r.to, sizeof r.to, "paris");
	r.status = OW_RESULT_MEASURED;
	r.final = true;
	r.coverage = 1;
	r.sent = r.matched = r.received = sent;
	ow_delay_histogram_sample((const int64_t[]){200000, 230000, 1000000}, 3, sent, &r.delays);
	r.quantile_ns[OW_Q99] = ow_value_exact(1e6);
	r.loss_ratio = ow_value_exact(0);
	return r;
}

static struct ow_store *open_store(void)
{
	struct ow_error err;
	struct ow_store *store = NULL;
	if (ow_store_open(store_path, &store, &err) < 0)
		fail_msg("%s", err.text);
	ow_store_since(store, 0);
	return store;
}

/* Seconds of all lanes from this time on; the store makes minutes of them. */
static void measure(struct ow_store *store, int64_t start_ns, int seconds, uint64_t sent)
{
	struct ow_error err;
	for (int i = 0; i < seconds; i++)
		for (unsigned lane = 0; lane < LANES; lane++) {
			struct ow_interval_result r = result_of(lane, start_ns + i * SECOND, sent);
			assert_int_equal(ow_store_add(store, &r, &err), 0);
		}
	assert_int_equal(ow_store_commit(store, &err), 0);
}

static struct ow_agent *start_agent(void)
{
	struct ow_agent_options options = {
		.point = "london", .store = store_path, .folder = folder, .urls = server.url, .log = on_log};
	struct ow_error err;
	struct ow_agent *agent = NULL;
	if (ow_agent_create(&options, &agent, &err) < 0)
		fail_msg("%s", err.text);
	return agent;
}

/* -- the database ------------------------------------------------------------------------------------------------- */

#define ROWS_MAX 20000
static struct row {
	char class_name[OW_RESULT_NAME];
	enum ow_period period;
	int64_t start_ns;
	uint64_t sent, intervals;
} rows[ROWS_MAX];
static unsigned row_count, row_copies;

static int keep_row(void *arg, enum ow_period period, const struct ow_interval_result *result)
{
	(void)arg;
	for (unsigned i = 0; i < row_count; i++) {
		if (rows[i].period == period && rows[i].start_ns == result->start_ns &&
		    strcmp(rows[i].class_name, result->class_name) == 0) {
			rows[i].sent = result->sent;
			rows[i].intervals = result->intervals;
			row_copies++;
			return 0;
		}
	}
	assert_true(row_count < ROWS_MAX);
	rows[row_count].period = period;
	rows[row_count].start_ns = result->start_ns;
	rows[row_count].sent = result->sent;
	rows[row_count].intervals = result->intervals;
	snprintf(rows[row_count++].class_name, OW_RESULT_NAME, "%s", result->class_name);
	return 0;
}

static void on_message(void *arg, const struct ow_bus_message *message)
{
	struct ow_error err;
	assert_string_equal(message->subject, "ow.r.london");
	assert_int_equal(ow_result_batch_decode(message->data, message->size, keep_row, NULL, &err), 0);
	ow_bus_acknowledge(arg, message->reply);
}

static struct ow_bus *start_database(void)
{
	struct ow_bus_options options = {.urls = server.url, .name = "collector"};
	struct ow_streams_options streams = {.replicas = 1, .max_bytes = 100 << 20};
	struct ow_error err;
	struct ow_bus *bus = NULL;
	row_count = row_copies = 0;
	assert_int_equal(ow_bus_create(&options, &bus, &err), 0);
	if (ow_streams_make(bus, &streams, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ow_bus_pull(bus, OW_STREAM_RESULTS, OW_CONSUMER_COLLECT, 100, on_message, bus, &err), 0);
	return bus;
}

static unsigned rows_of(enum ow_period period)
{
	unsigned count = 0;
	for (unsigned i = 0; i < row_count; i++)
		count += rows[i].period == period;
	return count;
}

static void work_until(struct ow_agent *agent, struct ow_bus *bus, enum ow_period period, unsigned wanted)
{
	int64_t until = ow_clock_steady_ns() + 15 * SECOND;
	while (rows_of(period) < wanted && ow_clock_steady_ns() < until) {
		if (agent)
			ow_agent_work(agent, 10);
		ow_bus_poll(bus, 10);
	}
	assert_int_equal(rows_of(period), wanted);
}

static int clean(void **state)
{
	(void)state;
	char command[120];
	snprintf(command, sizeof command, "rm -f %s/*", folder);
	return system(command);
}

/* What an agent costs that has nothing to send: for docs/scale.md. */
static void print_cost(struct ow_agent *agent)
{
	struct timespec before, after;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	for (int64_t until = ow_clock_steady_ns() + 4 * SECOND; ow_clock_steady_ns() < until;)
		ow_agent_work(agent, 500);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	double ms = (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6;
	print_message("%.2f ms of processor time a second without anything to send\n", ms / 4);
}

/* -- tests -------------------------------------------------------------------------------------------------------- */

static int64_t minutes_ago(int minutes)
{
	return ow_clock_real_ns() / MINUTE * MINUTE - minutes * MINUTE;
}

static void minutes_arrive_once_in_effect(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_bus *bus = start_database();
	struct ow_agent *agent = start_agent();
	int64_t start = minutes_ago(60);
	measure(store, start, 10 * 60 + 1, 100);
	work_until(agent, bus, OW_PERIOD_MINUTE, 10 * LANES);
	/* The next process goes on where this one has ended. */
	assert_int_equal(ow_agent_drain(agent, 5000), 0);
	ow_agent_free(agent);
	measure(store, start + 10 * MINUTE + SECOND, 5 * 60, 100);
	agent = start_agent();
	work_until(agent, bus, OW_PERIOD_MINUTE, 15 * LANES);
	/* It sends the last three minutes again, by another outbox. */
	for (int64_t until = ow_clock_steady_ns() + 15 * SECOND;
	     row_copies < 3 * LANES && ow_clock_steady_ns() < until;) {
		ow_agent_work(agent, 10);
		ow_bus_poll(bus, 10);
	}
	assert_int_equal(row_copies, 3 * LANES);
	for (unsigned i = 0; i < row_count; i++)
		assert_int_equal(rows[i].sent, 60 * 100);
	struct ow_agent_counts counts;
	ow_agent_counts(agent, &counts);
	print_message("%llu rows in %llu bytes\n", (unsigned long long)counts.rows, (unsigned long long)counts.bytes);
	assert_int_equal(counts.rows, (5 + 3) * LANES);
	print_cost(agent);
	ow_agent_free(agent);
	ow_bus_free(bus);
	ow_store_close(store);
}

/* A result that becomes final late changes a minute that was sent: it is sent again. */
static void a_changed_minute_is_sent_again(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_bus *bus = start_database();
	struct ow_agent *agent = start_agent();
	struct ow_error err;
	int64_t start = minutes_ago(5);
	struct ow_interval_result r = result_of(0, start + 3 * SECOND, 500);
	r.final = false;
	measure(store, start, 3, 100);
	assert_int_equal(ow_store_add(store, &r, &err), 0);
	measure(store, start + 4 * SECOND, 2 * 60, 100);
	work_until(agent, bus, OW_PERIOD_MINUTE, 2 * LANES);
	r.final = true;
	assert_int_equal(ow_store_add(store, &r, &err), 0);
	assert_int_equal(ow_store_commit(store, &err), 0);
	int64_t until = ow_clock_steady_ns() + 40 * SECOND;
	bool changed = false;
	while (!changed && ow_clock_steady_ns() < until) {
		ow_agent_work(agent, 10);
		ow_bus_poll(bus, 10);
		for (unsigned i = 0; i < row_count; i++)
			changed |= rows[i].start_ns == start && rows[i].sent == 59 * 100 + 500;
	}
	assert_true(changed);
	ow_agent_free(agent);
	ow_bus_free(bus);
	ow_store_close(store);
}

/* A point ends in the middle of a minute, and is back half an hour later: what the minute lacks is known now. */
static void a_minute_before_a_long_pause_is_sent_again(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_bus *bus = start_database();
	struct ow_agent *agent = start_agent();
	struct ow_error err;
	int64_t start = minutes_ago(60);
	measure(store, start, 80, 100);
	assert_int_equal(ow_store_finish(store, start + 2 * MINUTE, &err), 0);
	work_until(agent, bus, OW_PERIOD_MINUTE, 2 * LANES);
	assert_int_equal(ow_agent_drain(agent, 5000), 0);
	ow_agent_free(agent);
	ow_store_close(store);
	store = open_store();
	measure(store, start + 30 * MINUTE, 61, 100);
	agent = start_agent();
	int64_t until = ow_clock_steady_ns() + 15 * SECOND;
	unsigned whole = 0;
	while (whole < LANES && ow_clock_steady_ns() < until) {
		ow_agent_work(agent, 10);
		ow_bus_poll(bus, 10);
		whole = 0;
		for (unsigned i = 0; i < row_count; i++)
			whole += rows[i].start_ns == start + MINUTE && rows[i].intervals == 60 &&
			         rows[i].sent == 20 * 100;
	}
	assert_int_equal(whole, LANES);
	ow_agent_free(agent);
	ow_bus_free(bus);
	ow_store_close(store);
}

/* Agents that are killed at any moment, and a server as well: nothing is missing. */
static void kills_lose_nothing(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_bus *bus = start_database();
	int64_t start = minutes_ago(600);
	srandom(1);
	for (int round = 0; round < 6; round++) {
		pid_t pid = fork();
		if (pid == 0) {
			struct ow_agent *agent = start_agent();
			for (;;)
				ow_agent_work(agent, 10);
		}
		measure(store, start + round * 30 * MINUTE, 30 * 60, 7);
		for (int i = 0; i < 10 + random() % 40; i++)
			ow_bus_poll(bus, 10);
		if (round == 3) {
			nats_server_end(&server, SIGKILL);
			nats_server_start(&server);
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	measure(store, start + 6 * 30 * MINUTE, 1, 7);
	struct ow_agent *agent = start_agent();
	work_until(agent, bus, OW_PERIOD_MINUTE, 6 * 30 * LANES);
	for (unsigned i = 0; i < row_count; i++)
		assert_int_equal(rows[i].sent, rows[i].period == OW_PERIOD_MINUTE ? 60 * 7 : 7);
	ow_agent_free(agent);
	ow_bus_free(bus);
	ow_store_close(store);
}

/* The fleet asks for seconds; a question that is not one is ignored. */
static void seconds_come_on_request(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_bus *bus = start_database();
	struct ow_error err;
	int64_t start = minutes_ago(120);
	measure(store, start, 5 * 60 + 1, 3);
	struct ow_agent *agent = start_agent();
	work_until(agent, bus, OW_PERIOD_MINUTE, 5 * LANES);
	static const char *const wrong[] = {"", "{}", "[1]", "{\"period\":\"week\",\"since_ns\":0,\"until_ns\":1}",
	                                    "{\"period\":\"result\",\"since_ns\":0,\"until_ns\":9223372036854775807}"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(ow_bus_send(bus, "ow.q.london", wrong[i], strlen(wrong[i]), &err), 0);
	char text[120];
	snprintf(text, sizeof text, "{\"period\":\"result\", \"since_ns\":%jd, \"until_ns\":%jd}",
	         (intmax_t)start + 30 * SECOND, (intmax_t)start + 150 * SECOND);
	assert_int_equal(ow_bus_send(bus, "ow.q.london", text, strlen(text), &err), 0);
	work_until(agent, bus, OW_PERIOD_INTERVAL, 120 * LANES);
	ow_agent_free(agent);
	ow_bus_free(bus);
	ow_store_close(store);
}

struct answered {
	int status;
	struct ow_answer answer;
};

static void on_answer(void *arg, const struct ow_bus_message *message)
{
	struct answered *answered = arg;
	answered->status = message->status ? message->status : 1;
	if (!message->status)
		assert_true(ow_answer_read(message->data, message->size, &answered->answer));
}

static struct answered ask_for(struct ow_agent *agent, struct ow_bus *bus, const struct ow_question *question)
{
	struct answered answered = {0};
	struct ow_error err;
	char *text = ow_question_text(question);
	assert_int_equal(ow_bus_request(bus, "ow.q.london", text, strlen(text), on_answer, &answered, &err), 0);
	free(text);
	for (int i = 0; i < 1000 && !answered.status; i++) {
		if (agent)
			ow_agent_work(agent, 10);
		ow_bus_poll(bus, 10);
	}
	return answered;
}

/* Who asks learns how many come, or why none do. */
static void questions_are_answered(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_bus *bus = start_database();
	int64_t start = minutes_ago(120);
	struct ow_question question = {.period = OW_PERIOD_INTERVAL,
	                               .since_ns = start - MINUTE,
	                               .until_ns = start + MINUTE,
	                               .segment = "london-paris",
	                               .class_name = "class 2",
	                               .from = "london",
	                               .to = "paris"};
	measure(store, start, 5 * 60 + 1, 3);
	assert_int_equal(ask_for(NULL, bus, &question).status, 503);
	struct ow_agent *agent = start_agent();
	work_until(agent, bus, OW_PERIOD_MINUTE, 5 * LANES);
	struct answered answered = ask_for(agent, bus, &question);
	assert_int_equal(answered.status, 1);
	assert_string_equal(answered.answer.error, "");
	assert_int_equal(answered.answer.rows, 60);
	assert_int_equal(answered.answer.first_ns, start);
	work_until(agent, bus, OW_PERIOD_INTERVAL, 60);
	for (unsigned i = 0; i < row_count; i++)
		assert_true(rows[i].period == OW_PERIOD_MINUTE || strcmp(rows[i].class_name, "class 2") == 0);
	snprintf(question.to, sizeof question.to, "rome");
	assert_string_equal(ask_for(agent, bus, &question).answer.error, "does not have this lane");
	question.until_ns = question.since_ns + OW_QUESTION_SPAN_NS + 1;
	assert_string_equal(ask_for(agent, bus, &question).answer.error, "does not understand the question");
	ow_agent_free(agent);
	ow_bus_free(bus);
	ow_store_close(store);
}

/* What a point does at `bad` in its lane 2. */
typedef void bad_thing(struct ow_store *store, int64_t bad);

static void add_result(struct ow_store *store, struct ow_interval_result *r)
{
	struct ow_error err;
	assert_int_equal(ow_store_add(store, r, &err), 0);
}

static void lose_packets(struct ow_store *store, int64_t bad)
{
	struct ow_interval_result r = result_of(2, bad, 1000);
	r.lost = 100;
	r.matched = r.received = 900;
	ow_delay_histogram_sample((const int64_t[]){200000, 230000, 1000000}, 3, r.matched, &r.delays);
	r.loss_ratio = ow_value_exact(0.1);
	add_result(store, &r);
}

static void lose_peer(struct ow_store *store, int64_t bad)
{
	struct ow_interval_result names = result_of(2, bad, 0), r;
	ow_result_blank(bad / SECOND, bad, SECOND, &r);
	ow_result_name_like(&r, &names);
	r.status = OW_RESULT_UNKNOWN;
	r.final = true;
	snprintf(r.cause, sizeof r.cause, "no answer from paris");
	add_result(store, &r);
}

static void lose_flow(struct ow_store *store, int64_t bad)
{
	struct ow_interval_result r = result_of(2, bad, 1000);
	struct ow_flow_event event = {.start_ns = bad + 5, .scope = {.kind = OW_SCOPE_STOPPED, .flows = 17}};
	struct ow_error err;
	add_result(store, &r);
	memcpy(event.segment, r.segment, sizeof event.segment);
	memcpy(event.class_name, r.class_name, sizeof event.class_name);
	memcpy(event.from, r.from, sizeof event.from);
	memcpy(event.to, r.to, sizeof event.to);
	assert_int_equal(ow_store_add_event(store, &event, &err), 0);
}

/* The seconds around it come without being asked for, and only those of its lane. */
static void around(bad_thing *happen)
{
	struct ow_store *store = open_store();
	struct ow_bus *bus = start_database();
	struct ow_error err;
	int64_t start = minutes_ago(20), bad = start + 500 * SECOND;
	/* An agent that was here before: otherwise only what comes from now on is of interest. */
	measure(store, start, 1, 1000);
	struct ow_agent *agent = start_agent();
	assert_int_equal(ow_agent_drain(agent, 1000), 0);
	ow_agent_free(agent);
	char path[80];
	struct ow_positions *positions = NULL;
	snprintf(path, sizeof path, "%s/agent.db", folder);
	assert_int_equal(ow_positions_open(path, &positions, &err), 0);
	ow_positions_set(positions, "look_ns", start);
	assert_int_equal(ow_positions_save(positions, &err), 0);
	ow_positions_close(positions);
	measure(store, start + SECOND, 499, 1000);
	happen(store, bad);
	for (unsigned lane = 0; lane < LANES; lane++) {
		struct ow_interval_result r = result_of(lane, bad, 1000);
		if (lane != 2)
			add_result(store, &r);
	}
	measure(store, bad + SECOND, 300, 1000);
	agent = start_agent();
	/* Ten before it and twenty after it; and after the first one that is known again. */
	work_until(agent, bus, OW_PERIOD_INTERVAL, happen == lose_peer ? 32 : 31);
	for (unsigned i = 0; i < row_count; i++) {
		if (rows[i].period != OW_PERIOD_INTERVAL)
			continue;
		assert_string_equal(rows[i].class_name, "class 2");
		assert_true(rows[i].start_ns >= bad - 10 * SECOND && rows[i].start_ns <= bad + 21 * SECOND);
	}
	ow_agent_free(agent);
	ow_bus_free(bus);
	ow_store_close(store);
}

static void count_look(void *arg, const struct ow_unusual_look *look)
{
	*(unsigned *)arg += look->length_ns == 90 * SECOND;
}

/* Intervals of 90 s are final 90 s after their end, beside those of a second: each is looked at once, and not before. */
static void long_intervals_are_looked_at(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_spool *spool = NULL;
	struct ow_error err;
	int64_t start = minutes_ago(60);
	struct ow_interval_result r = result_of(0, start, 1000);
	r.length_ns = 90 * SECOND;
	snprintf(r.segment, sizeof r.segment, "slow");
	measure(store, start, 200, 1000);
	assert_int_equal(ow_store_add(store, &r, &err), 0);
	assert_int_equal(ow_store_commit(store, &err), 0);
	assert_int_equal(ow_spool_open(store_path, &spool, &err), 0);
	for (int at = 0; at < 300; at += 10) {
		unsigned seen = 0;
		int64_t since_ns = start + at * SECOND;
		assert_int_equal(ow_spool_look(spool, since_ns, since_ns + 10 * SECOND, count_look, &seen, &err), 0);
		assert_int_equal(seen, at == 170);
	}
	ow_spool_close(spool);
	ow_store_close(store);
}

static void unusual_seconds_come_by_themselves(void **state)
{
	around(lose_packets);
	clean(state);
	around(lose_peer);
	clean(state);
	around(lose_flow);
}

static void on_arrived(void *arg, int64_t place)
{
	*(int64_t *)arg = place;
}

/* A full stream refuses; then the messages wait, and arrive when there is room. */
static void a_full_stream_makes_messages_wait(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_bus *bus = NULL;
	struct ow_outbox *outbox = NULL;
	int64_t arrived = 0;
	char *data = calloc(1, 100000);
	struct ow_bus_options options = {.urls = server.url, .name = "a"};
	assert_int_equal(ow_bus_create(&options, &bus, &err), 0);
	assert_int_equal(ow_bus_wait(bus, 5000, &err), 0);
	static const char small[] =
		"{\"name\":\"SMALL\", \"subjects\":[\"small\"], \"max_bytes\":500000, \"discard\":\"new\"}";
	assert_int_equal(ow_bus_api(bus, "$JS.API.STREAM.CREATE.SMALL", small, NULL, &err), 0);
	struct ow_outbox_options o = {.bus = bus, .subject = "small", .arrived = on_arrived, .arg = &arrived};
	assert_int_equal(ow_outbox_create(&o, &outbox, &err), 0);
	for (int i = 1; i <= 8; i++)
		assert_int_equal(ow_outbox_add(outbox, data, 100000, i, &err), 0);
	for (int64_t until = ow_clock_steady_ns() + SECOND; ow_clock_steady_ns() < until;) {
		ow_outbox_send(outbox);
		ow_bus_poll(bus, 10);
	}
	assert_int_equal(arrived, 4);
	assert_non_null(strstr(ow_outbox_counts(outbox)->why, "maximum bytes exceeded"));
	assert_int_equal(ow_bus_api(bus, "$JS.API.STREAM.PURGE.SMALL", NULL, NULL, &err), 0);
	for (int64_t until = ow_clock_steady_ns() + 10 * SECOND; arrived < 8 && ow_clock_steady_ns() < until;) {
		ow_outbox_send(outbox);
		ow_bus_poll(bus, 10);
	}
	assert_int_equal(arrived, 8);
	assert_int_equal(ow_bus_api(bus, "$JS.API.STREAM.DELETE.SMALL", NULL, NULL, &err), 0);
	ow_bus_free(bus);
	ow_outbox_free(outbox);
	free(data);
}

static int stop(void **state)
{
	clean(state);
	rmdir(folder);
	nats_server_remove(&server);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(minutes_arrive_once_in_effect, clean),
		cmocka_unit_test_teardown(a_changed_minute_is_sent_again, clean),
		cmocka_unit_test_teardown(a_minute_before_a_long_pause_is_sent_again, clean),
		cmocka_unit_test_teardown(kills_lose_nothing, clean),
		cmocka_unit_test_teardown(seconds_come_on_request, clean),
		cmocka_unit_test_teardown(questions_are_answered, clean),
		cmocka_unit_test_teardown(long_intervals_are_looked_at, clean),
		cmocka_unit_test_teardown(unusual_seconds_come_by_themselves, clean),
		cmocka_unit_test(a_full_stream_makes_messages_wait),
	};
	if (!nats_server_make(&server))
		return 77;
	snprintf(folder, sizeof folder, "/tmp/oneway-agent-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(store_path, sizeof store_path, "%s/results.db", folder);
	nats_server_start(&server);
	return cmocka_run_group_tests(tests, NULL, stop);
}
