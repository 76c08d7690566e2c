/* SPDX-License-Identifier: Apache-2.0 */
/* The text as users see it: a change of layout must be intended and shows up here. */
#include "sample.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static const char at_80_columns[] = "A  captures/upstream.pcap\n"
				    "   1,000,000 packets  10 s  100.00 kpps  EN10MB  1 ns resolution\n"
				    "B  captures/downstream.pcap\n"
				    "     998,912 packets  10 s   99.89 kpps  RAW     1 us resolution\n"
				    "\n"
				    "identity   ip: what routers leave unchanged, from the IP header on; superframes\n"
				    "           cut into segments\n"
				    "clocks     B set 37 s earlier +- 120 us, estimated from both directions\n"
				    "waiting    1 s, then a packet counts as lost\n"
				    "\n"
				    "A to B\n"
				    "  sent        1,000,000\n"
				    "  received      998,915\n"
				    "  lost            1,088  0.109 %, not seen within 1 s\n"
				    "  duplicates          1  further copies of a packet\n"
				    "  extra               3  not in A's capture, with duplicates\n"
				    "  ambiguous          12  0.00120 %, delay not known\n"
				    "  reordered           5  0.000501 %\n"
				    "  delay of 998,900 packets\n"
				    "    min        4.410 us    p90       4.600 us\n"
				    "    median     4.545 us    p95       4.610 us\n"
				    "    mean       4.546 us    p99       4.650 us\n"
				    "    stddev     40.10 ns    p99.9     4.669 us\n"
				    "    max        4.670 us\n"
				    "    jitter        65 ns    P95-P50 +- 3 ns\n"
				    "\n"
				    "B to A\n"
				    "  sent        5\n"
				    "  received    5\n"
				    "  lost        0  0 %\n"
				    "  duplicates  0\n"
				    "  extra       0\n"
				    "  ambiguous   5  100 %, delay not known\n"
				    "  reordered   0\n"
				    "  delay       no sample: no delay is known\n"
				    "\n"
				    "A to B, interval by interval from 2023-11-14 (UTC)\n"
				    "  start               sent      lost      loss     median        p99        max\n"
				    "  22:13:20.000   1,000,000     1,088   0.109 %   4.545 us   4.650 us   4.670 us\n"
				    "  22:13:21.000   1,000,000     1,088   0.109 %   4.545 us   4.650 us   4.670 us\n"
				    "\n"
				    "B to A, interval by interval from 2023-11-14 (UTC)\n"
				    "  start               sent      lost      loss     median        p99        max\n"
				    "  22:13:20.000           5         0       0 %          -          -          -\n"
				    "  22:13:21.000           5         0       0 %          -          -          -\n"
				    "\n"
				    "not counted\n"
				    "  outside       12 at A, 0 at B: while the other capture showed nothing\n"
				    "  unclassified  0 at A, 3 at B: in flows that the other capture never saw\n"
				    "  skipped       4 at A, 1,234 at B: not comparable at this level, or copies\n"
				    "\n"
				    "warning: captures/downstream.pcap ends in the middle of a record at offset\n"
				    "         12345678: the result covers what is before it\n"
				    "warning: two words\n"
				    "";

static const char at_60_columns[] = "A  captures/upstream.pcap\n"
				    "   1,000,000 packets  10 s  100.00 kpps  EN10MB  1 ns\n"
				    "B  captures/downstream.pcap\n"
				    "     998,912 packets  10 s   99.89 kpps  RAW     1 us\n"
				    "\n"
				    "identity   ip: what routers leave unchanged, from the IP\n"
				    "           header on; superframes cut into segments\n"
				    "clocks     B set 37 s earlier +- 120 us, estimated from both\n"
				    "           directions\n"
				    "waiting    1 s, then a packet counts as lost\n"
				    "\n"
				    "A to B\n"
				    "  sent        1,000,000\n"
				    "  received      998,915\n"
				    "  lost            1,088  0.109 %, not seen within 1 s\n"
				    "  duplicates          1  further copies of a packet\n"
				    "  extra               3  not in A's capture, with duplicates\n"
				    "  ambiguous          12  0.00120 %, delay not known\n"
				    "  reordered           5  0.000501 %\n"
				    "  delay of 998,900 packets\n"
				    "    min        4.410 us    p90       4.600 us\n"
				    "    median     4.545 us    p95       4.610 us\n"
				    "    mean       4.546 us    p99       4.650 us\n"
				    "    stddev     40.10 ns    p99.9     4.669 us\n"
				    "    max        4.670 us\n"
				    "    jitter        65 ns    P95-P50 +- 3 ns\n"
				    "\n"
				    "B to A\n"
				    "  sent        5\n"
				    "  received    5\n"
				    "  lost        0  0 %\n"
				    "  duplicates  0\n"
				    "  extra       0\n"
				    "  ambiguous   5  100 %, delay not known\n"
				    "  reordered   0\n"
				    "  delay       no sample: no delay is known\n"
				    "\n"
				    "A to B, interval by interval from 2023-11-14 (UTC)\n"
				    "  start               sent      lost     median        p99\n"
				    "  22:13:20.000   1,000,000     1,088   4.545 us   4.650 us\n"
				    "  22:13:21.000   1,000,000     1,088   4.545 us   4.650 us\n"
				    "\n"
				    "B to A, interval by interval from 2023-11-14 (UTC)\n"
				    "  start               sent      lost     median        p99\n"
				    "  22:13:20.000           5         0          -          -\n"
				    "  22:13:21.000           5         0          -          -\n"
				    "\n"
				    "not counted\n"
				    "  outside       12 at A, 0 at B: while the other capture\n"
				    "                showed nothing\n"
				    "  unclassified  0 at A, 3 at B: in flows that the other\n"
				    "                capture never saw\n"
				    "  skipped       4 at A, 1,234 at B: not comparable at this\n"
				    "                level, or copies\n"
				    "\n"
				    "warning: captures/downstream.pcap ends in the middle of a\n"
				    "         record at offset 12345678: the result covers what\n"
				    "         is before it\n"
				    "warning: two words\n"
				    "";

static char *render(const struct ow_match_report *report, int width, bool colour)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	ow_report_match_text(out, report, NULL, width, colour);
	fclose(out);
	assert_int_equal(strlen(text), length);
	return text;
}

static void longest_line(const char *text, size_t width)
{
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= width);
}

static void golden(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	char *wide = render(&report, 80, false), *narrow = render(&report, 60, false),
	     *tiny = render(&report, 40, false);
	assert_string_equal(wide, at_80_columns);
	assert_string_equal(narrow, at_60_columns);
	assert_non_null(strstr(tiny, "    min        4.410 us\n    p90        4.600 us\n"));
	assert_non_null(strstr(tiny, "  start             lost        p99\n"
	                             "  22:13:20.000     1,088   4.650 us\n"));
	assert_non_null(strstr(tiny, "identity   ip: what routers leave\n           unchanged, from the IP header\n"));
	longest_line(wide, 80);
	longest_line(narrow, 60);
	free(wide);
	free(narrow);
	free(tiny);
}

/* Intervals without packets in a row are one line; of several days, the rows have dates; times are local. */
static void many_intervals(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	struct ow_interval interval[8] = {0};
	for (int i = 0; i < 8; i++)
		interval[i].start_ns = INT64_C(1700000000000000000) + i * INT64_C(3600000000000);
	interval[0] = sample_interval[0];
	interval[4].direction[OW_A_TO_B] = interval[7].direction[OW_A_TO_B] = sample_result;
	report.interval = interval;
	report.intervals = 8;
	setenv("TZ", "CET-1", 1);
	tzset();
	char *text = render(&report, 100, false);
	setenv("TZ", "UTC0", 1);
	tzset();
	assert_non_null(strstr(text, "A to B, interval by interval from 2023-11-14 (CET)\n"));
	assert_non_null(strstr(text, "\n  2023-11-14 23:13:20.000   1,000,000 "));
	assert_non_null(strstr(text, "\n  2023-11-15 00:13:20.000 3 intervals without packets\n"
	                             "  2023-11-15 03:13:20.000   1,000,000 "));
	assert_non_null(strstr(text, "\n  2023-11-15 04:13:20.000           0 "));
	assert_non_null(strstr(text, "\n  2023-11-15 05:13:20.000           0 "));
	assert_non_null(strstr(text, "\n  2023-11-15 06:13:20.000   1,000,000 "));
	free(text);
}

static void asked_percentiles(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	report.percentiles = 2;
	report.percentile[OW_A_TO_B][0] = (struct ow_percentile){.percent = 75, .delay_ns = 4570};
	report.percentile[OW_A_TO_B][1] = (struct ow_percentile){.percent = 99.99, .delay_ns = 4670};
	char *text = render(&report, 80, false);
	assert_non_null(strstr(text, "    min        4.410 us    p75       4.570 us\n"
	                             "    median     4.545 us    p99.99    4.670 us\n"
	                             "    mean       4.546 us\n"));
	assert_null(strstr(text, "p90"));
	free(text);
}

/* In a file or a pipe each warning is one line. */
static void warnings_in_a_file(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	char *text = render(&report, 0, false);
	size_t lines = 0, at = 0, end = strlen(text);
	for (; at < end; at += strcspn(text + at, "\n") + 1) {
		bool warning = strncmp(text + at, "warning: ", 9) == 0;
		assert_true(warning || !lines);
		lines += warning;
	}
	assert_int_equal(lines, report.warnings);
	free(text);
}

/* Colour adds escapes and nothing else. */
static void colour_only_adds(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	char *text = render(&report, 80, true), *to = text;
	assert_non_null(strstr(text, "\033[31m  lost"));
	assert_non_null(strstr(text, "\033[31mwarning"));
	for (const char *from = text; *from; from++) {
		if (*from == '\033')
			from += strcspn(from, "m");
		else
			*to++ = *from;
	}
	*to = 0;
	assert_string_equal(text, at_80_columns);
	free(text);
}

/* One-way traffic: the direction without packets is one line; without any packets, the zeros are shown. */
static void one_direction(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	report.direction[OW_A_TO_B] = (struct ow_result){.exact = true};
	char *text = render(&report, 80, false);
	assert_non_null(strstr(text, "\nno packets from A to B, but see \"not counted\"\n\nB to A\n  sent        5\n"));
	assert_null(strstr(text, "\nA to B"));
	free(text);
	report.outside_overlap[OW_SIDE_A] = 0;
	text = render(&report, 80, false);
	assert_non_null(strstr(text, "\nno packets from A to B\n\nB to A\n  sent        5\n"));
	free(text);
	report.has_direction[OW_B_TO_A] = false;
	text = render(&report, 80, false);
	assert_non_null(strstr(text, "\nA to B\n  sent        0\n"));
	assert_null(strstr(text, "no packets"));
	free(text);
}

static void clock_drift(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	report.drift_ppb = -5020;
	char *text = render(&report, 100, false);
	assert_non_null(strstr(text,
	                       "clocks     B set 37 s earlier +- 120 us, its drift of -5.02 ppm removed, estimated "
	                       "from both"));
	free(text);
	report.clock = OW_CLOCK_GIVEN;
	report.drift_ppb = 0;
	text = render(&report, 100, false);
	assert_non_null(strstr(text, "clocks     B set 37 s earlier, as given\n"));
	free(text);
	report.clock = OW_CLOCK_NONE;
	text = render(&report, 100, false);
	assert_non_null(strstr(text, "clocks     both trusted as they are\n"));
	free(text);
}

/* What is zero or missing keeps quiet. */
static void plain_result(void **state)
{
	(void)state;
	struct ow_match_report report = {
		.capture = {{"a\033[2J.pcap", 1, 5, 5, "EN10MB", 1}, {"b.pcap", 0, 0, 0, "RAW", 1000}},
		.level = OW_LEVEL_NAT,
		.inner = true,
		.ip_id = true,
		.tcp_numbers = true,
		.tcp_options = true,
		.clock = OW_CLOCK_ESTIMATED,
		.offset_ns = 1500,
		.offset_low_ns = 1500,
		.offset_high_ns = INT64_MAX,
		.offset_error_ns = -1,
		.window_ns = 250000000,
		.has_direction = {true, false},
		.direction = {{.exact = true}},
	};
	char *text = render(&report, 80, false);
	assert_string_equal(text, "A  a?[2J.pcap\n"
	                          "   1 packet   0 ns  - pps  EN10MB  1 ns resolution\n"
	                          "B  b.pcap\n"
	                          "   0 packets  0 ns  - pps  RAW     1 us resolution\n"
	                          "\n"
	                          "identity   nat: as ip, without addresses and ports; inside tunnels\n"
	                          "clocks     B set 1.5 us later, so that the minimum delay is 0: only variation\n"
	                          "           counts\n"
	                          "waiting    250 ms, then a packet counts as lost\n"
	                          "\n"
	                          "A to B\n"
	                          "  sent        0\n"
	                          "  received    0\n"
	                          "  lost        0\n"
	                          "  duplicates  0\n"
	                          "  extra       0\n"
	                          "  ambiguous   0\n"
	                          "  reordered   0\n"
	                          "  delay       no sample\n");
	free(text);
}

int main(void)
{
	setenv("TZ", "UTC0", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(many_intervals),
		cmocka_unit_test(asked_percentiles),
		cmocka_unit_test(warnings_in_a_file),
		cmocka_unit_test(colour_only_adds),
		cmocka_unit_test(one_direction),
		cmocka_unit_test(clock_drift),
		cmocka_unit_test(plain_result),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
