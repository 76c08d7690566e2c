/* SPDX-License-Identifier: Apache-2.0 */
/* Clock steps, distinguished from slewing and from delayed readings. Times are synthetic; one test reads the host's. */
#include "base/random.h"
#include "base/steps.h"
#include "base/time.h"
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define BEGIN INT64_C(1700000000000000000)

/* As if read at some moment within the spread. */
static struct ow_steps_reading reading(int64_t steady_ns, int64_t offset_ns, int64_t spread_ns, double place)
{
	int64_t before = (int64_t)(place * (double)spread_ns);
	return (struct ow_steps_reading){steady_ns, offset_ns - (spread_ns - before), offset_ns + before};
}

static void relates_to_the_error_bound(void **state)
{
	(void)state;
	static const struct {
		struct ow_clock_state clock;
		int64_t threshold_ns;
	} cases[] = {
		{{false, OW_CLOCK_UNKNOWN}, 100000}, /* nothing is known: what matters to delays */
		{{true, 0}, 1000},                   /* PTP: what can be read */
		{{true, 5000}, 5000},                /* the bound itself */
		{{true, 30000000}, 100000},          /* a bound that says little */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(ow_steps_threshold(&cases[i].clock), cases[i].threshold_ns);
}

/* Random steps of 200 us to an hour, both ways, readings of up to 50 us: each is found once, to half the spread. */
static void finds_every_step(void **state)
{
	(void)state;
	const uint64_t seed = 5;
	struct ow_random random;
	struct ow_steps steps = {0};
	int64_t offset = BEGIN, steady = 1000, error = 0;
	ow_random_seed(&random, seed);
	print_message("seed %" PRIu64 "\n", seed);
	struct ow_steps_reading first = reading(steady, offset, 0, 0);
	assert_int_equal(ow_steps_check(&steps, &first, 100000), 0);
	for (int i = 0; i < 20000; i++) {
		int64_t spread = (int64_t)(50000 * ow_random_unit(&random)), step = 0;
		steady += 10 * OW_NS_PER_MS;
		if (ow_random_unit(&random) < 0.1) {
			double size = 200e3 * pow(10, 7.25 * ow_random_unit(&random));
			step = (int64_t)(ow_random_unit(&random) < 0.5 ? -size : size);
		}
		offset += step;
		struct ow_steps_reading r = reading(steady, offset, spread, ow_random_unit(&random));
		int64_t found = ow_steps_check(&steps, &r, 100000);
		assert_int_equal(found != 0, step != 0);
		/* Where it began and where it ended are each known to half a spread. */
		if (found)
			assert_true(llabs(found - step) <= error + spread / 2 + 1);
		error = llabs(steps.offset_ns - offset);
		assert_true(error <= 25001);
	}
	assert_true(steps.count > 1500);
}

/* Small ones are no events, but they add up. */
static void adds_up_small_steps(void **state)
{
	(void)state;
	struct ow_steps steps = {0};
	struct ow_steps_reading r = reading(0, BEGIN, 100, 0.5);
	ow_steps_check(&steps, &r, 100000);
	int64_t told = 0;
	for (int i = 1; i <= 100; i++) {
		r = reading(i, BEGIN + i * 30000, 100, 0.5);
		told += ow_steps_check(&steps, &r, 100000);
		assert_true(llabs(BEGIN + i * 30000 - steps.offset_ns) <= 100000 + 100);
	}
	assert_in_range(told, 2900000 - 100, 3000000 + 100);
}

/* A thread that is delayed between the readings sees no false step, and the next reading decides. */
static void waits_for_a_better_reading(void **state)
{
	(void)state;
	struct ow_steps steps = {0};
	struct ow_steps_reading r = reading(0, BEGIN, 100, 0.5);
	ow_steps_check(&steps, &r, 100000);
	r = reading(1, BEGIN, 80 * OW_NS_PER_MS, 0.1);
	assert_int_equal(ow_steps_check(&steps, &r, 100000), 0);
	r = reading(2, BEGIN - OW_NS_PER_MS, 80 * OW_NS_PER_MS, 0.1);
	assert_int_equal(ow_steps_check(&steps, &r, 100000), 0);
	r = reading(3, BEGIN - OW_NS_PER_MS, 100, 0.5);
	assert_int_equal(ow_steps_check(&steps, &r, 100000), -OW_NS_PER_MS);
	assert_int_equal(ow_steps_check(&steps, &r, 100000), 0);
}

/* Nobody sets the clock while this runs. */
static void leaves_the_host_in_peace(void **state)
{
	(void)state;
	struct ow_steps steps = {0};
	int64_t before = 0;
	for (int i = 0; i < 20000; i++) {
		struct ow_steps_reading r;
		ow_steps_read(500, &r);
		assert_true(r.low_ns <= r.high_ns);
		assert_int_equal(ow_steps_check(&steps, &r, OW_STEPS_LEAST_NS), 0);
		int64_t now = ow_steps_now_ns(&steps);
		assert_true(now >= before);
		before = now;
	}
	assert_in_range(llabs(before - ow_clock_real_ns()), 0, 10 * OW_NS_PER_S);
}

static void says_it_with_a_sign(void **state)
{
	(void)state;
	char text[OW_STEP_TEXT];
	ow_step_text(OW_NS_PER_S, text);
	assert_string_equal(text, "+1 s");
	ow_step_text(-3600 * OW_NS_PER_S, text);
	assert_string_equal(text, "-3600 s");
	ow_step_text(1000123, text);
	assert_string_equal(text, "+1.000 ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relates_to_the_error_bound), cmocka_unit_test(finds_every_step),
		cmocka_unit_test(adds_up_small_steps),        cmocka_unit_test(waits_for_a_better_reading),
		cmocka_unit_test(leaves_the_host_in_peace),   cmocka_unit_test(says_it_with_a_sign),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
