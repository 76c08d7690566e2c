/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "estimate/forecast.h"
#include "estimate/quantiles.h"

#include <math.h>
#include <stdlib.h>

#define SECOND INT64_C(1000000000)

static bool within(struct ow_delay_window w, int64_t delay_ns)
{
	return delay_ns >= w.least_ns && delay_ns - w.least_ns < INT64_C(1) << w.bits;
}

static void test_window(void **state)
{
	(void)state;
	struct ow_forecast f = {0};
	const struct ow_delay_window any = ow_delay_window_of(-SECOND, SECOND);
	struct ow_delay_window w = ow_forecast_window(&f, any);
	/* Nothing is known: any two times of an interval. */
	assert_true(within(w, SECOND - 1) && within(w, 1 - SECOND));
	const int64_t first[] = {1000000, 1500000, 3000000};
	ow_forecast_learn(&f, first, 3, false);
	w = ow_forecast_window(&f, any);
	assert_true(within(w, 1000000) && within(w, 3000000) && w.bits == 22);
	/* Narrower delays: the window shrinks, but not at once. */
	const int64_t narrow[] = {1400000, 1500000};
	ow_forecast_learn(&f, narrow, 2, false);
	assert_true(within(ow_forecast_window(&f, any), 2800000));
	for (int i = 0; i < 200; i++)
		ow_forecast_learn(&f, narrow, 2, false);
	assert_true(ow_forecast_window(&f, any).bits <= 17);
	/* A clock was set: the old delays tell nothing. */
	const int64_t stepped[] = {-500000000, -499990000};
	ow_forecast_learn(&f, stepped, 2, true);
	w = ow_forecast_window(&f, any);
	assert_true(w.bits <= 14 && within(w, -500000000) && within(w, -499990000));
	/* Never more than all bits; an interval without delays changes nothing. */
	const int64_t wild[] = {-SECOND, SECOND};
	ow_forecast_learn(&f, wild, 2, false);
	ow_forecast_learn(&f, NULL, 0, false);
	assert_int_equal(ow_forecast_window(&f, any).bits, any.bits);
}

/* The sample that was asked for does what it should, and a quarter of it would not. */
static void test_sample(void **state)
{
	(void)state;
	enum { COUNT = 100000 };
	int64_t *delay = malloc(COUNT * sizeof *delay);
	for (int kind = 0; kind < 3; kind++) {
		/* Exponential; with a path that is much longer; with a clock that hides that path. */
		int64_t path = kind == 1 ? 20000000 : 0, added = kind == 2 ? 20000000 : 0;
		struct ow_forecast f = {0};
		for (int i = 0; i < COUNT; i++)
			delay[i] = path + (int64_t)(-2e6 * log1p(-(i + 0.5) / COUNT));
		ow_forecast_learn_sample(&f, delay, COUNT, 1000000, added);
		double error[2];
		for (int part = 0; part < 2; part++) {
			uint64_t low, high, n = part ? f.sample / 4 : f.sample;
			ow_quantile_ranks(1000000, n, 0.99, &low, &high);
			double value = (double)(delay[COUNT / 100 * 99] + added);
			double top = high > n ? INFINITY : (double)delay[high * COUNT / n - 1];
			error[part] = (top - (double)delay[low * COUNT / n - 1]) / 2 / value;
		}
		assert_true(error[0] <= OW_FORECAST_ERROR && error[1] > OW_FORECAST_ERROR);
		/* The normal approximation gives 2057 for the exponential distribution. */
		assert_true(kind ? f.sample < 700 : f.sample > 2057 && f.sample < 2 * 2057);
	}
	/* Too few delays tell nothing. */
	struct ow_forecast none = {0};
	ow_forecast_learn_sample(&none, delay, 10, 10, 0);
	assert_int_equal(none.sample, 0);
	free(delay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_window), cmocka_unit_test(test_sample)};
	return cmocka_run_group_tests_name("forecast", tests, NULL, NULL);
}
