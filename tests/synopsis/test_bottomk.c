/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/random.h"
#include "synopsis/bottomk.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STAMPS 3000

static struct ow_sighting stamps[STAMPS];

static void make_stamps(uint64_t seed)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (size_t i = 0; i < STAMPS; i++)
		stamps[i] = (struct ow_sighting){ow_random_u64(&random), (int64_t)ow_random_u64(&random) >> (i % 64)};
	stamps[1].id = stamps[2].id = stamps[0].id; /* copies */
}

static struct ow_synopsis *make(uint32_t k, uint64_t seed)
{
	struct ow_synopsis *bottomk;
	assert_int_equal(ow_bottomk_create(k, seed, &bottomk), 0);
	return bottomk;
}

static bool equal(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	uint32_t as, bs;
	const struct ow_bottomk_entry *x = ow_bottomk_entries(a, &as), *y = ow_bottomk_entries(b, &bs);
	bool same = as == bs;
	for (uint32_t i = 0; i < as && same; i++)
		same = x[i].rank == y[i].rank && x[i].time_ns == y[i].time_ns;
	return same;
}

static void parameters(void **state)
{
	(void)state;
	struct ow_synopsis *bottomk = NULL;
	assert_int_equal(ow_bottomk_create(0, 1, &bottomk), -EINVAL);
	assert_int_equal(ow_bottomk_create(OW_BOTTOMK_MAX + 1, 1, &bottomk), -EINVAL);
	assert_int_equal(ow_bottomk_create_for(15, &(struct ow_sizing){.packets = 100}, 1, &bottomk), -EINVAL);
	/* Room for all packets and one more, or it could not be told that it has all. */
	assert_int_equal(ow_bottomk_create_for(1000, &(struct ow_sizing){.packets = 5}, 1, &bottomk), 0);
	assert_int_equal(((struct ow_bottomk *)bottomk)->k, 6);
	ow_synopsis_free(bottomk);
	assert_int_equal(ow_bottomk_create_for(1000, &(struct ow_sizing){.packets = 1e6}, 1, &bottomk), 0);
	assert_int_equal(bottomk->ops->memory(bottomk), 992);
	ow_synopsis_free(bottomk);
}

static int by_rank(const void *a, const void *b)
{
	const struct ow_bottomk_entry *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* The k smallest of all, whatever the order, the batches and the merging: against sorting. */
static void keeps_the_smallest(void **state)
{
	(void)state;
	static struct ow_bottomk_entry all[STAMPS];
	static const uint32_t sizes[] = {1, 2, 3, 100, 2999, 3000, 5000};
	make_stamps(1);
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		struct ow_synopsis *one = make(sizes[k], 9), *x = make(sizes[k], 9), *y = make(sizes[k], 9);
		uint64_t key = ((struct ow_bottomk *)one)->key;
		for (size_t i = 0; i < STAMPS; i++)
			all[i] = (struct ow_bottomk_entry){ow_mix64(stamps[i].id ^ key), stamps[i].time_ns};
		qsort(all, STAMPS, sizeof *all, by_rank);
		one->ops->add(one, stamps, STAMPS);
		for (size_t i = STAMPS; i-- > 0;)
			(i % 3 ? x : y)->ops->add(i % 3 ? x : y, &stamps[i], 1);
		assert_int_equal(ow_synopsis_merge(x, y, NULL), 0);
		assert_true(equal(one, x));
		uint32_t count;
		const struct ow_bottomk_entry *entry = ow_bottomk_entries(one, &count);
		assert_int_equal(count, sizes[k] < STAMPS ? sizes[k] : STAMPS);
		for (uint32_t i = 0; i < count; i++)
			assert_true(!by_rank(&entry[i], &all[count - 1 - i]));
		/* Sorting in between does no harm. */
		one->ops->add(one, stamps, 10);
		x->ops->add(x, stamps, 10);
		assert_true(equal(one, x));
		one->ops->reset(one);
		assert_int_equal(one->ops->encoded_size(one), 8);
		ow_synopsis_free(one);
		ow_synopsis_free(x);
		ow_synopsis_free(y);
	}
}

static void encodings(void **state)
{
	(void)state;
	make_stamps(2);
	static const uint32_t sizes[] = {1, 17, 4000};
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		for (size_t n = 0; n <= STAMPS; n += 1000) {
			struct ow_synopsis *bottomk = make(sizes[k], 5), *back = NULL;
			bottomk->ops->add(bottomk, stamps, n);
			size_t size = ow_synopsis_encoded_size(bottomk);
			uint8_t *bytes = malloc(size), *again = malloc(size);
			ow_synopsis_encode(bottomk, bytes);
			for (size_t less = 1; less < 5; less++)
				assert_int_equal(ow_synopsis_decode(bytes, size - less, 5, &back, NULL), -EINVAL);
			assert_int_equal(ow_synopsis_decode(bytes, size, 6, &back, NULL), -EINVAL);
			assert_int_equal(ow_synopsis_decode(bytes, size, 5, &back, NULL), 0);
			assert_true(equal(bottomk, back));
			assert_int_equal(ow_synopsis_encoded_size(back), size);
			ow_synopsis_encode(back, again);
			assert_memory_equal(bytes, again, size);
			free(bytes);
			free(again);
			ow_synopsis_free(bottomk);
			ow_synopsis_free(back);
		}
	}
}

/* The example of the header. */
static void golden(void **state)
{
	(void)state;
	struct ow_synopsis *bottomk = make(2, 1);
	struct ow_bottomk *sample = (struct ow_bottomk *)bottomk;
	sample->entry[0] = (struct ow_bottomk_entry){7, 102};
	sample->entry[1] = (struct ow_bottomk_entry){5, 100};
	sample->count = 2;
	const uint8_t expected[] = {2, 0, 0, 0, 2, 0, 0, 0, 5, 200, 1, 2, 204, 1};
	uint8_t bytes[sizeof expected];
	assert_int_equal(bottomk->ops->encoded_size(bottomk), sizeof expected);
	bottomk->ops->encode(bottomk, bytes);
	assert_memory_equal(bytes, expected, sizeof expected);
	ow_synopsis_free(bottomk);
}

static void bad_bytes(void **state)
{
	(void)state;
	static const struct {
		const char *defect;
		uint8_t bytes[24];
		size_t size;
	} bad[] = {
		{"no parameters", {1, 0, 0, 0, 0, 0, 0}, 7},
		{"k is 0", {0}, 8},
		{"k too large", {1, 0, 32, 0}, 8},
		{"more than k", {1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 1, 0}, 12},
		{"more than there are", {9, 0, 0, 0, 3, 0, 0, 0, 1, 0, 1, 0}, 12},
		{"bytes behind", {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0}, 11},
		{"number without end", {1, 0, 0, 0, 1, 0, 0, 0, 0x80, 0x80}, 10},
		{"number with a byte too many", {1, 0, 0, 0, 1, 0, 0, 0, 0x81, 0, 0}, 11},
		{"number of 65 bits", {1, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2, 0}, 19},
		{"ranks beyond 64 bits",
	         {2, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 1, 0},
	         21},
		{"copies not in order of time", {2, 0, 0, 0, 2, 0, 0, 0, 1, 4, 0, 2}, 12},
	};
	struct ow_synopsis *bottomk = NULL;
	struct ow_error err;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int r = ow_bottomk_ops.decode(bad[i].bytes, bad[i].size, 1, &bottomk, &err);
		if (r != -EINVAL || bottomk)
			fail_msg("%s: %d", bad[i].defect, r);
	}
}

static void refuses_others(void **state)
{
	(void)state;
	struct ow_synopsis *a = make(8, 1), *b = make(8, 2), *c = make(9, 1), *d = make(8, 1);
	assert_int_equal(ow_synopsis_merge(a, b, NULL), -EINVAL);
	assert_int_equal(ow_synopsis_merge(a, c, NULL), -EINVAL);
	assert_int_equal(ow_synopsis_subtract(a, d, NULL), -EINVAL);
	ow_synopsis_free(a);
	ow_synopsis_free(b);
	ow_synopsis_free(c);
	ow_synopsis_free(d);
}

/* 1.96^2 0.25 / 0.01^2 = 9604 for a median within one per cent of its rank. */
static void size_from_an_error(void **state)
{
	(void)state;
	assert_int_equal(ow_bottomk_size(0.5, 0.01), 9604);
	assert_int_equal(ow_bottomk_size(0.99, 0.001), 38032);
	assert_int_equal(ow_bottomk_size(0.5, 10), 1);
	assert_int_equal(ow_bottomk_size(0.5, 0), OW_BOTTOMK_MAX);
	assert_int_equal(ow_bottomk_size(0.5, 1e-12), OW_BOTTOMK_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters),         cmocka_unit_test(keeps_the_smallest),
		cmocka_unit_test(encodings),          cmocka_unit_test(golden),
		cmocka_unit_test(bad_bytes),          cmocka_unit_test(refuses_others),
		cmocka_unit_test(size_from_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
