/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/epoch.h"

/*
 * The properties of the traffic that determine the size of a COLATE recording (COLATE sections 5.1 and 5.2): sums of
 * the times of a flow's packets, from the start of the capture or of each interval, and the share of such a sum that is
 * delay.
 */
struct ow_flow_measure_options {
	const struct ow_epoch_info *info; /* identity, flow key, seed, unit; interval_ns of the epochs, 0 = one epoch */
	const char *filter;
	uint64_t packets_min; /* t_min is that of the smallest flow with at least this many packets in an interval */
	void (*progress)(void *arg, double done);
	void *arg;
};

struct ow_flow_measure {
	uint64_t packets, flows; /* flows: the sum over all intervals of the number of active flows */
	uint64_t large;          /* number of these with at least packets_min packets */
	double length;           /* of the capture, in units */
	double t_min, t_max;     /* in units; t_min of the large flows; 0 if there is none */
	double t_sum;            /* the largest sum of all times of an interval */
	/*
	 * Equation 12, for the large flows that are in both captures: its median and its 5 % quantile; NAN if there is
	 * none.
	 */
	double ratio_median, ratio_low;
	uint64_t compared;
};

/* path_b: the second point; NULL = none. -ENODATA without packets, otherwise the error of reading. */
int ow_flow_measure(const char *path, const char *path_b, const struct ow_flow_measure_options *options,
                    struct ow_flow_measure *ret_measure, struct ow_error *err);
