/* SPDX-License-Identifier: Apache-2.0 */
/* A negative delay is explained, and so is a clock error beyond the delay; otherwise there is no text. */
#include "estimate/clock_words.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void says_what_it_means(void **state)
{
	(void)state;
	static const struct {
		double least, mean, error;
		const char *behind, *beyond, *negative;
	} cases[] = {
		{40e3, 50e3, 10e3, "B", "", ""},
		{40e3, 50e3, NAN, "B", "", ""},
		{NAN, NAN, 1e6, "B", "", ""},
		{0, 0, 0, NULL, "", ""},
		{40e3, 50e3, 300e3, "B",
	         "clock error exceeds the delay: the clocks may be off by 300 us, and the delay by as much", ""},
		{-2e6, -1e6, 10e3, "paris", "",
	         "negative delay: the clocks are apart by at least 2 ms (paris is behind), but their error bound is 10 "
	         "us "
	         "(oneway doctor)"},
		{-2e6, -1e6, NAN, NULL, "",
	         "negative delay: the clocks are apart by at least 2 ms; their error is not known (oneway doctor)"},
		{-5e3, 20e3, 0, NULL, "",
	         "negative delay: the clocks are apart by at least 5 us, or the sender's stamps are late (oneway "
	         "doctor)"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_clock_words words;
		ow_clock_words(cases[i].least, cases[i].mean, cases[i].error, cases[i].behind, &words);
		assert_string_equal(words.beyond, cases[i].beyond);
		assert_string_equal(words.negative, cases[i].negative);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(says_what_it_means)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
