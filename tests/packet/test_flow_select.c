/* SPDX-License-Identifier: Apache-2.0 */
#include "packet/flow_select.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const struct ow_flow_key v4 = {
	.src = {10, 1, 2, 3}, .dst = {192, 168, 7, 9}, .sport = 80, .dport = 5000, .proto = 6, .version = 4};
static const struct ow_flow_key v6 = {
	.src = {0x20, 0x01, 0xd, 0xb8, 1, 2, 3, 4}, .dst = {0x20, 0x01, 0xd, 0xb8, 9}, .proto = 58, .version = 6};

static void test_parse(void **state)
{
	(void)state;
	static const char *const good[][2] = {{"five-tuple", "five-tuple"},
	                                      {"5-tuple", "five-tuple"},
	                                      {"src-dst", "addresses"},
	                                      {"addresses", "addresses"},
	                                      {"prefix:24,48", "prefix:24,48"},
	                                      {"prefix:0,128", "prefix:0,128"},
	                                      {"class", "class"}};
	static const char *const bad[] = {"",           "five",        "prefix",       "prefix:",     "prefix:24",
	                                  "prefix:24,", "prefix:33,1", "prefix:1,129", "prefix:-1,4", "prefix:1,4x"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct ow_flow_select select;
		char text[OW_FLOW_SELECT_TEXT];
		assert_int_equal(ow_flow_select_parse(good[i][0], &select, NULL), 0);
		ow_flow_select_text(&select, text);
		assert_string_equal(text, good[i][1]);
		assert_int_equal(ow_flow_select_check(&select, NULL), select.by == OW_FLOW_BY_CLASS ? -EINVAL : 0);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ow_flow_select select;
		struct ow_error err = {""};
		assert_int_equal(ow_flow_select_parse(bad[i], &select, &err), -EINVAL);
		assert_true(*err.text);
	}
}

static void check_key(const char *by, const struct ow_flow_key *packet, const char *expected)
{
	struct ow_flow_select select;
	struct ow_flow_key key;
	char text[OW_FLOW_SELECTED_TEXT];
	assert_int_equal(ow_flow_select_parse(by, &select, NULL), 0);
	ow_flow_select_key(&select, packet, &key);
	ow_flow_select_key_text(&select, &key, text);
	assert_string_equal(text, expected);
}

static void test_keys(void **state)
{
	(void)state;
	check_key("five-tuple", &v4, "10.1.2.3:80 > 192.168.7.9:5000 tcp");
	check_key("addresses", &v4, "10.1.2.3 > 192.168.7.9");
	check_key("prefix:24,48", &v4, "10.1.2.0/24 > 192.168.7.0/24");
	check_key("prefix:9,48", &v4, "10.0.0.0/9 > 192.128.0.0/9");
	check_key("prefix:0,48", &v4, "0.0.0.0/0 > 0.0.0.0/0");
	check_key("prefix:24,47", &v6, "2001:db8:102::/47 > 2001:db8:900::/47");
	check_key("addresses", &v6, "2001:db8:102:304:: > 2001:db8:900::");
}

static void test_classes(void **state)
{
	(void)state;
	struct ow_flow_select a = {.by = OW_FLOW_BY_CLASS, .classes = 2, .class_name = {"voice", "rest"}}, b = a;
	struct ow_flow_key key;
	char text[OW_FLOW_SELECTED_TEXT];
	struct ow_error err;
	ow_flow_select_class_key(1, &key);
	ow_flow_select_key_text(&a, &key, text);
	assert_string_equal(text, "rest");
	ow_flow_select_class_key(2, &key);
	ow_flow_select_key_text(&a, &key, text);
	assert_string_equal(text, "?");
	assert_int_equal(ow_flow_select_check(&a, NULL), 0);
	assert_int_equal(ow_flow_select_same(&a, &b, NULL), 0);
	memcpy(b.class_name[1], "best", sizeof "best");
	assert_int_equal(ow_flow_select_same(&a, &b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'rest' and 'best'"));
	memcpy(b.class_name[1], "voice", sizeof "voice");
	assert_int_equal(ow_flow_select_check(&b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "twice"));
}

/* The hash that files keep: it must not change from one version to the next. */
static void test_hash(void **state)
{
	(void)state;
	assert_int_equal(ow_flow_hash(1, &v4), ow_flow_hash(1, &v4));
	assert_int_not_equal(ow_flow_hash(1, &v4), ow_flow_hash(2, &v4));
	assert_int_not_equal(ow_flow_hash(1, &v4), ow_flow_hash(1, &v6));
	assert_int_equal(ow_flow_hash(1, &v4), UINT64_C(0xe11e304a318af6a2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse), cmocka_unit_test(test_keys),
	                                   cmocka_unit_test(test_classes), cmocka_unit_test(test_hash)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
