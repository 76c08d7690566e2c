/* SPDX-License-Identifier: Apache-2.0 */
/* Captures that cannot be matched are refused, with a reason in one line that names the file or the flag. */
#include "scenario.h"

#include "capture/file/mapping.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define S INT64_C(1000000000)

static const char *save(const char *name, const void *bytes, size_t size)
{
	const char *path = scenario_path(name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
	return path;
}

static void assert_refused(const char *a, const char *b, const struct ow_match_options *options, int code,
                           const char *text)
{
	struct ow_match *m = NULL;
	struct ow_error err;
	assert_int_equal(ow_match_files(a, b, options, &m, &err), -code);
	assert_null(m);
	if (!strstr(err.text, text))
		fail_msg("'%s' is not in '%s'", text, err.text);
	assert_null(strchr(err.text, '\n'));
	/* Also without somebody who reads it. */
	assert_int_equal(ow_match_files(a, b, options, &m, NULL), -code);
}

/* Simulates a small pair; both files stay. */
static void small(struct scenario *s, const char *a, const char *b)
{
	scenario_init(s, a);
	s->sim.packets = 2000;
	s->match.interval_ns = 0;
	s->sim.side[OW_SIDE_A].path = a;
	s->sim.side[OW_SIDE_B].path = b;
}

static void different_traffic(void **state)
{
	(void)state;
	struct scenario s;
	const char *a = scenario_path("one"), *b = scenario_path("two"), *other = scenario_path("other");
	small(&s, a, b);
	scenario_simulate(&s);
	small(&s, scenario_path("third"), other);
	s.sim.seed = 99;
	scenario_simulate(&s);
	assert_refused(a, other, &s.match, ENOMSG, "nothing in common");
	s.match.level = OW_LEVEL_IP;
	assert_refused(a, other, &s.match, ENOMSG, "--level auto");
	scenario_done(&s);
}

/* The traffic of A is IPv6, that of B IPv4. */
static void translated_traffic(void **state)
{
	(void)state;
	struct scenario s;
	const char *six = scenario_path("six"), *four = scenario_path("four");
	small(&s, six, scenario_path("one"));
	s.sim.ipv6 = 1;
	scenario_simulate(&s);
	small(&s, scenario_path("two"), four);
	s.sim.ipv6 = 0;
	scenario_simulate(&s);
	assert_refused(six, four, &s.match, ENOMSG, "NAT64");
	assert_refused(four, six, &s.match, ENOMSG, "NAT64");
	scenario_done(&s);
}

static void different_times(void **state)
{
	(void)state;
	struct scenario s;
	const char *a = scenario_path("one"), *other = scenario_path("other");
	small(&s, a, scenario_path("two"));
	scenario_simulate(&s);
	small(&s, scenario_path("third"), other);
	s.sim.seed = 99;
	s.sim.start_ns += 3600 * S;
	scenario_simulate(&s);
	assert_refused(a, other, &s.match, ENOMSG, "B starts");
	assert_refused(other, a, &s.match, ENOMSG, "A starts");
	scenario_done(&s);
}

/* The packets are the same, the clocks are not: said so, with the flag that helps. */
static void clocks_far_apart(void **state)
{
	(void)state;
	static const struct {
		int64_t offset_ns;
		double reverse;
		const char *text;
	} kinds[] = {
		{37 * S, 0, "37.00 s ahead"},
		{37 * S, 0.5, "TAI"},
		{-37 * S, 0.5, "37.00 s behind"},
		{86400 * S, 0.3, "--offset auto"},
	};
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct scenario s;
		const char *a = scenario_path("one"), *b = scenario_path("two");
		small(&s, a, b);
		s.sim.offset_ns = kinds[i].offset_ns;
		s.sim.reverse = kinds[i].reverse;
		scenario_simulate(&s);
		assert_refused(a, b, &s.match, ENOMSG, kinds[i].text);
		s.match.clock = OW_CLOCK_GIVEN; /* a correction to the wrong side */
		s.match.offset_ns = kinds[i].offset_ns;
		assert_refused(a, b, &s.match, ENOMSG, "another --offset");
		scenario_done(&s);
	}
}

static void files_that_are_no_captures(void **state)
{
	(void)state;
	struct scenario s;
	const char *a = scenario_path("one"), *b = scenario_path("two");
	small(&s, a, b);
	scenario_simulate(&s);
	const char *text = save("text", "This is no capture, but a text that is long enough.\n", 52);
	assert_refused(a, text, &s.match, EINVAL, text);
	assert_refused(text, b, &s.match, EINVAL, text);
	const char *empty = save("empty", "", 0);
	assert_refused(empty, b, &s.match, EINVAL, empty);
	const char *missing = scenario_path("missing");
	assert_refused(a, missing, &s.match, ENOENT, missing);
	static const uint8_t header[24] = {0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, [17] = 0, [18] = 4, [20] = 1};
	const char *none = save("none.pcap", header, sizeof header);
	assert_refused(none, b, &s.match, ENOMSG, "no packets");
	assert_refused(a, none, &s.match, ENOMSG, none);
	const char *cut = save("cut.pcap", header, 10);
	assert_refused(a, cut, &s.match, EINVAL, cut);
	scenario_done(&s);
}

static int stop_after_ten(void *arg, const struct ow_packet_event *event)
{
	(void)event;
	return ++*(unsigned *)arg == 10 ? -ECANCELED : 0;
}

static void a_callback_can_stop_the_run(void **state)
{
	(void)state;
	struct scenario s;
	unsigned calls = 0;
	const char *a = scenario_path("one"), *b = scenario_path("two");
	small(&s, a, b);
	scenario_simulate(&s);
	s.match.on_packet = stop_after_ten;
	s.match.arg = &calls;
	struct ow_match *m = NULL;
	assert_int_equal(ow_match_files(a, b, &s.match, &m, &s.err), -ECANCELED);
	assert_null(m);
	assert_int_equal(calls, 10);
	scenario_done(&s);
}

static void too_many_intervals(void **state)
{
	(void)state;
	struct scenario s;
	const char *a = scenario_path("one"), *b = scenario_path("two");
	small(&s, a, b);
	scenario_simulate(&s);
	s.match.interval_ns = 100;
	assert_refused(a, b, &s.match, ERANGE, "--interval");
	scenario_done(&s);
}

/* What is between: results, but with the right warnings. */
static void warnings(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "negative minimum");
	s.sim.offset_ns = -200000;
	s.sim.reverse = 0.5;
	scenario_run(&s);
	assert_true(scenario_warns(s.report, "impossible"));
	scenario_done(&s);
	scenario_init(&s, "nothing to warn of");
	scenario_run(&s);
	assert_int_equal(s.report->warnings, 0);
	scenario_done(&s);
}

struct shrinking {
	const char *path;
	off_t size;
	bool done;
};

/* Truncates the capture at the first packet. */
static int truncate_once(void *arg, const struct ow_packet_event *event)
{
	struct shrinking *s = arg;
	(void)event;
	if (!s->done)
		assert_int_equal(truncate(s->path, s->size), 0);
	s->done = true;
	return 0;
}

/* Read or mapped, cut between two records or inside of one: what is missing is not taken for the end of the capture. */
static void a_file_that_shrinks_meanwhile(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct scenario s;
		const char *a = scenario_path("shrinking_a"), *b = scenario_path("shrinking_b");
		struct ow_match *m = NULL;
		struct ow_error err;
		if (i == 2)
			ow_mapping_allow();
		small(&s, a, b);
		s.sim.packets = 20000;
		s.sim.side[OW_SIDE_A].snaplen = s.sim.side[OW_SIDE_B].snaplen = 96;
		s.sim.size = (struct ow_sim_size){OW_SIM_SIZE_CONSTANT, 500, 500};
		scenario_simulate(&s);
		struct shrinking shrinking = {.path = b, .size = 24 + (off_t)(16 + 96) * 15000 + i % 2 * 50};
		s.match.threads = 1;
		s.match.on_packet = truncate_once;
		s.match.arg = &shrinking;
		assert_int_equal(ow_match_files(a, b, &s.match, &m, &err), -EIO);
		assert_non_null(strstr(err.text, "was truncated"));
		scenario_done(&s);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_teardown(name, scenario_say)
	const struct CMUnitTest tests[] = {
		CASE(different_traffic),
		CASE(translated_traffic),
		CASE(different_times),
		CASE(clocks_far_apart),
		CASE(files_that_are_no_captures),
		CASE(a_callback_can_stop_the_run),
		CASE(a_file_that_shrinks_meanwhile),
		CASE(too_many_intervals),
		CASE(warnings),
	};
	return cmocka_run_group_tests(tests, scenario_setup, scenario_teardown);
}
