/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts divide time: every moment from the first start on is in exactly one interval, whatever the change of the shift. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "record/interval_cuts.h"

static void test_partition(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 9);
	for (int round = 0; round < 20000; round++) {
		int64_t length = 4 + (int64_t)ow_random_below(&random, 40);
		int64_t before = (int64_t)ow_random_below(&random, 100);
		int64_t after = before - length / 2 + (int64_t)ow_random_below(&random, 150);
		struct ow_interval_cuts cuts = {1000, length, (int64_t)ow_random_below(&random, 6), after, before};
		if (!cuts.change)
			cuts.before_ns = after;
		int64_t time = ow_cuts_start(&cuts, 0);
		assert_int_equal(ow_cuts_interval(&cuts, time - 1), -1);
		for (int64_t interval = 0; interval < 10; interval++) {
			int64_t end = ow_cuts_start(&cuts, interval + 1);
			assert_true(end > time);
			for (; time < end; time++)
				assert_int_equal(ow_cuts_interval(&cuts, time), interval);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_partition)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
