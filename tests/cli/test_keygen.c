/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of `oneway point keygen`; tests/exchange/test_keys.c tests the keys themselves. */
#include "cli/cli.h"
#include "exchange/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* Instead of main's. */
static char said[512];

int ow_cli_failed(const char *command, const struct ow_error *err)
{
	snprintf(said, sizeof said, "%s: %.400s", command, err->text);
	return OW_EXIT_FAILED;
}

int ow_cli_misused(const char *command, const struct ow_error *err)
{
	snprintf(said, sizeof said, "%s: %.400s", command, err->text);
	return OW_EXIT_USAGE;
}

static int run(const char *const *words)
{
	char *argv[16] = {NULL};
	int argc = 0;
	said[0] = '\0';
	for (; words[argc]; argc++)
		argv[argc] = (char *)words[argc];
	int code = ow_cli_point_keygen(argc, argv);
	fflush(stdout);
	return code;
}
#define RUN(...) run((const char *const[]){"keygen", __VA_ARGS__, NULL})

static void makes_keys(void **state)
{
	(void)state;
	char folder[] = "/tmp/oneway-keygen-XXXXXX", command[64];
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(RUN("--folder", "keys", "london", "--days=10", "paris"), OW_EXIT_OK);
	static const char *const files[] = {"ca.pem", "ca.key", "london.pem", "london.key", "paris.pem", "paris.key"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char path[64];
		snprintf(path, sizeof path, "keys/%s", files[i]);
		assert_int_equal(access(path, R_OK), 0);
	}
	assert_int_equal(RUN("-f", "keys", "rome"), OW_EXIT_OK);
	assert_int_equal(RUN("-f", "keys", "rome"), OW_EXIT_FAILED);
	assert_non_null(strstr(said, "keys/rome.key is there already"));
	assert_int_equal(RUN("--psk", "lab.psk"), OW_EXIT_OK);
	struct ow_tls *tls = NULL;
	struct ow_tls_options options = {.psk_file = "lab.psk", .name = "london"};
	assert_int_equal(ow_tls_create(&options, &tls, NULL), 0);
	ow_tls_free(tls);
	assert_int_equal(RUN("--psk", "lab.psk"), OW_EXIT_FAILED);
	assert_int_equal(RUN("berlin"), OW_EXIT_OK);
	assert_int_equal(access("berlin.key", R_OK), 0);
	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

static void refuses_wrong_usage(void **state)
{
	(void)state;
	assert_int_equal(run((const char *const[]){"keygen", NULL}), OW_EXIT_USAGE);
	assert_non_null(strstr(said, "give the names of the points, or --psk FILE"));
	assert_int_equal(RUN("--psk", "x", "london"), OW_EXIT_USAGE);
	assert_int_equal(RUN("--days", "0", "london"), OW_EXIT_USAGE);
	assert_int_equal(RUN("--days", "1M", "london"), OW_EXIT_USAGE);
	assert_int_equal(RUN("--dayz", "1", "london"), OW_EXIT_USAGE);
	assert_int_equal(RUN("--folder", "/nonexistent/x", "london"), OW_EXIT_FAILED);
	assert_int_equal(RUN("a b"), OW_EXIT_FAILED);
	assert_int_equal(RUN("--help"), OW_EXIT_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_keys),
		cmocka_unit_test(refuses_wrong_usage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
