/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of chi-squared and Student's t: series and continued fractions (Abramowitz and Stegun 6.5, 26.7). */
#include "estimate/distribution.h"

#include <math.h>

#define STEPS_MAX 100000
#define EPSILON   1e-15

/* x^a e^-x / Gamma(a) */
static double gamma_density(double a, double x)
{
	return exp(a * log(x) - x - lgamma(a));
}

/* A&S 6.5.29: sum of x^n / (a (a+1) ... (a+n)). */
static double lower_series(double a, double x)
{
	double term = 1 / a, sum = term;
	for (int n = 1; n < STEPS_MAX && term > sum * EPSILON; n++) {
		term *= x / (a + n);
		sum += term;
	}
	return gamma_density(a, x) * sum;
}

/* A&S 6.5.31, by Lentz's method; for x > a + 1. */
static double upper_fraction(double a, double x)
{
	double b = x + 1 - a, c = 1e300, d = 1 / b, f = d;
	for (int n = 1; n < STEPS_MAX; n++) {
		double an = -n * (n - a);
		b += 2;
		d = 1 / (an * d + b);
		c = b + an / c;
		f *= c * d;
		if (fabs(c * d - 1) < EPSILON)
			break;
	}
	return gamma_density(a, x) * f;
}

double ow_gamma_p(double a, double x)
{
	if (x <= 0)
		return 0;
	return x < a + 1 ? lower_series(a, x) : 1 - upper_fraction(a, x);
}

double ow_chi2_quantile(double q, double nu)
{
	/* Find an upper bound, then bisect: the function increases, and this is called once an interval. */
	double low = 0, high = nu + 1;
	while (ow_gamma_p(nu / 2, high / 2) < q)
		high *= 2;
	while (high - low > 1e-12 * high) {
		double middle = (low + high) / 2;
		if (middle <= low || middle >= high)
			break;
		if (ow_gamma_p(nu / 2, middle / 2) < q)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

double ow_student_975(double nu)
{
	/* Closed forms, then A&S 26.7.5. */
	if (nu < 1.5)
		return 12.706204736432095;
	if (nu < 2.5)
		return 4.302652729696142;
	double z = OW_NORMAL_975, z2 = z * z;
	double g1 = z * (z2 + 1) / 4, g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
	double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
	double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
	return z + (g1 + (g2 + (g3 + g4 / nu) / nu) / nu) / nu;
}
