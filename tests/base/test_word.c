/* SPDX-License-Identifier: Apache-2.0 */
/* Distances of words, and suggestions for misspelled ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/word.h"
#include <string.h>

static void test_distance(void **state)
{
	(void)state;
	static const struct {
		const char *a, *b;
		unsigned distance;
	} pair[] = {
		{"", "", 0},          {"match", "match", 0}, {"match", "mach", 1},  {"mtach", "match", 2},
		{"", "live", 4},      {"live", "lab", 3},    {"point", "joint", 1}, {"results", "result", 1},
		{"flows", "slow", 2}, /* another first letter, one less at the end */
	};
	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
		assert_int_equal(ow_word_distance(pair[i].a, pair[i].b), pair[i].distance);
		assert_int_equal(ow_word_distance(pair[i].b, pair[i].a), pair[i].distance);
	}
}

static void test_long_words_are_far(void **state)
{
	(void)state;
	char word[OW_WORD_MAX + 2];
	memset(word, 'x', sizeof word);
	word[OW_WORD_MAX] = 0;
	assert_int_equal(ow_word_distance(word, word), 0);
	word[OW_WORD_MAX] = 'x';
	word[OW_WORD_MAX + 1] = 0;
	assert_int_equal(ow_word_distance(word, word), OW_WORD_MAX);
	assert_int_equal(ow_word_distance("x", word), OW_WORD_MAX);
}

static const char *guess(const char *written)
{
	static const char *const words[] = {"lab", "live", "loss", "match", "matched"};
	struct ow_word_guess guess = {.written = written};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		ow_word_offer(&guess, words[i]);
	return guess.best ? guess.best : "";
}

static void test_guess(void **state)
{
	(void)state;
	assert_string_equal(guess("matchd"), "match"); /* as near as matched, and first */
	assert_string_equal(guess("matchedd"), "matched");
	assert_string_equal(guess("matched"), "matched"); /* itself, though match is near, too */
	assert_string_equal(guess("live"), "live");
	assert_string_equal(guess("lov"), "lab"); /* one of three letters is right */
	assert_string_equal(guess("xy"), "");     /* none is */
	assert_string_equal(guess(""), "");
	assert_string_equal(guess("simulate"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_long_words_are_far),
		cmocka_unit_test(test_guess),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
