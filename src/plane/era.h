/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PLANE_ERA_H
#define OW_PLANE_ERA_H

#include "plane/watch.h"

/* A stretch of time of one place: what its intervals say together. Two of them are compared: before and after. */
struct ow_era {
	double intervals;     /* with a delay */
	double mean, squares; /* of the intervals' mean delays; sum of squared deviations */
	double variances;     /* sum over intervals of the variance within */
	double sent, lost;
	double clock_error_ns; /* the largest; INFINITY = not known in one */
	bool active;
};

void ow_era_add(struct ow_era *era, const struct ow_watch_sample *sample);
/* The era as one interval: mean with its error by the spread of intervals, loss of all packets. */
void ow_era_sample(const struct ow_era *era, struct ow_watch_sample *ret_sample);

struct ow_era_change {
	double excess_ns, excess_error_ns; /* of the mean delay, and its standard error; NAN where one era has none */
	double delay_z;                    /* excess in standard errors (Welch) */
	double loss_before, loss_after, loss_z;
};
void ow_era_compare(const struct ow_era *before, const struct ow_era *after, struct ow_era_change *ret_change);

#endif
