/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_FLOWS_FLOW_MEASURE_H
#define OW_FLOWS_FLOW_MEASURE_H

#include "flows/epoch.h"

/*
 * What sizing a COLATE recording needs to know of the traffic (COLATE sections 5.1 and 5.2): sums of the times of a
 * flow's packets, counted from the start of the capture or of each interval, and how much of such a sum is delay.
 */
struct ow_flow_measure_options {
	const struct ow_epoch_info *info; /* identity, flow key, seed, unit; interval_ns as epochs will have, 0 = one */
	const char *filter;
	uint64_t packets_min; /* t_min is that of the smallest flow with so many packets in an interval */
	void (*progress)(void *arg, double done);
	void *arg;
};

struct ow_flow_measure {
	uint64_t packets, flows; /* flows: times a flow was active in an interval */
	uint64_t large;          /* of these, with packets_min packets */
	double length;           /* of the capture, in units */
	double t_min, t_max;     /* in units; t_min of the large ones; 0 if there is none */
	double t_sum;            /* the largest sum of all times of an interval */
	double mean_time;        /* of a packet */
	/* Equation 12, of the large flows that both captures have: its median and its 5 % quantile; NAN without. */
	double ratio_median, ratio_low;
	uint64_t compared;
};

/* path_b: the second point; NULL = there is none. -ENODATA without packets, else what reading says. */
int ow_flow_measure(const char *path, const char *path_b, const struct ow_flow_measure_options *options,
                    struct ow_flow_measure *ret_measure, struct ow_error *err);

#endif
