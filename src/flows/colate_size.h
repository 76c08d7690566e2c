/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_FLOWS_COLATE_SIZE_H
#define OW_FLOWS_COLATE_SIZE_H

#include <oneway/error.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * How large a COLATE recording has to be (section 5 of the paper): n counters of b bits, m of them a flow, and T, the
 * sum of all times of an epoch, at which it is written and begun anew. Equations 13, 14, 15 and 22, the latter with
 * (n - m)^2 as denominator. Times are in units of the recording, counted from the start of an epoch.
 */

struct ow_colate_need {
	double memory_bits; /* M */
	double alpha, beta; /* with probability alpha a flow's mean delay is within beta (relative); 0 < both < 1 */
	double t_min;       /* sum of the times of the smallest flow for which this shall hold, in an epoch */
	double t_max;       /* of the largest flow */
	/*
	 * (t_R - t_S) / (t_R + t_S) of a flow, equation 12: the delay is a difference of two sums, each with its own
	 * error. 1: beta is meant for the sum of the times itself, which is how the paper's numbers come out.
	 */
	double ratio;
	double m_min; /* at least so many counters a flow, for its deviation (>= 2; a relative error of 1 / sqrt(2 m))
	               */
};

struct ow_colate_size {
	double n, m, b, T; /* the equations' solution, in real numbers as the paper has it */
	/* What can be built: b rounded up, n = M / b, m even, T what equation 22 then allows. */
	uint32_t counters, spread;
	uint8_t bits;
	double threshold;
	double A, B, k; /* equations 11, 12 and 19: what each point's sum must meet */
};

/*
 * The sizes with the highest T, that is the fewest epochs, that meet the need. (Equation 22 hardly depends on b once T
 * is far above t_max, so that several b may solve it; fewer counters a flow mean longer epochs.) -EINVAL: a number that
 * makes no sense; -ERANGE: cannot be met, and the line says what could be met instead.
 */
int ow_colate_size(const struct ow_colate_need *need, struct ow_colate_size *ret_size, struct ow_error *err);

/* The beta that a flow with a sum of times t reaches with probability alpha: equation 22, solved for it. */
double ow_colate_reach(double n, double m, double T, double t, double alpha, double ratio);

/* Units of time until the threshold is reached by steady traffic of `rate` packets a unit: packets arrive evenly over
 * an epoch, so that T = rate * length^2 / 2. */
double ow_colate_epoch_length(const struct ow_colate_size *size, double rate);
/* Bits written a packet, if a packet's time is mean_time in the epoch on average. */
double ow_colate_bits_per_packet(const struct ow_colate_size *size, double mean_time);

#endif
