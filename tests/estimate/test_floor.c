/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/floor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static int64_t floor_of(const int64_t *first, unsigned count, unsigned others)
{
	struct ow_floor floor;
	ow_floor_init(&floor);
	for (unsigned i = 0; i < others; i++)
		ow_floor_add(&floor, 5000000 + (i * 7919 % others) * 100); /* 5 ms, and up to 0.1 us each */
	for (unsigned i = 0; i < count; i++)
		ow_floor_add(&floor, first[i]);
	return ow_floor_find(&floor, 5000000 + others / 2 * 100);
}

static void outliers(void **state)
{
	(void)state;
	const int64_t few[] = {-5000000, 1000000}, near[] = {4990000},
		      many[] = {1000000, 1000100, 1000200, 1000300, 1000400, 1000500};
	assert_int_equal(floor_of(NULL, 0, 1000), 5000000);
	assert_int_equal(floor_of(few, 1, 1000), 5000000);
	assert_int_equal(floor_of(few, 2, 1000), 5000000);
	assert_int_equal(floor_of(near, 1, 1000), 4990000); /* within what others vary by */
	assert_int_equal(floor_of(many, 6, 1000), 1000000); /* too many to be wrong */
	assert_int_equal(floor_of(few, 1, 10), -5000000);   /* of few samples none is left out */
	assert_int_equal(floor_of(few, 1, 0), -5000000);
}

static void the_least_are_kept(void **state)
{
	(void)state;
	struct ow_floor floor;
	ow_floor_init(&floor);
	for (int i = 0; i < 1009; i++)
		ow_floor_add(&floor, i * 611 % 1009); /* each once: 1009 is prime */
	assert_int_equal(floor.samples, 1009);
	for (int i = 0; i < OW_FLOOR_KEPT; i++)
		assert_int_equal(floor.least_ns[i], i);
}

/* As far below the least as the kept ones reach above it. */
static void others_may_be_faster(void **state)
{
	(void)state;
	struct ow_floor dense, sparse;
	ow_floor_init(&dense);
	ow_floor_init(&sparse);
	for (int i = 0; i < 1000; i++) {
		ow_floor_add(&dense, 1000000 + i * 10);
		ow_floor_add(&sparse, 2000000 + i * 100000);
	}
	assert_int_equal(ow_floor_below(&dense, 1000000), 1000000 - 15 * 10);
	assert_int_equal(ow_floor_below(&sparse, 2000000), 2000000 - 15 * 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outliers),
		cmocka_unit_test(the_least_are_kept),
		cmocka_unit_test(others_may_be_faster),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
