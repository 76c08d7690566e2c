/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of keys, and sets of them. */
#include "base/random.h"
#include "reconcile/keyset.h"
#include "reconcile/key_list.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static size_t round_trip(const uint64_t *keys, size_t count)
{
	size_t size = ow_key_list_size(OW_KEY_LIST_PACKET, keys, count), back_count = 99;
	uint8_t *bytes = malloc(size);
	uint64_t *back = NULL;
	ow_key_list_encode(OW_KEY_LIST_PACKET, keys, count, bytes);
	assert_int_equal(ow_key_list_decode(OW_KEY_LIST_PACKET, bytes, size, &back, &back_count, NULL), 0);
	assert_int_equal(back_count, count);
	if (count)
		assert_memory_equal(back, keys, count * sizeof *keys);
	free(back);
	back = NULL;
	assert_int_equal(ow_key_list_decode(OW_KEY_LIST_PACKET, bytes, size - 1, &back, &back_count, NULL), -EINVAL);
	assert_null(back);
	free(bytes);
	return size;
}

static void lists(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 1);
	static const size_t counts[] = {0, 1, 2, 3, 10, 1000, 30000};
	static uint64_t keys[30000];
	for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
		for (size_t i = 0; i < counts[k]; i++)
			keys[i] = ow_random_u64(&random) >> 16;
		qsort(keys, counts[k], sizeof *keys, compare);
		size_t size = round_trip(keys, counts[k]);
		if (counts[k] == 1000)
			assert_true(size < 5200);
	}
	/* Extremes, equal keys, and keys that are anything but uniform. */
	round_trip((uint64_t[]){0}, 1);
	round_trip((uint64_t[]){(UINT64_C(1) << 48) - 1}, 1);
	round_trip((uint64_t[]){0, 0, 5, 5, (UINT64_C(1) << 48) - 1}, 5);
	round_trip((uint64_t[]){(UINT64_C(1) << 48) - 1, (UINT64_C(1) << 48) - 1}, 2);
}

static void bad_lists(void **state)
{
	(void)state;
	static const struct {
		const char *defect;
		uint8_t bytes[16];
		size_t size;
	} bad[] = {
		{"nothing", {0}, 0},
		{"no end of the number", {0x80}, 1},
		{"a number that is too long", {0x81, 0, 0, 0, 0, 0, 0, 0}, 8},
		{"too many keys", {0x81, 0x80, 0x80, 1, 0}, 5},
		{"a number of five bytes", {0x80, 0x80, 0x80, 0x80, 1}, 5},
		{"more keys than bits", {9, 0}, 2},
		{"byte too many", {0, 0}, 2},
		{"bits at the end", {2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0}, 13},
		{"ones without end", {1, 255, 255, 255, 255, 255, 255}, 7},
		{"key of 49 bits", {1, 3, 0, 0, 0, 0, 0, 0}, 8},
	};
	uint64_t *keys = NULL;
	size_t count = 0;
	struct ow_error err;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int r = ow_key_list_decode(OW_KEY_LIST_PACKET, bad[i].bytes, bad[i].size, &keys, &count, &err);
		if (r != -EINVAL || keys || count)
			fail_msg("%s: %d", bad[i].defect, r);
	}
}

static void sets(void **state)
{
	(void)state;
	struct ow_keyset set = {0};
	struct ow_random random;
	assert_false(ow_keyset_has(&set, 0));
	ow_random_seed(&random, 2);
	for (unsigned i = 0; i < 5000; i++)
		assert_int_equal(ow_keyset_add(&set, ow_random_u64(&random) >> 16), 0);
	assert_int_equal(ow_keyset_add(&set, 0), 0);
	assert_int_equal(ow_keyset_add(&set, 0), 0);
	assert_int_equal(ow_keyset_add(&set, (UINT64_C(1) << 48) - 1), 0);
	assert_int_equal(set.used, 5002);
	ow_random_seed(&random, 2);
	for (unsigned i = 0; i < 5000; i++)
		assert_true(ow_keyset_has(&set, ow_random_u64(&random) >> 16));
	for (unsigned i = 0; i < 5000; i++)
		assert_false(ow_keyset_has(&set, ow_random_u64(&random) >> 16));
	assert_true(ow_keyset_has(&set, 0) && !ow_keyset_has(&set, 1));
	ow_keyset_done(&set);
	assert_false(ow_keyset_has(&set, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(bad_lists),
	                                   cmocka_unit_test(sets)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
