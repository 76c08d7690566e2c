/* SPDX-License-Identifier: Apache-2.0 */
/* The memory budget: parts never add up to more than the budget, and every lane gets what it needs if possible. */
#include "base/random.h"
#include "base/time.h"
#include "config/memory_budget.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_retention(void **state)
{
	(void)state;
	struct ow_retention r;
	ow_agree_retention(OW_NS_PER_S, 0, 1, &r);
	assert_int_equal(r.intervals_max, 6); /* five seconds, and the one that is sent */
	assert_int_equal(r.open_max, 24);
	assert_int_equal(r.notice_ns, OW_RETAIN_NS);
	assert_int_equal(r.patience_ns, OW_PATIENCE_NS);
	/* Long intervals: the smallest number of waiting intervals, and two intervals until it is reported. */
	ow_agree_retention(60 * OW_NS_PER_S, 0, 1, &r);
	assert_int_equal(r.intervals_max, OW_RETAIN_MIN);
	assert_int_equal(r.notice_ns, 120 * OW_NS_PER_S);
	/* Short ones are capped, however far the clocks are apart. */
	ow_agree_retention(OW_NS_PER_MS, 3600 * OW_NS_PER_S, 1, &r);
	assert_int_equal(r.intervals_max, OW_RETAIN_MAX);
	assert_int_equal(r.open_max, 4096);
	/* The sign of the skew does not matter; a file that is replayed slowly is no reason for less. */
	struct ow_retention early, late, slow;
	ow_agree_retention(OW_NS_PER_S, -3 * OW_NS_PER_S, 1, &early);
	ow_agree_retention(OW_NS_PER_S, 3 * OW_NS_PER_S, 1, &late);
	assert_memory_equal(&early, &late, sizeof late);
	assert_int_equal(late.intervals_max, 9);
	ow_agree_retention(OW_NS_PER_S, 3 * OW_NS_PER_S, 0.1, &slow);
	assert_memory_equal(&slow, &late, sizeof late);
	ow_agree_retention(OW_NS_PER_S, 0, 10, &r);
	assert_int_equal(r.intervals_max, 51);
}

/*
 * A lane with the smallest number of bytes has intervals of the smallest size, one byte less has none; they fit into
 * the lane.
 */
static void test_stamps(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 1);
	for (int i = 0; i < 1000; i++) {
		struct ow_retention r;
		ow_agree_retention((int64_t)(1 + ow_random_u64(&random) % (100 * OW_NS_PER_S)), 0, 1, &r);
		uint64_t least = ow_agree_least(&r), bytes = ow_random_u64(&random) >> 24;
		assert_int_equal(ow_agree_stamps(least, &r), OW_SIGHTINGS_LEAST);
		assert_int_equal(ow_agree_stamps(least - 1, &r), 0);
		assert_true(ow_agree_stamps(bytes, &r) * OW_SIGHTING_BYTES * (r.intervals_max + 2) <= bytes);
		assert_true(ow_agree_retained(bytes, &r) <= bytes);
	}
}

/* Lanes that come one after the other, each with its own need. */
static void test_shares(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 2);
	for (int run = 0; run < 2000; run++) {
		uint64_t need[8], others = 0, left = ow_random_u64(&random) >> 34, budget = left;
		unsigned lanes = 1 + (unsigned)(ow_random_u64(&random) % 8);
		bool open_ended = run % 2;
		for (unsigned i = 0; i < lanes; i++)
			others += need[i] = ow_random_u64(&random) >> 36;
		bool enough = others <= left;
		for (unsigned i = 0; i < lanes; i++) {
			others -= need[i];
			uint64_t share = ow_agree_share(left, lanes - i, open_ended, need[i], others);
			assert_true(share <= left);
			if (enough)
				assert_true(share >= need[i]);
			left -= share;
		}
		/* Of a lane that is equal to all others, nothing stays unused but what rounding leaves. */
		uint64_t equal = ow_agree_share(budget, lanes, open_ended, 0, 0);
		assert_true(equal == budget / (lanes + open_ended));
	}
	/* The last one takes all. */
	assert_int_equal(ow_agree_share(1000, 1, false, 10, 0), 1000);
	assert_int_equal(ow_agree_share(1000, 0, false, 10, 0), 1000);
}

static void test_needed(void **state)
{
	(void)state;
	struct ow_config_segment segments[2] = {{.interval_ns = OW_NS_PER_S, .class_count = 3},
	                                        {.interval_ns = 60 * OW_NS_PER_S}};
	struct ow_config config = {.segments = segments, .segment_count = 2};
	unsigned lanes;
	/* Both directions of three classes with 6 + 2 pages, and of one with 4 + 2. */
	uint64_t page = OW_SIGHTINGS_LEAST * OW_SIGHTING_BYTES;
	assert_int_equal(ow_agree_needed(&config, &lanes), page * (6 * 8 + 2 * 6));
	assert_int_equal(lanes, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_retention), cmocka_unit_test(test_stamps),
	                                   cmocka_unit_test(test_shares), cmocka_unit_test(test_needed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
