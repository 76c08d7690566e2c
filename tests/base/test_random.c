/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void same_seed_same_sequence(void **state)
{
	(void)state;
	struct ow_random a, b;
	ow_random_seed(&a, 7);
	ow_random_seed(&b, 7);
	for (int i = 0; i < 1000; i++)
		assert_true(ow_random_u64(&a) == ow_random_u64(&b));
}

/* The mean of n uniforms has standard deviation 1/sqrt(12 n); 5 of them is a one in 1.7 million event. */
static void unit_is_uniform(void **state)
{
	(void)state;
	struct ow_random r;
	ow_random_seed(&r, 1);
	double sum = 0;
	for (int i = 0; i < 120000; i++) {
		double u = ow_random_unit(&r);
		assert_true(u >= 0 && u < 1);
		sum += u;
	}
	assert_true(sum / 120000 > 0.5 - 5 * 0.000834 && sum / 120000 < 0.5 + 5 * 0.000834);
}

static void below_stays_below(void **state)
{
	(void)state;
	struct ow_random r;
	ow_random_seed(&r, 2);
	int seen[7] = {0};
	for (int i = 0; i < 7000; i++)
		seen[ow_random_below(&r, 7)]++;
	for (int i = 0; i < 7; i++)
		assert_true(seen[i] > 850 && seen[i] < 1150); /* 1000 +- 5 sqrt(1000 * 6/7) */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_seed_same_sequence),
		cmocka_unit_test(unit_is_uniform),
		cmocka_unit_test(below_stays_below),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
