/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/watch.h"

/* A time span of one place, summarised over its intervals. Two eras are compared: before and after. */
struct ow_era {
	double intervals;     /* number of intervals with a delay */
	double mean, squares; /* of the intervals' mean delays; sum of squared deviations */
	double variances;     /* sum of the variances within the intervals */
	double sent, lost;
	double clock_error_ns; /* the largest; INFINITY = not known in at least one interval */
	bool active;
};

void ow_era_add(struct ow_era *era, const struct ow_watch_sample *sample);
/*
 * The era as one interval: the error of the mean follows from the spread of the intervals, the loss counts all packets.
 */
void ow_era_sample(const struct ow_era *era, struct ow_watch_sample *ret_sample);

struct ow_era_change {
	double excess_ns, excess_error_ns; /* of the mean delay, and its standard error; NAN where one era has none */
	double delay_z;                    /* excess in standard errors (Welch) */
	double loss_before, loss_after, loss_z;
};
void ow_era_compare(const struct ow_era *before, const struct ow_era *after, struct ow_era_change *ret_change);
