/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/distribution.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static void near(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("%.12g is not %.12g", got, want);
}

/* Printed tables (Abramowitz and Stegun 26.8) and closed forms. */
static void test_chi2(void **state)
{
	(void)state;
	near(ow_chi2_quantile(0.95, 1), OW_NORMAL_975 * OW_NORMAL_975, 1e-9);
	near(ow_chi2_quantile(0.5, 2), 2 * log(2), 1e-10);
	near(ow_chi2_quantile(0.025, 2), -2 * log(0.975), 1e-10);
	near(ow_chi2_quantile(0.975, 10), 20.4831774, 1e-7);
	near(ow_chi2_quantile(0.025, 10), 3.2469728, 1e-7);
	near(ow_chi2_quantile(0.025, 100), 74.2219275, 1e-7);
	near(ow_chi2_quantile(0.975, 100), 129.5611972, 1e-7);
	/* Wilson and Hilferty's cube is good to a few 1e-6 here. */
	for (double nu = 1000; nu < 1e7; nu *= 10) {
		double c = 2 / (9 * nu);
		near(ow_chi2_quantile(0.975, nu), nu * pow(1 - c + OW_NORMAL_975 * sqrt(c), 3), 1e-5);
		near(ow_chi2_quantile(0.025, nu), nu * pow(1 - c - OW_NORMAL_975 * sqrt(c), 3), 1e-5);
	}
}

static void test_gamma(void **state)
{
	(void)state;
	assert_true(ow_gamma_p(3, 0) == 0);
	near(ow_gamma_p(1, 2), 1 - exp(-2), 1e-13);
	near(ow_gamma_p(0.5, 2), erf(sqrt(2)), 1e-13);
	near(ow_gamma_p(0.5, 0.02), erf(sqrt(0.02)), 1e-13);
	/* Poisson: P(N >= 5) at mean 7. */
	double below = exp(-7) * (1 + 7 + 24.5 + 343 / 6. + 2401 / 24.);
	near(ow_gamma_p(5, 7), 1 - below, 1e-12);
}

static void test_student(void **state)
{
	(void)state;
	near(ow_student_975(1), 12.7062047, 1e-8);
	near(ow_student_975(2), 4.30265273, 1e-8);
	near(ow_student_975(3), 3.18244631, 2e-3);
	near(ow_student_975(5), 2.57058184, 2e-4);
	near(ow_student_975(30), 2.04227246, 1e-7);
	near(ow_student_975(1e9), OW_NORMAL_975, 1e-8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chi2),
		cmocka_unit_test(test_gamma),
		cmocka_unit_test(test_student),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
