/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is read back by jansson, which refuses anything that is not JSON. */
#include "sample.h"
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static json_t *render(const struct ow_match_report *report)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	ow_report_match_json(out, report, NULL, NULL, NULL, NULL, NULL);
	fclose(out);
	json_error_t error;
	json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		print_error("line %d: %s\n%s", error.line, error.text, text);
	assert_non_null(root);
	free(text);
	return root;
}

static json_int_t integer(json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);
	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

static void names_of_the_design(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	json_t *root = render(&report), *a_to_b = json_object_get(root, "a_to_b"),
	       *delay = json_object_get(a_to_b, "delay_ns");
	const char *level, *method, *tool, *command, *path, *linktype;
	int inner, segments, exact;
	double mean, loss;
	json_int_t offset, first;
	assert_int_equal(json_unpack(root, "{s:s, s:s, s:{s:{s:s, s:I, s:s}}, s:{s:s, s:b, s:b}, s:{s:I, s:s}}", "tool",
	                             &tool, "command", &command, "inputs", "a", "path", &path, "first_ns", &first,
	                             "linktype", &linktype, "identity", "level", &level, "inner", &inner, "segments",
	                             &segments, "clock", "offset_ns", &offset, "method", &method),
	                 0);
	assert_string_equal(tool, "oneway");
	assert_string_equal(command, "match");
	assert_string_equal(path, "captures/upstream.pcap");
	assert_string_equal(linktype, "EN10MB");
	assert_int_equal(first, INT64_C(1700000000000000000));
	assert_string_equal(level, "ip");
	assert_true(!inner && segments);
	assert_true(json_is_true(json_object_get(json_object_get(root, "identity"), "ip_id")));
	assert_true(json_is_true(json_object_get(json_object_get(root, "identity"), "tcp_numbers")));
	assert_int_equal(offset, INT64_C(-37000000000));
	assert_string_equal(method, "estimated");
	assert_int_equal(integer(root, "window_ns"), 1000000000);
	assert_int_equal(integer(json_object_get(root, "clock"), "drift_ppb"), 0);
	assert_int_equal(integer(json_object_get(root, "clock"), "error_ns"), 120000);
	const json_t *bounds = json_object_get(json_object_get(root, "clock"), "bounds_ns");
	assert_int_equal(json_integer_value(json_array_get(bounds, 0)), INT64_C(-37000120000));
	assert_int_equal(json_integer_value(json_array_get(bounds, 1)), INT64_C(-36999880000));
	assert_int_equal(json_array_size(json_object_get(root, "holes")), 0);

	assert_int_equal(integer(a_to_b, "sent"), 1000000);
	assert_int_equal(integer(a_to_b, "received"), 998915);
	assert_int_equal(integer(a_to_b, "matched"), 998912);
	assert_int_equal(integer(a_to_b, "lost"), 1088);
	assert_int_equal(integer(a_to_b, "extra"), 3);
	assert_int_equal(integer(a_to_b, "duplicated"), 1);
	assert_int_equal(integer(a_to_b, "ambiguous"), 12);
	assert_int_equal(integer(a_to_b, "reordered"), 5);
	assert_int_equal(integer(a_to_b, "samples"), 998900);
	assert_int_equal(integer(a_to_b, "jitter_ns"), 65);
	assert_int_equal(integer(a_to_b, "jitter_error_ns"), 3);
	assert_int_equal(integer(delay, "min"), 4410);
	assert_int_equal(integer(delay, "max"), 4670);
	assert_int_equal(json_unpack(a_to_b, "{s:F, s:b, s:{s:F}}", "loss_ratio", &loss, "exact", &exact, "delay_ns",
	                             "mean", &mean),
	                 0);
	assert_true(loss == 0.001088 && mean == 4546.3 && exact);
	json_t *quantiles = json_object_get(delay, "quantiles");
	for (int i = 0; i < OW_QUANTILES; i++)
		assert_true(json_number_value(json_object_get(quantiles, ow_quantile_name[i])) ==
		            sample_result.delay.quantile_ns[i]);
	assert_int_equal(integer(json_object_get(root, "unclassified"), "b"), 3);
	assert_int_equal(integer(json_object_get(root, "outside_overlap"), "a"), 12);
	assert_int_equal(integer(json_object_get(root, "skipped"), "b"), 1234);
	assert_int_equal(json_array_size(json_object_get(root, "warnings")), 2);

	json_t *intervals = json_object_get(root, "intervals");
	assert_int_equal(json_array_size(intervals), 2);
	assert_int_equal(integer(json_array_get(intervals, 1), "start_ns"), INT64_C(1700000001000000000));
	assert_int_equal(integer(json_array_get(intervals, 1), "lost"), 1088);
	assert_int_equal(integer(json_object_get(json_array_get(intervals, 1), "b_to_a"), "ambiguous"), 5);
	json_decref(root);
}

/* Without samples there is no number, and without intervals or a way back there is no object. */
static void nothing_is_null(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	json_t *root = render(&report), *b_to_a = json_object_get(root, "b_to_a"),
	       *delay = json_object_get(b_to_a, "delay_ns");
	assert_true(json_is_null(json_object_get(delay, "mean")));
	assert_true(json_is_null(json_object_get(delay, "min")));
	assert_true(json_is_null(json_object_get(json_object_get(delay, "quantiles"), "0.999")));
	assert_true(json_is_null(json_object_get(b_to_a, "jitter_ns")));
	assert_true(json_is_null(json_object_get(b_to_a, "jitter_error_ns")));
	json_decref(root);

	report.has_direction[OW_B_TO_A] = false;
	report.intervals = report.warnings = 0;
	report.direction[OW_A_TO_B] = (struct ow_result){.exact = true};
	report.capture[OW_SIDE_B].packets = 0;
	root = render(&report);
	assert_true(json_is_null(json_object_get(root, "b_to_a")));
	assert_true(json_is_null(json_object_get(json_object_get(root, "a_to_b"), "loss_ratio")));
	assert_null(json_object_get(root, "intervals"));
	assert_int_equal(json_array_size(json_object_get(root, "warnings")), 0);
	json_t *b = json_object_get(json_object_get(root, "inputs"), "b");
	assert_true(json_is_null(json_object_get(b, "first_ns")));
	json_decref(root);
}

/* Every byte and every pair of bytes in a path; jansson refuses invalid UTF-8 and control characters. */
static void any_path(void **state)
{
	(void)state;
	static char everything[3 * 65536 + 1];
	char *p = everything;
	for (int code = 0; code < 65536; code++) {
		if (code >> 8)
			*p++ = (char)(code >> 8);
		if (code & 255)
			*p++ = (char)code;
		*p++ = 'x';
	}
	struct ow_match_report report = sample_report();
	report.capture[OW_SIDE_A].path = everything;
	json_decref(render(&report));

	static const struct {
		const char *path, *read;
	} cases[] = {
		{"a\"b\\c\n\x7f", "a\"b\\c\n\x7f"},
		{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
	         "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"latin1 \xfc", "latin1 \xef\xbf\xbd"},
		{"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"},
		{"overlong \xc0\xaf", "overlong \xef\xbf\xbd\xef\xbf\xbd"},
		{"surrogate \xed\xa0\x80", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"beyond \xf4\x90\x80\x80", "beyond \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		report.warning = &cases[i].path;
		report.warnings = 1;
		json_t *root = render(&report);
		assert_string_equal(json_string_value(json_array_get(json_object_get(root, "warnings"), 0)),
		                    cases[i].read);
		json_decref(root);
	}
}

/* Extreme counts and delays survive as integers, doubles to the last bit. */
static void extremes(void **state)
{
	(void)state;
	struct ow_match_report report = sample_report();
	struct ow_delay *delay = &report.direction[OW_A_TO_B].delay;
	delay->min_ns = INT64_MIN;
	delay->max_ns = INT64_MAX;
	delay->mean_ns = -1.0 / 3;
	delay->stddev_ns = 0x1.fffffffffffffp62;
	json_t *root = render(&report), *got = json_object_get(json_object_get(root, "a_to_b"), "delay_ns");
	assert_true(integer(got, "min") == INT64_MIN && integer(got, "max") == INT64_MAX);
	assert_true(json_number_value(json_object_get(got, "mean")) == -1.0 / 3);
	assert_true(json_number_value(json_object_get(got, "stddev")) == 0x1.fffffffffffffp62);
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_design),
		cmocka_unit_test(nothing_is_null),
		cmocka_unit_test(any_path),
		cmocka_unit_test(extremes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
