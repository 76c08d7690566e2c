/* SPDX-License-Identifier: Apache-2.0 */
#include "match/copies_aside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define ROOM 131072 /* copies that are kept */

static void add(struct ow_copies_aside *aside, uint64_t id, int64_t time_ns)
{
	ow_copies_aside_add(aside, &(struct ow_record){.id = id, .time_ns = time_ns});
}

/* The time of the copy that is taken; -1 if there is none. */
static int64_t take(struct ow_copies_aside *aside, uint64_t id, int64_t from_ns, int64_t to_ns)
{
	struct ow_record record;
	return ow_copies_aside_take(aside, id, from_ns, to_ns, &record) ? record.time_ns : -1;
}

static void copies_are_taken_once(void **state)
{
	(void)state;
	struct ow_copies_aside *aside = ow_copies_aside_create();
	assert_non_null(aside);
	for (int round = 0; round < 2; round++) {
		add(aside, 1, 10);
		add(aside, 2, 20); /* in the same bucket */
		add(aside, 1, 30);
		add(aside, 1, 40);
		assert_int_equal(take(aside, 3, 0, 100), -1);
		assert_int_equal(take(aside, 1, 0, 5), -1);
		assert_int_equal(take(aside, 1, 15, 35), 30); /* and 10 is forgotten */
		assert_int_equal(take(aside, 1, 0, 35), -1);
		assert_int_equal(take(aside, 2, 0, 100), 20);
		assert_int_equal(take(aside, 1, 0, 100), 40);
		assert_int_equal(take(aside, 1, 0, 100), -1);
		add(aside, 1, 50);
		ow_copies_aside_reset(aside);
		assert_int_equal(take(aside, 1, 0, 100), -1);
	}
	ow_copies_aside_free(aside);
	ow_copies_aside_free(NULL);
}

static void the_oldest_make_room(void **state)
{
	(void)state;
	struct ow_copies_aside *aside = ow_copies_aside_create();
	assert_non_null(aside);
	for (int64_t i = 0; i < 3 * ROOM; i++)
		add(aside, (uint64_t)i % 1000 << 20, i);
	assert_int_equal(take(aside, 0, 0, 2 * ROOM - 1), -1);
	assert_int_equal(take(aside, 0, 0, 3 * ROOM), (2 * ROOM + 999) / 1000 * 1000);
	ow_copies_aside_free(aside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_taken_once),
		cmocka_unit_test(the_oldest_make_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
