/* SPDX-License-Identifier: Apache-2.0 */
#include "flows/colate_theorems.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define SEED 11

static void near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("%.12g is not %.12g (seed %d)", got, want, SEED);
}

/* Theorem 2 inverts equation 1; on differences it is the difference of both points. */
static void test_flow_sum(void **state)
{
	(void)state;
	double n = 1000, m = 20, t = 5e6, t_f = 3e5;
	near(ow_colate_flow_sum(n, m, m * (t_f / m + (t - t_f) / n), t), t_f, 1e-6);
	double s = 123456, r = 234567, s_all = 4e6, r_all = 7e6;
	near(ow_colate_flow_sum(n, m, r - s, r_all - s_all),
	     ow_colate_flow_sum(n, m, r, r_all) - ow_colate_flow_sum(n, m, s, s_all), 1e-6);
}

/* All permutations of m counters average to the closed form. */
static void test_all_permutations(void **state)
{
	(void)state;
	static const double d[] = {3, -1.5, 8, 0.25, 11, 2};
	unsigned order[6];
	double sum = 0;
	unsigned count = 0;
	for (unsigned code = 0; code < 46656; code++) {
		unsigned seen = 0, rest = code;
		for (int i = 0; i < 6; i++, rest /= 6)
			seen |= 1u << (order[i] = rest % 6);
		if (seen != 63)
			continue;
		count++;
		for (int l = 0; l < 3; l++)
			sum += pow(d[order[2 * l + 1]] - d[order[2 * l]], 2);
	}
	assert_int_equal(count, 720);
	near(ow_colate_squares_closed(d, 6), sum / count, 1e-9);
}

/* Virtual repetitions come to it with 1 / sqrt(repetitions). One has a deviation of less than the value itself. */
static void test_repetitions(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	double d[21];
	for (int j = 0; j < 21; j++)
		d[j] = 100 * ow_random_unit(&random);
	for (uint32_t m = 2; m <= 21; m += 1 + m % 5) {
		double closed = ow_colate_squares_closed(d, m);
		for (uint32_t repetitions = 1; repetitions <= 100000; repetitions *= 10)
			near(ow_colate_squares(d, m, repetitions, &random), closed,
			     5 * closed / sqrt(repetitions) + 1e-9 * closed);
	}
}

/* p packets thrown into m counters: the squares come out right on average. */
static void test_squares(void **state)
{
	(void)state;
	enum { RUNS = 4000, M = 20, PACKETS = 200 };
	struct ow_random random;
	ow_random_seed(&random, SEED);
	double sum = 0, squares = 0, truth = 0;
	for (int run = 0; run < RUNS; run++) {
		double d[M] = {0};
		for (int i = 0; i < PACKETS; i++) {
			double delay = 50 + (i % 10) * 7;
			d[ow_random_below(&random, M)] += delay;
			truth += run ? 0 : delay * delay;
		}
		double got = ow_colate_squares_closed(d, M);
		sum += got;
		squares += got * got;
	}
	double mean = sum / RUNS, error = sqrt((squares / RUNS - mean * mean) / RUNS);
	near(mean, truth, 5 * error);
	/* The floor of any estimate from m counters: sqrt(2 / (m - 1)) of the square. */
	near(error * sqrt(RUNS) / truth, sqrt(2.0 / (M - 1)), 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flow_sum),
		cmocka_unit_test(test_all_permutations),
		cmocka_unit_test(test_repetitions),
		cmocka_unit_test(test_squares),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
