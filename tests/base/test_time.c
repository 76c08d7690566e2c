/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void parses_units(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{"1s", 1000000000}, {"250ms", 250000000},   {"-37s", -37000000000},
		{"1.5us", 1500},    {"10 ns", 10},          {"2d", 172800000000000},
		{"0", 0},           {"5min", 300000000000}, {"3h", 10800000000000},
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		int64_t ns = -1;
		assert_int_equal(ow_duration_parse(good[i].text, &ns, NULL), 0);
		assert_int_equal(ns, good[i].ns);
	}
}

static void refuses_nonsense(void **state)
{
	(void)state;
	static const char *const bad[] = {"",    "s",      "1",     "1 parsec", "nan",
	                                  "inf", "1e300s", "5 s x", "0x",       "200000000d"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int64_t ns = 42;
		struct ow_error err = {""};
		assert_true(ow_duration_parse(bad[i], &ns, &err) < 0);
		assert_int_equal(ns, 42);
		assert_true(strlen(err.text) > 0);
	}
}

static void prints_what_people_read(void **state)
{
	(void)state;
	static const struct {
		double ns;
		const char *text;
	} cases[] = {
		{0, "0 ns"},           {950, "950 ns"},      {4410, "4.410 us"},  {-37e9, "-37 s"},
		{1234567, "1.235 ms"}, {999.99, "1.000 us"}, {12345, "12.35 us"}, {123456, "123.5 us"},
		{4546.3, "4.546 us"},  {0.25, "0.250 ns"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[OW_DURATION_TEXT];
		ow_duration_text(cases[i].ns, text);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_units),
		cmocka_unit_test(refuses_nonsense),
		cmocka_unit_test(prints_what_people_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
