/* SPDX-License-Identifier: Apache-2.0 */
#include "../effort.h"
#include "base/random.h"
#include "base/hash.h"
#include "estimate/bottomk_estimate.h"
#include "estimate/quantiles.h"
#include "synopsis/bottomk.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* All ways to draw, counted: P(l-th <= quantile <= u-th) for every population up to 12. */
static void exhaustive_ranks(void **state)
{
	(void)state;
	for (unsigned population = 1; population <= 12; population++) {
		for (unsigned count = 1; count <= population; count++) {
			for (int tenths = 1; tenths < 10; tenths += 2) {
				double q = tenths / 10.0;
				uint64_t low, high;
				unsigned drawn = 0, above = 0, below = 0, k = (unsigned)fmax(1, ceil(q * population));
				ow_quantile_ranks(population, count, q, &low, &high);
				assert_true(low <= count && high >= 1 && high <= count + 1 && low <= high);
				for (unsigned set = 0; set < 1u << population; set++) {
					if ((unsigned)__builtin_popcount(set) != count)
						continue;
					/* Values 1 .. population, the quantile is k. */
					unsigned upto = (unsigned)__builtin_popcount(set & ((1u << k) - 1)),
						 less = (unsigned)__builtin_popcount(set & ((1u << (k - 1)) - 1));
					drawn++;
					above += upto < low;   /* the l-th is above the quantile */
					below += less >= high; /* the u-th is below it */
				}
				assert_true(above <= 0.025 * drawn + 1e-9 && below <= 0.025 * drawn + 1e-9);
			}
		}
	}
}

/* Against the textbook's binomial: n = 100, median: 40 and 61. */
static void known_ranks(void **state)
{
	(void)state;
	uint64_t low, high;
	ow_quantile_ranks(1000000000, 100, 0.5, &low, &high);
	assert_true(low == 40 && high == 61);
	ow_quantile_ranks(1000000000, 5, 0.5, &low, &high);
	assert_true(low == 0 && high == 6);
	ow_quantile_ranks(1000000000, 1000, 0.999, &low, &high);
	assert_true(low == 997 && high == 1001);
	ow_quantile_ranks(100, 100, 0.9, &low, &high);
	assert_true(low == 90 && high == 90);
}

static void whole_population(void **state)
{
	(void)state;
	int64_t x[1000];
	struct ow_value q[OW_QUANTILES];
	for (int i = 0; i < 1000; i++)
		x[i] = i + 1;
	ow_quantiles(x, 1000, 1000, 500.5, q);
	static const double expected[OW_QUANTILES] = {500, 900, 950, 990, 999};
	for (int i = 0; i < OW_QUANTILES; i++)
		assert_true(q[i].status == OW_VALUE_EXACT && q[i].value == expected[i] && q[i].low == expected[i] &&
		            q[i].high == expected[i]);
	ow_quantiles(x, 1, 1, NAN, q);
	assert_true(q[OW_Q999].status == OW_VALUE_EXACT && q[OW_Q999].value == 1);
	ow_quantiles(x, 0, 100, NAN, q);
	assert_true(q[OW_Q50].status == OW_VALUE_NONE && q[OW_Q50].reason);
	/* 100 of many do not bound the 0.999-quantile. */
	ow_quantiles(x, 100, 1000000, NAN, q);
	assert_true(q[OW_Q999].status == OW_VALUE_ESTIMATED && isinf(q[OW_Q999].high) && isfinite(q[OW_Q999].value));
	assert_true(isfinite(q[OW_Q50].high));
}

#define POPULATION 20000
#define RUNS       ((unsigned)RUN_COUNT(1000))

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Weibull delays, samples of bottom-k: coverage, and that the exact mean makes the estimates better. */
static void coverage(void **state)
{
	(void)state;
	static struct ow_sighting a[POPULATION], b[POPULATION];
	static int64_t delay[POPULATION];
	static const uint32_t sizes[] = {500, 5000};
	struct ow_random random;
	ow_random_seed(&random, 11);
	for (size_t k = 0; k < 2; k++) {
		unsigned held[OW_QUANTILES] = {0};
		double calibrated = 0, plain = 0;
		double sum = 0;
		for (size_t i = 0; i < POPULATION; i++) {
			uint64_t id = ow_random_u64(&random);
			delay[i] = (int64_t)(1e4 * pow(-log1p(-ow_random_unit(&random)), 1 / 0.6));
			a[i] = (struct ow_sighting){id, (int64_t)(50 * i)};
			b[i] = (struct ow_sighting){id, a[i].time_ns + delay[i]};
			sum += (double)delay[i];
		}
		qsort(delay, POPULATION, sizeof *delay, by_value);
		/* The same packets each time: the seed draws other samples of them. */
		for (unsigned run = 0; run < RUNS; run++) {
			struct ow_synopsis *x, *y;
			struct ow_bottomk_pairs pairs;
			struct ow_value q[OW_QUANTILES], bare[OW_QUANTILES];
			assert_int_equal(ow_bottomk_create(sizes[k], run, &x), 0);
			assert_int_equal(ow_bottomk_create(sizes[k], run, &y), 0);
			x->ops->add(x, a, POPULATION);
			y->ops->add(y, b, POPULATION);
			assert_int_equal(ow_bottomk_pair(x, y, &pairs), 0);
			assert_int_equal(pairs.count, sizes[k] - 1);
			ow_quantiles(pairs.delay_ns, pairs.count, POPULATION, sum / POPULATION, q);
			ow_quantiles(pairs.delay_ns, pairs.count, POPULATION, NAN, bare);
			for (int i = 0; i < OW_QUANTILES; i++) {
				double truth = (double)delay[(size_t)ceil(ow_quantile_level[i] * POPULATION) - 1];
				held[i] += q[i].low <= truth && truth <= q[i].high;
				assert_true(q[i].value >= q[i].low && q[i].value <= q[i].high);
				if (i == OW_Q90) {
					calibrated += pow(q[i].value / truth - 1, 2);
					plain += pow(bare[i].value / truth - 1, 2);
				}
			}
			ow_bottomk_pairs_done(&pairs);
			ow_synopsis_free(x);
			ow_synopsis_free(y);
		}
		for (int i = 0; i < OW_QUANTILES; i++) {
			/* 500 samples hold half a packet beyond the 0.999-quantile: one-sided and discrete, above 99 %.
			 */
			double most = sizes[k] * (1 - ow_quantile_level[i]) < 1 ? 1 : 0.99;
			if (RUN_STEP == 1 && (held[i] < 0.93 * RUNS || held[i] > most * RUNS))
				fail_msg("k %u, quantile %s: %u of %u", sizes[k], ow_quantile_name[i], held[i], RUNS);
		}
		assert_true(calibrated < plain);
	}
}

/* Copies, losses and extra packets in samples that hold everything. */
static void small_samples(void **state)
{
	(void)state;
	static const struct ow_sighting a[] = {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {5, 1}, {6, 0}, {6, 1}},
					b[] = {{1, 10}, {2, 20}, {5, 10}, {5, 12}, {6, 30}, {7, 1}};
	struct ow_synopsis *x, *y;
	struct ow_estimate e;
	assert_int_equal(ow_bottomk_create(20, 1, &x), 0);
	assert_int_equal(ow_bottomk_create(20, 1, &y), 0);
	x->ops->add(x, a, 8);
	y->ops->add(y, b, 6);
	struct ow_view va = {.synopsis = x, .packets = 8}, vb = {.synopsis = y, .packets = 6};
	assert_int_equal(ow_bottomk_estimate(&va, &vb, &e), 0);
	/* 3, 4 and a copy of 6 are lost, 7 is extra; 1, 2, 5, 5 have delays 10, 20, 10, 11. */
	assert_true(e.lost.status == OW_VALUE_EXACT && e.lost.value == 3 && e.extra.value == 1);
	assert_true(e.mean_ns.status == OW_VALUE_EXACT && fabs(e.mean_ns.value - 12.75) < 1e-9 && e.useful == 4);
	assert_true(e.quantile_ns[OW_Q50].value == 10 && e.quantile_ns[OW_Q90].value == 20 && e.complete);
	/* Counts that the samples contradict: still numbers. */
	struct ow_synopsis *half;
	assert_int_equal(ow_bottomk_create(3, 1, &half), 0);
	half->ops->add(half, a, 8);
	va = (struct ow_view){.synopsis = half, .packets = 0};
	vb = (struct ow_view){.synopsis = half, .packets = UINT64_MAX};
	assert_int_equal(ow_bottomk_estimate(&va, &vb, &e), 0);
	assert_true(e.loss_ratio.low >= 0 && e.loss_ratio.high <= 1 && !isnan(e.mean_ns.value) &&
	            !isnan(e.extra.value));
	ow_synopsis_free(half);
	ow_synopsis_free(x);
	ow_synopsis_free(y);
}

/* Losses from the sample are unbiased, and those without extra packets are what is missing. */
static void losses(void **state)
{
	(void)state;
	enum { OF_A = 5000, MISSING = 300, TRIES = 200 };
	static struct ow_sighting stamps[OF_A + MISSING];
	for (int extra = 0; extra <= MISSING; extra += MISSING / 3) {
		double sum = 0, held = 0;
		for (uint64_t run = 0; run < TRIES; run++) {
			struct ow_synopsis *x, *y;
			struct ow_estimate e;
			for (uint64_t i = 0; i < OF_A + MISSING; i++)
				stamps[i] = (struct ow_sighting){ow_mix64(i + (run << 32) + 1), (int64_t)i};
			assert_int_equal(ow_bottomk_create(500, run, &x), 0);
			assert_int_equal(ow_bottomk_create(500, run, &y), 0);
			x->ops->add(x, stamps, OF_A);
			y->ops->add(y, stamps + MISSING, (size_t)OF_A - MISSING + extra);
			struct ow_view a = {.synopsis = x, .packets = OF_A},
				       b = {.synopsis = y, .packets = (uint64_t)(OF_A - MISSING + extra)};
			assert_int_equal(ow_bottomk_estimate(&a, &b, &e), 0);
			sum += e.lost.value;
			held += e.lost.low <= MISSING && MISSING <= e.lost.high;
			assert_true(fabs(e.lost.value - e.extra.value - (MISSING - extra)) < 1e-6);
			ow_synopsis_free(x);
			ow_synopsis_free(y);
		}
		/* The rarer kind, a tenth of which is sampled, scatters by sqrt(9 extra): 4 of its standard errors. */
		assert_true(fabs(sum / TRIES - MISSING) <= 4 * sqrt(9.0 * extra / TRIES) + 1e-9);
		assert_true(held >= 0.92 * TRIES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_ranks), cmocka_unit_test(known_ranks),   cmocka_unit_test(whole_population),
		cmocka_unit_test(coverage),         cmocka_unit_test(small_samples), cmocka_unit_test(losses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
