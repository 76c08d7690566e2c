/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECONCILE_SHARED_FLOWS_H
#define OW_RECONCILE_SHARED_FLOWS_H

#include "reconcile/keyset.h"

/*
 * The flows of which packets came from the other point, in this interval or the last ones: what else arrives of them is
 * extra or a duplicate. What arrives of other flows is unshared. Zeroed is empty.
 */
struct ow_shared_flows {
	struct ow_keyset set[2]; /* hashes of flows: of this interval, of the one before */
};

/* The next interval begins. */
void ow_shared_flows_turn(struct ow_shared_flows *flows);
/* 0 or -ENOMEM. */
int ow_shared_flows_add(struct ow_shared_flows *flows, uint64_t hash);
bool ow_shared_flows_has(const struct ow_shared_flows *flows, uint64_t hash);
void ow_shared_flows_done(struct ow_shared_flows *flows);

#endif
