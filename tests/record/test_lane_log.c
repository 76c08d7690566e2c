/* SPDX-License-Identifier: Apache-2.0 */
/* What a recorder delivers goes to the logs of the right lanes, also after lanes were added and removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../match/scenario.h"
#include "record/lane_log.h"
#include <errno.h>
#include <poll.h>
#include <string.h>

#define LENGTH (OW_INTERVAL_MAX_NS) /* all packets are in one interval */
#define LANES  7

static struct ow_lane_log *add(struct ow_lane_logs *logs, uint32_t sources, int64_t t0_ns)
{
	struct ow_lane_options lane = {.identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX},
	                               .sources = sources,
	                               .t0_ns = t0_ns,
	                               .length_ns = LENGTH};
	struct ow_lane_log *log = NULL;
	struct ow_error err = {""};
	ow_identity_seed(&lane.identity, 11);
	if (ow_lane_log_create(logs, &lane, 1000000, 8, &log, &err) < 0)
		fail_msg("%s", err.text);
	return log;
}

/* All that both files have. Tells of a file that ends before the other once as new. */
static void run(struct ow_lane_logs *logs)
{
	int64_t passed_ns = INT64_MIN;
	unsigned news[2] = {0};
	while (passed_ns < INT64_MAX) {
		struct pollfd fd = {.fd = ow_recorder_fd(logs->recorder), .events = POLLIN};
		struct ow_chunk *chunks = NULL;
		struct ow_error err = {""};
		(void)poll(&fd, 1, 1000);
		if (ow_recorder_take(logs->recorder, &chunks, &passed_ns, &err) < 0)
			fail_msg("%s", err.text);
		ow_lane_logs_enter(logs, chunks);
		assert_int_equal(ow_lane_logs_check(logs, &err), logs->away == 3 ? -ENODEV : 0);
		for (unsigned source = 0; source < 2; source++) {
			struct ow_outage outage;
			bool is_new = false;
			if (ow_recorder_outage(logs->recorder, source, &outage)) {
				ow_lane_logs_outage(logs, source, &outage, &is_new);
				assert_true(logs->away >> source & 1);
			}
			news[source] += is_new;
		}
	}
	assert_int_equal(news[0], 1);
	assert_int_equal(news[1], 1);
	struct ow_error err = {""};
	assert_int_equal(ow_lane_logs_check(logs, &err), -ENODEV);
	assert_non_null(strstr(err.text, "no interface is left: "));
}

static uint64_t packets_of(const struct ow_lane_log *log)
{
	struct ow_interval_packets *page = ow_interval_log_next(log->packets, INT64_MAX);
	assert_non_null(page);
	uint64_t packets = page->total_packets;
	assert_int_equal(page->count, packets);
	assert_true(log->cuts.t0_ns + page->sighting[page->count - 1].time_ns <= log->all->latest_ns);
	ow_interval_packets_free(page);
	return packets;
}

static void lanes_come_and_go(void **state)
{
	(void)state;
	struct scenario s;
	struct ow_recorder *recorder = NULL;
	struct ow_recorder_counts counts[2];
	struct ow_lane_logs logs;
	struct ow_lane_log *log[LANES], *none;
	struct ow_error err = {""};
	scenario_init(&s, "lanes come and go");
	scenario_simulate(&s);
	const struct ow_source_options sources[] = {
		{.live = {.kind = OW_IFACE_FILE, .name = s.sim.side[0].path}},
		{.live = {.kind = OW_IFACE_FILE, .name = s.sim.side[1].path}},
	};
	if (ow_recorder_open(sources, 2, &recorder, &err) < 0 || ow_recorder_start(recorder, &err) < 0)
		fail_msg("%s", err.text);
	ow_lane_logs_init(&logs, recorder, 2);
	int64_t t0_ns = s.sim.start_ns - OW_INTERVAL_MAX_NS / 2;
	for (unsigned i = 0; i < LANES; i++)
		log[i] = add(&logs, i % 3 + 1, t0_ns);
	/* The first, the last and one between them go; another one comes. */
	ow_lane_log_free(log[0]);
	ow_lane_log_free(log[LANES - 1]);
	ow_lane_log_free(log[3]);
	ow_lane_log_free(NULL);
	log[0] = add(&logs, 1, t0_ns);
	/* One that cannot be changes nothing. */
	struct ow_lane_options wrong = {
		.sources = 1, .filter = "no filter at all", .t0_ns = t0_ns, .length_ns = LENGTH};
	assert_true(ow_lane_log_create(&logs, &wrong, 1000000, 8, &none, &err) < 0);
	assert_int_equal(logs.count, LANES - 2);
	run(&logs);
	ow_recorder_counts(recorder, 0, &counts[0]);
	ow_recorder_counts(recorder, 1, &counts[1]);
	assert_true(counts[0].frames > counts[1].frames && counts[1].frames > 0);
	assert_int_equal(packets_of(log[0]), counts[0].frames);
	assert_int_equal(packets_of(log[1]), counts[1].frames);
	assert_int_equal(packets_of(log[2]), counts[0].frames + counts[1].frames);
	assert_int_equal(packets_of(log[4]), counts[1].frames);
	assert_int_equal(packets_of(log[5]), counts[0].frames + counts[1].frames);
	ow_recorder_free(recorder);
	ow_lane_logs_done(&logs);
	scenario_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(lanes_come_and_go, scenario_say)};
	return cmocka_run_group_tests(tests, scenario_setup, scenario_teardown);
}
