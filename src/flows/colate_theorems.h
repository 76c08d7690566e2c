/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_FLOWS_COLATE_THEOREMS_H
#define OW_FLOWS_COLATE_THEOREMS_H

#include "base/random.h"
#include <stdint.h>

/*
 * The theorems of COLATE's section 4, as printed. n counters, m of them a flow's; S_j the flow's counters, t_X the sum
 * of all counters, both at one point. Theorem 2 is linear: on differences of counters it gives the difference of what
 * it gives at each point.
 */

/* Theorem 2, equation 4: the sum of the flow's times. */
double ow_colate_flow_sum(double n, double m, double counters_sum, double all_sum);

/* Theorem 3: what the flow itself put into a counter of value S, tau = t_X - t_f being the times of all other flows.
 * Equation 7 solved numerically; and (tau + 1) / n - 1/2 less than S, which is what it comes to. */
double ow_colate_own_part(double n, double S, double tau);
double ow_colate_own_part_closed(double n, double S, double tau);

/* Theorem 4: the sum of the squared delays of a flow, from d_j = w_R[j] - w_S[j] of its m counters. By so many random
 * permutations; and m / (m - 1) sum (d_j - mean)^2, to which they converge. m >= 2; an odd m leaves one out a time. */
double ow_colate_squares(const double *d, uint32_t m, uint32_t repetitions, struct ow_random *random);
double ow_colate_squares_closed(const double *d, uint32_t m);

#endif
