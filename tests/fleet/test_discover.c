/* SPDX-License-Identifier: Apache-2.0 */
/* The map of a fleet from the stream of samples of a real nats-server, when one of the points is not honest. */
#include "base/clock.h"
#include "discovery/sample_message.h"
#include "fleet/discover.h"
#include "fleet/streams.h"
#include "nats_server.h"

#include <errno.h>
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

#define EPOCH_NS INT64_C(1000000000)

static struct nats_server server;
static struct ow_bus *bus;

static void on_published(void *arg, enum ow_bus_outcome outcome, const char *why)
{
	(void)why;
	*(int *)arg = outcome == OW_BUS_STORED ? 1 : 2;
}

static void publish(const char *subject, const char *point, int64_t start_ns, int64_t epoch_ns)
{
	struct ow_sample_record record[20] = {0};
	struct ow_vantage_sample s = {.kind = OW_VANTAGE_IN,
	                              .epoch = start_ns / epoch_ns,
	                              .epoch_ns = epoch_ns,
	                              .clock_error_ns = -1,
	                              .packets = 20,
	                              .tau = UINT64_MAX,
	                              .count = 20,
	                              .record = record};
	uint8_t *bytes = NULL;
	size_t size;
	struct ow_error err;
	int done = 0;
	s.start_ns = s.epoch * epoch_ns;
	s.end_ns = s.start_ns + epoch_ns;
	snprintf(s.point, sizeof s.point, "%s", point);
	snprintf(s.interface, sizeof s.interface, "eth0");
	for (unsigned i = 0; i < 20; i++)
		record[i] = (struct ow_sample_record){
			.id = (uint64_t)s.epoch * 100 + i, .time_ns = s.start_ns, .flow = i, .ttl = 60, .copies = 1};
	if (ow_vantage_sample_encode(&s, &bytes, &size, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ow_bus_publish(bus, subject, NULL, bytes, size, on_published, &done, &err), 0);
	for (int i = 0; i < 500 && !done; i++)
		ow_bus_poll(bus, 10);
	assert_int_equal(done, 1);
	free(bytes);
}

/* The first in the stream has epochs of its own: the map is that of the others. */
static void one_point_does_not_choose_epochs(void **state)
{
	(void)state;
	struct ow_map map;
	struct ow_error err;
	uint64_t wrong = 0;
	int64_t now_ns = ow_clock_real_ns();
	assert_int_equal(ow_fleet_map(bus, now_ns, &map, &wrong, &err), -ENODATA);
	publish("ow.s.evil", "evil", now_ns - 20 * EPOCH_NS, EPOCH_NS / 10);
	for (int i = 20; i > 1; i--) {
		publish("ow.s.a", "a", now_ns - i * EPOCH_NS, EPOCH_NS);
		publish("ow.s.b", "b", now_ns - i * EPOCH_NS, EPOCH_NS);
	}
	publish("ow.s.evil", "b", now_ns - 2 * EPOCH_NS, EPOCH_NS);
	publish("ow.s.evil", "evil", now_ns - 2 * EPOCH_NS, EPOCH_NS / 10);
	if (ow_fleet_map(bus, now_ns, &map, &wrong, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(wrong, 3);
	assert_int_equal(map.vantages, 2);
	assert_string_equal(map.vantage[0].point, "a");
	assert_string_equal(map.vantage[1].point, "b");
	ow_map_done(&map);
}

static int start(void **state)
{
	(void)state;
	struct ow_streams_options streams = {.replicas = 1, .max_bytes = 100 << 20};
	struct ow_error err;
	if (!nats_server_make(&server))
		exit(77);
	nats_server_start(&server);
	struct ow_bus_options o = {.urls = server.url, .name = "test"};
	if (ow_bus_create(&o, &bus, &err) < 0 || ow_bus_wait(bus, 5000, &err) < 0)
		return -1;
	return ow_streams_make(bus, &streams, &err);
}

static int stop(void **state)
{
	(void)state;
	ow_bus_free(bus);
	nats_server_remove(&server);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_point_does_not_choose_epochs)};
	return cmocka_run_group_tests(tests, start, stop);
}
