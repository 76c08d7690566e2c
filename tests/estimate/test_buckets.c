/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed buckets of delays: bounds, and samples that stand for several packets. */
#include "estimate/buckets.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static uint64_t sum(const uint64_t *bucket)
{
	uint64_t all = 0;
	for (unsigned b = 0; b <= OW_BUCKETS; b++)
		all += bucket[b];
	return all;
}

static void bounds_belong_to_the_bucket_below(void **state)
{
	(void)state;
	uint64_t bucket[OW_BUCKETS + 1] = {0};
	for (unsigned b = 0; b < OW_BUCKETS; b++) {
		assert_true(b == 0 || ow_bucket_ns[b] > ow_bucket_ns[b - 1]);
		ow_buckets_add(bucket, (double)ow_bucket_ns[b], 1);
		assert_int_equal(bucket[b], 1 + (b > 0));
		ow_buckets_add(bucket, (double)ow_bucket_ns[b] + 0.5, 1);
		assert_int_equal(bucket[b + 1], 1);
	}
	ow_buckets_add(bucket, -1e18, 7);
	assert_int_equal(bucket[0], 8);
	ow_buckets_add(bucket, 1e18, 5);
	assert_int_equal(bucket[OW_BUCKETS], 6);
}

static void samples_stand_for_all(void **state)
{
	(void)state;
	const int64_t delay[] = {900, 900, 20000, 3000000000, -5, 90000000000};
	for (uint64_t packets = 6; packets < 2000; packets += 7) {
		uint64_t bucket[OW_BUCKETS + 1] = {0};
		ow_buckets_sample(bucket, delay, 6, packets);
		assert_int_equal(sum(bucket), packets);
		/* Each is off by less than one packet. */
		assert_in_range(6 * bucket[1], 2 * packets - 6, 2 * packets + 6);
		assert_in_range(6 * bucket[0], packets - 6, packets + 6);
		assert_in_range(6 * bucket[OW_BUCKETS], packets - 6, packets + 6);
	}
	uint64_t bucket[OW_BUCKETS + 1] = {0};
	ow_buckets_sample(bucket, delay, 6, UINT64_MAX);
	assert_true(sum(bucket) == UINT64_MAX);
	uint64_t none[OW_BUCKETS + 1] = {0};
	ow_buckets_sample(none, NULL, 0, 100);
	assert_int_equal(sum(none), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_belong_to_the_bucket_below),
		cmocka_unit_test(samples_stand_for_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
