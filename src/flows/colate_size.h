/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdint.h>

/*
 * The size of a COLATE recording (section 5 of the paper): n counters of b bits, m of them for each flow, and T, the
 * sum of all times at which an epoch ends. Equations 13, 14, 15 and 22, the latter with (n - m)^2 as denominator. Times
 * are in units of the recording, from the start of an epoch.
 */

struct ow_colate_need {
	double memory_bits; /* M */
	double alpha, beta; /* with probability alpha a flow's mean delay is within beta (relative); 0 < both < 1 */
	double t_min;       /* sum of the times, in an epoch, of the smallest flow that must meet the target */
	double t_max;       /* the same for the largest flow */
	/*
	 * (t_R - t_S) / (t_R + t_S) of a flow, equation 12: the delay is a difference of two sums, each with its own
	 * error. With 1, beta applies to the sum of the times itself, as in the paper's numbers.
	 */
	double ratio;
	double m_min; /* smallest number of counters of a flow, for its deviation (>= 2; the relative error is 1 / sqrt(2 m)) */
};

struct ow_colate_size {
	double n, m, b, T; /* the solution of the equations, in real numbers as in the paper */
	/* The practical values: b rounded up, n = M / b, m even, and T as equation 22 then allows. */
	uint32_t counters, spread;
	uint8_t bits;
	double threshold;
	double A, B, k; /* equations 11, 12 and 19: the requirements on each point's sum */
};

/*
 * The sizes with the highest T, which means the fewest epochs, that meet the need. (Equation 22 hardly depends on b if
 * T is far above t_max, so several b may solve it; fewer counters of a flow mean longer epochs.) -EINVAL: a value out
 * of range; -ERANGE: the need cannot be met, and the error says what could be met instead.
 */
int ow_colate_size(const struct ow_colate_need *need, struct ow_colate_size *ret_size, struct ow_error *err);

/* The beta that a flow with the sum of times t reaches with probability alpha: equation 22, solved for beta. */
double ow_colate_reach(double n, double m, double T, double t, double alpha, double ratio);

/*
 * The time, in units, until steady traffic of `rate` packets per unit reaches the threshold: packets arrive evenly over
 * an epoch, so T = rate * length^2 / 2.
 */
double ow_colate_epoch_length(const struct ow_colate_size *size, double rate);
/* The bits that are written per packet, if mean_time is the mean time of a packet in the epoch. */
double ow_colate_bits_per_packet(const struct ow_colate_size *size, double mean_time);
