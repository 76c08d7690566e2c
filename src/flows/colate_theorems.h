/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"
#include <stdint.h>

/*
 * The theorems of COLATE's section 4, as printed. There are n counters, m of them for a flow; S_j are the flow's
 * counters and t_X is the sum of all counters, both at one point. Theorem 2 is linear: for differences of counters it
 * gives the difference of the results at the two points.
 */

/* Theorem 2, equation 4: the sum of the flow's times. */
double ow_colate_flow_sum(double n, double m, double counters_sum, double all_sum);

/*
 * Theorem 4: the sum of the squared delays of a flow, from d_j = w_R[j] - w_S[j] of its m counters. The first function
 * uses this many random permutations; the second is m / (m - 1) sum (d_j - mean)^2, to which they converge. m >= 2; if
 * m is odd, each permutation leaves out one counter.
 */
double ow_colate_squares(const double *d, uint32_t m, uint32_t repetitions, struct ow_random *random);
double ow_colate_squares_closed(const double *d, uint32_t m);
