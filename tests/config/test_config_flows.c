/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of flows in a configuration. */
#include "config/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int parse(const char *flows, struct ow_config **ret_config, struct ow_error *err)
{
	char text[1000];
	snprintf(text, sizeof text, "point: london\ninterfaces: [ {name: eth0}, {name: eth1} ]\nflows: [ {%s} ]\n",
	         flows);
	err->text[0] = 0;
	return ow_config_parse("t.yaml", text, strlen(text), ret_config, err);
}

static struct ow_config *good(const char *flows)
{
	struct ow_config *config;
	struct ow_error err;
	if (parse(flows, &config, &err) < 0)
		fail_msg("%s: %s", flows, err.text);
	return config;
}

static void refuses(void **state)
{
	(void)state;
	static const char *const bad[][2] = {
		{"interval: 1s", "has no 'file'"},
		{"file: f, classes: [ {name: web, filter: tcp} ]", "its key is not class"},
		{"file: f, key: class, classes: [ {filter: tcp} ]", "class 1 has no name"},
		{"file: f, peer: paris", "its peer is in no segment"},
		{"file: f, peer: '../x'", "peer"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ow_config *config;
		struct ow_error err;
		int r = parse(bad[i][0], &config, &err);
		if (r != -EINVAL || !strstr(err.text, bad[i][1]))
			fail_msg("%s: '%s', not '%s'", bad[i][0], err.text, bad[i][1]);
	}
}

/* What is written down is what the recording is made with. */
static void fills_the_recording(void **state)
{
	(void)state;
	struct ow_config *c =
		good("file: f, key: class, classes: [ {name: web, filter: tcp}, {name: rest} ], interval: "
	             "30s, counters: 3000, seed: 7");
	const struct ow_epoch_info *info = &c->flows[0].info;
	assert_int_equal(c->flows_count, 1);
	assert_int_equal(info->select.classes, 2);
	assert_string_equal(info->select.class_name[0], "web");
	assert_string_equal(info->select.class_name[1], "rest");
	assert_int_equal(info->interval_ns, INT64_C(30000000000));
	assert_int_equal(info->params.seed, 7);
	assert_int_equal(info->params.unit_ns, 1);
	assert_true(info->params.layers >= 1);
	ow_config_free(c);
}

static void tells_recordings_apart(void **state)
{
	(void)state;
#define WEB "key: class, classes: [ {name: web, filter: tcp} ]"
	static const char *const all[] = {
		"file: f",
		"file: g",
		"file: f, interfaces: [eth1]",
		"file: f, filter: tcp",
		"file: f, interval: 7s",
		"file: f, counters: 60000",
		"file: f, seed: 3",
		"file: f, " WEB, /* NOLINT(bugprone-suspicious-missing-comma) */
		"file: f, key: class, classes: [ {name: web, filter: udp} ]",
		"file: f, key: class, classes: [ {name: web, filter: tcp}, {name: rest} ]",
	};
	enum { ALL = sizeof all / sizeof *all };
	struct ow_config *a[ALL], *b[ALL];
	for (size_t i = 0; i < ALL; i++) {
		a[i] = good(all[i]);
		b[i] = good(all[i]);
	}
	for (size_t i = 0; i < ALL; i++) {
		for (size_t k = 0; k < ALL; k++) {
			if (ow_config_flows_same(a[i]->flows, b[k]->flows) != (i == k))
				fail_msg("%s and %s", all[i], all[k]);
		}
	}
	for (size_t i = 0; i < ALL; i++) {
		ow_config_free(a[i]);
		ow_config_free(b[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses),
		cmocka_unit_test(fills_the_recording),
		cmocka_unit_test(tells_recordings_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
