/* SPDX-License-Identifier: Apache-2.0 */
/* oneway simulate as users run it: files, the truth as JSON, errors and exit codes. The program's path is in ONEWAY. */
#include "capture/file/reader.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../cli/shell.h"

/* Runs "oneway simulate ARGUMENTS" in the folder of the test. */
static int simulate(const char *arguments)
{
	char line[1900];
	snprintf(line, sizeof line, "\"$ONEWAY\" simulate %s", arguments);
	return run(line);
}

static void the_line_of_the_design(void **state)
{
	(void)state;
	assert_int_equal(
		simulate("--packets 10000 --rate 100000 --flows 100 --delay weibull:20us,0.6 --loss 0.05 --seed 3 "
	                 "-a a.pcap -b b.pcap --truth t.json"),
		0);
	assert_string_equal(out, "");
	assert_string_equal(err, "");
	json_error_t error;
	json_t *truth = json_load_file("t.json", 0, &error);
	assert_non_null(truth);
	json_int_t sent, received, matched, lost, extra, seed, records;
	double ratio, mean, median;
	int exact;
	assert_int_equal(json_unpack(truth, "{s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:b,s:n,s:{s:I},s:{s:F,s:{s:F}}}", "sent",
	                             &sent, "received", &received, "matched", &matched, "lost", &lost, "extra", &extra,
	                             "seed", &seed, "loss_ratio", &ratio, "exact", &exact, "reverse", "records", "b",
	                             &records, "delay_ns", "mean", &mean, "quantiles", "0.5", &median),
	                 0);
	assert_int_equal(sent, 10000);
	assert_int_equal(sent, matched + lost);
	assert_int_equal(received, matched + extra);
	assert_int_equal(records, received);
	assert_int_equal(seed, 3);
	assert_true(exact && ratio > 0.038 && ratio < 0.062 && mean > 25000 && mean < 35000 && median > 9000 &&
	            median < 13000);
	json_decref(truth);
}

static void json_on_standard_output_and_formats_by_name(void **state)
{
	(void)state;
	assert_int_equal(simulate("-n 500 --reverse 0.5 --offset 37s --json -a a.pcapng -b b.pcap.gz"), 0);
	json_t *truth = json_loads(out, 0, NULL);
	assert_non_null(truth);
	json_int_t back, offset;
	assert_int_equal(
		json_unpack(truth, "{s:{s:I},s:{s:I}}", "reverse", "sent", &back, "clock", "offset_ns", &offset), 0);
	assert_true(back > 150);
	assert_int_equal(offset, 37000000000);
	json_decref(truth);
	struct ow_reader *reader;
	assert_int_equal(ow_reader_open("a.pcapng", &reader, NULL), 0);
	assert_string_equal(ow_reader_info(reader)->format, "pcapng");
	ow_reader_close(reader);
	assert_int_equal(ow_reader_open("b.pcap.gz", &reader, NULL), 0);
	assert_true(ow_reader_info(reader)->compressed);
	ow_reader_close(reader);
}

static void wrong_usage_names_the_flag(void **state)
{
	(void)state;
	static const char *const wrong[][2] = {
		{"-b b.pcap", "-a"},
		{"-a a.pcap", "-b"},
		{"-a a.pcap -b b.pcap --loss 2", "--loss"},
		{"-a a.pcap -b b.pcap --delay 5", "--delay"},
		{"-a a.pcap -b b.pcap --delay weibull:20,0.6", "--delay"},
		{"-a a.pcap -b b.pcap --offset 37", "--offset"},
		{"-a a.pcap -b b.pcap --losss 0.1", "did you mean --loss"},
		{"-a a.pcap -b a.pcap", "same file"},
		{"-a a.pcap -b b.pcap --truth ./b.pcap extra", "extra"},
		{"-a a.pcap -b b.pcap --truth b.pcap", "--truth"},
		{"-a a.pcap -b b.pcap --traffic ./a.pcap", "--traffic"},
		{"-a a.pcap -b b.pcap --b-link raw --b-encap vlan:1", "--b-encap"},
		{"-a a.pcap -b b.pcap --reorder-tuple 1,2,3,4", "--interval"},
		{"-a a.pcap -b b.pcap --reorder-tuple 1,2,3,-4 --interval 1s", "--reorder-tuple"},
		{"-a a.pcap -b b.pcap --rate 0", "--rate"},
		{"-a a.pcap -b b.pcap --drift 5", "--drift"},
		{"-a a.pcap -b b.pcap --superframes c", "--superframes"},
		{"-a a.pcap -b b.pcap --dscp 64", "--dscp"},
	};
	assert_int_equal(simulate("-n 10 -a a.pcap -b b.pcap"), 0);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		if (simulate(wrong[i][0]) != 2 || !strstr(err, wrong[i][1]))
			fail_msg("%s: %s", wrong[i][0], err);
		assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
	}
}

static void failures_exit_with_1(void **state)
{
	(void)state;
	assert_int_equal(simulate("-n 10 -a no/such/a.pcap -b b.pcap"), 1);
	assert_non_null(strstr(err, "no/such/a.pcap"));
	assert_int_equal(simulate("-n 10 -a a.pcap -b b.pcap --truth no/such/t.json"), 1);
	assert_non_null(strstr(err, "no/such/t.json"));
	assert_int_equal(simulate("-n 1000 -a /dev/full -b b.pcap"), 1);
	assert_non_null(strstr(err, "/dev/full"));
	assert_int_equal(simulate("--traffic no-such.pcap -a a.pcap -b b.pcap"), 1);
	assert_non_null(strstr(err, "no-such.pcap"));
}

static void help_and_version(void **state)
{
	(void)state;
	assert_int_equal(simulate("--help"), 0);
	assert_non_null(strstr(out, "examples:"));
	assert_int_equal(simulate("--version"), 0);
	assert_int_equal(strncmp(out, "oneway ", 7), 0);
}

static int enter(void **state)
{
	static char folder[] = "/tmp/oneway-simulate-XXXXXX";
	*state = folder;
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state)
{
	char line[100];
	snprintf(line, sizeof line, "rm -r '%s'", (const char *)*state);
	return chdir("/") == 0 && system(line) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_of_the_design),
		cmocka_unit_test(json_on_standard_output_and_formats_by_name),
		cmocka_unit_test(wrong_usage_names_the_flag),
		cmocka_unit_test(failures_exit_with_1),
		cmocka_unit_test(help_and_version),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
