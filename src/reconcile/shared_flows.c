/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/shared_flows.h"

#define KEEP_NS   INT64_C(5000000000) /* at least, and twice that at most */
#define FLOWS_MAX 98304

void ow_shared_flows_turn(struct ow_shared_flows *flows, int64_t start_ns)
{
	if (start_ns - flows->since_ns < KEEP_NS && flows->set[0].used < FLOWS_MAX)
		return;
	flows->since_ns = start_ns;
	ow_keyset_done(&flows->set[1]);
	flows->set[1] = flows->set[0];
	flows->set[0] = (struct ow_keyset){0};
}

int ow_shared_flows_add(struct ow_shared_flows *flows, uint64_t hash)
{
	return ow_keyset_add(&flows->set[0], hash);
}

bool ow_shared_flows_has(const struct ow_shared_flows *flows, uint64_t hash)
{
	return ow_keyset_has(&flows->set[0], hash) || ow_keyset_has(&flows->set[1], hash);
}

void ow_shared_flows_done(struct ow_shared_flows *flows)
{
	ow_keyset_done(&flows->set[0]);
	ow_keyset_done(&flows->set[1]);
}
