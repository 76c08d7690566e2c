/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECONCILE_RECENT_H
#define OW_RECONCILE_RECENT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Remembers the ids that matched lately, to tell a further copy of a packet from one that was never there. A fixed
 * 2 MB table of 8-way sets, one cache line each: the last 2^18 ids or so. An id is forgotten early with the probability
 * that 8 younger ids fell into its set: below 1e-6 for the 10,000 ids that pass in 10 ms at 1 M packets/s.
 */
struct ow_recent;

struct ow_recent *ow_recent_create(void);
void ow_recent_free(struct ow_recent *recent);
void ow_recent_add(struct ow_recent *recent, uint64_t id, int64_t time_ns);
/* Was the id added within the last within_ns (to the second, at least one)? */
bool ow_recent_has(const struct ow_recent *recent, uint64_t id, int64_t time_ns, int64_t within_ns);
void ow_recent_prefetch(const struct ow_recent *recent, uint64_t id);

#endif
