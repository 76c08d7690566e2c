/* SPDX-License-Identifier: Apache-2.0 */
/* The range of plausible delays: wide enough for what was seen, and no wider than the header defines. */
#include "base/random.h"
#include "reconcile/plausible.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SLACK_NS 2000

static void nothing_is_known_at_first(void **state)
{
	(void)state;
	struct ow_plausible p;
	ow_plausible_init(&p);
	for (int i = 0; i < 7; i++) {
		assert_false(p.known);
		ow_plausible_add(&p, 1000);
	}
	ow_plausible_add(&p, 1000);
	assert_true(p.known);
}

/* A bucket is a quarter octave: half the low end less one bucket, twice the high end plus one. */
static void assert_around(const struct ow_plausible *p, double low, double high)
{
	assert_true(p->low_ns <= low / 2 - SLACK_NS + 1);
	assert_true(p->low_ns >= low / 2 / 1.25 - SLACK_NS - 1);
	assert_true(p->high_ns >= 2 * high + SLACK_NS);
	assert_true(p->high_ns <= 2 * high * 1.25 + SLACK_NS + 8);
}

/* Every constant delay at every scale, each with itself in range. */
static void constants_of_every_size(void **state)
{
	(void)state;
	for (int64_t d = 4; d < INT64_C(1) << 60; d += d / 7 + 1) {
		struct ow_plausible p;
		ow_plausible_init(&p);
		for (int i = 0; i < 100; i++)
			ow_plausible_add(&p, d);
		assert_true(p.low_ns < d && d < p.high_ns);
		assert_around(&p, (double)d, (double)d);
	}
}

/* Clocks that are apart, and nonsense: anything may come, the range stays one. */
static void extremes(void **state)
{
	(void)state;
	static const int64_t d[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, 3, INT64_MAX - 1, INT64_MAX};
	struct ow_plausible p;
	for (unsigned i = 0; i < sizeof d / sizeof *d; i++) {
		ow_plausible_init(&p);
		for (int k = 0; k < 1000; k++)
			ow_plausible_add(&p, d[i]);
		assert_true(p.known && p.low_ns <= p.high_ns);
	}
	ow_plausible_init(&p);
	for (int k = 0; k < 1000; k++)
		ow_plausible_add(&p, d[k % 8]);
	assert_true(p.low_ns < 0 && p.high_ns > INT64_MAX / 4);
}

/* One outlier in 10,000 does not widen the range; a tenth of the packets on a longer path does. */
static void outliers_and_second_paths(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct ow_random random;
		struct ow_plausible p;
		ow_random_seed(&random, seed);
		ow_plausible_init(&p);
		for (int i = 0; i < 200000; i++) {
			double u = ow_random_unit(&random);
			ow_plausible_add(&p, i % 10000 == 77 ? 1000000000 : 100000 + (int64_t)(u * 100000));
		}
		print_message("seed %u: %lld .. %lld\n", (unsigned)seed, (long long)p.low_ns, (long long)p.high_ns);
		assert_around(&p, 100000, 200000);
		for (int i = 0; i < 200000; i++)
			ow_plausible_add(&p, i % 10 ? 150000 : 2000000);
		assert_around(&p, 100000, 2000000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_at_first),
		cmocka_unit_test(constants_of_every_size),
		cmocka_unit_test(extremes),
		cmocka_unit_test(outliers_and_second_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
