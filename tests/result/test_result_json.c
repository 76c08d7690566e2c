/* SPDX-License-Identifier: Apache-2.0 */
/* Live results as JSON lines, read back by jansson. */
#include "interval_sample.h"
#include "result/result_json.h"
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static json_t *render(const struct ow_interval_result *result)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	ow_result_json(out, result);
	fclose(out);
	assert_true(length && text[length - 1] == '\n');
	assert_ptr_equal(strchr(text, '\n'), text + length - 1); /* one line */
	json_error_t error;
	json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		print_error("column %d: %s\n%s", error.column, error.text, text);
	assert_non_null(root);
	free(text);
	return root;
}

static json_t *at(json_t *object, const char *first, const char *second)
{
	json_t *value = json_object_get(object, first);
	assert_non_null(value);
	if (second)
		value = json_object_get(value, second);
	assert_non_null(value);
	return value;
}

static void is_integer(json_t *object, const char *first, const char *second, int64_t want)
{
	json_t *value = at(object, first, second);
	assert_true(json_is_integer(value));
	assert_int_equal(json_integer_value(value), want);
}

static void is_number(json_t *object, const char *first, const char *second, double want)
{
	assert_true(json_number_value(at(object, first, second)) == want);
}

static void is_text(json_t *object, const char *first, const char *second, const char *want)
{
	assert_string_equal(json_string_value(at(object, first, second)), want);
}

static void every_member(void **state)
{
	(void)state;
	struct ow_interval_result result = sample_live(17);
	json_t *root = render(&result);
	is_text(root, "segment", NULL, "london-paris");
	is_text(root, "class", NULL, "voice");
	is_text(root, "from", NULL, "london");
	is_text(root, "to", NULL, "paris");
	is_text(root, "status", NULL, "measured");
	assert_null(json_object_get(root, "cause"));
	assert_true(json_is_true(at(root, "final", NULL)));
	assert_true(json_is_false(at(root, "exact", NULL)));
	const struct {
		const char *first, *second;
		int64_t want;
	} integers[] = {
		{"interval", NULL, 17},
		{"start_ns", NULL, INT64_C(1700000017250000000)},
		{"length_ns", NULL, 1000000000},
		{"sent", NULL, 100000},
		{"received", NULL, 99740},
		{"matched", NULL, 99700},
		{"late", NULL, 40},
		{"late_received", NULL, 35},
		{"lost", NULL, 260},
		{"pending", NULL, 0},
		{"extra", NULL, 5},
		{"duplicated", NULL, 3},
		{"ambiguous", NULL, 12},
		{"samples", NULL, 2048},
		{"bytes", NULL, 50000000},
		{"sample", "rate", 1},
		{"sample", "shift", 0},
		{"sample", "total_sent", 100000},
		{"sample", "total_received", 99740},
		{"coverage", NULL, 1},
		{"ring_drops", "from", 0},
		{"ring_drops", "to", 7},
		{"unreadable", NULL, 0},
		{"jitter_ns", NULL, 2000},
		{"cost", "bytes", 16384},
		{"cost", "round_trips", 2},
		{"cost", "transmit_ns", 100000},
		{"cost", "decode_ns", 200000},
		{"cost", "missing_ns", 300000},
		{"cost", "erase_ns", 400000},
		{"cost", "compute_ns", 500000},
		{"cost", "ready_ns", 1600000},
	};
	for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
		is_integer(root, integers[i].first, integers[i].second, integers[i].want);
	/* Every packet is accounted for, in what is printed as well. */
	int64_t sent = json_integer_value(at(root, "sent", NULL));
	for (const char *const *name = (const char *const[]){"matched", "late", "lost", "pending", NULL}; *name; name++)
		sent -= json_integer_value(at(root, *name, NULL));
	assert_int_equal(sent, 0);
	is_number(root, "loss_ratio", NULL, 0.0026);
	is_number(root, "delay_ns", "mean", 50123.5);
	is_number(root, "delay_ns", "stddev", 1234.25);
	is_number(at(root, "delay_ns", "quantiles"), "0.99", NULL, 53000);
	is_text(root, "synopsis", NULL, "fold 4 x 1024");
	json_decref(root);
}

static void what_is_not_known_is_null(void **state)
{
	(void)state;
	struct ow_interval_result result = sample_live(0);
	json_t *root = render(&result);
	assert_true(json_is_null(at(root, "reordered", NULL)));
	assert_true(json_is_null(at(root, "delay_ns", "min")));
	is_text(root, "not_estimated", "min", "packets were sampled");
	is_text(root, "not_estimated", "max", "packets were sampled");
	is_text(root, "not_estimated", "0.999", "too few packets are sampled to bound it from above");
	assert_int_equal(json_object_size(at(root, "not_estimated", NULL)), 3);
	is_integer(at(root, "clock", "from"), "error_ns", NULL, 4000);
	assert_true(json_is_true(at(at(root, "clock", "from"), "synchronised", NULL)));
	assert_true(json_is_null(at(at(root, "clock", "to"), "error_ns", NULL)));
	json_t *quantiles = at(root, "ci95", "quantiles");
	assert_true(json_number_value(json_array_get(at(quantiles, "0.5", NULL), 0)) == 49900);
	assert_true(json_is_null(json_array_get(at(quantiles, "0.999", NULL), 1))); /* infinity */
	assert_true(json_number_value(json_array_get(at(root, "ci95", "mean"), 1)) == 50123.5);
	assert_true(json_number_value(json_array_get(at(root, "ci95", "loss_ratio"), 0)) == 0.0026);
	json_decref(root);

	result = sample_unknown(3);
	root = render(&result);
	is_text(root, "status", NULL, "unknown");
	is_text(root, "cause", NULL, "paris does not answer");
	const char *const names[] = {"sent",    "received", "lost",       "pending",
	                             "samples", "bytes",    "loss_ratio", "jitter_ns"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_true(json_is_null(at(root, names[i], NULL)));
	assert_true(json_is_null(at(root, "ci95", "mean")));
	json_decref(root);
}

/* Whatever bytes names and causes hold, whatever numbers there are: valid JSON. */
static void anything_is_valid(void **state)
{
	(void)state;
	static const double odd[] = {NAN, INFINITY, -INFINITY, 1e308, -0.0, 5e-324};
	for (int byte = 1; byte < 256; byte++) {
		struct ow_interval_result r = sample_live(-byte);
		snprintf(r.segment, sizeof r.segment, "a%c\"b", byte);
		snprintf(r.class_name, sizeof r.class_name, "%c", byte);
		snprintf(r.from, sizeof r.from, "\\%c%c", byte, 0x80);
		snprintf(r.cause, sizeof r.cause, "\xf0\x9f%c\n", byte);
		double number = odd[byte % 6];
		r.mean_ns = (struct ow_value){OW_VALUE_ESTIMATED, number, -number, number, OW_NO_REASON};
		r.coverage = number;
		r.sample_shift = (unsigned)byte % 64;
		json_decref(render(&r));
	}
}

static void inside_another(void **state)
{
	(void)state;
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	struct ow_interval_result result = sample_live(1);
	ow_result_json_summary(out, &result);
	fclose(out);
	json_t *root = json_loadb(text, length, 0, NULL);
	is_integer(root, "summary", "interval", 1);
	json_decref(root);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_member),
		cmocka_unit_test(what_is_not_known_is_null),
		cmocka_unit_test(anything_is_valid),
		cmocka_unit_test(inside_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
