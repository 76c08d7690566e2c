/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PLANE_COMPOSE_H
#define OW_PLANE_COMPOSE_H

#include "estimate/estimate.h"
#include "plane/route.h"
#include "plane/watch.h"

/*
 * From the places on a route to the route: on each way delays add up, and so do variances (queues on different links
 * are taken to be independent); what gets through multiplies. Over several ways of equal cost the packets mix: mean =
 * sum s_w m_w,   variance = sum s_w (v_w + m_w^2) - mean^2,   loss = sum s_w l_w with the shares s_w. Sampling errors
 * of places are independent and add in squares; ways may have places in common, so that of theirs the bound (sum s_w
 * e_w)^2 <= sum s_w e_w^2 is taken. Clock errors do not add: between places that end and begin at the same router they
 * cancel, so that the route has those of its ends; as this is not known of all results, the bound is the sum of the
 * largest clock error on it twice at most.
 */
struct ow_composed {
	struct ow_value mean_ns, stddev_ns, loss_ratio; /* NONE with a reason where a place has no result */
	double clock_error_ns;                          /* bound; NAN = not known */
	double known_mean_ns; /* of the places that have results: at least this, if any is missing */
	uint32_t places, missing;
	uint32_t missing_way, missing_place; /* the first that has none */
	bool active;                         /* rests on probes somewhere */
};

/* The last interval of a place, or NULL. */
typedef const struct ow_watch_sample *ow_compose_find(void *arg, const struct ow_way *way,
                                                      const struct ow_place *place);
void ow_compose(const struct ow_route *route, ow_compose_find *find, void *arg, struct ow_composed *ret_composed);

#endif
