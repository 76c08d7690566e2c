/* SPDX-License-Identifier: Apache-2.0 */
#include "match/duplicate_filter.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static bool seen(struct ow_duplicate_filter *dedup, uint64_t id, uint32_t seq, uint32_t len, int64_t time_ns)
{
	const struct ow_copy_rule rule = {.within_ns = 1000, .most = UINT32_MAX};
	struct ow_record record = {.id = id, .seq = seq, .len = len, .time_ns = time_ns};
	ow_duplicate_filter_note(dedup, &rule, &record);
	return record.again;
}

static void copies_within_the_time(void **state)
{
	(void)state;
	struct ow_duplicate_filter *dedup = ow_duplicate_filter_create();
	assert_non_null(dedup);
	for (int round = 0; round < 2; round++) {
		assert_false(seen(dedup, 7, 0, 0, 5000));
		assert_true(seen(dedup, 7, 0, 0, 5000));
		assert_true(seen(dedup, 7, 0, 0, 6000));
		assert_true(seen(dedup, 7, 0, 0, 4500));  /* timestamps may go backwards a little */
		assert_false(seen(dedup, 7, 0, 0, 6001)); /* counted from the first: a packet that is sent again */
		assert_false(seen(dedup, 0, 0, 0, 0));
		assert_true(seen(dedup, 0, 0, 0, 0));
		ow_duplicate_filter_reset(dedup);
	}
	ow_duplicate_filter_free(dedup);
}

static void pieces_differ_by_their_range(void **state)
{
	(void)state;
	struct ow_duplicate_filter *dedup = ow_duplicate_filter_create();
	assert_non_null(dedup);
	assert_false(seen(dedup, 9, 100, 50, 0));
	assert_false(seen(dedup, 9, 150, 50, 0));
	assert_false(seen(dedup, 9, 100, 49, 0));
	assert_true(seen(dedup, 9, 150, 50, 10));
	ow_duplicate_filter_free(dedup);
	ow_duplicate_filter_free(NULL);
}

/* Copies are found behind thousands of other packets, wherever these are kept. */
static void copies_behind_many_others(void **state)
{
	(void)state;
	struct ow_duplicate_filter *dedup = ow_duplicate_filter_create();
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
	ow_duplicate_filter_free(dedup);
}

/* Classes follow each other, and their ends are where they say. */
static void lags_have_classes(void **state)
{
	(void)state;
	assert_int_equal(ow_lag_class(0), 0);
	assert_int_equal(ow_lag_class(OW_LAG_MOST_NS + 1), OW_LAG_CLASSES);
	assert_int_equal(ow_lag_class(INT64_MAX), OW_LAG_CLASSES);
	for (unsigned i = 0; ow_lag_class_end(i) <= OW_LAG_MOST_NS; i++) {
		assert_int_equal(ow_lag_class(ow_lag_class_end(i) - 1), i);
		assert_int_equal(ow_lag_class(ow_lag_class_end(i)), i + 1);
		assert_true(i + 1 < OW_LAG_CLASSES);
	}
}

/* A packet has one copy, at the lag of the rule. A host that repeats it sooner, or later, sends packets of its own. */
static void copies_at_a_lag(void **state)
{
	(void)state;
	struct ow_copy_rule rule = {.within_ns = -1, .most = 1};
	rule.lag[ow_lag_class(50000)] = rule.lag[ow_lag_class(52000)] = true;
	assert_in_range(ow_copy_rule_longest(&rule), 52000, 66000);
	static const struct {
		int64_t time_ns;
		bool again;
		uint32_t lag_ns;
	} shown[] = {
		{0, false, UINT32_MAX}, {20000, false, 20000},   {50000, true, 30000},  {71000, true, 51000},
		{72000, false, 52000},  {200000, false, 128000}, {251000, true, 51000}, {252000, false, 52000},
	};
	struct ow_duplicate_filter *dedup = ow_duplicate_filter_create();
	assert_non_null(dedup);
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		struct ow_record record = {.id = 7, .time_ns = shown[i].time_ns};
		ow_duplicate_filter_note(dedup, &rule, &record);
		assert_int_equal(record.again, shown[i].again);
		assert_int_equal(record.lag_ns, shown[i].lag_ns);
	}
	ow_duplicate_filter_free(dedup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lags_have_classes),         cmocka_unit_test(copies_at_a_lag),
		cmocka_unit_test(copies_within_the_time),    cmocka_unit_test(pieces_differ_by_their_range),
		cmocka_unit_test(copies_behind_many_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
