/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fits a straight line, or a step, through points with outliers. */

#define OW_LINE_POINTS 64

/*
 * Theil-Sen: the slope is the median of the slopes of all pairs of points. It tolerates up to 29 % outliers. The spread
 * is the median distance of the points from the line. 2 <= n <= OW_LINE_POINTS, x strictly increasing.
 */
void ow_line_fit(const double *x, const double *y, unsigned n, double *ret_slope, double *ret_spread);

/*
 * The median distance of the points from two levels: the median of those before a cut, and of those after it, for the
 * cut where it is least. A clock that is set gives less than a line does, one that drifts gives more.
 */
double ow_step_fit(const double *y, unsigned n);
