/* SPDX-License-Identifier: Apache-2.0 */
/* Options as programs of any version give them; what is out of range is refused before a file is opened. */
#include "match/match_options.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void refuse(struct ow_match_options options, int code, const char *text)
{
	struct ow_match *match = NULL;
	struct ow_error err = {""};
	assert_int_equal(ow_match_files("/nonexistent/a", "/nonexistent/b", &options, &match, &err), -code);
	assert_null(match);
	assert_non_null(strstr(err.text, text));
}

#define REFUSE(text, assignment)           \
	do {                               \
		struct ow_match_options o; \
		ow_match_defaults(&o);     \
		o.assignment;              \
		refuse(o, EINVAL, text);   \
	} while (0)

static void test_ranges(void **state)
{
	(void)state;
	REFUSE("size is 0", size = 0);
	REFUSE("size is 8", size = 8);
	REFUSE("level", level = 4);
	REFUSE("inner", inner = 3);
	REFUSE("segments", segments = 3);
	REFUSE("clock", clock = 3);
	REFUSE("offset_ns", offset_ns = INT64_MIN);
	REFUSE("offset_ns", offset_ns = INT64_MAX);
	REFUSE("window_ns", window_ns = -1);
	REFUSE("interval_ns", interval_ns = -1);
	REFUSE("dedup_ns", dedup_ns = INT64_MAX);
	REFUSE("threads", threads = 4);
}

static void test_defaults(void **state)
{
	(void)state;
	struct ow_match_options options, taken;
	struct ow_match *match = NULL;
	struct ow_error err;
	memset(&options, 0xff, sizeof options);
	ow_match_defaults(&options);
	assert_int_equal(options.size, sizeof options);
	assert_int_equal(ow_match_options_take(&options, &taken, &err), 0);
	assert_memory_equal(&options, &taken, sizeof taken);
	/* No options are the defaults. */
	memset(&taken, 0xff, sizeof taken);
	assert_int_equal(ow_match_options_take(NULL, &taken, &err), 0);
	assert_memory_equal(&options, &taken, sizeof taken);
	assert_int_equal(ow_match_files("/nonexistent/a", "/nonexistent/b", NULL, &match, &err), -ENOENT);
}

/* A program that was compiled with a later header. */
static void test_newer_program(void **state)
{
	(void)state;
	struct {
		struct ow_match_options known;
		int64_t member;
	} newer;
	struct ow_match_options taken;
	struct ow_error err;
	ow_match_options_init(&newer.known, sizeof newer);
	newer.known.window_ns = 5;
	assert_int_equal(ow_match_options_take(&newer.known, &taken, &err), 0);
	assert_int_equal(taken.window_ns, 5);
	newer.member = 1;
	assert_int_equal(ow_match_options_take(&newer.known, &taken, &err), -E2BIG);
	assert_non_null(strstr(err.text, "ow_match_options"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_newer_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
