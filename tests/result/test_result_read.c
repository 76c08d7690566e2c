/* SPDX-License-Identifier: Apache-2.0 */
/* Results as lines of JSON, there and back. */
#include "result/result_read.h"
#include "result/result_json.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct ow_interval_result some(void)
{
	struct ow_interval_result result = {.segment = "F>C",
	                                    .class_name = "voice",
	                                    .from = "F",
	                                    .to = "C",
	                                    .interval = 7,
	                                    .start_ns = 1794736920000000000,
	                                    .length_ns = 1000000000,
	                                    .status = OW_RESULT_PARTIAL,
	                                    .cause = "ring",
	                                    .final = true,
	                                    .active = true,
	                                    .sent = 100,
	                                    .received = 97,
	                                    .matched = 96,
	                                    .late = 1,
	                                    .lost = 3,
	                                    .samples = 97,
	                                    .reordered = OW_RESULT_NOT_COUNTED};
	result.mean_ns = (struct ow_value){OW_VALUE_ESTIMATED, 1000, 900, 1100, OW_NO_REASON};
	result.stddev_ns = ow_value_exact(50);
	result.loss_ratio = (struct ow_value){OW_VALUE_ESTIMATED, 0.03, 0.01, 0.08, OW_NO_REASON};
	result.clock_from = (struct ow_clock_state){true, 5000};
	result.clock_to = (struct ow_clock_state){false, OW_CLOCK_UNKNOWN};
	return result;
}

static void there_and_back(void **state)
{
	(void)state;
	struct ow_interval_result wrote = some(), read;
	char *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);
	ow_result_json(out, &wrote);
	fclose(out);
	assert_int_equal(ow_result_json_read(line, size, &read, NULL), 1);
	assert_string_equal(read.segment, "F>C");
	assert_string_equal(read.class_name, "voice");
	assert_string_equal(read.cause, "ring");
	assert_int_equal(read.status, OW_RESULT_PARTIAL);
	assert_true(read.final && read.active && !read.exact);
	assert_int_equal(read.start_ns, wrote.start_ns);
	assert_int_equal(read.sent, 100);
	assert_int_equal(read.lost, 3);
	assert_true(read.mean_ns.status == OW_VALUE_ESTIMATED && read.mean_ns.low == 900 && read.mean_ns.high == 1100);
	assert_int_equal(read.stddev_ns.status, OW_VALUE_EXACT);
	assert_int_equal(read.clock_from.error_ns, 5000);
	assert_int_equal(read.clock_to.error_ns, OW_CLOCK_UNKNOWN);
	free(line);
}

static void others(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		int r;
	} some_lines[] = {
		{"{\"summary\": {}}", 0},
		{"[1]", 0},
		{"3", -EINVAL},
		{"{\"segment\": \"a\", \"start_ns\": 1, \"length_ns\": 0, \"status\": \"measured\"}", -EINVAL},
		{"{\"segment\": \"a\", \"start_ns\": 1.5, \"length_ns\": 1, \"status\": \"measured\"}", -EINVAL},
		{"{\"segment\": \"a\", \"start_ns\": 1, \"length_ns\": 1, \"status\": \"fine\"}", -EINVAL},
		{"{\"segment\": \"a\", \"start_ns\": 1, \"length_ns\": 1, \"status\": \"unknown\"}", 1},
		{"{\"result\": {\"segment\": \"a\", \"start_ns\": 1, \"length_ns\": 1, \"status\": \"unknown\"}}", 1},
		{"{", -EINVAL},
	};
	struct ow_interval_result result;
	struct ow_error err;
	for (size_t i = 0; i < sizeof(some_lines) / sizeof(*some_lines); i++)
		assert_int_equal(ow_result_json_read(some_lines[i].line, strlen(some_lines[i].line), &result, &err),
		                 some_lines[i].r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(others)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
