/* SPDX-License-Identifier: Apache-2.0 */
/* The set of keys contains what was added and nothing else, also if keys collide. */
#include "base/random.h"
#include "reconcile/keyset.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define KEY_MASK ((UINT64_C(1) << 48) - 1)

static void test_random(void **state)
{
	(void)state;
	struct ow_keyset set = {0};
	struct ow_random random;
	assert_false(ow_keyset_has(&set, 0));
	for (int pass = 0; pass < 2; pass++) {
		ow_random_seed(&random, 7);
		for (int i = 0; i < 20000; i++)
			assert_int_equal(ow_keyset_add(&set, ow_random_u64(&random) & KEY_MASK), 0);
		/* The second time nothing is new. */
		assert_int_equal(set.used, 20000);
	}
	ow_random_seed(&random, 7);
	for (int i = 0; i < 20000; i++)
		assert_true(ow_keyset_has(&set, ow_random_u64(&random) & KEY_MASK));
	/* Others: two of 2^48 that agree are not among so few. */
	for (int i = 0; i < 20000; i++)
		assert_false(ow_keyset_has(&set, ow_random_u64(&random) & KEY_MASK));
	ow_keyset_done(&set);
}

/* The least and the largest key, and keys that all belong into one slot. */
static void test_same_place(void **state)
{
	(void)state;
	struct ow_keyset set = {0};
	assert_int_equal(ow_keyset_add(&set, 0), 0);
	assert_int_equal(ow_keyset_add(&set, KEY_MASK), 0);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(ow_keyset_add(&set, i << 40 & KEY_MASK), 0);
	assert_true(ow_keyset_has(&set, 0));
	assert_true(ow_keyset_has(&set, KEY_MASK));
	for (uint64_t i = 0; i < 256; i++) {
		assert_true(ow_keyset_has(&set, i << 40));
		assert_false(ow_keyset_has(&set, i << 40 | 1));
	}
	assert_int_equal(set.used, 257);
	ow_keyset_done(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_same_place)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
