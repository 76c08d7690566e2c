/* SPDX-License-Identifier: Apache-2.0 */
#include "base/library.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void a_function_of_a_library_can_be_called(void **state)
{
	(void)state;
	unsigned long (*crc)(unsigned long, const unsigned char *, unsigned) = NULL;
	const struct ow_library_function functions[] = {{"crc32", &crc}};
	struct ow_error err;
	assert_int_equal(ow_library_load("libz.so.1", functions, 1, &err), 0);
	assert_int_equal(crc(0, (const unsigned char *)"123456789", 9), 0xcbf43926);
}

static void what_is_not_there_is_named(void **state)
{
	(void)state;
	void (*function)(void) = NULL;
	const struct ow_library_function functions[] = {{"no_such_function", &function}};
	struct ow_error err;
	assert_int_equal(ow_library_load("libno-such.so.1", functions, 1, &err), -ENOENT);
	assert_non_null(strstr(err.text, "libno-such.so.1"));
	assert_int_equal(ow_library_load("libz.so.1", functions, 1, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no_such_function"));
	assert_null(function);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_of_a_library_can_be_called),
		cmocka_unit_test(what_is_not_there_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
