/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Quantiles of the distributions for intervals of confidence. */

/* The 0.975 quantile of the normal distribution: 95 % are within +- this. */
#define OW_NORMAL_975 1.959963984540054
/* 95 % of any distribution with one peak are within this many standard deviations (Vysochanskij and Petunin 1980). */
#define OW_ONE_PEAK_95 2.9814239699997196

/* Chi-squared with nu >= 1 degrees of freedom, 0 < q < 1; relative error below 1e-10. */
double ow_chi2_quantile(double q, double nu);
/* The 0.975 quantile of Student's t with nu >= 1 degrees of freedom; relative error below 2e-3. */
double ow_student_975(double nu);

/* P(a, x), the regularised lower incomplete gamma function; a > 0, x >= 0. */
double ow_gamma_p(double a, double x);
