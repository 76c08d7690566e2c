/* SPDX-License-Identifier: Apache-2.0 */
/* Sketches of sets of keys: what is in one set only comes out, and too much of it is noticed. */
#include "base/random.h"
#include "base/sort.h"
#include "reconcile/key_sketch.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define KEY_MASK ((UINT64_C(1) << 40) - 1)

static void check(struct ow_random *random, unsigned capacity, unsigned common, unsigned only)
{
	struct ow_key_sketch sketch = {.capacity = capacity};
	uint64_t keys[64], found[OW_KEY_SKETCH_MAX];
	for (unsigned i = 0; i < common; i++) {
		uint64_t key = ow_random_u64(random) & KEY_MASK;
		ow_key_sketch_toggle(&sketch, key);
		ow_key_sketch_toggle(&sketch, key);
	}
	for (unsigned i = 0; i < only; i++) {
		keys[i] = ow_random_u64(random) & KEY_MASK;
		ow_key_sketch_toggle(&sketch, keys[i]);
	}
	int count = ow_key_sketch_solve(&sketch, found);
	if (only > capacity) {
		/* A polynomial of this degree that is any has all its roots in the field once in capacity! cases. */
		assert_true(count == -1 || capacity < 8);
		return;
	}
	assert_int_equal(count, only);
	ow_sort_ids(keys, only);
	ow_sort_ids(found, only);
	assert_memory_equal(found, keys, only * sizeof *keys);
}

static void test_differences(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 1);
	for (unsigned capacity = 1; capacity <= OW_KEY_SKETCH_MAX; capacity += capacity < 9 ? 1 : 5) {
		for (unsigned only = 0; only <= capacity; only++)
			check(&random, capacity, 50, only);
		for (unsigned only = capacity + 1; only < capacity + 20; only += 3)
			check(&random, capacity, 50, only);
	}
}

/* Keys that are neighbours, small, or the largest. */
static void test_odd_keys(void **state)
{
	(void)state;
	static const uint64_t keys[] = {1, 2, 3, 4, 5, 6, 7, 8, KEY_MASK, KEY_MASK - 1, UINT64_C(1) << 39};
	struct ow_key_sketch sketch = {.capacity = 16};
	uint64_t found[OW_KEY_SKETCH_MAX], sorted[11];
	for (unsigned i = 0; i < 11; i++)
		ow_key_sketch_toggle(&sketch, keys[i]);
	assert_int_equal(ow_key_sketch_solve(&sketch, found), 11);
	memcpy(sorted, keys, sizeof sorted);
	ow_sort_ids(sorted, 11);
	ow_sort_ids(found, 11);
	assert_memory_equal(found, sorted, sizeof sorted);
	/* Once more is not at all. */
	for (unsigned i = 0; i < 11; i++)
		ow_key_sketch_toggle(&sketch, keys[i]);
	assert_int_equal(ow_key_sketch_solve(&sketch, found), 0);
}

/* Any sums at all: it ends, and what comes out has these sums. */
static void test_noise(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 2);
	for (unsigned round = 0; round < 200; round++) {
		struct ow_key_sketch sketch = {.capacity = 1 + round % OW_KEY_SKETCH_MAX};
		uint64_t found[OW_KEY_SKETCH_MAX];
		for (unsigned i = 0; i < sketch.capacity; i++)
			sketch.sum[i] = round % 5 && i % (1 + round % 5) ? 0 : ow_random_u64(&random) & KEY_MASK;
		int count = ow_key_sketch_solve(&sketch, found);
		for (int i = 0; i < count; i++)
			ow_key_sketch_toggle(&sketch, found[i]);
		for (unsigned i = 0; count >= 0 && i < sketch.capacity; i++)
			assert_int_equal(sketch.sum[i], 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_differences), cmocka_unit_test(test_odd_keys),
	                                   cmocka_unit_test(test_noise)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
