/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "synopsis/fold.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STAMPS 5000

static struct ow_sighting stamps[STAMPS];

static void make_stamps(uint64_t seed)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (size_t i = 0; i < STAMPS; i++)
		stamps[i] = (struct ow_sighting){ow_random_u64(&random), (int64_t)i};
}

static struct ow_synopsis *make(unsigned banks, uint32_t cells, unsigned order, bool estimator, uint64_t seed)
{
	struct ow_synopsis *fold;
	assert_int_equal(ow_fold_create(&(struct ow_fold_params){banks, cells, order, estimator}, seed, &fold), 0);
	return fold;
}

static bool equal(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	const struct ow_fold *x = ow_fold_of(a), *y = ow_fold_of(b);
	return ow_fold_ops.same_shape(a, b) &&
	       !memcmp(x->cell, y->cell, (size_t)x->params.banks * x->params.cells * sizeof *x->cell);
}

static void parameters(void **state)
{
	(void)state;
	struct ow_synopsis *fold = NULL;
	static const struct ow_fold_params bad[] = {
		{2, 10, 0, 0}, {5, 10, 0, 0}, {4, 0, 0, 0}, {4, 65537, 0, 0}, {4, 10, 256, 0}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ow_fold_create(&bad[i], 1, &fold), -EINVAL);
	assert_null(fold);
	/* Never more than the memory, nor than 1000 differences need; foldable when the memory suffices for that. */
	static const size_t memory[] = {32, 4096, 8192, 100000, (2u << 20) + 4096, 5u << 20};
	static const uint32_t cells[] = {1, 128, 128, 439, OW_FOLD_CELLS, OW_FOLD_CELLS};
	struct ow_sizing sizing = {1e6, 1e-3, 0};
	for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
		assert_int_equal(ow_fold_create_for(memory[i], &sizing, 1, &fold), 0);
		assert_true(fold->ops->memory(fold) <= memory[i]);
		assert_int_equal(ow_fold_of(fold)->params.cells, cells[i]);
		ow_synopsis_free(fold);
	}
	assert_int_equal(ow_fold_create_for(31, &sizing, 1, &fold), -EINVAL);
	assert_int_equal(ow_fold_create_for(memory[4], &sizing, 1, &fold), 0);
	/* 1000 differences: 1.725 * 1000 + 30 cells, and an estimator without packets. */
	assert_int_equal(ow_synopsis_encoded_size(fold), OW_SYNOPSIS_HEADER + 8 + 4 * 439 * 8 + 8);
	ow_synopsis_free(fold);
}

static void sizes(void **state)
{
	(void)state;
	assert_int_equal(ow_fold_cells_for(4, 0), 8);
	assert_int_equal(ow_fold_cells_for(4, -1), 8);
	assert_int_equal(ow_fold_cells_for(4, 0.0 / 0.0), 8);
	assert_int_equal(ow_fold_cells_for(4, 1000), 439);
	assert_int_equal(ow_fold_cells_for(4, 1e5), 43133);
	assert_int_equal(ow_fold_cells_for(4, 1e9), OW_FOLD_CELLS);
	assert_int_equal(ow_fold_cells_for(3, 1e4), 4510);
	assert_int_equal(ow_fold_cells_for(3, 1.0 / 0.0), OW_FOLD_CELLS);
}

static void is_linear(void **state)
{
	(void)state;
	static const struct ow_fold_params shapes[] = {
		{4, 65536, 0, 1}, {3, 65536, 0, 0}, {4, 100, 0, 1}, {3, 77, 2, 0}};
	make_stamps(1);
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		struct ow_synopsis *all, *x, *y, *empty;
		assert_int_equal(ow_fold_create(&shapes[k], 5, &all), 0);
		assert_int_equal(ow_fold_create(&shapes[k], 5, &x), 0);
		assert_int_equal(ow_fold_create(&shapes[k], 5, &y), 0);
		assert_int_equal(ow_fold_create(&shapes[k], 5, &empty), 0);
		all->ops->add(all, stamps, STAMPS);
		x->ops->add(x, stamps + 2000, STAMPS - 2000);
		for (size_t i = 0; i < 2000; i++)
			y->ops->add(y, &stamps[1999 - i], 1);
		assert_int_equal(ow_synopsis_merge(x, y, NULL), 0);
		assert_true(equal(all, x) && !equal(all, y));
		assert_int_equal(ow_synopsis_subtract(all, y, NULL), 0);
		x->ops->remove(x, stamps, 2000);
		assert_true(equal(all, x));
		x->ops->remove(x, stamps + 2000, STAMPS - 2000);
		y->ops->reset(y);
		assert_true(equal(x, empty) && equal(y, empty));
		ow_synopsis_free(all);
		ow_synopsis_free(x);
		ow_synopsis_free(y);
		ow_synopsis_free(empty);
	}
}

/* Folding a table is the same as having counted in fewer cells from the start. */
static void folding_is_counting_in_fewer_cells(void **state)
{
	(void)state;
	static const uint32_t cells[] = {1, 2, 3, 8, 439, 4321, 43133, 65535, 65536};
	make_stamps(2);
	for (unsigned banks = 3; banks <= 4; banks++) {
		struct ow_synopsis *full = make(banks, OW_FOLD_CELLS, 0, false, 11), *folded;
		full->ops->add(full, stamps, STAMPS);
		for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
			for (unsigned order = 0; order < 3; order++) {
				struct ow_synopsis *direct = make(banks, cells[i], order, false, 11);
				direct->ops->add(direct, stamps, STAMPS);
				assert_int_equal(ow_fold_to(full, cells[i], order, &folded), 0);
				assert_true(equal(direct, folded));
				ow_synopsis_free(direct);
				ow_synopsis_free(folded);
			}
		}
		assert_int_equal(ow_fold_to(full, 0, 0, &folded), -EINVAL);
		assert_int_equal(ow_fold_to(full, 65537, 0, &folded), -EINVAL);
		assert_int_equal(ow_fold_to(full, 8, 256, &folded), -EINVAL);
		ow_synopsis_free(full);
	}
	struct ow_synopsis *small = make(4, 100, 0, false, 1), *folded;
	assert_int_equal(ow_fold_to(small, 10, 0, &folded), -EINVAL);
	ow_synopsis_free(small);
}

/* All of the 2^16 places, for every order. */
static void orders_are_permutations(void **state)
{
	(void)state;
	for (unsigned order = 1; order < OW_FOLD_ORDERS; order += 50) {
		static uint8_t seen[OW_FOLD_CELLS];
		struct ow_synopsis *fold = make(4, 8, order, false, order);
		memset(seen, 0, sizeof seen);
		for (uint32_t i = 0; i < OW_FOLD_CELLS; i++) {
			uint32_t to = ow_fold_permute(&ow_fold_of(fold)->secret, i);
			assert_true(to < OW_FOLD_CELLS && !seen[to]);
			seen[to] = 1;
		}
		ow_synopsis_free(fold);
	}
}

static void round_trip(const struct ow_synopsis *fold)
{
	struct ow_synopsis *back, *plain = NULL;
	size_t size = ow_synopsis_encoded_size(fold);
	uint8_t *bytes = malloc(size), *again = malloc(size);
	ow_synopsis_encode(fold, bytes);
	assert_int_equal(ow_synopsis_decode(bytes, size, fold->seed, &back, NULL), 0);
	assert_int_equal(ow_synopsis_encoded_size(back), size);
	ow_synopsis_encode(back, again);
	assert_memory_equal(bytes, again, size);
	const struct ow_fold *x = ow_fold_of(fold), *y = ow_fold_of(back);
	if (x->params.cells == OW_FOLD_CELLS && x->params.order == 0)
		assert_int_equal(ow_fold_to(fold, x->send, 0, &plain), 0);
	const uint64_t *cell = plain ? ow_fold_of(plain)->cell : x->cell;
	assert_int_equal(y->params.cells, x->send);
	assert_memory_equal(y->cell, cell, (size_t)x->params.banks * x->send * sizeof *cell);
	assert_int_equal(ow_synopsis_decode(bytes, size, fold->seed ^ 1, &back, NULL), -EINVAL);
	for (size_t less = 1; less < 9; less++)
		assert_int_equal(ow_synopsis_decode(bytes, size - less, fold->seed, &back, NULL), -EINVAL);
	ow_synopsis_free(plain);
	ow_synopsis_free(back);
	free(bytes);
	free(again);
}

static void encodings(void **state)
{
	(void)state;
	make_stamps(3);
	for (unsigned i = 0; i < 16; i++) {
		uint32_t cells = i & 4 ? OW_FOLD_CELLS : 55;
		struct ow_synopsis *fold = make(3 + (i & 1), cells, i & 8 ? 7 : 0, i & 2, i);
		fold->ops->add(fold, stamps, STAMPS);
		round_trip(fold);
		ow_fold_expect(fold, 300);
		round_trip(fold);
		ow_fold_expect(fold, 1e9);
		round_trip(fold);
		ow_synopsis_free(fold);
	}
}

static void golden(void **state)
{
	(void)state;
	struct ow_synopsis *fold = make(3, 1, 9, false, 1);
	uint64_t cell[3] = {1, 0x0102030405060708, UINT64_MAX};
	memcpy(((struct ow_fold *)fold)->cell, cell, sizeof cell);
	const uint8_t expected[] = {3, 9, 0, 0, 1, 0, 0, 0, 1,   0,   0,   0,   0,   0,   0,   0,
	                            8, 7, 6, 5, 4, 3, 2, 1, 255, 255, 255, 255, 255, 255, 255, 255};
	uint8_t bytes[sizeof expected];
	assert_int_equal(fold->ops->encoded_size(fold), sizeof expected);
	fold->ops->encode(fold, bytes);
	assert_memory_equal(bytes, expected, sizeof expected);
	ow_synopsis_free(fold);
}

static void bad_bytes(void **state)
{
	(void)state;
	static const struct {
		const char *defect;
		uint8_t bytes[48];
		size_t size;
	} bad[] = {
		{"no parameters", {3, 0, 0, 0, 1, 0, 0}, 7},
		{"two banks", {2, 0, 0, 0, 1}, 24},
		{"no cells", {3, 0, 0, 0, 0}, 8},
		{"too many cells", {3, 0, 0, 0, 1, 0, 1}, 48},
		{"4 GB of cells", {3, 0, 0, 0, 255, 255, 255, 255}, 48},
		{"reserved", {3, 0, 0, 1, 1}, 32},
		{"estimator is 2", {3, 0, 2, 0, 1}, 48},
		{"estimator missing", {3, 0, 1, 0, 1}, 32},
		{"estimator damaged", {3, 0, 1, 0, 1}, 40},
		{"bytes behind the cells", {3, 0, 0, 0, 1}, 33},
		{"cell cut off", {3, 0, 0, 0, 1}, 31},
	};
	struct ow_synopsis *fold = NULL;
	struct ow_error err;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int r = ow_fold_ops.decode(bad[i].bytes, bad[i].size, 1, &fold, &err);
		if (r != -EINVAL || fold)
			fail_msg("%s: %d", bad[i].defect, r);
	}
}

static void refuses_others(void **state)
{
	(void)state;
	struct ow_synopsis *a = make(4, 64, 0, false, 1);
	struct ow_synopsis *others[5] = {make(4, 64, 0, false, 2), make(3, 64, 0, false, 1), make(4, 65, 0, false, 1),
	                                 make(4, 64, 1, false, 1), make(4, 64, 0, true, 1)};
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(ow_synopsis_merge(a, others[i], NULL), -EINVAL);
		assert_int_equal(ow_synopsis_subtract(a, others[i], NULL), -EINVAL);
		ow_synopsis_free(others[i]);
	}
	ow_synopsis_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters),
		cmocka_unit_test(sizes),
		cmocka_unit_test(is_linear),
		cmocka_unit_test(folding_is_counting_in_fewer_cells),
		cmocka_unit_test(orders_are_permutations),
		cmocka_unit_test(encodings),
		cmocka_unit_test(golden),
		cmocka_unit_test(bad_bytes),
		cmocka_unit_test(refuses_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
