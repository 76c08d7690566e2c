/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, times and names as text; data from a file or a peer cannot control the terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "base/utf8.h"
#include "base/format.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_numbers(void **state)
{
	(void)state;
	char text[OW_FORMAT];
	assert_string_equal(ow_format_count(0, text), "0");
	assert_string_equal(ow_format_count(999, text), "999");
	assert_string_equal(ow_format_count(1000, text), "1,000");
	assert_string_equal(ow_format_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
	assert_string_equal(ow_format_short(12345, 6, text), "12,345");
	assert_string_equal(ow_format_short(12345, 5, text), "12345");
	assert_string_equal(ow_format_short(1234567, 6, text), "1.23M");
	assert_string_equal(ow_format_short(999949, 5, text), "1.00M");
	assert_string_equal(ow_format_short(UINT64_MAX, 5, text), "18.4E");
	assert_string_equal(ow_format_share(1, 3, text), "33.3 %");
	assert_string_equal(ow_format_share(0, 3, text), "0 %");
	assert_string_equal(ow_format_share(3, 3, text), "100 %");
	assert_string_equal(ow_format_share(1, 1000000000, text), "0.000000100 %");
	assert_string_equal(ow_format_rate(0, "pps", text), "0 pps");
	assert_string_equal(ow_format_rate(999.94, "pps", text), "999.9 pps");
	assert_string_equal(ow_format_rate(999.96, "pps", text), "1.000 kpps");
}

/* At most six columns; 0 % is no loss at all, and 100 % is all. */
static void test_percent(void **state)
{
	(void)state;
	char text[OW_FORMAT];
	assert_string_equal(ow_format_percent(0, text), "0%");
	assert_string_equal(ow_format_percent(1, text), "100%");
	assert_string_equal(ow_format_percent(1e-9, text), "<.001%");
	assert_string_equal(ow_format_percent(0.99999, text), ">99.9%");
	for (double ratio = 1e-7; ratio < 1; ratio *= 1.01) {
		size_t length = strlen(ow_format_percent(ratio, text));
		if (length > 6)
			fail_msg("%g: %s", ratio, text);
		assert_string_not_equal(text, "100%");
		assert_string_not_equal(text, "0%");
	}
}

static void test_times(void **state)
{
	(void)state;
	char text[OW_FORMAT];
	assert_string_equal(ow_format_time(INT64_C(1700000000123999999), "%F %T", text), "2023-11-14 22:13:20");
	assert_string_equal(ow_format_time(INT64_C(1700000000123999999), "%H:%M:%S", text), "22:13:20.123");
	assert_string_equal(ow_format_time(-1, "%H:%M:%S", text), "23:59:59.999");
	/* Any time has a text that fits. */
	assert_true(strlen(ow_format_time(INT64_MIN, "%F %H:%M:%S", text)) < OW_FORMAT);
	assert_true(strlen(ow_format_local(INT64_MAX, "%F %H:%M:%S %Z", text)) < OW_FORMAT);
}

static void test_clean(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool ascii;
		const char *clean;
		size_t columns;
	} row[] = {
		{"eth0", false, "eth0", 4},
		{"\033[31mred\007", false, "?[31mred?", 9},
		{"a\nb\tc\x7f", false, "a?b?c?", 6},
		{"caf\xc3\xa9", false, "caf\xc3\xa9", 4},
		{"caf\xc3\xa9", true, "caf?", 4},
		{"\xc2\x9b"
	         "31m",
	         false, "?31m", 4},                            /* CSI of ISO 8859 */
		{"\xc0\xaf \xed\xa0\x80", false, "?? ???", 6}, /* overlong, surrogate */
		{"\xf4\x90\x80\x80", false, "????", 4},        /* beyond U+10FFFF */
		{"cut \xe2\x82", false, "cut ??", 6},
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char clean[40];
		assert_int_equal(ow_format_clean(row[i].text, row[i].ascii, clean, sizeof clean), row[i].columns);
		assert_string_equal(clean, row[i].clean);
		assert_int_equal(ow_format_columns(clean), row[i].columns);
	}
	char small[4];
	assert_int_equal(ow_format_clean("ab\xc3\xa9", false, small, sizeof small), 2);
	assert_string_equal(small, "ab"); /* no half of a character */
}

/* Bytes of any kind: what comes out is printable UTF-8 of the columns that are told, and fits when it is cut. */
static void test_any_bytes(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 11);
	for (int run = 0; run < 20000; run++) {
		char text[24], clean[24];
		size_t length = ow_random_below(&random, sizeof text);
		for (size_t i = 0; i < length; i++)
			text[i] = (char)(1 + ow_random_below(&random, 255));
		text[length] = 0;
		size_t columns = ow_format_clean(text, false, clean, sizeof clean);
		assert_int_equal(ow_format_columns(clean), columns);
		size_t most = ow_random_below(&random, 12);
		ow_format_cut(clean, most);
		assert_true(ow_format_columns(clean) <= most);
		if (columns >= most)
			assert_int_equal(ow_format_columns(clean), most);
		uint32_t code;
		for (const char *p = clean; *p; p += ow_utf8_next(p, &code)) {
			if (!ow_utf8_next(p, &code) || !ow_utf8_printable(code))
				fail_msg("seed 11, run %d: byte %02x", run, (unsigned char)*p);
		}
	}
}

static const char *printed(void (*print)(FILE *out))
{
	static char *text;
	size_t size;
	free(text);
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	print(out);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* For machines: the fewest digits that read back as the same number. */
static void test_machine_numbers(void **state)
{
	(void)state;
	char text[OW_FORMAT];
	assert_string_equal(ow_format_number(0.1, text), "0.1");
	assert_string_equal(ow_format_number(-0.0, text), "0");
	assert_string_equal(ow_format_number(123456789012345678.0, text), "1.2345678901234568e+17");
	assert_string_equal(ow_format_number(-2.5e-300, text), "-2.5e-300");
	assert_string_equal(ow_format_digits(2.0 / 3, 4, text), "0.6667");
	assert_string_equal(ow_format_digits(0.1, 17, text), "0.10000000000000001");
	struct ow_random random;
	ow_random_seed(&random, 15);
	for (int i = 0; i < 20000; i++) {
		double value = ldexp(ow_random_unit(&random) - 0.5, (int)ow_random_below(&random, 2000) - 1000);
		assert_true(strtod(ow_format_number(value, text), NULL) == value);
	}
}

static void some_csv_numbers(FILE *out)
{
	const double number[] = {1.5, NAN, INFINITY, -0.0};
	for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
		ow_format_csv_number(out, number[i]);
		fputc(';', out);
	}
}

static void some_csv(FILE *out)
{
	static const char *const field[] = {"plain", NULL, "a,b", "say \"x\"", "two\nlines", ""};
	for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
		ow_format_csv(out, field[i]);
		fputc(';', out);
	}
}

static void some_lines(FILE *out)
{
	ow_format_wrap(out, "one two three /a/path/that/is/longer/than/a/line four\tfive", 4, 16);
	ow_format_wrap(out, "took 12.5 ms or 30 \xc2\xb5s, \033[1mbold words\033[0m", 2, 12);
}

static void test_output(void **state)
{
	(void)state;
	assert_string_equal(printed(some_csv), "plain;;\"a,b\";\"say \"\"x\"\"\";\"two\nlines\";;");
	assert_string_equal(printed(some_csv_numbers), "1.5;;;0;");
	assert_string_equal(printed(some_lines), "one two\n    three\n    /a/path/that/is/longer/than/a/line\n"
	                                         "    four?five\n"
	                                         "took\n  12.5 ms or\n  30 \xc2\xb5s,\n  ?[1mbold words?[0m\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),         cmocka_unit_test(test_percent),   cmocka_unit_test(test_times),
		cmocka_unit_test(test_clean),           cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_output),
		cmocka_unit_test(test_machine_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
