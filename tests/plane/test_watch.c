/* SPDX-License-Identifier: Apache-2.0 */
/* Changes are detected, and nothing is detected without a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/random.h"
#include "plane/watch.h"
#include <math.h>
#include <stdlib.h>

static double normal(struct ow_random *random)
{
	return sqrt(-2 * log(1 - ow_random_unit(random))) * cos(2 * M_PI * ow_random_unit(random));
}

static struct ow_watch_sample sample(struct ow_random *random, int interval, double shift, double loss)
{
	uint64_t lost = 0;
	for (int i = 0; i < 200; i++)
		lost += ow_random_unit(random) < loss;
	return (struct ow_watch_sample){.start_ns = interval * INT64_C(1000000000),
	                                .has_delay = true,
	                                .has_loss = true,
	                                .mean_ns = 1e6 + 1e4 * (normal(random) + shift),
	                                .stddev_ns = 1e5,
	                                .sent = 200,
	                                .lost = lost};
}

/*
 * 200 segments that may cry wolf once in 1000 intervals, for 1000 intervals: Poisson with mean 1 or a little more (the
 * usual is learned from few intervals at first); 8 or more have a probability of 1e-5. Then three sigma more on each.
 */
static void three_sigma(void **state)
{
	(void)state;
	enum { SEGMENTS = 200, INTERVALS = 1000, FAULT = 30 };
	struct ow_plane_watch *watch = calloc(SEGMENTS, sizeof(*watch));
	struct ow_random random;
	ow_random_seed(&random, 17);
	double threshold = ow_watch_threshold(SEGMENTS, 1000);
	int false_alarms = 0, found = 0;
	for (int i = 0; i < SEGMENTS; i++) {
		ow_watch_init(&watch[i]);
		for (int t = 0; t < INTERVALS; t++) {
			bool before = watch[i].delay.changed || watch[i].loss.changed;
			struct ow_watch_sample one = sample(&random, t, 0, 0.01);
			ow_watch_add(&watch[i], &one, threshold);
			false_alarms += !before && (watch[i].delay.changed || watch[i].loss.changed);
		}
		for (int t = INTERVALS; t < INTERVALS + FAULT && !watch[i].delay.changed; t++) {
			struct ow_watch_sample one = sample(&random, t, 3, 0.01);
			ow_watch_add(&watch[i], &one, threshold);
		}
		/* Since when: within a few intervals of the truth. */
		found += watch[i].delay.changed && llabs(watch[i].delay.since_ns / 1000000000 - INTERVALS) < 8;
	}
	print_message("false alarms: %d in %d intervals; found %d of %d\n", false_alarms, INTERVALS, found, SEGMENTS);
	assert_true(false_alarms < 8);
	assert_true(found >= SEGMENTS * 99 / 100);
	free(watch);
}

static void loss_comes_and_goes(void **state)
{
	(void)state;
	struct ow_plane_watch watch;
	struct ow_random random;
	ow_random_seed(&random, 4);
	double threshold = ow_watch_threshold(1, 1e6), ratio;
	ow_watch_init(&watch);
	for (int t = 0; t < 200; t++) {
		struct ow_watch_sample one = sample(&random, t, 0, t >= 100 && t < 110 ? 0.2 : 0);
		ow_watch_add(&watch, &one, threshold);
		assert_false(watch.delay.changed);
		if (t < 100 || t >= 150)
			assert_false(watch.loss.changed);
		if (t == 109) {
			assert_true(watch.loss.changed);
			assert_int_equal(watch.loss.since_ns, 100 * INT64_C(1000000000));
		}
	}
	assert_true(ow_watch_usual_loss(&watch, &ratio) && ratio < 0.001);
}

/* A change for good becomes usual; and intervals without numbers say nothing. */
static void the_new_usual(void **state)
{
	(void)state;
	struct ow_plane_watch watch;
	struct ow_random random;
	ow_random_seed(&random, 5);
	double threshold = ow_watch_threshold(1, 1e6), mean, spread;
	ow_watch_init(&watch);
	for (int t = 0; t < 4600; t++) {
		struct ow_watch_sample one = sample(&random, t, t >= 100 ? 100 : 0, 0);
		one.has_delay = t % 7 != 0;
		ow_watch_add(&watch, &one, threshold);
		assert_true(t % 7 == 0 || t < 110 || t > 3690 || watch.delay.changed);
	}
	assert_false(watch.delay.changed);
	assert_true(watch.delay.adopted);
	assert_true(ow_watch_usual(&watch, &mean, &spread) && fabs(mean - 2e6) < 5e4);
	struct ow_watch_sample wild = {.has_delay = true, .mean_ns = INFINITY};
	ow_watch_add(&watch, &wild, threshold);
	assert_false(watch.delay.changed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(three_sigma), cmocka_unit_test(loss_comes_and_goes),
	                                   cmocka_unit_test(the_new_usual)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
