/* SPDX-License-Identifier: Apache-2.0 */
/* A point of a fleet: its own file wins, the rest comes from the desired state, and a bad one does not stop it. */
#include "config/config_fleet.h"

#include "base/state_file.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define HEAD    "# oneway: desired state of london, version 7, signature QUJD\n"
#define THREE   "fleet: {address: fleet.example, name: london, token: T, state: s}\n"
#define DESIRED HEAD "interfaces: [{name: lo}]\nsegments: [{name: x, peer: paris, connect: 192.0.2.7:8620}]\n"

static struct ow_config *parse(const char *own, const char *desired, struct ow_error *err)
{
	struct ow_config *config = NULL;
	ow_config_parse_with("conf/t.yaml", own, strlen(own), desired, desired ? strlen(desired) : 0, &config, err);
	return config;
}

static void three_keys_are_enough(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_config *c = parse(THREE, DESIRED, &err);
	assert_non_null(c);
	assert_string_equal(c->point, "london");
	assert_string_equal(c->fleet.address, "fleet.example");
	assert_string_equal(c->certificate, "conf/s/point.pem");
	assert_string_equal(c->key, "conf/s/point.key");
	assert_string_equal(c->ca, "conf/s/ca.pem");
	assert_string_equal(c->store, "conf/s/results.db");
	assert_int_equal(c->fleet.version, 7);
	assert_int_equal(c->segment_count, 1);
	assert_string_equal(c->fleet.kept, "");
	assert_false(c->fleet.waits);
	assert_true(c->fleet.interfaces);
	ow_config_free(c);
}

static void waits_for_the_fleet(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_config *c = parse(THREE, NULL, &err);
	assert_non_null(c);
	assert_true(c->fleet.waits);
	assert_int_equal(c->fleet.version, 0);
	ow_config_free(c);
}

static void own_file_wins(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_config *c = parse(THREE "interfaces: [{name: eth7}]\nmemory: 1GiB\nstore: own.db\n",
	                            DESIRED "memory: 2GiB\nretention: 5d\n", &err);
	assert_non_null(c);
	assert_string_equal(c->interfaces[0].name, "eth7");
	assert_false(c->fleet.interfaces);
	assert_int_equal(c->memory, UINT64_C(1) << 30);
	assert_int_equal(c->retention_ns[OW_PERIOD_INTERVAL], 5 * 86400 * INT64_C(1000000000));
	assert_string_equal(c->fleet.kept, "interfaces, memory");
	assert_string_equal(c->store, "conf/own.db");
	ow_config_free(c);
}

static void refuses(void **state)
{
	(void)state;
	static const struct {
		const char *own, *desired, *why;
	} cases[] = {
		{THREE, HEAD "user: root\n", "'user' can only be in the point's own file"},
		{THREE, HEAD "sandbox: false\n", "'sandbox' can only"},
		{THREE, HEAD "store: /etc/passwd\n", "'store' can only"},
		{THREE, HEAD "key: /tmp/k\n", "'key' can only"},
		{THREE, HEAD "fleet: {address: x}\n", "'fleet' can only"},
		{THREE, HEAD "interfaces: [{file: /etc/passwd}]\n", "a 'file' can only"},
		{THREE, HEAD "- a\n", "must be keys"},
		{THREE, "interfaces: [{name: lo}]\n", "its first line says something else"},
		{THREE, "# oneway: desired state of london, version 0, signature Q\nmemory: 1GiB\n", "first line"},
		{THREE, "# oneway: desired state of london, version 7, by me, signature Q\nmemory: 1GiB\n",
	         "first line"},
		{THREE, "# oneway: desired state of lon don, version 7, signature Q\nmemory: 1GiB\n", "first line"},
		{THREE, "x", "first line"},
		{THREE, HEAD "memory: 7\n", "is not in"},
		{"fleet: {name: london}\n", NULL, "has no address"},
		{"point: a\nfleet: {address: x, name: b}\n", NULL, "two names"},
		{"fleet: {address: x, name: a/b}\n", NULL, "a point's name"},
		{"fleet: {address: x, nam: b}\n", NULL, "did you mean 'name'"},
		{"fleet: x\n", NULL, "must be keys"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_error err = {""};
		struct ow_config *c = parse(cases[i].own, cases[i].desired, &err);
		if (c || !strstr(err.text, cases[i].why))
			fail_msg("%zu: '%s' instead of '%s'", i, err.text, cases[i].why);
	}
}

static void put(const char *folder, const char *name, const char *text)
{
	struct ow_error err;
	char *path = ow_state_path(folder, name);
	assert_int_equal(ow_state_write(path, text, strlen(text), &err), 0);
	free(path);
}

/* A desired state that is wrong leaves the accepted one in force, after a restart as well. */
static void falls_back(void **state)
{
	(void)state;
	char root[] = "/tmp/oneway-config-fleet-XXXXXX", folder[64], file[64];
	struct ow_error err;
	struct ow_config *c = NULL;
	assert_non_null(mkdtemp(root));
	snprintf(folder, sizeof folder, "%s/s", root);
	snprintf(file, sizeof file, "%s/t.yaml", root);
	assert_int_equal(mkdir(folder, 0700), 0);
	put(root, "t.yaml", THREE);
	assert_int_equal(ow_config_load(file, &c, &err), 0);
	assert_true(c->fleet.waits);
	ow_config_free(c);

	put(folder, OW_FLEET_DESIRED, DESIRED);
	assert_int_equal(ow_config_load(file, &c, &err), 0);
	assert_int_equal(c->fleet.version, 7);
	assert_int_equal(c->fleet.refused, 0);
	assert_int_equal(ow_config_accept(c, &err), 0);
	ow_config_free(c);

	put(folder, OW_FLEET_DESIRED, "# oneway: desired state of london, version 8, signature QUJD\nmemry: 1GiB\n");
	assert_int_equal(ow_config_load(file, &c, &err), 0);
	assert_int_equal(c->fleet.version, 7);
	assert_int_equal(c->fleet.refused, 8);
	assert_non_null(strstr(c->fleet.why.text, "memry"));
	ow_config_free(c);

	/* Without an accepted one, the point's own file is used alone. */
	char *accepted = ow_state_path(folder, OW_FLEET_ACCEPTED);
	unlink(accepted);
	free(accepted);
	assert_int_equal(ow_config_load(file, &c, &err), 0);
	assert_int_equal(c->fleet.version, 0);
	assert_int_equal(c->fleet.refused, 8);
	assert_true(c->fleet.waits);
	ow_config_free(c);

	char command[128];
	snprintf(command, sizeof command, "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_keys_are_enough),
		cmocka_unit_test(waits_for_the_fleet),
		cmocka_unit_test(own_file_wins),
		cmocka_unit_test(refuses),
		cmocka_unit_test(falls_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
