/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that do not fit a terminal are broken at spaces; text to be copied is not broken. */
#include "cli/wrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void assert_lines(const char *line, size_t column, size_t width, const char *lines)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	ow_wrap_line(out, line, strlen(line), column, width);
	fclose(out);
	assert_string_equal(text, lines);
	free(text);
}

static void test_sentences(void **state)
{
	(void)state;
	assert_lines("", 0, 20, "");
	assert_lines("it fits", 0, 7, "it fits");
	assert_lines("it does not fit here", 0, 11, "it does not\nfit here");
	assert_lines("it does not fit here", 6, 11, "it\ndoes not\nfit here");
	assert_lines("longer-than-the-line, this word", 0, 10, "longer-than-the-line,\nthis word");
	assert_lines("after 12.25 ms or 5 % of it", 0, 10, "after\n12.25 ms\nor 5 % of\nit");
	assert_lines("spaces at the end        ", 0, 17, "spaces at the end");
}

static void test_hang(void **state)
{
	(void)state;
	assert_lines("  a    what a is, at length", 0, 20, "  a    what a is, at\n       length");
	assert_lines("    four are kept", 0, 13, "    four are\n    kept");
	assert_lines("\033[31m  lost  12  not seen\033[0m", 0, 16, "\033[31m  lost  12  not\n        seen\033[0m");
	/* Below text that begins in the right half there is too little room. */
	assert_lines("  a               text behind", 0, 24, "  a               text\n  behind");
}

static void test_whole(void **state)
{
	(void)state;
	static const char *const whole[] = {
		"{\"tool\": \"oneway\", \"warnings\": [\"a b\"]}",
		"    \"a sentence in JSON\"",
		"         fix: ethtool -K eth0 lro off",
		"  oneway match --offset auto a.pcap b.pcap",
	};
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		assert_lines(whole[i], 0, 12, whole[i]);
	assert_lines("oneway match: no such file", 0, 13, "oneway match:\nno such file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
