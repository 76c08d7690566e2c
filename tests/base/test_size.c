/* SPDX-License-Identifier: Apache-2.0 */
#include "base/size.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void sizes(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t bytes;
	} some[] = {{"4096", 4096}, {"64MiB", 64 << 20}, {"1GB", 1000000000}, {"1.5G", 3 << 29}, {"512K", 512 << 10}};
	uint64_t bytes = 7;
	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		assert_int_equal(ow_size_parse(some[i].text, &bytes, NULL), 0);
		assert_int_equal(bytes, some[i].bytes);
	}
	static const char *const none[] = {"", "MiB", "-1", "nan", "1e300", "5 apples", "1 MiB x", "inf"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		assert_int_equal(ow_size_parse(none[i], &bytes, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sizes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
