/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reconcile/keyset.h"

/*
 * The flows of which packets came from the other point, in this interval or the last seconds: what else arrives of them is
 * extra or a duplicate. What arrives of other flows is unshared. Zeroed is empty.
 */
struct ow_shared_flows {
	struct ow_keyset set[2]; /* hashes of flows: of the last seconds, and of those before */
	int64_t since_ns;        /* of the first */
};

/* An interval begins. What was added more than 10 s ago is forgotten, or earlier if there are many flows. */
void ow_shared_flows_turn(struct ow_shared_flows *flows, int64_t start_ns);
/* 0 or -ENOMEM. */
int ow_shared_flows_add(struct ow_shared_flows *flows, uint64_t hash);
bool ow_shared_flows_has(const struct ow_shared_flows *flows, uint64_t hash);
void ow_shared_flows_done(struct ow_shared_flows *flows);
