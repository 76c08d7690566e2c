/* SPDX-License-Identifier: Apache-2.0 */
/* The bounded table of scope: entries are found, grow to a limit, and the oldest go. */
#include "reconcile/scope_table.h"

#include "base/hash.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SLOTS 256u
#define MOST  (SLOTS / 4 * 3)

struct item {
	_Alignas(OW_SCOPE_LINE) struct ow_scope_entry entry;
	uint64_t value;
};

static struct item *get(struct ow_scope_table *table, uint64_t key, int32_t tick)
{
	return ow_scope_table_get(table, key, tick);
}

/* Entries begin with a line of the cache, are zero at first, and keep what they have while the table grows. */
static void test_grows(void **state)
{
	(void)state;
	struct ow_scope_table table;
	ow_scope_table_init(&table, sizeof(struct item), SLOTS, 5);
	assert_null(ow_scope_table_find(&table, 1));
	ow_scope_table_prefetch(&table, 1, 1);
	for (uint64_t key = 0; key < MOST; key++) {
		struct item *item = get(&table, key == 1 ? UINT64_MAX : key, 0); /* 0 and 1 are the same */
		assert_non_null(item);
		assert_true((uintptr_t)item % OW_SCOPE_LINE == 0 && item->value == 0);
		item->value = key + 1;
	}
	assert_int_equal(table.used, MOST);
	for (uint64_t key = 0; key < MOST; key++) {
		const struct item *item = ow_scope_table_find(&table, key == 1 ? UINT64_MAX : key);
		ow_scope_table_prefetch(&table, key, 1);
		assert_true(item && item->value == key + 1);
	}
	assert_ptr_equal(ow_scope_table_find(&table, 0), ow_scope_table_find(&table, 1));
	ow_scope_table_done(&table);
	assert_null(ow_scope_table_find(&table, 0));
}

/* A full table gives up a quarter, the oldest, and nothing of this tick. */
static void test_oldest_go(void **state)
{
	(void)state;
	struct ow_scope_table table;
	ow_scope_table_init(&table, sizeof(struct item), SLOTS, 6);
	for (uint64_t key = 1; key <= MOST; key++)
		assert_non_null(get(&table, ow_mix64(key), key <= MOST / 2 ? 1 : 2));
	assert_non_null(get(&table, ow_mix64(1), 3)); /* used again */
	uint64_t moves = table.moves;
	assert_non_null(get(&table, ow_mix64(MOST + 1), 3));
	assert_int_equal(table.moves, moves + 1);
	assert_int_equal(table.used, MOST - MOST / 2 + 2);
	assert_non_null(ow_scope_table_find(&table, ow_mix64(1)));
	assert_null(ow_scope_table_find(&table, ow_mix64(2)));
	assert_non_null(ow_scope_table_find(&table, ow_mix64(MOST)));
	/* All of one tick: what is new gets no entry, without a search each time. */
	for (uint64_t key = 1; key <= MOST; key++)
		(void)get(&table, ow_mix64(1000 + key), 9);
	moves = table.moves;
	size_t used = table.used;
	assert_int_equal(used, MOST);
	for (uint64_t key = 1; key <= 1000; key++)
		assert_null(get(&table, ow_mix64(5000 + key), 9));
	assert_true(table.moves == moves && table.used == used);
	assert_non_null(get(&table, ow_mix64(5001), 10));
	ow_scope_table_done(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_grows), cmocka_unit_test(test_oldest_go)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
