/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a configuration that contradict each other, or this host. */
#include "config/config_check.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define TOP "point: london\npsk: p\n"
#define LO  "interfaces: [ {name: lo} ]\n"
#define SEG "segments: [ {name: x, peer: paris, connect: \"192.0.2.7:8620\"} ]\n"

static char folder[] = "/tmp/oneway-check-XXXXXX";

static int parse(const char *text, struct ow_config **ret_config, struct ow_error *err)
{
	char path[64];
	snprintf(path, sizeof path, "%s/t.yaml", folder);
	err->text[0] = 0;
	return ow_config_parse(path, text, strlen(text), ret_config, err);
}

static void horizon_is_rounded_up(void **state)
{
	(void)state;
	assert_int_equal(ow_config_horizon(1, 1000), 1);
	assert_int_equal(ow_config_horizon(1000, 1000), 1);
	assert_int_equal(ow_config_horizon(1001, 1000), 2);
	assert_int_equal(ow_config_horizon(0, 1000), 1);
	assert_int_equal(ow_config_horizon(INT64_MAX, 1), UINT32_MAX);
}

static void entries_that_do_not_fit(void **state)
{
	(void)state;
	static const char *const bad[][2] = {
		{"psk: p\n" LO SEG, "has no 'point'"},
		{TOP SEG, "has no 'interfaces'"},
		{TOP LO, "has no 'segments' to measure, nor 'flows'"},
		{"point: london\n" LO SEG, "needs certificate, key and ca, or psk"},
		{TOP "key: k\n" LO SEG, "psk and certificate exclude"},
		{"point: london\ncertificate: c\nca: a\n" LO SEG, "belong together: no key"},
		{"point: london\nkey: k\nca: a\n" LO SEG, "belong together: no certificate"},
		{TOP "interfaces: [ {threads: 1} ]\n" SEG, "has neither name nor file"},
		{TOP "interfaces: [ {name: a-name-longer-than-the-kernel-has} ]\n" SEG, "longer than 15 characters"},
		{TOP "interfaces: [ {name: lo, speed: 2} ]\n" SEG, "only a file has one"},
		{TOP "interfaces: [ {file: a.pcap, threads: 2} ]\n" SEG, "a file has no threads"},
		{TOP "interfaces: [ {file: a.pcap, capture: kernel} ]\n" SEG, "a file has no threads, ring, capture"},
		{TOP "interfaces: [ {name: eth0, capture: bpf} ]\n" SEG, "capture"},
		{TOP "interfaces:\n  - name: lo\n  - name: lo\n" SEG, "is in line 4 already"},
		{TOP LO "segments: [ {peer: paris, connect: \"192.0.2.7:1\"} ]\n", "has no name"},
		{TOP LO "segments: [ {name: x, connect: \"192.0.2.7:1\"} ]\n", "has no peer"},
		{TOP LO "segments: [ {name: x, peer: london, connect: \"192.0.2.7:1\"} ]\n", "this point itself"},
		{TOP LO "segments: [ {name: x, peer: paris} ]\n", "does not 'listen' either"},
		{TOP LO "segments:\n"
	                "  - {name: x, peer: paris, connect: \"192.0.2.7:1\"}\n"
	                "  - {name: x, peer: oslo, connect: \"192.0.2.7:1\"}\n",
	         "segment 'x' is in line 5 already"},
		{TOP LO "segments:\n"
	                "  - {name: x, peer: paris, connect: \"192.0.2.7:1\"}\n"
	                "  - {name: y, peer: paris, connect: \"192.0.2.7:2\"}\n",
	         "differ in 'connect'"},
		{TOP LO "segments:\n"
	                "  - {name: x, peers: [b1, b2], connect: {b1: \"192.0.2.7:1\", b2: \"192.0.2.8:1\"}}\n"
	                "  - {name: y, peers: [b2, b3], connect: {b2: \"192.0.2.8:1\", b3: \"192.0.2.9:1\"}}\n",
	         "t.yaml:6: 'b2' is one of the peers of two segments, 'x' and 'y'"},
		{TOP LO "segments: [ {name: x, peers: [b1, b2], connect: {b1: \"192.0.2.7:1\"}} ]\n",
	         "does not 'listen' either"},
		{TOP LO "segments: [ {name: x, peers: [b1, london], connect: {b1: \"192.0.2.7:1\", london: "
	                "\"192.0.2.7:1\"}} ]\n",
	         "this point itself"},
		{TOP LO "segments: [ {name: x, peer: paris, connect: \"192.0.2.7:1\", interval: 1ms, wait: 10min} ]\n",
	         "at most"},
		{TOP LO
	         "segments: [ {name: x, peer: paris, connect: \"192.0.2.7:1\", classes: [ {name: a}, {name: a} ]} ]\n",
	         "class 'a' of segment 'x' is in line"},
		{TOP "memory: 16MiB\n" LO
	             "segments: [ {name: x, peer: paris, connect: \"192.0.2.7:1\", interval: 1ms, wait: 1s, classes: [ "
	             "{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: g}, {name: h}, "
	             "{name: i}, {name: j}, {name: k}, {name: l}, {name: m}, {name: n}, {name: o}, {name: p} ]} ]\n",
	         "need at least"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ow_config *config = NULL;
		struct ow_error err;
		int r = parse(bad[i][0], &config, &err);
		if (r != -EINVAL || !strstr(err.text, bad[i][1]))
			fail_msg("%s\nsays '%s', not '%s'", bad[i][0], err.text, bad[i][1]);
	}
}

/* The configuration with this text is checked against this host. */
static int check(const char *text, struct ow_error *err)
{
	struct ow_config *config;
	if (parse(text, &config, err) < 0)
		fail_msg("%s\n%s", err->text, text);
	int r = ow_config_check(config, err);
	ow_config_free(config);
	return r;
}

static void make_file(const char *name, mode_t mode)
{
	char path[64];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
}

static void this_host(void **state)
{
	(void)state;
	struct ow_error err;
	assert_int_equal(check(TOP LO SEG, &err), -ENOENT); /* there is no file p */
	assert_non_null(strstr(err.text, "psk"));
	make_file("p", 0644);
	assert_int_equal(check(TOP LO SEG, &err), -EACCES);
	assert_non_null(strstr(err.text, "chmod 600"));
	make_file("p", 0600);
	assert_int_equal(check(TOP LO SEG, &err), 0);
	assert_int_equal(check("point: london\npsk: .\n" LO SEG, &err), -EISDIR);
	assert_int_equal(check(TOP "interfaces: [ {name: no-such-link} ]\n" SEG, &err), -ENODEV);
	assert_int_equal(check(TOP "store: r.db\n" LO SEG, &err), 0);
	assert_int_equal(check(TOP "store: no/such/folder/r.db\n" LO SEG, &err), -ENOENT);
	assert_int_equal(check(TOP "user: no-such-user-here\n" LO SEG, &err), -ENOENT);
}

static void filters_and_directions(void **state)
{
	(void)state;
	struct ow_error err;
	assert_int_equal(ow_config_filter("tcp port 443", &err), 0);
	assert_int_equal(ow_config_filter("tcp prot 443", &err), -EINVAL);
	assert_int_equal(check(TOP "interfaces: [ {name: lo, filter: \"tcp prot 1\"} ]\n" SEG, &err), -EINVAL);
	assert_non_null(strstr(err.text, "t.yaml:3: interface 'lo': filter 'tcp prot 1'"));
	assert_int_equal(check(TOP LO
	                       "segments: [ {name: x, peer: paris, connect: \"192.0.2.7:1\", classes: [ {name: a, "
	                       "filter: \"no such\"} ]} ]\n",
	                       &err),
	                 -EINVAL);
	assert_non_null(strstr(err.text, "class 'a'"));
	make_file("a.pcap", 0600);
	assert_int_equal(check(TOP "interfaces: [ {file: a.pcap} ]\n" SEG, &err), -EINVAL);
	assert_non_null(strstr(err.text, "set to_peer"));
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[64];
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(horizon_is_rounded_up),
		cmocka_unit_test(entries_that_do_not_fit),
		cmocka_unit_test(this_host),
		cmocka_unit_test(filters_and_directions),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
