/* SPDX-License-Identifier: Apache-2.0 */
#include "base/line.h"
#include "base/random.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void exact_on_a_line(void **state)
{
	(void)state;
	double x[OW_LINE_POINTS], y[OW_LINE_POINTS], slope, spread;
	for (unsigned n = 2; n <= OW_LINE_POINTS; n++) {
		for (unsigned i = 0; i < n; i++) {
			x[i] = i;
			y[i] = 3.0 * i - 7;
		}
		ow_line_fit(x, y, n, &slope, &spread);
		assert_true(slope == 3 && spread == 0);
	}
}

/* A quarter of the points anywhere: the slope is one of those between two good points. */
static void outliers_do_not_matter(void **state)
{
	(void)state;
	struct ow_random r;
	ow_random_seed(&r, 5);
	for (int run = 0; run < 100; run++) {
		double x[OW_LINE_POINTS], y[OW_LINE_POINTS], slope, spread;
		for (unsigned i = 0; i < OW_LINE_POINTS; i++) {
			x[i] = i;
			y[i] = i % 4 == 1 ? 1e6 * (ow_random_unit(&r) - 0.5) : -2.0 * i + ow_random_unit(&r);
		}
		ow_line_fit(x, y, OW_LINE_POINTS, &slope, &spread);
		assert_true(fabs(slope + 2) < 0.2);
		assert_true(spread < 2);
	}
}

/* Two levels fit a step and not a line; a quarter of the points lie anywhere. */
static void tells_a_step_from_a_line(void **state)
{
	(void)state;
	struct ow_random r;
	ow_random_seed(&r, 6);
	for (unsigned cut = 10; cut < OW_LINE_POINTS - 10; cut++) {
		double x[OW_LINE_POINTS], step[OW_LINE_POINTS], line[OW_LINE_POINTS], slope, spread;
		for (unsigned i = 0; i < OW_LINE_POINTS; i++) {
			double noise = i % 4 == 1 ? 1e3 * ow_random_unit(&r) : ow_random_unit(&r);
			x[i] = i;
			step[i] = (i >= cut ? 100 : 0) + noise;
			line[i] = 100.0 * i / OW_LINE_POINTS + noise;
		}
		assert_true(ow_step_fit(step, OW_LINE_POINTS) < 1);
		ow_line_fit(x, line, OW_LINE_POINTS, &slope, &spread);
		assert_true(ow_step_fit(line, OW_LINE_POINTS) > 2 * spread);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_on_a_line),
		cmocka_unit_test(outliers_do_not_matter),
		cmocka_unit_test(tells_a_step_from_a_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
