/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PLANE_TURNOVER_H
#define OW_PLANE_TURNOVER_H

#include "plane/topology.h"

/*
 * What is to be measured while the network changes (MPLANE, section VI): after a change both the old and the new
 * segments, so that packets are seen whichever way they still take; the old ones are phased out after the hold time.
 */
struct ow_turnover;

enum ow_turnover_event {
	OW_TURNOVER_NEW,  /* to be measured from now on */
	OW_TURNOVER_OLD,  /* on no shortest path any more: measured for the hold time */
	OW_TURNOVER_BACK, /* old, but needed again */
	OW_TURNOVER_GONE, /* not to be measured any more */
};
typedef void ow_turnover_sink(void *arg, enum ow_turnover_event event, const char *segment);

int ow_turnover_create(int64_t hold_ns, struct ow_turnover **ret_turnover);
void ow_turnover_free(struct ow_turnover *turnover);
/* The network as it is at now_ns. owners: whose m-sets count, NULL for those of all routers. */
int ow_turnover_network(struct ow_turnover *turnover, const struct ow_topology *topology, const bool *is_mrouter,
                        const bool *owners, int64_t now_ns, ow_turnover_sink *sink, void *arg, struct ow_error *err);
/* Phases out what has been old for the hold time. Returns when the next is due, INT64_MAX if none is. */
int64_t ow_turnover_expire(struct ow_turnover *turnover, int64_t now_ns, ow_turnover_sink *sink, void *arg);
/* Segments that are measured now; of them old ones. */
uint32_t ow_turnover_count(const struct ow_turnover *turnover, uint32_t *ret_old);

#endif
