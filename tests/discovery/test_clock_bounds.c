/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "discovery/clock_bounds.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define CLOCKS 30
#define FAR    (INT64_MAX / 4)

/* Any bounds of true offsets: the answers are the shortest paths of Floyd and Warshall, and contain the truth. */
static void shortest(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct ow_random random;
		struct ow_clock_bounds *bounds;
		int64_t offset[CLOCKS], d[CLOCKS][CLOCKS], least, most;
		ow_random_seed(&random, seed);
		assert_int_equal(ow_clock_bounds_create(&bounds), 0);
		assert_int_equal(ow_clock_bounds_reset(bounds, CLOCKS), 0);
		for (int i = 0; i < CLOCKS; i++) {
			offset[i] = (int64_t)ow_random_below(&random, 1000000000) - 500000000;
			for (int j = 0; j < CLOCKS; j++)
				d[i][j] = i == j ? 0 : FAR;
		}
		unsigned count = 10 + (unsigned)ow_random_below(&random, 150);
		for (unsigned k = 0; k < count; k++) {
			uint32_t i = (uint32_t)ow_random_below(&random, CLOCKS),
				 j = (uint32_t)ow_random_below(&random, CLOCKS);
			int64_t bound = offset[j] - offset[i] + (int64_t)ow_random_below(&random, 50000000);
			if (i != j && bound < d[i][j])
				d[i][j] = bound;
			assert_int_equal(ow_clock_bounds_add(bounds, i, j, bound), 0);
		}
		for (int k = 0; k < CLOCKS; k++) {
			for (int i = 0; i < CLOCKS; i++) {
				for (int j = 0; j < CLOCKS; j++) {
					if (d[i][k] < FAR && d[k][j] < FAR && d[i][k] + d[k][j] < d[i][j])
						d[i][j] = d[i][k] + d[k][j];
				}
			}
		}
		assert_int_equal(ow_clock_bounds_solve(bounds), 0);
		for (uint32_t i = 0; i < CLOCKS; i++) {
			for (uint32_t j = 0; j < CLOCKS; j++) {
				assert_int_equal(ow_clock_bounds_between(bounds, i, j, &least, &most), 0);
				assert_true(most == (d[i][j] < FAR ? d[i][j] : INT64_MAX));
				assert_true(least == (d[j][i] < FAR ? -d[j][i] : INT64_MIN));
				assert_true(least <= offset[j] - offset[i] && offset[j] - offset[i] <= most);
			}
		}
		ow_clock_bounds_free(bounds);
	}
}

/* Of a contradiction the bound that fewer packets gave is dropped. */
static void contradiction(void **state)
{
	(void)state;
	struct ow_clock_bounds *bounds;
	int64_t least, most;
	assert_int_equal(ow_clock_bounds_create(&bounds), 0);
	assert_int_equal(ow_clock_bounds_reset(bounds, 3), 0);
	for (int i = 0; i < 5; i++) {
		ow_clock_bounds_add(bounds, 0, 1, 10);
		ow_clock_bounds_add(bounds, 1, 2, 10);
	}
	ow_clock_bounds_add(bounds, 2, 0, -100);
	assert_int_equal(ow_clock_bounds_solve(bounds), 1);
	assert_int_equal(ow_clock_bounds_between(bounds, 0, 2, &least, &most), 0);
	assert_true(most == 20 && least == INT64_MIN);
	/* Not solved: nothing is known. */
	assert_int_equal(ow_clock_bounds_reset(bounds, 3), 0);
	assert_int_equal(ow_clock_bounds_between(bounds, 0, 2, &least, &most), 0);
	assert_true(most == INT64_MAX && least == INT64_MIN);
	ow_clock_bounds_free(bounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shortest),
		cmocka_unit_test(contradiction),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
