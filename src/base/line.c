/* SPDX-License-Identifier: Apache-2.0 */
#include "base/line.h"

#include "base/sort.h"
#include <math.h>

static double median(double *value, unsigned n)
{
	ow_sort_doubles(value, n);
	return value[n / 2];
}

void ow_line_fit(const double *x, const double *y, unsigned n, double *ret_slope, double *ret_spread)
{
	double slope[OW_LINE_POINTS * (OW_LINE_POINTS - 1) / 2], rest[OW_LINE_POINTS];
	unsigned pairs = 0;
	for (unsigned i = 0; i < n; i++) {
		for (unsigned j = i + 1; j < n; j++)
			slope[pairs++] = (y[j] - y[i]) / (x[j] - x[i]);
	}
	*ret_slope = median(slope, pairs);
	for (unsigned i = 0; i < n; i++)
		rest[i] = y[i] - *ret_slope * x[i];
	double middle = median(rest, n);
	for (unsigned i = 0; i < n; i++)
		rest[i] = fabs(rest[i] - middle);
	*ret_spread = median(rest, n);
}

static void take_median_off(const double *y, double *rest, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rest[i] = y[i];
	double middle = median(rest, n);
	for (unsigned i = 0; i < n; i++)
		rest[i] = fabs(y[i] - middle);
}

double ow_step_fit(const double *y, unsigned n)
{
	double rest[OW_LINE_POINTS], least = INFINITY;
	for (unsigned cut = 1; cut < n; cut++) {
		take_median_off(y, rest, cut);
		take_median_off(y + cut, rest + cut, n - cut);
		double spread = median(rest, n);
		least = spread < least ? spread : least;
	}
	return least;
}
