/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"
#include "plane/route.h"
#include "plane/watch.h"

/*
 * Computes the result of a route from the results of its places. On each way the delays add up, and so do the variances
 * (queues on different links are assumed to be independent). The shares of packets that get through are multiplied.
 * Over several ways of equal cost the packets mix, with the shares s_w:
 *     mean = sum s_w m_w,   variance = sum s_w (v_w + m_w^2) - mean^2,   loss = sum s_w l_w
 * Sampling errors of places are independent, so their squares add up. Ways may have places in common, so for ways the
 * bound (sum s_w e_w)^2 <= sum s_w e_w^2 is used. Clock errors do not add up: between places that end and begin at the
 * same router they cancel, and the route has the clock errors of its ends. This is not known for all results, so the
 * bound is at most twice the largest clock error on the route.
 */
struct ow_composed {
	struct ow_value mean_ns, stddev_ns, loss_ratio; /* NONE with a reason where a place has no result */
	double clock_error_ns;                          /* bound; NAN = not known */
	double known_mean_ns;     /* sum over the places that have results: a lower bound if a result is missing */
	uint32_t places, missing; /* places that are measured or should be, and those of them without a result */
	uint32_t folded;          /* insides of routers that nobody measures: their delay and loss are not contained */
	int64_t length_ns;        /* of the longest interval that was used; 0 = none */
	uint32_t missing_way, missing_place; /* the first place without a result */
	bool active;                         /* at least one result was measured with probes */
};

/* A place that nobody measures, and that is left out. */
extern const struct ow_watch_sample ow_compose_folded;
/* The last interval of a place, NULL if it has none, or &ow_compose_folded. */
typedef const struct ow_watch_sample *ow_compose_find(void *arg, const struct ow_way *way,
                                                      const struct ow_place *place);
void ow_compose(const struct ow_route *route, ow_compose_find *find, void *arg, struct ow_composed *ret_composed);
