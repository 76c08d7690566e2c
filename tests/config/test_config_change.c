/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes of the configuration a running point accepts. */
#include "config/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define TOP  "point: london\npsk: p\nlisten: 127.0.0.1:8620\nmemory: 256MiB\n"
#define LINK "interfaces: [ {name: eth0}, {name: eth1, threads: 2} ]\n"
#define SEG                                                                                                            \
	"segments:\n  - {name: x, peer: paris, interfaces: [eth0], interval: 1s, classes: [ {name: web, filter: tcp} " \
	"]}\n"

static struct ow_config *parse(const char *text)
{
	struct ow_config *config;
	struct ow_error err;
	if (ow_config_parse("t.yaml", text, strlen(text), &config, &err) < 0)
		fail_msg("%s\n%s", err.text, text);
	return config;
}

/* Returns what the change is refused with; "" = it is accepted. */
static const char *change(const char *from, const char *to)
{
	static struct ow_error err;
	struct ow_config *now = parse(from), *next = parse(to);
	err.text[0] = 0;
	int r = ow_config_check_change(now, next, &err);
	assert_int_equal(r, err.text[0] ? -EBUSY : 0);
	ow_config_free(now);
	ow_config_free(next);
	return err.text;
}

static void segments_keys_and_limits_may_change(void **state)
{
	(void)state;
	static const char *const accepted[] = {
		TOP LINK SEG,
		TOP LINK "segments: [ {name: y, peer: oslo, interfaces: [eth1]} ]\n",
		"point: london\ncertificate: c\nkey: k\nca: a\nlisten: 127.0.0.1:8620\nmemory: 256MiB\n" LINK SEG,
		TOP "retention: 3d\nstore_max: 1GiB\n" LINK SEG,
	};
	for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
		assert_string_equal(change(TOP LINK SEG, accepted[i]), "");
}

static void all_else_needs_a_restart(void **state)
{
	(void)state;
	static const char *const refused[][2] = {
		{"'point'", "point: rome\npsk: p\nlisten: 127.0.0.1:8620\nmemory: 256MiB\n" LINK SEG},
		{"'listen'", "point: london\npsk: p\nlisten: 127.0.0.1:8621\nmemory: 256MiB\n" LINK SEG},
		{"'memory'", "point: london\npsk: p\nlisten: 127.0.0.1:8620\nmemory: 512MiB\n" LINK SEG},
		{"'store'", TOP "store: r.db\n" LINK SEG},
		{"'metrics'", TOP "metrics: 127.0.0.1:9620\n" LINK SEG},
		{"'output'", TOP "output: json\n" LINK SEG},
		{"'user'", TOP "user: nobody\n" LINK SEG},
		{"'sandbox'", TOP "sandbox: false\n" LINK SEG},
		{"'flows'", TOP LINK SEG "flows: [ {file: f.owe} ]\n"},
		{"interface 'eth1' is new or has changed", TOP "interfaces: [ {name: eth0}, {name: eth1} ]\n" SEG},
		{"interface 'eth1' is new or has changed",
	         TOP "interfaces: [ {name: eth0}, {name: eth1, threads: 2, filter: ip} ]\n" SEG},
		{"interface 'eth1' was removed", TOP "interfaces: [ {name: eth0} ]\n" SEG},
		{"interface 'eth2' is new",
	         TOP "interfaces: [ {name: eth0}, {name: eth1, threads: 2}, {name: eth2} ]\n" SEG},
	};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		const char *why = change(TOP LINK SEG, refused[i][1]);
		if (!strstr(why, refused[i][0]) || !strstr(why, "needs a restart"))
			fail_msg("%s: %s", refused[i][0], why);
	}
}

static bool same_as(const char *segment)
{
	char text[1000];
	struct ow_config *a = parse(TOP LINK SEG), *b;
	snprintf(text, sizeof text, TOP LINK "segments:\n  - {%s}\n", segment);
	b = parse(text);
	bool same = ow_config_same_segment(a->segments, b->segments);
	ow_config_free(a);
	ow_config_free(b);
	return same;
}

/* A lane continues only if the new segment would measure the same. */
static void segments_that_measure_alike(void **state)
{
	(void)state;
#define REST "peer: paris, interfaces: [eth0], interval: 1s"
#define WEB  ", classes: [ {name: web, filter: tcp} ]"
	assert_true(same_as("name: x, " REST WEB));
	static const char *const other[] = {
		"name: z, " REST WEB,
		"name: x, " REST,
		"name: x, " REST ", classes: [ {name: web, filter: udp} ]",
		"name: x, " REST ", classes: [ {name: web, filter: tcp}, {name: rest} ]",
		"name: x, " REST ", facing: away" WEB,
		"name: x, " REST ", to_peer: ip" WEB,
		"name: x, " REST ", wait: 3s" WEB,
		"name: x, " REST ", method: rda" WEB,
		"name: x, " REST ", identity: nat" WEB,
		"name: x, " REST ", inner: true" WEB,
		"name: x, " REST ", exact: true" WEB,
		"name: x, " REST ", classes: [ {name: web, filter: tcp, exact: true} ]",
		"name: x, " REST ", connect: 192.0.2.1:8620" WEB,
		"name: x, peer: oslo, interfaces: [eth0], interval: 1s" WEB,
		"name: x, peer: paris, interfaces: [eth1], interval: 1s" WEB,
		"name: x, peer: paris, interfaces: [eth0], interval: 2s" WEB,
	};
	for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
		if (same_as(other[i]))
			fail_msg("taken for the same: %s", other[i]);
	}
}

/* The bits of `stated` alone do not tell one stated value from another. */
static void another_scope_is_another_segment(void **state)
{
	(void)state;
	struct ow_config_segment a = {.name = "x", .peer = "paris", .stated = OW_STATED_SCOPE}, b = a;
	assert_true(ow_config_same_segment(&a, &b));
	b.scope = OW_SCOPE_OF_ALL;
	assert_false(ow_config_same_segment(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_keys_and_limits_may_change),
		cmocka_unit_test(all_else_needs_a_restart),
		cmocka_unit_test(segments_that_measure_alike),
		cmocka_unit_test(another_scope_is_another_segment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
