/* SPDX-License-Identifier: Apache-2.0 */
/* An error is one text that fits, whatever it is made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <oneway/error.h>
#include <string.h>

static void test_set(void **state)
{
	(void)state;
	struct ow_error err;
	assert_int_equal(ow_error_set(&err, EINVAL, "%s:%d: no such key", "a.yaml", 7), -EINVAL);
	assert_string_equal(err.text, "a.yaml:7: no such key");
	assert_int_equal(ow_error_set(NULL, ENOENT, "%s", "nobody asks"), -ENOENT);
}

static void test_long(void **state)
{
	(void)state;
	struct ow_error err;
	char path[2 * sizeof err.text];
	memset(path, 'x', sizeof path);
	path[sizeof path - 1] = 0;
	memset(&err, 'y', sizeof err);
	assert_int_equal(ow_error_set(&err, EIO, "%s: cannot be read", path), -EIO);
	assert_int_equal(strnlen(err.text, sizeof err.text), sizeof err.text - 1);
	assert_non_null(strstr(err.text, "x...x"));
	assert_non_null(strstr(err.text, "x: cannot be read"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_set), cmocka_unit_test(test_long)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
