/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "estimate/interval_shift.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define MS      INT64_C(1000000)
#define S       (1000 * MS)
#define RATE    100000 /* packets a second */
#define SAMPLE  1000   /* delays that are known of an interval */
#define SETTLED 4 /* intervals until the shift is what it should be: 300 ms by quarters of a second, and one more */

struct path {
	const char *name;
	double least_ms, spread_ms, exponential_ms, second_ms, wander_ms;
};

static double delay_ms(const struct path *path, struct ow_random *r, double at_s)
{
	double d = path->least_ms + path->spread_ms * ow_random_unit(r);
	if (path->exponential_ms > 0)
		d -= path->exponential_ms * log(1 - ow_random_unit(r));
	if (path->second_ms > 0 && ow_random_unit(r) < 0.5)
		d += path->second_ms;
	return d + path->wander_ms * sin(at_s * 2 * M_PI / 60);
}

struct outcome {
	double mean, most;
	int64_t shift_ns;
};

/* Packets that are in another interval than at the sender, at each boundary, packet by packet. */
static struct outcome play(const struct path *path, int intervals, uint64_t seed)
{
	static int64_t sample[SAMPLE];
	struct ow_random r;
	struct outcome o = {0};
	int64_t shift = 0;
	ow_random_seed(&r, seed);
	for (int i = 1; i <= intervals; i++) {
		unsigned misplaced = 0;
		for (int k = -RATE / 2; k < RATE / 2; k++) {
			double sent_ms = k * 1000.0 / RATE, arrived_ms = sent_ms + delay_ms(path, &r, i);
			misplaced += (sent_ms < 0) != (arrived_ms < (double)shift / 1e6);
		}
		for (int k = 0; k < SAMPLE; k++)
			sample[k] = llrint(delay_ms(path, &r, i + (double)k / SAMPLE) * 1e6);
		int64_t next = ow_interval_shift(shift, S, i > 1 ? 0 : OW_INTERVAL_SHIFT_FIRST, sample, SAMPLE);
		assert_true(next - shift >= -S / 4);
		shift = next;
		if (i > SETTLED) {
			o.mean += misplaced / (double)(intervals - SETTLED);
			o.most = fmax(o.most, misplaced);
		}
	}
	o.shift_ns = shift;
	return o;
}

/*
 * What remains is the jitter: rate * mean |d - s|, 2 ms * ln 2 for exponential delays at the median, 10 ms for +-20 ms.
 * A fifth more before it changes at all; the count itself is Poisson's, five standard deviations of a mean of 16.
 */
static void what_remains_is_jitter(void **state)
{
	(void)state;
	static const struct {
		struct path path;
		double expected;
	} rows[] = {
		{{"100 us + exp 20 us", 0.1, 0, 0.02, 0, 0}, 2},    {{"50 ms + exp 2 ms", 50, 0, 2, 0, 0}, 139},
		{{"50 +- 20 ms", 30, 40, 0, 0, 0}, 1000},           {{"300 +- 20 ms", 280, 40, 0, 0, 0}, 1000},
		{{"20/60 ms, half each", 20, 0.5, 0, 40, 0}, 2020}, {{"slow wander of 10 ms", 30, 40, 0, 0, 10}, 1000},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct outcome o = play(&rows[i].path, 20, i + 1);
		double most = 1.25 * rows[i].expected + 5 * sqrt(rows[i].expected / 16);
		print_message("%-22s %6.0f, at most %6.0f at a boundary; shift %.2f ms\n", rows[i].path.name, o.mean,
		              o.most, (double)o.shift_ns / 1e6);
		if (o.mean > most)
			fail_msg("%s: %.0f packets a boundary", rows[i].path.name, o.mean);
	}
}

/* Where two levels share the packets, the median is one or the other by chance; the shift stays at one. */
static void two_levels_do_not_make_it_jump(void **state)
{
	(void)state;
	const struct path path = {"20/60 ms", 20, 0.5, 0, 40, 0};
	for (uint64_t seed = 1; seed <= 3; seed++) {
		int64_t first = play(&path, 6, seed).shift_ns;
		assert_int_equal(play(&path, 7, seed).shift_ns, first);
		assert_int_equal(play(&path, 20, seed).shift_ns, first);
	}
}

static void the_bytes_of_a_long_path_are_those_of_a_short_one(void **state)
{
	(void)state;
	const struct path near = {"near", 0.1, 0, 2, 0, 0}, far = {"far", 300, 0, 2, 0, 0};
	assert_true(play(&far, 20, 3).mean < 1.3 * play(&near, 20, 4).mean);
}

/* A route that changes by 50 ms costs the interval in which it changes, and two more. */
static void another_route_is_followed(void **state)
{
	(void)state;
	int64_t delay[3], shift = 0;
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 3; k++)
			delay[k] = (100 + k) * MS;
		shift = ow_interval_shift(shift, S, 100 * MS, delay, 3);
	}
	assert_true(shift >= 100 * MS && shift <= 102 * MS);
	for (int k = 0; k < 3; k++)
		delay[k] = (150 + k) * MS;
	assert_true(ow_interval_shift(shift, S, 100 * MS, delay, 3) >= 150 * MS);
}

static void it_stays_where_nothing_is_to_be_won(void **state)
{
	(void)state;
	int64_t delay[] = {10 * MS, 20 * MS, 30 * MS}, huge[] = {INT64_MIN, INT64_MAX};
	assert_int_equal(ow_interval_shift(19 * MS, S, 10 * MS, delay, 3), 19 * MS);
	assert_int_equal(ow_interval_shift(7, S, OW_INTERVAL_SHIFT_FIRST, NULL, 0), 7);
	/* Clocks that are apart: the receiver cuts earlier. */
	int64_t behind[] = {-90 * MS, -90 * MS, -90 * MS};
	assert_int_equal(ow_interval_shift(0, S, 0, behind, 3), -90 * MS);
	assert_int_equal(ow_interval_shift(0, 100 * MS, 0, behind, 3), -25 * MS);
	/* At first later at once, however short the intervals are and whatever the last shift is said to be. */
	int64_t far[] = {10 * S, 10 * S, 10 * S};
	assert_int_equal(ow_interval_shift(0, MS, OW_INTERVAL_SHIFT_FIRST, far, 3), 10 * S);
	assert_int_equal(ow_interval_shift(-60 * S, MS, OW_INTERVAL_SHIFT_FIRST, far, 3), 10 * S);
	assert_int_equal(ow_interval_shift(0, S, OW_INTERVAL_SHIFT_FIRST, huge, 2), 0);
}

/* Delays of a stall, of several intervals: the shift does not follow by more than half an interval at a boundary, so that
 * packets are found when the stall is over. Where nothing is found, it goes back to the least delay. */
static void a_stall_is_not_followed(void **state)
{
	(void)state;
	int64_t stalled[] = {240 * MS, 245 * MS, 250 * MS}, minutes[] = {90 * S, 90 * S, 90 * S}, shift = 250 * MS;
	assert_int_equal(ow_interval_shift(0, 100 * MS, 0, stalled, 3), 50 * MS);
	for (int i = 0; i < 100; i++)
		shift = ow_interval_shift(shift, 100 * MS, 0, minutes, 3);
	assert_true(shift > 85 * S);
	shift = 250 * MS;
	for (int64_t i = 1; i <= 9; i++) {
		shift = ow_interval_shift(shift, 100 * MS, 10 * MS, NULL, 0);
		assert_int_equal(shift, 250 * MS - i * 25 * MS);
	}
	assert_int_equal(ow_interval_shift(shift, 100 * MS, 10 * MS, NULL, 0), 10 * MS);
	assert_int_equal(ow_interval_shift(10 * MS, 100 * MS, 10 * MS, NULL, 0), 10 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_remains_is_jitter),
		cmocka_unit_test(two_levels_do_not_make_it_jump),
		cmocka_unit_test(the_bytes_of_a_long_path_are_those_of_a_short_one),
		cmocka_unit_test(another_route_is_followed),
		cmocka_unit_test(it_stays_where_nothing_is_to_be_won),
		cmocka_unit_test(a_stall_is_not_followed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
