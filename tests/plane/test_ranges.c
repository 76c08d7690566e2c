/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/ranges.h"
#include "base/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define SEED 21
#define POOL 4000

/* The set against a look at all ranges that were added: a small alphabet, so that most contents come again. */
static void by_contents(void **state)
{
	(void)state;
	static uint16_t pool[POOL];
	struct ow_random random;
	struct ow_ranges ranges = {0};
	uint32_t again = 0;
	ow_random_seed(&random, SEED);
	for (size_t i = 0; i < POOL; i++)
		pool[i] = (uint16_t)ow_random_below(&random, 3);
	for (int k = 0; k < 3000; k++) {
		struct ow_range range = {.nodes = (uint32_t)ow_random_below(&random, 9)};
		range.at = (uint32_t)ow_random_below(&random, POOL - range.nodes);
		bool known = false;
		for (uint32_t i = 0; i < ranges.count; i++)
			known |= ranges.range[i].nodes == range.nodes &&
			         memcmp(pool + ranges.range[i].at, pool + range.at, range.nodes * sizeof *pool) == 0;
		assert_int_equal(ow_ranges_has(&ranges, pool, range), known);
		uint32_t before = ranges.count;
		assert_int_equal(ow_ranges_add(&ranges, pool, range), !known);
		assert_int_equal(ranges.count, before + !known);
		assert_true(ow_ranges_has(&ranges, pool, range));
		again += known;
	}
	assert_true(again > 100 && ranges.count > 1000);
	ow_ranges_done(&ranges);
	assert_int_equal(ranges.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(by_contents)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
