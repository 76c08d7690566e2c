/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "estimate/reorder_extent.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* RFC 4737, section 4.2.1: as it is defined. */
static void by_definition(void **state)
{
	(void)state;
	enum { PACKETS = 2000 };
	static uint64_t number[PACKETS];
	struct ow_random random;
	ow_random_seed(&random, 7);
	for (unsigned seed = 0; seed < 5; seed++) {
		struct ow_reorder_extent e;
		struct ow_reordering found;
		uint64_t reordered = 0, most = 0, sum = 0;
		assert_int_equal(ow_reorder_extent_init(&e), 0);
		for (unsigned i = 0; i < PACKETS; i++)
			number[i] = i + ow_random_u64(&random) % (1 + 20 * seed);
		for (unsigned i = 0; i < PACKETS; i++) {
			unsigned first = 0;
			ow_reorder_extent_add(&e, number[i], 1);
			while (number[first] <= number[i] && first < i)
				first++;
			reordered += first < i;
			sum += i - first;
			most = i - first > most ? i - first : most;
		}
		ow_reorder_extent_get(&e, &found);
		assert_int_equal(found.arrived, PACKETS);
		assert_int_equal(found.reordered, reordered);
		assert_int_equal(found.extent.samples, reordered);
		assert_true(!reordered || found.extent.max == most);
		assert_true(!reordered || (uint64_t)(found.extent.mean * (double)reordered + 0.5) == sum);
		assert_int_equal(found.beyond, 0);
		ow_reorder_extent_done(&e);
	}
}

/* What is further than can be followed is counted, and said. */
static void beyond(void **state)
{
	(void)state;
	struct ow_reorder_extent e;
	struct ow_reordering found;
	assert_int_equal(ow_reorder_extent_init(&e), 0);
	for (uint64_t i = 2; i < 3 * OW_REORDER_EXTENT_MAX; i++)
		ow_reorder_extent_add(&e, i, 1);
	ow_reorder_extent_add(&e, 1, 1);
	ow_reorder_extent_get(&e, &found);
	assert_int_equal(found.reordered, 1);
	assert_int_equal(found.beyond, 1);
	assert_int_equal(found.extent.max, OW_REORDER_EXTENT_MAX);
	ow_reorder_extent_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(by_definition), cmocka_unit_test(beyond)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
