/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "estimate/skew.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
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

/*
 * A queue of up to 5 ms stands in one direction for the second half of the capture but its end: half the difference of
 * the directions climbs by 50 times what the clock gains. The fastest packets before and behind it still touch the
 * clock's line: of 10000 delays in the first half and 400 behind the queue, with an exponential tail of 20 us, the
 * least are 2 ns and 50 ns too long, and the slope is wrong by some such errors over 60 s.
 */
static void sees_through_a_queue(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct ow_skew skew;
		struct ow_random r;
		double ppb = 0;
		ow_random_seed(&r, seed);
		ow_skew_init(&skew);
		for (int i = 0; i < 40000; i++) {
			double gain = 5000.0 * 60 * i / 40000, delay = 50000 - 20000 * log(1 - ow_random_unit(&r));
			bool forth = i % 2, queue = forth && i > 20000 && i < 39200;
			delay += queue ? 5e6 * (i - 20000) / 19200 : 0;
			ow_skew_add(&skew, forth ? OW_A_TO_B : OW_B_TO_A, 1700000000 * S + 60 * S / 40000 * i,
			            llrint(delay + (forth ? gain : -gain)));
		}
		assert_true(ow_skew_estimate(&skew, &ppb));
		assert_true(fabs(ppb - 5000) < 10 * 50.0 / 30);
	}
}

/* 100 ppb are left of a drift, 6 us over the capture: too little to be sure that there is one, but there was. */
static void refines_a_correction(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct ow_skew skew;
		double ppb = 0;
		play(&skew, 40000, 60, seed % 2 ? 100 : -100, true, true, seed);
		assert_true(ow_skew_refine(&skew, &ppb));
		assert_true(fabs(ppb - (seed % 2 ? 100 : -100)) < 10 * 50.0 / 30);
		play(&skew, 40000, 60, 0, true, true, seed);
		assert_false(ow_skew_refine(&skew, &ppb));
		play(&skew, 40000, 60, 100, true, false, seed);
		assert_false(ow_skew_refine(&skew, &ppb));
	}
}

/* A clock that is set by 10 ms drifts by nothing, and no line makes both directions possible. */
static void leaves_a_step_alone(void **state)
{
	(void)state;
	struct ow_skew skew;
	struct ow_random r;
	double ppb = 0;
	ow_random_seed(&r, 3);
	ow_skew_init(&skew);
	for (int i = 0; i < 40000; i++) {
		double step = i > 20000 ? 10e6 : 0, delay = 50000 - 20000 * log(1 - ow_random_unit(&r));
		ow_skew_add(&skew, i % 2 ? OW_A_TO_B : OW_B_TO_A, 1700000000 * S + 60 * S / 40000 * i,
		            llrint(delay + (i % 2 ? step : -step)));
	}
	assert_false(ow_skew_estimate(&skew, &ppb));
}

/* A clock that is set by 1 ms in the middle: found to a stretch, and by how much. A route that gets longer is no step.
 */
static void finds_a_step(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct ow_skew skew;
		struct ow_random r;
		bool unsure = false;
		int64_t at = 0, gained = 0, start = 1700000000 * S;
		ow_random_seed(&r, 7);
		ow_skew_init(&skew);
		for (int i = 0; i < 40000; i++) {
			int64_t t = start + i * (S / 1000), late = i >= 20000 && kind != 2 ? 1000000 : 0;
			double delay = 5e6 - 20000 * log(1 - ow_random_unit(&r));
			if (i % 2)
				ow_skew_add(&skew, OW_A_TO_B, t, llrint(delay) + late);
			else
				ow_skew_add(&skew, OW_B_TO_A, t, llrint(delay) - (kind == 0 ? late : 0));
		}
		assert_int_equal(ow_skew_step(&skew, &at, &gained, &unsure), kind == 0);
		if (kind)
			continue;
		assert_true(llabs(gained - 1000000) < 5000);
		assert_true(llabs(at - start - 20 * S) <= 2 * S);
	}
}

/* 430 packets one way and 160 the other in 10 s, queues of 0.15 and 0.85 ms, B's clock set by `step_ns` or gaining it. */
static bool takes_for_a_drift(double step_ns, bool drifts, uint64_t seed)
{
	struct ow_skew skew;
	struct ow_random r;
	double ppb;
	ow_random_seed(&r, seed);
	ow_skew_init(&skew);
	for (int i = 0; i < 590; i++) {
		double at = i / 590.0, gained = drifts ? step_ns * at : at >= 0.56 ? step_ns : 0;
		bool forth = i % 11 >= 3;
		double queue = -(forth ? 150000 : 850000) * log(1 - ow_random_unit(&r));
		ow_skew_add(&skew, forth ? OW_A_TO_B : OW_B_TO_A, 1700000000 * S + llrint(at * 10 * S),
		            llrint(8e6 + queue + (forth ? gained : -gained)));
	}
	return ow_skew_estimate(&skew, &ppb);
}

/* The fastest of some ten packets vary by a tenth of a step of 0.6 ms: it looks like a line now and then, but fits two levels
 * better. A drift of 3 ms does not. */
static void takes_a_step_for_no_drift(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		assert_false(takes_for_a_drift(-566000, false, seed));
		assert_true(takes_for_a_drift(3e6, true, seed));
	}
}

/* Delays of both directions in one stretch after the other, with what is special: see kind. */
static void play_step(struct ow_skew *skew, int kind, uint64_t seed)
{
	struct ow_random r;
	const int64_t start = 1700000000 * S;
	ow_random_seed(&r, seed);
	ow_skew_init(skew);
	for (int i = 0; i < 40000; i++) {
		int64_t t = start + i * (S / 1000);
		double queue = -20000 * log(1 - ow_random_unit(&r)), forth = 5e6 + queue, back = 5e6 + queue;
		if (kind == 0 && i >= 38500 && i < 39960) /* hardly anything after the step at 38.5 s */
			continue;
		if (kind == 0 && i >= 39960) {
			forth += 1e6;
			back -= 1e6;
		}
		if (kind == 1) { /* B's clock is set at 20 s, on a path of 1 s: seen from A at 19 and at 21 s */
			forth += 995e6 + (i >= 19000 ? 5e6 : 0);
			back += 995e6 - (i >= 21000 ? 5e6 : 0);
		}
		if (kind == 2) { /* a clock is set at 20 s, and the route changes at 25 s */
			forth += (i >= 20000 ? 1e6 : 0) + (i >= 25000 ? 3e6 : 0);
			back -= i >= 20000 ? 1e6 : 0;
		}
		if (kind == 4 && i >= 36000 && i != 37502 && i != 37503) /* two packets after the step */
			continue;
		if (kind == 4 && i >= 36000) {
			forth += 5e6;
			back -= 5e6;
		}
		if (kind == 5 && i >= 36000) { /* few packets after the step, and the later ones wait in a queue */
			if (i % 2 && i / 50 != 37200 / 50 && i / 50 != 39200 / 50)
				continue;
			forth += i >= 39000 ? 0 : -5e6;
			back += 5e6;
		}
		if (kind == 3) /* a queue on one way for a while */
			forth += i >= 20000 && i < 25000 ? 3e6 : 0;
		if (i % 2)
			ow_skew_add(skew, OW_A_TO_B, t, llrint(forth));
		else
			ow_skew_add(skew, OW_B_TO_A, t, llrint(back));
	}
}

static void finds_steps_in_spite_of(void **state)
{
	(void)state;
	static const int64_t gains[] = {1000000, 5000000, 1000000, 0, 5000000, -5000000};
	for (int kind = 0; kind < 6; kind++) {
		for (uint64_t seed = 1; seed <= 5; seed++) {
			struct ow_skew skew;
			bool unsure = false;
			int64_t at = 0, gained = 0;
			play_step(&skew, kind, seed);
			assert_int_equal(ow_skew_step(&skew, &at, &gained, &unsure), gains[kind] != 0);
			assert_true(llabs(gained - gains[kind]) < (kind == 4 ? 200000 : 20000));
			if (kind == 0 || kind == 1 || kind == 4)
				assert_int_equal(unsure, kind == 4);
		}
	}
}

/* One direction gets faster by 2 ms at 20 s. The other has packets: all of the time, until 10 s, one after 20 s, none, or
 * all of the time in queues of up to 20 ms. */
static void finds_a_shift_of_one_direction(void **state)
{
	(void)state;
	enum { ALL, UNTIL, ONE, NONE, QUEUED, KINDS };
	for (int kind = 0; kind < KINDS; kind++) {
		struct ow_skew skew;
		struct ow_random r;
		enum ow_direction way = OW_B_TO_A;
		int64_t at = 0, change = 0, start = 1700000000 * S;
		ow_random_seed(&r, 11);
		ow_skew_init(&skew);
		for (int i = 0; i < 40000; i++) {
			double delay = 5e6 - 20000 * log(1 - ow_random_unit(&r)),
			       queue = 1e7 * (1 + sin(i / 700.0)); /* longer than a stretch */
			if (i % 2)
				ow_skew_add(&skew, OW_A_TO_B, start + i * (S / 1000),
				            llrint(delay) - (i >= 20000 ? 2000000 : 0));
			else if (kind == ALL || kind == QUEUED || (kind != NONE && i < 10000) ||
			         (kind == ONE && i == 30000))
				ow_skew_add(&skew, OW_B_TO_A, start + i * (S / 1000),
				            llrint(delay + (kind == QUEUED ? queue : 0)));
		}
		assert_int_equal(ow_skew_shift(&skew, &way, &at, &change), kind != ALL);
		if (kind == ALL)
			continue;
		assert_true(way == OW_A_TO_B && llabs(change + 2000000) < 5000 && llabs(at - start - 20 * S) <= 2 * S);
	}
}

/* Delays without a floor: a fast packet of each direction, by chance on different sides, is no step; a real one is. */
static void takes_fast_packets_for_no_step(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		for (int real = 0; real < 2; real++) {
			struct ow_skew skew;
			struct ow_random r;
			int64_t at_ns, by_ns;
			bool unsure;
			ow_skew_init(&skew);
			ow_random_seed(&r, seed);
			for (int64_t i = 0; i < 20000; i++) {
				double bell = sqrt(-2 * log(1 - ow_random_unit(&r))) *
				              cos(2 * M_PI * ow_random_unit(&r)),
				       late = real && i > 10000 ? 400e3 : 0;
				ow_skew_add(&skew, i % 2 ? OW_A_TO_B : OW_B_TO_A, 1700000000 * S + 5 * S / 20000 * i,
				            llrint(2e6 + 100e3 * bell + (i % 2 ? late : -late)));
			}
			bool found = ow_skew_step(&skew, &at_ns, &by_ns, &unsure);
			assert_int_equal(found, real);
			if (found)
				assert_in_range(by_ns, 250000, 550000);
		}
	}
}

/* The first two of ten seconds are added at the end: the same stretches, and the same drift to what they are cut at. */
static void takes_the_first_last(void **state)
{
	(void)state;
	struct ow_skew in_order, first_last;
	double ppb[2] = {0};
	play(&in_order, 10000, 10, 50000, true, true, 4);
	ow_skew_init(&first_last);
	struct ow_skew *skew = &first_last;
	for (int round = 0; round < 2; round++) {
		struct ow_random r;
		ow_random_seed(&r, 4);
		for (int i = 0; i < 10000; i++) {
			double gain = 50000 * 10.0 * i / 10000, delay = 50000 - 20000 * log(1 - ow_random_unit(&r));
			bool forth = i % 2;
			if ((i < 2000) == (round == 1))
				ow_skew_add(skew, forth ? OW_A_TO_B : OW_B_TO_A, 1700000000 * S + S / 1000 * i,
				            llrint(delay + (forth ? gain : -gain)));
		}
	}
	uint64_t packets = 0;
	for (unsigned i = 0; i < OW_SKEW_BINS; i++)
		packets += skew->count[OW_A_TO_B][i] + skew->count[OW_B_TO_A][i];
	assert_int_equal(packets, 10000);
	assert_true(ow_skew_estimate(&in_order, &ppb[0]) && ow_skew_estimate(skew, &ppb[1]));
	assert_true(fabs(ppb[0] - 50000) < 500 && fabs(ppb[1] - 50000) < 500);
}

/* Identical packets that are paired with earlier ones after a step hide it, unless there are no others. */
static void prefers_unique_packets(void **state)
{
	(void)state;
	for (int unique = 0; unique < 2; unique++) {
		struct ow_skew skew;
		enum ow_direction way = OW_B_TO_A;
		int64_t at = 0, change = 0, start = 1700000000 * S;
		ow_skew_init(&skew);
		for (int i = 0; i < 4000; i++) {
			int64_t t = start + i * (S / 100), step = i >= 2000 ? 40000000 : 0, noise = i % 7 * 100;
			if (i % 2)
				ow_skew_add(&skew, OW_A_TO_B, t, 5000 + noise + step);
			else if (unique && i < 2000)
				ow_skew_add(&skew, OW_B_TO_A, t, 5000 + noise);
			if (i % 20 == 0) /* every 200 ms */
				ow_skew_add(&skew, OW_B_TO_A + OW_SKEW_ALIKE, t, 5000 + noise + (step ? 160000000 : 0));
		}
		ow_skew_finish(&skew);
		assert_int_equal(ow_skew_shift(&skew, &way, &at, &change), unique);
		assert_true(!unique || (way == OW_A_TO_B && llabs(change - 40000000) < 1000));
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
		cmocka_unit_test(sees_through_a_queue),
		cmocka_unit_test(refines_a_correction),
		cmocka_unit_test(leaves_a_step_alone),
		cmocka_unit_test(finds_a_step),
		cmocka_unit_test(takes_a_step_for_no_drift),
		cmocka_unit_test(finds_steps_in_spite_of),
		cmocka_unit_test(finds_a_shift_of_one_direction),
		cmocka_unit_test(takes_fast_packets_for_no_step),
		cmocka_unit_test(takes_the_first_last),
		cmocka_unit_test(prefers_unique_packets),
		cmocka_unit_test(keeps_out_of_what_it_cannot_know),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
