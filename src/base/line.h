/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_BASE_LINE_H
#define OW_BASE_LINE_H

/* A straight line through points, some of which may be far off. */

#define OW_LINE_POINTS 64

/*
 * Theil-Sen: the slope is the median of the slopes of all pairs of points, which stands up to 29 % of them being off.
 * The spread is the median distance of the points from the line. 2 <= n <= OW_LINE_POINTS, x strictly increasing.
 */
void ow_line_fit(const double *x, const double *y, unsigned n, double *ret_slope, double *ret_spread);

#endif
