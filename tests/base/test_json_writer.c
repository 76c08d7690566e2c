/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer: every layout, every value, every misuse; and random documents that a JSON reader reads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/format.h"
#include "base/json_writer.h"
#include "base/random.h"
#include <float.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <oneway/oneway.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct document {
	struct ow_json json;
	char *text;
	size_t size;
};

static struct ow_json *begin(struct document *d, int indent, int margin)
{
	*d = (struct document){.json = {.indent = indent, .margin = margin}};
	d->json.out = open_memstream(&d->text, &d->size);
	assert_non_null(d->json.out);
	return &d->json;
}

static void expect(struct document *d, const char *text)
{
	assert_int_equal(d->json.depth, 0);
	assert_int_equal(fclose(d->json.out), 0);
	assert_string_equal(d->text, text);
	free(d->text);
}

static void test_flat(void **state)
{
	(void)state;
	struct document d;
	struct ow_json *json = begin(&d, 2, 0);
	ow_json_object(json, NULL);
	ow_json_end(json);
	ow_json_array(json, NULL);
	ow_json_end(json);
	ow_json_object(json, NULL);
	ow_json_count(json, "packets", 7);
	ow_json_array(json, "list");
	ow_json_string(json, NULL, "one");
	ow_json_object(json, NULL);
	ow_json_end(json);
	ow_json_array(json, NULL);
	ow_json_null(json, NULL);
	ow_json_end(json);
	ow_json_end(json);
	ow_json_flag(json, "last", true);
	ow_json_end(json);
	expect(&d, "{}\n[]\n{\"packets\": 7, \"list\": [\"one\", {}, [null]], \"last\": true}\n");
}

static void test_lines(void **state)
{
	(void)state;
	struct document d;
	struct ow_json *json = begin(&d, 2, 0);
	ow_json_object(json, NULL);
	ow_json_style(json, OW_JSON_LINES);
	ow_json_count(json, "a", 1);
	ow_json_array(json, "none");
	ow_json_style(json, OW_JSON_LINES);
	ow_json_end(json);
	ow_json_array(json, "some");
	ow_json_style(json, OW_JSON_OUTER);
	ow_json_object(json, NULL);
	ow_json_count(json, "first", 1);
	ow_json_style(json, OW_JSON_LINES);
	ow_json_count(json, "second", 2);
	ow_json_object(json, "flat");
	ow_json_object(json, "inside");
	ow_json_style(json, OW_JSON_OUTER);
	ow_json_null(json, "x");
	ow_json_end(json);
	ow_json_end(json);
	ow_json_end(json);
	ow_json_end(json);
	ow_json_end(json);
	expect(&d, "{\n"
	           "  \"a\": 1,\n"
	           "  \"none\": [],\n"
	           "  \"some\": [\n"
	           "    {\"first\": 1,\n"
	           "      \"second\": 2,\n"
	           "      \"flat\": {\"inside\": {\"x\": null}}\n"
	           "    }\n"
	           "  ]\n"
	           "}\n");
}

static void test_padded(void **state)
{
	(void)state;
	struct document d;
	struct ow_json *json = begin(&d, 2, -2);
	ow_json_object(json, NULL);
	ow_json_style(json, OW_JSON_PADDED);
	ow_json_array(json, "none");
	ow_json_style(json, OW_JSON_PADDED);
	ow_json_end(json);
	ow_json_array(json, "some");
	ow_json_style(json, OW_JSON_PADDED);
	for (int i = 0; i < 2; i++) {
		ow_json_line(json);
		ow_json_object(json, NULL);
		ow_json_style(json, OW_JSON_PADDED);
		ow_json_integer(json, "i", -i);
		ow_json_end(json);
	}
	ow_json_end(json);
	ow_json_end(json);
	expect(&d, "{ \"none\": [ ], \"some\": [\n  { \"i\": 0 },\n  { \"i\": -1 } ] }\n");
}

static void test_lines_where_asked(void **state)
{
	(void)state;
	struct document d;
	struct ow_json *json = begin(&d, 1, 0);
	ow_json_object(json, NULL);
	ow_json_count(json, "a", 1);
	ow_json_line(json);
	ow_json_count(json, "b", 2);
	ow_json_count(json, "c", 3);
	ow_json_line(json);
	ow_json_array(json, "d");
	ow_json_line(json);
	ow_json_end(json);
	ow_json_line(json);
	ow_json_end(json);
	ow_json_array(json, NULL); /* the next document begins anew */
	ow_json_count(json, NULL, 1);
	ow_json_end(json);
	expect(&d, "{\"a\": 1,\n \"b\": 2, \"c\": 3,\n \"d\": [\n ]\n}\n[1]\n");
}

static void test_command(void **state)
{
	(void)state;
	struct document d;
	struct ow_json *json = begin(&d, 2, 0);
	ow_json_object(json, NULL);
	ow_json_command(json, "flows list");
	ow_json_end(json);
	char expected[128];
	snprintf(expected, sizeof expected,
	         "{\"tool\": \"oneway\", \"version\": \"%s\", \"command\": \"flows list\"}\n", ow_version());
	expect(&d, expected);
}

static void test_values(void **state)
{
	(void)state;
	struct document d;
	struct ow_json *json = begin(&d, 0, 0);
	ow_json_array(json, NULL);
	ow_json_count(json, NULL, UINT64_MAX);
	ow_json_integer(json, NULL, INT64_MIN);
	ow_json_count_if(json, NULL, true, 5);
	ow_json_count_if(json, NULL, false, 5);
	ow_json_integer_if(json, NULL, true, -5);
	ow_json_integer_if(json, NULL, false, -5);
	ow_json_flag(json, NULL, true);
	ow_json_flag(json, NULL, false);
	ow_json_null(json, NULL);
	ow_json_raw(json, NULL, "{\"x\":[]}");
	ow_json_number(json, NULL, 0.1);
	ow_json_number(json, NULL, -0.0);
	ow_json_number(json, NULL, 1.0 / 3);
	ow_json_number(json, NULL, 1e300);
	ow_json_number(json, NULL, 123456789);
	ow_json_number(json, NULL, NAN);
	ow_json_number(json, NULL, -INFINITY);
	ow_json_digits(json, NULL, 1.0 / 3, 3);
	ow_json_digits(json, NULL, 0.1, 17);
	ow_json_digits(json, NULL, -0.0, 6);
	ow_json_digits(json, NULL, INFINITY, 6);
	ow_json_end(json);
	expect(&d,
	       "[18446744073709551615, -9223372036854775808, 5, null, -5, null, true, false, null, {\"x\":[]}, 0.1, "
	       "0, 0.3333333333333333, 1e+300, 123456789, null, null, 0.333, 0.10000000000000001, 0, null]\n");
}

static void test_strings(void **state)
{
	(void)state;
	struct document d;
	struct ow_json *json = begin(&d, 0, 0);
	ow_json_array(json, NULL);
	ow_json_string(json, NULL, NULL);
	ow_json_string(json, NULL, "");
	ow_json_string(json, NULL, "say \"a\\b\"/");
	ow_json_string(json, NULL, "a\n\x1b[2J\x7f");
	ow_json_string(json, NULL, "Z\xc3\xbcrich \xf0\x9f\x98\x80");
	ow_json_string(json, NULL, "\xff\xe2\x82");                 /* no UTF-8 */
	ow_json_string(json, NULL, "\xe2\x80\xae\xf3\xa0\x81\x81"); /* U+202E, U+E0041 */
	ow_json_object(json, NULL);
	ow_json_count(json, "\"\n", 1);
	ow_json_end(json);
	ow_json_end(json);
	expect(&d, "[null, \"\", \"say \\\"a\\\\b\\\"/\", \"a\\u000a\\u001b[2J\\u007f\", "
	           "\"Z\xc3\xbcrich \xf0\x9f\x98\x80\", \"\\ufffd\\ufffd\\ufffd\", \"\\u202e\\udb40\\udc41\", "
	           "{\"\\\"\\u000a\": 1}]\n");
}

static void test_decimal_comma(void **state)
{
	(void)state;
	static const char *const name[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
	bool found = false;
	for (size_t i = 0; i < sizeof name / sizeof *name && !found; i++)
		found = setlocale(LC_NUMERIC, name[i]) != NULL;
	if (!found)
		skip();
	struct document d;
	struct ow_json *json = begin(&d, 0, 0);
	ow_json_array(json, NULL);
	ow_json_number(json, NULL, 0.1);
	ow_json_digits(json, NULL, 2.5, 2);
	ow_json_end(json);
	setlocale(LC_NUMERIC, "C");
	expect(&d, "[0.1, 2.5]\n");
}

/* -- misuse ------------------------------------------------------------------------------------------------------- */

static void open_too_deep(struct ow_json *json)
{
	for (int i = 0; i < OW_JSON_DEPTH + 1; i++)
		ow_json_array(json, NULL);
}

static void end_nothing(struct ow_json *json)
{
	ow_json_end(json);
}

static void end_once_more(struct ow_json *json)
{
	ow_json_array(json, NULL);
	ow_json_end(json);
	ow_json_end(json);
}

static void name_in_array(struct ow_json *json)
{
	ow_json_array(json, NULL);
	ow_json_count(json, "a", 1);
}

static void no_name_in_object(struct ow_json *json)
{
	ow_json_object(json, NULL);
	ow_json_count(json, NULL, 1);
}

static void name_of_document(struct ow_json *json)
{
	ow_json_object(json, "a");
}

static void value_alone(struct ow_json *json)
{
	ow_json_count(json, NULL, 1);
}

static void style_of_nothing(struct ow_json *json)
{
	ow_json_style(json, OW_JSON_LINES);
}

static void line_of_nothing(struct ow_json *json)
{
	ow_json_line(json);
}

static void no_digits(struct ow_json *json)
{
	ow_json_array(json, NULL);
	ow_json_digits(json, NULL, 1, 0);
}

static bool aborts(void (*misuse)(struct ow_json *json))
{
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const struct rlimit no_core = {0, 0};
		struct ow_json json = {.out = fopen("/dev/null", "w")};
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGABRT, SIG_DFL);
		freopen("/dev/null", "w", stderr);
		misuse(&json);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_misuse(void **state)
{
	(void)state;
	assert_true(aborts(open_too_deep));
	assert_true(aborts(end_nothing));
	assert_true(aborts(end_once_more));
	assert_true(aborts(name_in_array));
	assert_true(aborts(no_name_in_object));
	assert_true(aborts(name_of_document));
	assert_true(aborts(value_alone));
	assert_true(aborts(style_of_nothing));
	assert_true(aborts(line_of_nothing));
	assert_true(aborts(no_digits));
}

/* -- random documents --------------------------------------------------------------------------------------------- */

static double random_number(struct ow_random *random)
{
	union {
		uint64_t bits;
		double number;
	} any = {.bits = ow_random_u64(random)};
	return ow_random_below(random, 2) ? any.number : (double)ow_random_below(random, 1000) / 8;
}

/* Valid UTF-8 of all lengths, with quotes and control characters. */
static void random_text(struct ow_random *random, char text[64])
{
	static const char *const piece[] = {
		"a", "\"", "\\", "\n", "\x1b", "\xc3\xbc", "\xe2\x80\xa8", "\xf0\x9f\x98\x80", "\xf3\xa0\x81\x81", " "};
	size_t used = 0;
	*text = 0;
	for (uint64_t n = ow_random_below(random, 8); n > 0; n--)
		used += (size_t)snprintf(text + used, 64 - used, "%s",
		                         piece[ow_random_below(random, sizeof piece / sizeof *piece)]);
}

/* Writes a value and returns what a reader should find. */
static json_t *random_value(struct ow_random *random, struct ow_json *json, const char *name)
{
	char text[64];
	double number;
	int64_t integer;
	switch (ow_random_below(random, 7)) {
	case 0:
		random_text(random, text);
		ow_json_string(json, name, text);
		return json_string(text);
	case 1:
		integer = (int64_t)ow_random_u64(random);
		ow_json_integer(json, name, integer);
		return json_integer(integer);
	case 2:
		integer = (int64_t)(ow_random_u64(random) >> 1);
		ow_json_count(json, name, (uint64_t)integer);
		return json_integer(integer);
	case 3:
		number = random_number(random);
		ow_json_number(json, name, number);
		return isfinite(number) ? json_real(number) : json_null();
	case 4:
		integer = (int64_t)ow_random_below(random, 2);
		ow_json_flag(json, name, integer);
		return json_boolean(integer);
	case 5:
		number = random_number(random);
		ow_json_digits(json, name, number, 17);
		return isfinite(number) ? json_real(number) : json_null();
	default:
		ow_json_null(json, name);
		return json_null();
	}
}

static json_t *random_level(struct ow_random *random, struct ow_json *json, const char *name, int deep)
{
	bool is_array = ow_random_below(random, 2);
	json_t *expected = is_array ? json_array() : json_object();
	is_array ? ow_json_array(json, name) : ow_json_object(json, name);
	for (uint64_t i = ow_random_below(random, 6); i > 0; i--) {
		char member[72], text[64];
		random_text(random, text);
		snprintf(member, sizeof member, "%d%s", (int)i, text);
		if (ow_random_below(random, 3) == 0)
			ow_json_style(json, (enum ow_json_style)ow_random_below(random, OW_JSON_OUTER + 1));
		if (ow_random_below(random, 4) == 0)
			ow_json_line(json);
		const char *its_name = is_array ? NULL : member;
		json_t *value = deep > 0 && ow_random_below(random, 2) ? random_level(random, json, its_name, deep - 1)
		                                                       : random_value(random, json, its_name);
		assert_int_equal(is_array ? json_array_append_new(expected, value)
		                          : json_object_set_new(expected, member, value),
		                 0);
	}
	if (ow_random_below(random, 4) == 0)
		ow_json_line(json);
	ow_json_end(json);
	return expected;
}

/* A number without a fraction is written without one, and read as an integer. */
static bool same(const json_t *x, const json_t *y)
{
	if (json_is_number(x) && json_is_number(y))
		return json_is_integer(x) == json_is_integer(y) && json_is_integer(x)
		               ? json_integer_value(x) == json_integer_value(y)
		               : json_number_value(x) == json_number_value(y);
	if (json_typeof(x) != json_typeof(y))
		return false;
	if (json_is_array(x)) {
		bool all = json_array_size(x) == json_array_size(y);
		for (size_t i = 0; all && i < json_array_size(x); i++)
			all = same(json_array_get(x, i), json_array_get(y, i));
		return all;
	}
	if (json_is_object(x)) {
		bool all = json_object_size(x) == json_object_size(y);
		const char *key;
		json_t *value;
		json_object_foreach((json_t *)x, key, value) all =
			all && json_object_get(y, key) && same(value, json_object_get(y, key));
		return all;
	}
	return json_equal(x, y);
}

/* Whatever the layout: it is JSON, it says what was written, and all of it is fit for a terminal. */
static void test_random(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 14);
	for (int i = 0; i < 2000; i++) {
		struct document d;
		struct ow_json *json =
			begin(&d, (int)ow_random_below(&random, 5), (int)ow_random_below(&random, 5) - 2);
		json_t *expected = random_level(&random, json, NULL, (int)ow_random_below(&random, OW_JSON_DEPTH));
		assert_int_equal(json->depth, 0);
		assert_int_equal(fclose(json->out), 0);
		json_error_t why;
		json_t *found = json_loads(d.text, JSON_REJECT_DUPLICATES, &why);
		if (!found)
			fail_msg("%s in %s", why.text, d.text);
		assert_true(same(expected, found));
		assert_int_equal(d.text[d.size - 1], '\n');
		assert_null(strchr(d.text, '\x1b'));
		json_decref(expected);
		json_decref(found);
		free(d.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flat),   cmocka_unit_test(test_lines),
		cmocka_unit_test(test_padded), cmocka_unit_test(test_lines_where_asked),
		cmocka_unit_test(test_values), cmocka_unit_test(test_strings),
		cmocka_unit_test(test_misuse), cmocka_unit_test(test_decimal_comma),
		cmocka_unit_test(test_random), cmocka_unit_test(test_command),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
