/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct target {
	bool json, verbose;
	const char *file;
	int64_t offset, window;
	uint64_t count;
	double share;
	size_t colour;
};

static int set_colour(void *field, const char *value, struct ow_error *err)
{
	static const char *const names[] = {"red", "green", "blue"};
	return ow_option_choice(names, 3, value, field, err);
}

static const struct ow_option table[] = {
	{NULL, 0, NULL, NULL, 0, "First things:"},
	{"json", 'j', NULL, ow_option_flag, offsetof(struct target, json), "JSON."},
	{"verbose", 'v', NULL, ow_option_flag, offsetof(struct target, verbose), "More."},
	{"output", 'o', "FILE", ow_option_text, offsetof(struct target, file), "Where to."},
	{NULL, 0, NULL, NULL, 0, "Others:"},
	{"offset", 0, "D", ow_option_duration, offsetof(struct target, offset), "Shift."},
	{"window", 0, "DURATION-OF-IT", ow_option_positive_duration, offsetof(struct target, window),
         "A sentence that is long enough to be broken into two lines of help, because nobody wants to scroll "
         "sideways."},
	{"count", 'n', "N", ow_option_count, offsetof(struct target, count), "How many."},
	{"share", 0, "P", ow_option_share, offsetof(struct target, share), "A part."},
	{"colour", 0, "NAME", set_colour, offsetof(struct target, colour), "A name."},
	{0},
};

#define ARGV(...)                         \
	(char *[])                        \
	{                                 \
		"test", __VA_ARGS__, NULL \
	}

static int parse(char **argv, struct target *target, struct ow_error *err)
{
	int argc = 0;
	while (argv[argc])
		argc++;
	memset(target, 0, sizeof *target);
	return ow_options_parse(table, argc, argv, target, err);
}

static void every_form(void **state)
{
	(void)state;
	struct target t;
	char **argv = ARGV("a.pcap", "--json", "--output=x=y", "-", "-n5", "--offset", "-37s", "--", "--json");
	assert_int_equal(parse(argv, &t, NULL), 3);
	assert_true(t.json && !t.verbose);
	assert_string_equal(t.file, "x=y");
	assert_int_equal(t.count, 5);
	assert_int_equal(t.offset, INT64_C(-37000000000));
	assert_string_equal(argv[1], "a.pcap");
	assert_string_equal(argv[2], "-");
	assert_string_equal(argv[3], "--json");
	assert_int_equal(parse(ARGV("-v", "-o", "-", "-n", "2"), &t, NULL), 0);
	assert_true(t.verbose);
	assert_string_equal(t.file, "-");
	assert_int_equal(parse((char *[]){"test", NULL}, &t, NULL), 0);
}

static void values(void **state)
{
	(void)state;
	struct target t;
	static const struct {
		char *text;
		uint64_t count;
	} counts[] = {{"0", 0}, {"1000", 1000}, {"1e6", 1000000}, {"10k", 10000}, {"2.5M", 2500000}};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		assert_int_equal(parse(ARGV("--count", counts[i].text), &t, NULL), 0);
		assert_int_equal(t.count, counts[i].count);
	}
	assert_int_equal(parse(ARGV("--share", "1%"), &t, NULL), 0);
	assert_true(t.share == 0.01);
	assert_int_equal(parse(ARGV("--share", "0.25"), &t, NULL), 0);
	assert_true(t.share == 0.25);
	assert_int_equal(parse(ARGV("--colour", "blue"), &t, NULL), 0);
	assert_int_equal(t.colour, 2);
}

static void errors_name_the_option(void **state)
{
	(void)state;
	static const struct {
		char *option, *value;
		const char *text;
	} cases[] = {
		{"--jsno", NULL, "unknown option --jsno, did you mean --json?"},
		{"--ofset=3s", NULL, "unknown option --ofset=3s, did you mean --offset?"},
		{"--zzz", NULL, "unknown option --zzz"},
		{"-x", NULL, "unknown option -x"},
		{"--json=1", NULL, "--json=1: --json takes no value"},
		{"-jx", NULL, "-jx: --json takes no value"},
		{"--output", NULL, "--output needs a value: FILE"},
		{"--output", "", "--output: is empty"},
		{"--window", "-1s", "--window: '-1s' must be above 0"},
		{"--window", "0", "--window: '0' must be above 0"},
		{"--window", "5", "--window: '5' needs a unit: ns, us, ms, s, min, h or d"},
		{"--count", "-1", "--count: '-1' is not a count (examples: 1000, 1e6, 10k, 5M)"},
		{"--count", "1.5", "--count: '1.5' is not a count (examples: 1000, 1e6, 10k, 5M)"},
		{"--count", "nan", "--count: 'nan' is not a count (examples: 1000, 1e6, 10k, 5M)"},
		{"--count", "1e300", "--count: '1e300' is not a count (examples: 1000, 1e6, 10k, 5M)"},
		{"--share", "101%", "--share: '101%' is not a share (examples: 0.01, 1%)"},
		{"--share", "nan", "--share: 'nan' is not a share (examples: 0.01, 1%)"},
		{"--share", "", "--share: '' is not a share (examples: 0.01, 1%)"},
		{"--colour", "pink", "--colour: 'pink' is not one of red, green or blue"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct target t;
		struct ow_error err = {""};
		assert_true(parse(ARGV(cases[i].option, cases[i].value), &t, &err) < 0);
		assert_string_equal(err.text, cases[i].text);
	}
}

static void help_lists_all(void **state)
{
	(void)state;
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	ow_options_help(out, table);
	fclose(out);
	for (const struct ow_option *o = table; o->name || o->help; o++)
		assert_true(!o->name || strstr(text, o->name));
	assert_non_null(strstr(text, "\nFirst things:\n  -j, --json"));
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 80);
	free(text);
}

static void distances(void **state)
{
	(void)state;
	assert_int_equal(ow_word_distance("", ""), 0);
	assert_int_equal(ow_word_distance("match", "match"), 0);
	assert_int_equal(ow_word_distance("mach", "match"), 1);
	assert_int_equal(ow_word_distance("macth", "match"), 2);
	assert_int_equal(ow_word_distance("kitten", "sitting"), 3);
	assert_int_equal(ow_word_distance("", "abc"), 3);
	char longest[200];
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	assert_true(ow_word_distance(longest, "match") > OW_WORD_NEAR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form),     cmocka_unit_test(values),    cmocka_unit_test(errors_name_the_option),
		cmocka_unit_test(help_lists_all), cmocka_unit_test(distances),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
