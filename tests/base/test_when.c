/* SPDX-License-Identifier: Apache-2.0 */
/* Times in their usual notations. */
#include "base/when.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#define S INT64_C(1000000000)
/* 2026-11-15 10:00:00 UTC, 11:00 in Berlin */
#define NOW (INT64_C(1794736800) * S)

static void times(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{"now", NOW},
		{"-2h", NOW - 7200 * S},
		{"-1.5d", NOW - 129600 * S},
		{"-250ms", NOW - S / 4},
		{"2026-11-15 11:00", NOW},
		{"2026-11-15T11:00", NOW},
		{"2026-11-15 10:00Z", NOW},
		{"2026-11-15T10:00:00.5Z", NOW + S / 2},
		{"2026-11-15 11:00:07", NOW + 7 * S},
		{"2026-11-15", NOW - 11 * 3600 * S},
		{"2026-07-01", INT64_C(1782856800) * S}, /* summer time */
		{"10:02", NOW - 58 * 60 * S},
		{"11:00", NOW},
		{"11:02", NOW + 120 * S - 86400 * S}, /* not yet: yesterday's */
		{"23:59:59", NOW + 13 * 3600 * S - S - 86400 * S},
		{"09:30Z", NOW - 1800 * S},
		{"1794736800", NOW},
		{"1794736800.25", NOW + S / 4},
		{"1794736800.123456789", NOW + 123456789},
		{"2026-11-15T15:30:00+05:30", NOW},
		{"2026-11-15 05:00:00.5-0500", NOW + S / 2},
		{"2026-11-15T00:15-09:45", NOW},
	};
	static const char *const wrong[] = {"",
	                                    "yesterday",
	                                    "10",
	                                    "10:",
	                                    "10:2x",
	                                    "25:00",
	                                    "10:60",
	                                    "2026-13-01",
	                                    "2026-02-30",
	                                    "2026-11-15 ",
	                                    "2026-11-15 10",
	                                    "2026-11-15x",
	                                    "2026-11-15+05:30",
	                                    "2026-11-15T10:00+5:30",
	                                    "2026-11-15T10:00+05",
	                                    "2026-11-15T10:00+05:99",
	                                    "2026-11-15T10:00+05:30Z",
	                                    "2026-11-15T10:00+24:00",
	                                    "1794736800s",
	                                    "-2",
	                                    "-x",
	                                    "12345",
	                                    "99999999999",
	                                    "+2h",
	                                    "2026-11-15 10:02 CET"};
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct ow_error err = {""};
		int64_t ns = 0;
		if (ow_when_parse(good[i].text, NOW, &ns, &err) < 0)
			fail_msg("%s", err.text);
		if (ns != good[i].ns)
			fail_msg("%s: %lld instead of %lld", good[i].text, (long long)ns, (long long)good[i].ns);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		int64_t ns = 0;
		if (ow_when_parse(wrong[i], NOW, &ns, NULL) != -EINVAL)
			fail_msg("'%s' is %lld", wrong[i], (long long)ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(times)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
