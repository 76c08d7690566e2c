/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something between the points rewrites IPv4 identifications (pf "scrub random-id", some NATs and network cards): the
 * simulated captures with new identifications at B give the same result as before, and say how.
 */
#include "scenario.h"

#include "base/bytes.h"
#include "base/random.h"
#include "capture/file/reader.h"
#include "capture/file/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define BATCH     64
#define ETHERNET  14u
#define FRAME_MAX 16384u

/* B's frames with identifications of their own. Fragments keep theirs, without which they are lost for everybody. */
static void rewrite_ids(struct scenario *s)
{
	static char path[64];
	(void)snprintf(path, sizeof path, "%s", scenario_path("rewritten.pcap"));
	struct ow_reader *reader = NULL;
	struct ow_writer *writer = NULL;
	struct ow_random random;
	struct ow_frame frame[BATCH];
	static uint8_t copy[FRAME_MAX];
	ow_random_seed(&random, 7);
	assert_int_equal(ow_reader_open(s->sim.side[OW_SIDE_B].path, &reader, &s->err), 0);
	assert_int_equal(
		ow_writer_open(path, &(struct ow_writer_options){.linktype = 1, .nanoseconds = true}, &writer, &s->err),
		0);
	for (int n; (n = ow_reader_read(reader, frame, BATCH, &s->err)) > 0;) {
		for (int i = 0; i < n; i++) {
			assert_true(frame[i].caplen <= sizeof copy);
			memcpy(copy, frame[i].data, frame[i].caplen);
			uint8_t *ip = copy + ETHERNET;
			if (ip[0] >> 4 == 4 && !(ow_load_be16(ip + 6) & 0x3fff)) {
				uint64_t id = ow_random_u64(&random);
				memcpy(ip + 4, &id, 2);
			}
			frame[i].data = copy;
			assert_int_equal(ow_writer_write(writer, &frame[i], &s->err), 0);
		}
	}
	ow_reader_close(reader);
	assert_int_equal(ow_writer_close(writer, &s->err), 0);
	s->sim.side[OW_SIDE_B].path = path;
}

/* 20 % TCP: UDP of the simulator has contents of its own, so that nothing becomes identical. */
static void rewritten(const char *name, void (*change)(struct scenario *s), enum ow_level level)
{
	struct scenario s;
	scenario_init(&s, name);
	s.sim.tcp = 0.2;
	if (change)
		change(&s);
	scenario_simulate(&s);
	rewrite_ids(&s);
	if (scenario_match(&s) < 0)
		fail_msg("%s: match: %s", s.name, s.err.text);
	scenario_conserved(s.report);
	assert_false(s.report->ip_id);
	assert_int_equal(s.report->level, level);
	scenario_check(&s);
	scenario_done(&s);
}

static void both_ways(struct scenario *s)
{
	s->sim.reverse = 0.3;
	s->sim.duplicate = 0.01;
}

static void behind_nat(struct scenario *s)
{
	s->sim.nat = true;
}

static void mixed_with_ipv6(struct scenario *s)
{
	s->sim.ipv6 = 0.3;
	s->sim.side[OW_SIDE_A].snaplen = 128;
	s->match.level = OW_LEVEL_IP;
}

static void ids_are_rewritten(void **state)
{
	(void)state;
	rewritten("new ids", NULL, OW_LEVEL_IP);
	rewritten("new ids, both ways", both_ways, OW_LEVEL_IP);
	rewritten("new ids behind NAT", behind_nat, OW_LEVEL_NAT);
	rewritten("new ids, IPv6, truncated", mixed_with_ipv6, OW_LEVEL_IP);
}

/* Where ids are left alone they stay in, however little the captures share. */
static void ids_are_left_alone(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "half is lost");
	s.sim.loss.ratio = 0.5;
	s.sim.identical = 0.3;
	scenario_run(&s);
	assert_true(s.report->ip_id);
	assert_int_equal(s.report->level, OW_LEVEL_IP);
	scenario_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(ids_are_rewritten, scenario_say),
		cmocka_unit_test_teardown(ids_are_left_alone, scenario_say),
	};
	return cmocka_run_group_tests(tests, scenario_setup, scenario_teardown);
}
