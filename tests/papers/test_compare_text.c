/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison as text of 80 columns and as JSON with the fixed names. */
#include "papers/compare_text.h"
#include "../report/sample.h"
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct ow_value value(double x, double low, double high)
{
	return (struct ow_value){OW_VALUE_ESTIMATED, x, low, high, OW_NO_REASON};
}

static struct ow_compare_row row[3];

static struct ow_method_comparison sample_comparison(const struct ow_match_report *report)
{
	const struct ow_result *exact = &report->direction[OW_A_TO_B];
	for (int i = 0; i < 3; i++) {
		row[i] = (struct ow_compare_row){
			.name = "lda", .memory_bytes = 65536, .wire_bytes = 65624, .insert_ns = 3.1, .decode_us = 38};
		ow_estimate_none(&row[i].estimate, OW_REASON_SUMS_ONLY);
		snprintf(row[i].params, sizeof row[i].params,
		         "1 bank of 4096, p 0.77 \"and\" so on and on and on and on to the last");
	}
	struct ow_estimate *e = &row[0].estimate;
	e->useful = 998000;
	e->mean_ns = value(exact->delay.mean_ns * 1.01, exact->delay.mean_ns * 0.99, INFINITY);
	e->stddev_ns = value(exact->delay.stddev_ns * 2, exact->delay.stddev_ns * 1.5,
	                     exact->delay.stddev_ns * 3); /* misses */
	e->lost = (struct ow_value){OW_VALUE_EXACT, 1088, 1088, 1088, OW_NO_REASON};
	e->loss_ratio = (struct ow_value){OW_VALUE_EXACT, 0.001088, 0.001088, 0.001088, OW_NO_REASON};
	row[1].name = "direct";
	row[1].baseline = true;
	row[1].insert_ns = row[1].decode_us = NAN;
	row[1].estimate.mean_ns = value(1e9, -1e12, 1e12);
	row[2].name = "finecomb-";
	snprintf(row[2].failure, sizeof row[2].failure, "too little memory");
	return (struct ow_method_comparison){report, OW_A_TO_B, exact, 65536, 7, row, 3};
}

static char *render(void (*put)(FILE *, const struct ow_method_comparison *), const struct ow_method_comparison *c)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	put(out, c);
	fclose(out);
	return text;
}

static int text_width;

static void put_text(FILE *out, const struct ow_method_comparison *c)
{
	ow_report_compare_text(out, c, text_width, false);
}

static size_t longest_line(const char *text)
{
	size_t longest = 0;
	while (*text) {
		size_t length = strcspn(text, "\n");
		if (length > longest)
			longest = length;
		text += length + (text[length] == '\n');
	}
	return longest;
}

static void test_text(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	struct ow_method_comparison c = sample_comparison(&report);
	text_width = 80;
	char *text = render(put_text, &c);
	assert_true(longest_line(text) <= 80);
	assert_non_null(strstr(text, "998,000"));
	assert_non_null(strstr(text, "+1.0%   inf"));
	assert_non_null(strstr(text, "+100%   50%!"));
	assert_non_null(strstr(text, "exact"));
	assert_non_null(strstr(text, "last\n"));
	assert_non_null(strstr(text, "no p50, p99: the synopsis keeps sums, not single delays"));
	assert_non_null(strstr(text, "finecomb-: not tried: too little memory"));
	assert_null(strstr(text, "nan"));
	free(text);
	text_width = 100;
	text = render(put_text, &c);
	assert_true(longest_line(text) <= 100);
	assert_non_null(strstr(text, " p50"));
	assert_non_null(strstr(text, "parameters"));
	free(text);
	text_width = 40;
	text = render(put_text, &c);
	assert_non_null(strstr(text, "samples"));
	assert_non_null(strstr(text, "on wire"));
	assert_null(strstr(text, "parameters"));
	assert_null(strstr(text, "stddev +-"));
	free(text);
}

static void test_json(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	struct ow_method_comparison c = sample_comparison(&report);
	char *text = render(ow_report_compare_json, &c);
	json_error_t error;
	json_t *root = json_loads(text, 0, &error);
	if (!root)
		fail_msg("line %d: %s\n%s", error.line, error.text, text);
	assert_string_equal(json_string_value(json_object_get(root, "command")), "compare");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "exact"), "lost")), 1088);
	json_t *list = json_object_get(root, "synopses"), *first = json_array_get(list, 0);
	assert_int_equal(json_array_size(list), 3);
	static const char *const names[] = {"name",           "params",    "memory_bytes", "wire_bytes", "sent",
	                                    "received",       "matched",   "lost",         "extra",      "duplicated",
	                                    "ambiguous",      "reordered", "loss_ratio",   "delay_ns",   "exact",
	                                    "relative_error", "ci95",      "insert_ns",    "decode_us"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		for (size_t k = 0; k < 3; k++)
			assert_non_null(json_object_get(json_array_get(list, k), names[i]));
	}
	json_t *relative = json_object_get(first, "relative_error");
	assert_true(fabs(json_number_value(json_object_get(relative, "mean")) - 0.01) < 1e-9);
	assert_true(json_number_value(json_object_get(relative, "loss")) == 0);
	json_t *mean = json_object_get(json_object_get(first, "ci95"), "mean");
	assert_true(json_is_real(json_array_get(mean, 0)) && json_is_null(json_array_get(mean, 1)));
	json_t *delay = json_object_get(first, "delay_ns");
	assert_true(json_is_null(json_object_get(json_object_get(delay, "quantiles"), "0.99")));
	assert_string_equal(json_string_value(json_object_get(json_object_get(first, "not_estimated"), "quantiles")),
	                    "the synopsis keeps sums, not single delays");
	assert_true(json_is_null(json_object_get(json_array_get(list, 1), "insert_ns")));
	json_decref(root);
	free(text);
}

static void test_errors(void **state)
{
	(void)state;
	struct ow_value none = {.status = OW_VALUE_NONE}, zero = {OW_VALUE_EXACT, 0, 0, 0, OW_NO_REASON},
			two = value(2, 1, 3);
	assert_true(isnan(ow_compare_error(&none, 1)));
	assert_true(ow_compare_error(&zero, 0) == 0);
	assert_true(isnan(ow_compare_error(&two, 0)));
	assert_true(ow_compare_error(&two, -4) == 1.5);
	assert_true(ow_compare_covers(&two, 1) && !ow_compare_covers(&two, 3.1));
	/* Room for the digits of exact quantiles is for exact values only. */
	struct ow_value sharp = {OW_VALUE_EXACT, 2, 2, 2, OW_NO_REASON};
	assert_true(!ow_compare_covers(&two, 3.001) && ow_compare_covers(&sharp, 2.001));
	assert_false(ow_compare_covers(&sharp, 2.01));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_json),
	                                   cmocka_unit_test(test_errors)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
