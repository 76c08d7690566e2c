/* SPDX-License-Identifier: Apache-2.0 */
/* Events of flows: what is said of each, as text and JSON, and how many are said at most. */
#include "result/flow_event.h"

#include <jansson.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND INT64_C(1000000000)
/* 2023-11-14 22:13:20 UTC */
#define START (INT64_C(1700000000) * SECOND)

static struct ow_flow_event event(enum ow_scope_event_kind kind, uint32_t flows)
{
	return (struct ow_flow_event){
		.segment = "x",
		.class_name = "all",
		.from = "london",
		.to = "paris",
		.start_ns = START + SECOND / 2,
		.scope = {.kind = kind, .interval = 7, .flows = flows, .version = 4, .bits = 16, .network = {10, 1}}};
}

static void says(struct ow_flow_event e, const char *want)
{
	char text[OW_FLOW_EVENT_TEXT];
	assert_string_equal(ow_flow_event_text(&e, text), want);
}

static void test_text(void **state)
{
	(void)state;
	says(event(OW_SCOPE_STOPPED, 17), "since 22:13:20 17 flows of 10.1.0.0/16 no longer pass paris");
	says(event(OW_SCOPE_STOPPED, 1), "since 22:13:20 1 flow of 10.1.0.0/16 no longer passes paris");
	says(event(OW_SCOPE_BACK, 1234), "since 22:13:20 1,234 flows of 10.1.0.0/16 pass paris again");
	struct ow_flow_event e = event(OW_SCOPE_BACK, 2);
	e.scope.bits = 0;
	says(e, "since 22:13:20 2 flows of several networks pass paris again");
	e = event(OW_SCOPE_REROUTED, 3);
	e.scope.ttl_change = -2;
	e.scope.version = 6;
	e.scope.bits = 48;
	memcpy(e.scope.network, (uint8_t[]){0x20, 0x01, 0x0d, 0xb8, 0, 9}, 6);
	says(e, "since 22:13:20 flows of 2001:db8:9::/48 arrive at paris with a TTL that is 2 lower than before: they "
	        "were rerouted");
	e = event(OW_SCOPE_SPRAYED, 8);
	e.scope.share = .503;
	says(e, "since 22:13:20 50.0% of the packets of 8 flows of 10.1.0.0/16 steadily do not pass paris: this looks "
	        "like load sharing that sends the packets of a flow different ways, so what counts as lost may have "
	        "passed elsewhere");
	e = event(OW_SCOPE_MISSING, 12);
	e.scope.share = .25;
	says(e, "since 22:13:20 more new flows than usual do not pass paris (25.0% of them): they take another way, or "
	        "are lost from their first packet on");
	/* A name that would control a terminal; the longest names fit. */
	e = event(OW_SCOPE_STOPPED, UINT32_MAX);
	memset(e.to, '\033', sizeof e.to - 1);
	e.omitted = UINT64_MAX;
	e.last = true;
	char text[OW_FLOW_EVENT_TEXT];
	assert_null(strchr(ow_flow_event_text(&e, text), '\033'));
	assert_non_null(strstr(text, "; further events are not reported for a while"));
}

static void test_json(void **state)
{
	(void)state;
	for (enum ow_scope_event_kind kind = OW_SCOPE_STOPPED; kind <= OW_SCOPE_MISSING; kind++) {
		struct ow_flow_event e = event(kind, 4);
		char *line;
		size_t length;
		FILE *out = open_memstream(&line, &length);
		ow_flow_event_json(out, &e);
		fclose(out);
		assert_ptr_equal(strchr(line, '\n'), line + length - 1);
		json_t *root = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL),
		       *said = json_object_get(root, "event");
		assert_non_null(said);
		assert_string_equal(json_string_value(json_object_get(said, "kind")), ow_flow_event_name(kind));
		assert_string_equal(json_string_value(json_object_get(said, "network")), "10.1.0.0/16");
		assert_int_equal(json_integer_value(json_object_get(said, "time_ns")), e.start_ns);
		assert_int_equal(json_object_get(said, "ttl_change") != NULL, kind == OW_SCOPE_REROUTED);
		assert_int_equal(json_object_get(said, "flows") != NULL, kind != OW_SCOPE_REROUTED);
		assert_int_equal(json_object_get(said, "share") != NULL, kind >= OW_SCOPE_SPRAYED);
		json_decref(root);
		free(line);
	}
}

/* A network that flaps each second for an hour. Each event is told or counted. */
static void test_limit(void **state)
{
	(void)state;
	struct ow_flow_event_limit limit = {0};
	uint64_t told = 0, omitted = 0;
	bool warned = false;
	for (int64_t i = 0; i < 3600; i++) {
		struct ow_flow_event e = event(i % 2 ? OW_SCOPE_BACK : OW_SCOPE_STOPPED, 1);
		if (!ow_flow_event_allow(&limit, START + i * SECOND, &e)) {
			assert_true(warned); /* what came last said so */
			continue;
		}
		told++;
		omitted += e.omitted;
		warned = e.last;
	}
	assert_int_equal(told + omitted + limit.omitted, 3600);
	assert_true(told >= 3600 / 10 && told <= OW_FLOW_EVENTS_BURST + 3600 / 10);
	/* After a calm everything is as at first. */
	struct ow_flow_event e = event(OW_SCOPE_BACK, 1);
	assert_true(ow_flow_event_allow(&limit, START + 4000 * SECOND, &e));
	assert_false(e.last);
	for (int i = 1; i < OW_FLOW_EVENTS_BURST; i++)
		assert_true(ow_flow_event_allow(&limit, START + 4000 * SECOND, &e));
	assert_true(e.last);
	assert_false(ow_flow_event_allow(&limit, START + 4000 * SECOND, &e));
	/* The clock was set back. */
	assert_true(ow_flow_event_allow(&limit, START, &e));
}

/* What is written comes back; anything else is refused, or is not an event of flows. */
static void test_read(void **state)
{
	(void)state;
	struct ow_error err = {""};
	for (enum ow_scope_event_kind kind = OW_SCOPE_STOPPED; kind <= OW_SCOPE_MISSING; kind++) {
		struct ow_flow_event e = event(kind, 7), back;
		char *text = NULL, *again = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);
		ow_flow_event_json(out, &e);
		fclose(out);
		assert_int_equal(ow_flow_event_read(text, size, &back, &err), 1);
		out = open_memstream(&again, &size);
		ow_flow_event_json(out, &back);
		fclose(out);
		assert_string_equal(text, again);
		for (size_t i = 0; i < size - 2; i++)
			assert_int_equal(ow_flow_event_read(text, i, &back, &err), -EINVAL);
		free(text);
		free(again);
	}
	struct ow_flow_event none;
	assert_int_equal(ow_flow_event_read("{}", 2, &none, &err), 0);
	assert_int_equal(ow_flow_event_read("{\"event\":{}}", 12, &none, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
