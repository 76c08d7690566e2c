/* SPDX-License-Identifier: Apache-2.0 */
#include "match/duplicate_filter.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static bool seen(struct ow_dedup *dedup, uint64_t id, uint32_t seq, uint32_t len, int64_t time_ns)
{
	struct ow_record record = {.id = id, .seq = seq, .len = len, .time_ns = time_ns};
	return ow_dedup_seen(dedup, &record, 1000);
}

static void copies_within_the_time(void **state)
{
	(void)state;
	struct ow_dedup *dedup = ow_dedup_create();
	assert_non_null(dedup);
	for (int round = 0; round < 2; round++) {
		assert_false(seen(dedup, 7, 0, 0, 5000));
		assert_true(seen(dedup, 7, 0, 0, 5000));
		assert_true(seen(dedup, 7, 0, 0, 6000));
		assert_true(seen(dedup, 7, 0, 0, 4500));  /* timestamps may go backwards a little */
		assert_false(seen(dedup, 7, 0, 0, 6001)); /* counted from the first: a packet that is sent again */
		assert_false(seen(dedup, 0, 0, 0, 0));
		assert_true(seen(dedup, 0, 0, 0, 0));
		ow_dedup_reset(dedup);
	}
	ow_dedup_free(dedup);
}

static void pieces_differ_by_their_range(void **state)
{
	(void)state;
	struct ow_dedup *dedup = ow_dedup_create();
	assert_non_null(dedup);
	assert_false(seen(dedup, 9, 100, 50, 0));
	assert_false(seen(dedup, 9, 150, 50, 0));
	assert_false(seen(dedup, 9, 100, 49, 0));
	assert_true(seen(dedup, 9, 150, 50, 10));
	ow_dedup_free(dedup);
	ow_dedup_free(NULL);
}

/* Copies are found behind thousands of other packets, wherever these are kept. */
static void copies_behind_many_others(void **state)
{
	(void)state;
	struct ow_dedup *dedup = ow_dedup_create();
	struct ow_random random;
	ow_random_seed(&random, 11);
	uint64_t id[5000];
	assert_non_null(dedup);
	for (unsigned round = 0; round < 20; round++) {
		for (size_t i = 0; i < 5000; i++) {
			id[i] = ow_random_u64(&random);
			assert_false(seen(dedup, id[i], 0, 0, 100000 * (int64_t)round));
		}
		for (size_t i = 0; i < 5000; i++)
			assert_true(seen(dedup, id[i], 0, 0, 100000 * (int64_t)round + 500));
	}
	ow_dedup_free(dedup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_within_the_time),
		cmocka_unit_test(pieces_differ_by_their_range),
		cmocka_unit_test(copies_behind_many_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
