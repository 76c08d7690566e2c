/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of programs and libraries of different versions. */
#include "base/versioned.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

struct first {
	size_t size;
	uint64_t a;
};

struct second {
	size_t size;
	uint64_t a, b;
};

static void test_older_program(void **state)
{
	(void)state;
	struct first program = {sizeof program, 7};
	struct second library;
	memset(&library, 0xff, sizeof library);
	assert_int_equal(ow_versioned_take(&library, sizeof library, &program, sizeof program, "s", NULL), 0);
	assert_true(library.size == sizeof library && library.a == 7 && library.b == 0);
	library = (struct second){sizeof library, 8, 9};
	/* What is behind the program's struct is not written. */
	struct first pair[2] = {{sizeof *pair, 0}, {1, 2}};
	assert_int_equal(ow_versioned_give(pair, sizeof *pair, &library, sizeof library, "s", NULL), 0);
	assert_true(pair[0].size == sizeof *pair && pair[0].a == 8 && pair[1].size == 1 && pair[1].a == 2);
}

static void test_newer_program(void **state)
{
	(void)state;
	struct second program = {sizeof program, 7, 0};
	struct first library;
	struct ow_error err;
	assert_int_equal(ow_versioned_take(&library, sizeof library, &program, sizeof library, "s", &err), 0);
	assert_true(library.size == sizeof library && library.a == 7);
	program.b = UINT64_C(1) << 63;
	assert_int_equal(ow_versioned_take(&library, sizeof library, &program, sizeof library, "s", &err), -E2BIG);
	assert_non_null(strstr(err.text, "struct s: "));
	assert_int_equal(ow_versioned_give(&program, sizeof library, &library, sizeof library, "s", &err), 0);
	assert_true(program.size == sizeof library && program.a == 7 && program.b == 0);
}

/* Not set, or of no version: nothing is read or written beyond the size. */
static void test_no_size(void **state)
{
	(void)state;
	struct first program = {0}, library = {sizeof library, 5}, was = library;
	struct ow_error err;
	for (; program.size < sizeof program; program.size++) {
		assert_int_equal(ow_versioned_take(&library, sizeof library, &program, sizeof library, "s", &err),
		                 -EINVAL);
		assert_non_null(strstr(err.text, "size is"));
		assert_int_equal(ow_versioned_give(&program, sizeof library, &library, sizeof library, "s", &err),
		                 -EINVAL);
		assert_memory_equal(&library, &was, sizeof was);
		assert_int_equal(program.a, 0);
	}
}

static void test_init(void **state)
{
	(void)state;
	struct second s;
	memset(&s, 0xff, sizeof s);
	ow_versioned_init(&s, sizeof(struct first));
	assert_true(s.size == sizeof(struct first) && s.a == 0 && s.b == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_older_program),
		cmocka_unit_test(test_newer_program),
		cmocka_unit_test(test_no_size),
		cmocka_unit_test(test_init),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
