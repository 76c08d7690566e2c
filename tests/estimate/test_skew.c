/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "estimate/skew.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define S INT64_C(1000000000)

/* n packets over so many seconds, delays of 50 us and an exponential tail of 20 us, B's clock gaining ppb. */
static void play(struct ow_skew *skew, int n, int64_t seconds, double ppb, bool forth, bool back, uint64_t seed)
{
	struct ow_random r;
	ow_random_seed(&r, seed);
	ow_skew_init(skew);
	for (int i = 0; i < n; i++) {
		int64_t t = 1700000000 * S + seconds * S / n * i;
		double gain = ppb * (double)(seconds * i) / n, delay = 50000 - 20000 * log(1 - ow_random_unit(&r));
		if (forth && (!back || i % 2))
			ow_skew_add(skew, OW_A_TO_B, t, llrint(delay + gain));
		else if (back)
			ow_skew_add(skew, OW_B_TO_A, t, llrint(delay - gain));
	}
}

/*
 * How the least delay of a stretch varies: 20 us / m for m exponential delays of mean 20 us, 40 ns or less with 40000
 * packets over at most 64 stretches; and when the clock gains g from one packet to the next, P(least > x) = exp(-x^2 /
 * (2 g 20 us)), a Rayleigh distribution of standard deviation 0.655 sqrt(g 20 us). The slope of n points that vary by s
 * over a time T has a standard deviation of s sqrt(12 / n) / T, and Theil-Sen's 1.2 times that. Five of these is a one
 * in 1.7 million event.
 */
static void finds_the_drift(void **state)
{
	(void)state;
	static const double drifts[] = {50000, -50000, 1000, -200, 300000};
	for (unsigned i = 0; i < sizeof drifts / sizeof *drifts; i++) {
		for (int ways = 1; ways < 4; ways++) {
			struct ow_skew skew;
			double ppb = 0;
			play(&skew, 40000, 60, drifts[i], ways & 1, ways & 2, i + 1);
			assert_true(ow_skew_estimate(&skew, &ppb));
			double gain_ns = fabs(drifts[i]) * 60 / 40000 * (ways == 3 ? 2 : 1);
			double noise_ns = 40 + 0.655 * sqrt(gain_ns * 20000);
			assert_true(fabs(ppb - drifts[i]) < 5 * 1.2 * noise_ns * sqrt(12.0 / 32) / 60);
		}
	}
}

static void sees_none_where_there_is_none(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct ow_skew skew;
		double ppb;
		play(&skew, 40000, 60, 0, true, seed % 2, seed);
		assert_false(ow_skew_estimate(&skew, &ppb));
	}
}

/* Too short, too few, or more than any clock: no drift. */
static void keeps_out_of_what_it_cannot_know(void **state)
{
	(void)state;
	struct ow_skew skew;
	double ppb;
	ow_skew_init(&skew);
	assert_false(ow_skew_estimate(&skew, &ppb));
	play(&skew, 5, 60, 50000, true, false, 1);
	assert_false(ow_skew_estimate(&skew, &ppb));
	play(&skew, 40000, 60, 2e6, true, false, 1);
	assert_false(ow_skew_estimate(&skew, &ppb));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_drift),
		cmocka_unit_test(sees_none_where_there_is_none),
		cmocka_unit_test(keeps_out_of_what_it_cannot_know),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
