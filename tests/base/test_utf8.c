/* SPDX-License-Identifier: Apache-2.0 */
/* Which characters from outside are printed, and that no other bytes get through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/random.h"
#include "base/utf8.h"
#include <oneway/error.h>
#include <errno.h>
#include <string.h>

static void test_clean(void **state)
{
	(void)state;
	static const struct {
		const char *text, *clean;
	} pair[] = {
		{"", ""},
		{"plain text, 100 %", "plain text, 100 %"},
		{"Z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x98\x80", "Z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"a\nb\rc\td\x1b[2Je\x7f", "a?b?c?d?[2Je?"},
		{"a\xc2\x85"
	         "b\xc2\x9b"
	         "c",
	         "a?b?c"},                                                                 /* U+0085, U+009B */
		{"x\xe2\x80\xa8y\xe2\x80\xa9z", "x?y?z"},                                  /* U+2028, U+2029 */
		{"\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae", "?????"}, /* U+202A to E */
		{"\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "????"},              /* U+2066 to 9 */
		{"pa\xe2\x80\x8bris\xef\xbb\xbf\xc2\xad", "pa?ris??"},                     /* U+200B, U+FEFF, U+00AD */
		{"\xf3\xa0\x81\x81", "?"},                                                 /* U+E0041, a tag */
		{"\xff\xc0\xaf\xed\xa0\x80\xf5", "???????"},                               /* no UTF-8 */
		{"cut\xe2\x82", "cut??"},
	};
	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
		char text[64];
		snprintf(text, sizeof text, "%s", pair[i].text);
		ow_utf8_clean(text);
		assert_string_equal(text, pair[i].clean);
	}
}

/* Every line for a person is made by ow_error_set. */
static void test_errors(void **state)
{
	(void)state;
	struct ow_error err;
	assert_int_equal(ow_error_set(&err, EINVAL, "%s: no such file", "a\nb\xe2\x80\xae.pcap"), -EINVAL);
	assert_string_equal(err.text, "a?b?.pcap: no such file");
}

static void test_any_bytes(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 5);
	for (int run = 0; run < 20000; run++) {
		char text[24], clean[24];
		uint32_t code, again;
		size_t length = ow_random_below(&random, sizeof text);
		for (size_t i = 0; i < length; i++)
			text[i] = (char)(ow_random_below(&random, 3) ? 0x80 + ow_random_below(&random, 128)
			                                             : 1 + ow_random_below(&random, 255));
		text[length] = 0;
		memcpy(clean, text, sizeof clean);
		ow_utf8_clean(clean);
		assert_true(strlen(clean) <= length);
		for (const char *p = clean; *p; p += ow_utf8_next(p, &code)) {
			if (!ow_utf8_next(p, &code) || !ow_utf8_printable(code))
				fail_msg("seed 5, run %d: byte %02x", run, (unsigned char)*p);
		}
		/* What is cut off at any byte is not read beyond. */
		for (size_t left = 0; left <= length; left++) {
			size_t bytes = ow_utf8_read(text, left, &again);
			assert_true(bytes <= left);
		}
		memcpy(text, clean, sizeof text);
		ow_utf8_clean(text);
		assert_string_equal(text, clean);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_any_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
