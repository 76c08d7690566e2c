/* SPDX-License-Identifier: Apache-2.0 */
/* Causes: the code is found from the text, for any parameters; docs/json.md names each. */
#include "result/cause.h"
#include "result/interval_result.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *documentation;

static void is(const char *text, enum ow_cause want)
{
	enum ow_cause got = ow_cause_of(text);
	if (got != want)
		fail_msg("'%s' is %s, not %s", text, ow_cause_name(got), ow_cause_name(want));
}

/* The form with every parameter: names, then numbers. */
static void make(const char *form, char text[OW_RESULT_CAUSE])
{
	size_t used = 0;
	for (; *form && used < OW_RESULT_CAUSE - 20; form++) {
		if (*form != '%') {
			text[used++] = *form;
			continue;
		}
		form += strcspn(form, "sduf");
		used += (size_t)snprintf(text + used, 20, "%s", *form == 's' ? "london 3" : "1234");
	}
	text[used] = 0;
}

#define TEXT(code, name, text) text,
static const char *const texts[] = {"", OW_CAUSES(TEXT)};

static void every_code_comes_back(void **state)
{
	(void)state;
	char text[OW_RESULT_CAUSE], two[2 * OW_RESULT_CAUSE];
	for (int i = OW_NO_CAUSE + 1; i < OW_CAUSE_OTHER; i++) {
		make(texts[i], text);
		is(text, (enum ow_cause)i);
		/* Of several the first. */
		snprintf(two, sizeof two, "%s; b missed 3 frames (ring full)", text);
		is(two, (enum ow_cause)i);
	}
}

/* As stores have them. */
static void texts_of_results(void **state)
{
	(void)state;
	is("", OW_NO_CAUSE);
	is("paris: eth0 was down", OW_CAUSE_OF_POINT);
	is("eth0 was down", OW_CAUSE_INTERFACE_DOWN);
	is("1 packet undecided: interval 7 is unknown", OW_CAUSE_UNDECIDED_INTERVAL);
	is("12 packets undecided: the point was killed before they could arrive", OW_CAUSE_UNDECIDED_KILLED);
	is("the clock of paris is ahead by 1.5 s, more than half an interval", OW_CAUSE_CLOCK_AHEAD);
	is("of 20 intervals 3 unknown, 1 partial", OW_CAUSE_INTERVALS_UNKNOWN_PARTIAL);
	is("Cannot allocate memory", OW_CAUSE_OTHER);
	is("no answer", OW_CAUSE_OTHER);
	is("of some intervals 3 unknown", OW_CAUSE_OTHER);
}

static void add(struct ow_interval_result *r, const char *text)
{
	ow_result_add_cause(r, text);
	assert_true(strlen(r->cause) < sizeof r->cause);
	assert_int_equal(r->status, OW_RESULT_PARTIAL);
}

/* Causes that do not fit become names, from the last one on; none is hidden. */
static void many_fit(void **state)
{
	(void)state;
	static const char twice[] =
		"8 packets seen twice at the sender, once at the receiver: one lost, or shown twice (a mirror port?)";
	struct ow_interval_result r = {0};
	add(&r, "b missed 3 frames (ring full)");
	add(&r, twice);
	assert_string_equal(strstr(r.cause, "8 "), twice);
	add(&r, "12 packets undecided: the run ended before they could arrive");
	assert_string_equal(strstr(r.cause, "8 ") + strlen(twice), "; undecided_ended");
	add(&r, "no answer from c");
	add(&r, "Cannot allocate memory");
	assert_string_equal(
		r.cause,
		"b missed 3 frames (ring full); identical_twice; undecided_ended; no_answer; Cannot allocate memory");
	is(strstr(r.cause, "undecided_"), OW_CAUSE_UNDECIDED_ENDED);
	for (int i = 0; i < 2; i++)
		add(&r, "Input/output error of a kind that has no name, and fifty bytes");
	assert_string_equal(r.cause + strlen(r.cause) - 3, "...");
}

static void documentation_names_them(void **state)
{
	(void)state;
	FILE *file = fopen(documentation, "r");
	char *text = NULL, name[80];
	size_t size = 0;
	if (!file)
		fail_msg("%s: %s", documentation, strerror(errno));
	assert_true(getdelim(&text, &size, 0, file) > 0);
	for (int i = OW_NO_CAUSE + 1; i < OW_CAUSE_COUNT; i++) {
		snprintf(name, sizeof name, "`%s`", ow_cause_name((enum ow_cause)i));
		if (!strstr(text, name))
			fail_msg("%s does not name %s", documentation, name);
	}
	free(text);
	fclose(file);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_comes_back),
		cmocka_unit_test(texts_of_results),
		cmocka_unit_test(many_fit),
		cmocka_unit_test(documentation_names_them),
	};
	if (argc != 2)
		return 2;
	documentation = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
