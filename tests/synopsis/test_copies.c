/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a packet get ids of their own, the same at both points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "synopsis/copies.h"
#include <stdlib.h>

static void test_names_copies(void **state)
{
	(void)state;
	struct ow_sighting a[] = {{7, 1}, {9, 2}, {7, 3}, {7, 4}, {0, 5}, {0, 6}},
			   b[] = {{0, 1}, {7, 2}, {7, 3}, {9, 4}};
	assert_int_equal(ow_copies_rename(a, 6), 0);
	assert_int_equal(ow_copies_rename(b, 4), 0);
	assert_true(a[0].id == 7 && a[1].id == 9 && a[4].id == 0);
	for (int i = 0; i < 6; i++) {
		for (int k = 0; k < i; k++)
			assert_true(a[i].id != a[k].id);
	}
	/* The second of each at either point. */
	assert_true(a[2].id == b[2].id && b[1].id == a[0].id && b[0].id == a[4].id && b[3].id == a[1].id);
	assert_int_equal(a[2].time_ns, 3);
	assert_int_equal(ow_copies_rename(a, 0), 0);
}

static int by_id(const void *a, const void *b)
{
	const struct ow_sighting *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

/* Any multiset becomes a set, also one with a single id. */
static void test_many(void **state)
{
	(void)state;
	enum { COUNT = 50000 };
	static struct ow_sighting stamp[COUNT];
	const uint64_t kinds[] = {1, 2, 1000, UINT64_MAX};
	for (int k = 0; k < 4; k++) {
		struct ow_random random;
		ow_random_seed(&random, 5);
		for (int i = 0; i < COUNT; i++)
			stamp[i] = (struct ow_sighting){ow_random_below(&random, kinds[k]) << 20, i};
		assert_int_equal(ow_copies_rename(stamp, COUNT), 0);
		qsort(stamp, COUNT, sizeof *stamp, by_id);
		for (int i = 1; i < COUNT; i++)
			assert_true(stamp[i - 1].id != stamp[i].id);
	}
}

static bool keeps(const void *arg, uint64_t base_id)
{
	return (ow_mix64(base_id) & *(const uint64_t *)arg) == 0;
}

/* Bit by bit, with packets taken out on the way: the names are those of the packets that stay, all at once. */
static void test_streaming(void **state)
{
	(void)state;
	enum { COUNT = 20000 };
	static struct ow_sighting stamp[COUNT], whole[COUNT];
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct ow_random random;
		ow_random_seed(&random, seed);
		uint64_t kinds = UINT64_C(1) << 2 * (seed % 10), mask = 0;
		struct ow_copies copies;
		ow_copies_init(&copies);
		size_t count = 0;
		for (size_t step; count < COUNT; count += step) {
			step = 1 + ow_random_below(&random, 3000);
			step = step < COUNT - count ? step : COUNT - count;
			for (size_t i = count; i < count + step; i++) {
				do
					stamp[i].id = ow_mix64(ow_random_below(&random, kinds)); /* 0 among them */
				while (!keeps(&mask, stamp[i].id));
				whole[i] = stamp[i];
			}
			assert_int_equal(ow_copies_reserve(&copies, step), 0);
			ow_copies_name(&copies, stamp + count, step);
			if (kinds > 64 && mask == 0 && count > COUNT / 2) {
				mask = 3;
				size_t had = copies.used;
				ow_copies_keep(&copies, keeps, &mask);
				assert_true(copies.used < had);
				/* The lists follow, by what they were before. */
				size_t stay = 0;
				for (size_t i = 0; i < count + step; i++) {
					if (keeps(&mask, whole[i].id)) {
						stamp[stay] = stamp[i];
						whole[stay++] = whole[i];
					}
				}
				count = stay;
				step = 0;
			}
		}
		uint64_t base[2] = {whole[0].id, whole[COUNT - 1].id};
		assert_int_equal(ow_copies_rename(whole, COUNT), 0);
		for (int i = 0; i < COUNT; i++)
			assert_true(whole[i].id == stamp[i].id);
		assert_int_equal(copies.used + copies.copies, COUNT);
		ow_copies_sort(copies.copy, copies.copies);
		for (size_t i = 1; i < copies.copies; i++)
			assert_true(copies.copy[i - 1].id < copies.copy[i].id);
		assert_null(ow_copies_find(copies.copy, copies.copies, base[0]));
		const struct ow_copy *last = ow_copies_find(copies.copy, copies.copies, stamp[COUNT - 1].id);
		assert_true(last ? last->base_id == base[1] : stamp[COUNT - 1].id == base[1]);
		ow_copies_done(&copies);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_copies), cmocka_unit_test(test_many),
	                                   cmocka_unit_test(test_streaming)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
