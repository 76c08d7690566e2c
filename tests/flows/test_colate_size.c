/* SPDX-License-Identifier: Apache-2.0 */
#include "flows/colate_size.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void near(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("%.12g is not %.12g", got, want);
}

/* Section 6.2.1: M = 1 MB, alpha .95, beta .05 gave b = 19, m = 20, n = 455334, T = 8e10. 1 MB / n = 18.42 bits. The
 * paper does not print t_min and t_max; those that equations 15 and 22 imply must lead back to its numbers. */
static void test_paper(void **state)
{
	(void)state;
	double M = 8.0 * 1024 * 1024, n = 455334, b = M / n, m = 20, T = n * exp2(b - 1);
	near(T, 8e10, 0.01);
	double t_max = (exp2(b - 1) - 1) / (1 / m - 1 / n);
	/* (22) is quadratic in t_min: B^2 t^2 = c (t (own - 1/n') + T / n') */
	double k = 2.2414027276, B = 0.05, c = k * k * n * n * m / ((n - m) * (n - m)), other = (1 - 1 / n) / n;
	double linear = c * ((1 - 1 / m) / m - other), constant = c * other * T;
	double t_min = (linear + sqrt(linear * linear + 4 * B * B * constant)) / (2 * B * B);
	struct ow_colate_need need = {M, 0.95, 0.05, t_min, t_max, 1, 19};
	struct ow_colate_size size;
	struct ow_error err;
	if (ow_colate_size(&need, &size, &err) < 0)
		fail_msg("%s", err.text);
	/* The paper's point is on the curve; of all with 19 counters a flow or more the solver takes the one with the
	 * highest T, which has 19: one counter less is 1 / 20 of m, so log2(20 / 19) of a bit and as much of n * b = M.
	 */
	near(ow_colate_reach(n, m, T, t_min, 0.95, 1), 0.05, 1e-9);
	near(size.m, 19, 1e-6);
	near(size.b, b + log2(20.0 / 19), 1e-4);
	near(size.n, M / size.b, 1e-9);
	assert_true(size.T > T && size.T < 1.06 * T);
	near(size.k, k, 1e-9);
	assert_int_equal(size.bits, 19);
	assert_int_equal(size.spread, 20);
	assert_true((double)size.counters * size.bits <= M);
	/* What is built meets the need, and no more. */
	near(ow_colate_reach(size.counters, size.spread, size.threshold, t_min, 0.95, 1), 0.05, 1e-6);
	/* Errata: 0.31 bit a packet. 24.6 hours of the ICSI trace, 46.9 million packets in 41.1 hours. */
	near(n * 19 / (46.9e6 * 24.6 / 41.1), 0.31, 0.01);
	near(ow_colate_bits_per_packet(&size, size.threshold / 1e6), (double)size.counters * size.bits / 1e6, 1e-9);
}

/* The four equations hold wherever a solution is found, and more memory means a higher T (figure 4). */
static void test_equations(void **state)
{
	(void)state;
	unsigned found = 0;
	for (double t_max = 1e5; t_max < 1e12; t_max *= 30)
		for (double share = 0.02; share <= 1; share *= 2) {
			double before = 0;
			for (double M = 1e5; M < 1e10; M *= 10) {
				struct ow_colate_need need = {M, 0.9, 0.1, share * t_max, t_max, 1, 2};
				struct ow_colate_size s;
				if (ow_colate_size(&need, &s, NULL) < 0)
					continue;
				found++;
				near(s.n * s.b, M, 1e-9);
				near(log2(s.T / s.n) + 1, s.b, 1e-9);
				near(t_max / s.m + (s.T - t_max) / s.n, exp2(s.b) - 1, 1e-6);
				/* On the curve, or where more bits leave a flow no pair of counters. */
				double reach = ow_colate_reach(s.n, s.m, s.T, need.t_min, 0.9, 1);
				assert_true(reach <= 0.1 * (1 + 1e-6));
				assert_true(reach > 0.0999 || s.m < 2.2);
				assert_true(s.T >= before);
				before = s.T;
			}
		}
	assert_true(found > 50);
}

static void test_refused(void **state)
{
	(void)state;
	struct ow_colate_size size, untouched;
	memset(&size, 7, sizeof size);
	untouched = size;
	struct ow_error err;
	static const struct ow_colate_need bad[] = {
		{0, 0.9, 0.1, 10, 20, 1, 2},   {NAN, 0.9, 0.1, 10, 20, 1, 2},      {1e6, 1, 0.1, 10, 20, 1, 2},
		{1e6, 0.9, 0, 10, 20, 1, 2},   {1e6, 0.9, 0.1, 30, 20, 1, 2},      {1e6, 0.9, 0.1, 0, 20, 1, 2},
		{1e6, 0.9, 0.1, 10, 20, 0, 2}, {1e6, 0.9, 0.1, 10, 1e300, 1, 2},   {1e6, NAN, 0.1, 10, 20, 1, 2},
		{1e6, 0.9, 0.1, 10, 20, 2, 2}, {INFINITY, 0.9, 0.1, 10, 20, 1, 2}, {1e6, 0.9, 0.1, -1, -1, 1, 2},
		{1e6, 0.9, 0.1, 10, 20, 1, 1}, {1e6, 0.9, 0.1, 10, 20, 1, NAN},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(ow_colate_size(&bad[i], &size, &err), -EINVAL);
		assert_memory_equal(&size, &untouched, sizeof size);
	}
	/* 1 ms of 1 h: 12's ratio puts the target out of reach, and the line names what could be had. */
	struct ow_colate_need need = {8e6, 0.95, 0.05, 1e5, 3.5e6, 1e-6, 2};
	assert_int_equal(ow_colate_size(&need, &size, &err), -ERANGE);
	assert_non_null(strstr(err.text, "the best is"));
	assert_memory_equal(&size, &untouched, sizeof size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paper),
		cmocka_unit_test(test_equations),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
