/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of the clock: lines of files, and what is said without chronyd. */
#include "doctor/host_facts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>
#include <cmocka.h>

static void first_line_without_blanks(void **state)
{
	(void)state;
	static const struct {
		const char *text, *line;
	} cases[] = {
		{"tsc\n", "tsc"},     {"tsc hpet acpi_pm \n", "tsc hpet acpi_pm"},
		{"a\nb\n", "a"},      {"", ""},
		{"\n", ""},           {" \t\n", ""},
		{"no end", "no end"}, {"0123456789", "0123456"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char path[] = "/tmp/oneway-facts-XXXXXX", line[8 + 16];
		size_t length = strlen(cases[i].text), room = cases[i].text[0] == '0' ? 8 : sizeof line;
		int fd = mkstemp(path);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, cases[i].text, length), length);
		close(fd);
		assert_int_equal(ow_facts_line(path, line, room), 0);
		assert_string_equal(line, cases[i].line);
		unlink(path);
		assert_int_equal(ow_facts_line(path, line, room), -ENOENT);
	}
	char line[8];
	assert_int_equal(ow_facts_line("/tmp", line, sizeof line), -EISDIR);
}

/* Nobody answers at port 9 (discard) of this host: the kernel alone is asked. */
static void without_chronyd(void **state)
{
	(void)state;
	struct ow_clock_facts facts;
	struct timex timex = {0};
	int r = adjtimex(&timex), code = r < 0 ? errno : 0;
	ow_facts_clock(9, &facts);
	assert_false(facts.chrony);
	assert_int_equal(facts.error, code);
	if (facts.error)
		return;
	assert_true(facts.leap >= -1 && facts.leap <= 1);
	assert_true(facts.rate_ppm > -200000 && facts.rate_ppm < 200000);
	assert_int_equal(facts.tai_s, timex.tai);
	/* The source in use is one of those that there are. */
	if (facts.source[0] && facts.alternatives[0])
		assert_non_null(strstr(facts.alternatives, facts.source));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_line_without_blanks),
		cmocka_unit_test(without_chronyd),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
