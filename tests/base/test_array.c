/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* Items stay, room doubles, so that n items cost at most 2n copies. */
static void keeps_items(void **state)
{
	(void)state;
	uint32_t *items = NULL;
	uint16_t room = 0;
	unsigned grown = 0;
	for (uint32_t i = 0; i < 10000; i++) {
		uint16_t before = room;
		assert_int_equal(OW_GROW(items, room, i + 1), 0);
		assert_true(room > i);
		grown += room != before;
		items[i] = i * 7;
	}
	assert_true(grown <= 11);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(items[i], i * 7);
	free(items);
}

/* Where it grows, all that is new is zero; what was there stays. */
static void new_items_are_zero(void **state)
{
	(void)state;
	uint64_t *items = NULL;
	uint32_t room = 0, before = 0;
	for (uint32_t needed = 1; needed < 5000; needed += needed / 3 + 1) {
		assert_int_equal(OW_GROW_ZEROED(items, room, needed), 0);
		for (uint32_t i = 0; i < room; i++) {
			assert_int_equal(items[i], i < before ? 7 : 0);
			items[i] = 7;
		}
		before = room;
	}
	free(items);
}

static void too_much(void **state)
{
	(void)state;
	uint64_t *items = NULL, *before;
	size_t room = 0;
	assert_int_equal(OW_GROW(items, room, 3), 0);
	before = items;
	assert_int_equal(OW_GROW(items, room, SIZE_MAX / 2), -ENOMEM);
	assert_int_equal(OW_GROW(items, room, SIZE_MAX), -ENOMEM);
	assert_ptr_equal(items, before);
	assert_true(room >= 3 && room < 100);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_items), cmocka_unit_test(new_items_are_zero),
	                                   cmocka_unit_test(too_much)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
