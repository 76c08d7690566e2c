/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "reconcile/fold_peel.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STAMPS 120000

static struct ow_sighting stamps[STAMPS];
static struct ow_random random_ids;

/* New ids: the first `count` stamps. */
static void make_stamps(size_t count)
{
	for (size_t i = 0; i < count; i++)
		stamps[i] = (struct ow_sighting){ow_random_u64(&random_ids), 0};
}

static struct ow_synopsis *make(unsigned banks, uint32_t cells, unsigned order, uint64_t seed)
{
	struct ow_synopsis *fold;
	assert_int_equal(ow_fold_create(&(struct ow_fold_params){banks, cells, order, false}, seed, &fold), 0);
	return fold;
}

/* A - B where A has the first `as` stamps and B the next `bs` more than the other. */
static struct ow_synopsis *make_difference(unsigned banks, uint32_t cells, unsigned order, uint64_t seed, size_t as,
                                           size_t bs)
{
	struct ow_synopsis *fold = make(banks, cells, order, seed);
	fold->ops->add(fold, stamps, as);
	fold->ops->remove(fold, stamps + as, bs);
	return fold;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void check_keys(const struct ow_fold_secret *secret, uint64_t *keys, size_t count,
                       const struct ow_sighting *truth)
{
	uint64_t *expected = malloc((count + 1) * sizeof *expected);
	for (size_t i = 0; i < count; i++)
		expected[i] = ow_fold_key(secret, truth[i].id);
	if (count) {
		qsort(expected, count, sizeof *expected, compare);
		qsort(keys, count, sizeof *keys, compare);
		assert_memory_equal(keys, expected, count * sizeof *keys);
	}
	free(expected);
}

static void check_truth(const struct ow_synopsis *fold, struct ow_fold_difference *diff, size_t as, size_t bs)
{
	assert_true(diff->complete && diff->left == 0);
	assert_int_equal(diff->as, as);
	assert_int_equal(diff->bs, bs);
	check_keys(&ow_fold_of(fold)->secret, diff->only_a, as, stamps);
	check_keys(&ow_fold_of(fold)->secret, diff->only_b, bs, stamps + as);
}

/* The whole way: two points with common packets, fold, encode, decode, subtract, peel. */
static void two_points(void **state)
{
	(void)state;
	for (unsigned banks = 3; banks <= 4; banks++) {
		make_stamps(60000);
		struct ow_synopsis *a = make(banks, OW_FOLD_CELLS, 0, 77), *b = make(banks, OW_FOLD_CELLS, 0, 77),
				   *mine, *theirs;
		/* Only at A: 0 .. 699; only at B: 700 .. 999; common: the others. */
		a->ops->add(a, stamps, 700);
		a->ops->add(a, stamps + 1000, 59000);
		b->ops->add(b, stamps + 700, 59300);
		ow_fold_expect(b, 1000);
		size_t size = ow_synopsis_encoded_size(b);
		uint8_t *bytes = malloc(size);
		ow_synopsis_encode(b, bytes);
		assert_int_equal(ow_synopsis_decode(bytes, size, 77, &theirs, NULL), 0);
		assert_int_equal(ow_fold_to(a, ow_fold_of(theirs)->params.cells, 0, &mine), 0);
		assert_int_equal(ow_synopsis_subtract(mine, theirs, NULL), 0);
		struct ow_fold_difference diff = {0};
		assert_int_equal(ow_fold_peel(mine, NULL, &diff), 0);
		check_truth(mine, &diff, 700, 300);
		ow_fold_difference_done(&diff);
		free(bytes);
		ow_synopsis_free(a);
		ow_synopsis_free(b);
		ow_synopsis_free(mine);
		ow_synopsis_free(theirs);
	}
}

struct tries {
	unsigned first, second; /* failures of the first attempt, and of both */
};

/* One reconciliation of d differences with cells for `expected`, and a second fold where the first does not do. */
static void try_once(unsigned banks, double expected, size_t d, uint64_t seed, struct tries *tries)
{
	make_stamps(d);
	size_t as = seed % 3 == 0 ? d : d / 2;
	struct ow_synopsis *first = make_difference(banks, ow_fold_cells_for(banks, expected), 0, seed, as, d - as),
			   *second;
	struct ow_fold_difference diff = {0};
	assert_int_equal(ow_fold_peel(first, NULL, &diff), 0);
	assert_int_equal(diff.complete, diff.left == 0);
	if (!diff.complete) {
		tries->first++;
		double rest = fmax(1.15 * (double)d - (double)(diff.as + diff.bs), (double)diff.left / 2);
		second = make_difference(banks, ow_fold_cells_for(banks, rest), 1, seed, as, d - as);
		assert_int_equal(ow_fold_peel(first, second, &diff), 0);
		tries->second += !diff.complete;
		ow_synopsis_free(second);
	}
	if (diff.complete)
		check_truth(first, &diff, as, d - as);
	ow_fold_difference_done(&diff);
	ow_synopsis_free(first);
}

/*
 * At most 0.24 % of first attempts fail (formulas.md 3.7), two folds together hardly ever. 5 standard deviations of the
 * number of failures are allowed.
 */
static void success_rates(void **state)
{
	(void)state;
	static const struct {
		size_t d;
		unsigned runs;
	} cases[] = {{0, 10},     {1, 1000},    {2, 4000},   {3, 4000},   {10, 40000},
	             {30, 20000}, {100, 10000}, {1000, 500}, {10000, 20}, {100000, 2}};
	for (unsigned banks = 3; banks <= 4; banks++) {
		for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
			struct tries tries = {0};
			for (unsigned run = 0; run < cases[k].runs; run++)
				try_once(banks, (double)cases[k].d, cases[k].d, 1000 * k + run, &tries);
			double most = 0.0024 * cases[k].runs;
			if (tries.first > most + 5 * sqrt(most) + 1 || tries.second > 0)
				fail_msg("banks %u d %zu: %u, then %u of %u fail", banks, cases[k].d, tries.first,
				         tries.second, cases[k].runs);
		}
	}
}

/* The top-up works after a first fold that was too small, however much: thousands of failed first attempts. */
static void too_small_first(void **state)
{
	(void)state;
	static const struct {
		size_t d;
		double expected;
		unsigned runs;
	} cases[] = {{10, 0, 3000},    {10, 4, 5000},   {100, 50, 2000}, {100, 5, 2000},
	             {1000, 700, 200}, {1000, 10, 200}, {20000, 1000, 3}};
	struct tries all = {0};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct tries tries = {0};
		for (unsigned run = 0; run < cases[k].runs; run++)
			try_once(4, cases[k].expected, cases[k].d, 7000 * k + run, &tries);
		all.first += tries.first;
		all.second += tries.second;
	}
	/* 0.24 % of first attempts and 0.4 % of second ones: less than 1 in 1e5. */
	assert_true(all.first > 2000);
	if (all.second > 0.004 * all.first)
		fail_msg("%u of %u fail twice", all.second, all.first);
}

/* Packets that one point has twice: seen, not lost. */
static void doubled(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		make_stamps(20);
		struct ow_synopsis *fold = make_difference(4, 40, 0, seed, 12, 8);
		fold->ops->add(fold, stamps, 2);         /* twice more at A */
		fold->ops->remove(fold, stamps + 12, 1); /* twice more at B */
		struct ow_fold_difference diff = {0};
		assert_int_equal(ow_fold_peel(fold, NULL, &diff), 0);
		if (diff.complete) {
			assert_int_equal(diff.doubled, 3);
			assert_int_equal(diff.as, 14);
			assert_int_equal(diff.bs, 9);
		}
		assert_true(diff.complete || seed > 2);
		ow_fold_difference_done(&diff);
		ow_synopsis_free(fold);
	}
	/* Three times is not read, and not taken for something else. */
	make_stamps(1);
	struct ow_synopsis *fold = make(4, 8, 0, 1);
	for (int i = 0; i < 3; i++)
		fold->ops->add(fold, stamps, 1);
	struct ow_fold_difference diff = {0};
	assert_int_equal(ow_fold_peel(fold, NULL, &diff), 0);
	assert_true(!diff.complete && diff.left == 4 && diff.as == 0);
	ow_fold_difference_done(&diff);
	ow_synopsis_free(fold);
}

/* Every difference of up to 2 packets of 6, with each sign, in tables of 1 to 3 cells a bank. */
static void exhaustive(void **state)
{
	(void)state;
	make_stamps(6);
	unsigned complete = 0;
	for (unsigned banks = 3; banks <= 4; banks++) {
		for (uint32_t cells = 1; cells <= 3; cells++) {
			for (unsigned pattern = 0; pattern < 729;
			     pattern++) { /* digits to base 3: common, only A, only B */
				struct ow_synopsis *fold = make(banks, cells, 0, 3);
				struct ow_fold_difference diff = {0};
				size_t as = 0, bs = 0;
				for (unsigned i = 0, rest = pattern; i < 6; i++, rest /= 3) {
					if (rest % 3 == 1)
						fold->ops->add(fold, &stamps[i], 1);
					else if (rest % 3 == 2)
						fold->ops->remove(fold, &stamps[i], 1);
					as += rest % 3 == 1;
					bs += rest % 3 == 2;
				}
				assert_int_equal(ow_fold_peel(fold, NULL, &diff), 0);
				assert_true(diff.as <= as && diff.bs <= bs);
				assert_int_equal(diff.complete, diff.as == as && diff.bs == bs);
				assert_true(diff.complete || as + bs > 1);
				complete += diff.complete;
				ow_fold_difference_done(&diff);
				ow_synopsis_free(fold);
			}
		}
	}
	assert_true(complete > 600);
}

/* Any cells: it ends, and never says that it is complete when it is not. */
static void any_cells(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 4);
	for (unsigned run = 0; run < 2000; run++) {
		unsigned banks = 3 + run % 2;
		uint32_t cells = 1 + (uint32_t)ow_random_below(&random, 60);
		struct ow_synopsis *first = make(banks, cells, 0, run), *second = make(banks, 7, 1, run);
		struct ow_fold_difference diff = {0};
		for (size_t i = 0; i < (size_t)banks * cells; i++)
			((struct ow_fold *)first)->cell[i] = run % 5 ? ow_random_u64(&random) >> (run % 64) : run;
		assert_int_equal(ow_fold_peel(first, NULL, &diff), 0);
		assert_true(!diff.complete || diff.left == 0);
		assert_int_equal(ow_fold_peel(first, second, &diff), 0);
		ow_fold_difference_done(&diff);
		ow_synopsis_free(first);
		ow_synopsis_free(second);
	}
}

static void refuses_others(void **state)
{
	(void)state;
	struct ow_synopsis *a = make(4, 8, 0, 1), *b = make(3, 8, 0, 1), *c = make(4, 8, 0, 2), *ams;
	struct ow_fold_difference diff = {0};
	assert_int_equal(ow_ams_create(64, 1, &ams), 0);
	assert_int_equal(ow_fold_peel(a, b, &diff), -EINVAL);
	assert_int_equal(ow_fold_peel(a, c, &diff), -EINVAL);
	assert_int_equal(ow_fold_peel(ams, NULL, &diff), -EINVAL);
	assert_int_equal(ow_fold_peel(a, ams, &diff), -EINVAL);
	ow_synopsis_free(a);
	ow_synopsis_free(b);
	ow_synopsis_free(c);
	ow_synopsis_free(ams);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_points),     cmocka_unit_test(success_rates), cmocka_unit_test(too_small_first),
		cmocka_unit_test(doubled),        cmocka_unit_test(exhaustive),    cmocka_unit_test(any_cells),
		cmocka_unit_test(refuses_others),
	};
	ow_random_seed(&random_ids, 2024);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
