/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/topology.h"

/*
 * Which segments to measure while the network changes (MPLANE, section VI). After a change both the old and the new
 * segments are measured, so that packets are seen whichever way they take. The old segments are dropped after the hold
 * time.
 */
struct ow_turnover;

enum ow_turnover_event {
	OW_TURNOVER_NEW,  /* measured from now on */
	OW_TURNOVER_OLD,  /* no longer on a shortest path: measured for the hold time */
	OW_TURNOVER_BACK, /* old, but needed again */
	OW_TURNOVER_GONE, /* no longer measured */
};
typedef void ow_turnover_sink(void *arg, enum ow_turnover_event event, const char *segment);

int ow_turnover_create(int64_t hold_ns, struct ow_turnover **ret_turnover);
void ow_turnover_free(struct ow_turnover *turnover);
/* The network at now_ns. owners: the routers whose m-sets count, NULL for all routers. */
int ow_turnover_network(struct ow_turnover *turnover, const struct ow_topology *topology, const bool *is_mrouter,
                        const bool *owners, int64_t now_ns, ow_turnover_sink *sink, void *arg, struct ow_error *err);
/*
 * Drops the segments that have been old for the hold time. Returns when the next one is due, INT64_MAX if there is
 * none.
 */
int64_t ow_turnover_expire(struct ow_turnover *turnover, int64_t now_ns, ow_turnover_sink *sink, void *arg);
