/* SPDX-License-Identifier: Apache-2.0 */
#include "record/lane_flows.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/random.h"
#include <stdlib.h>
#include <string.h>

/* The slot of this flow, or the free one where it belongs. */
static uint32_t *look(const struct ow_lane_flows *flows, uint64_t hash)
{
	uint32_t mask = flows->slots - 1,
		 at = (uint32_t)ow_mum64(hash ^ flows->secret, UINT64_C(0x9fb21c651e98df25)) & mask;
	while (flows->slot[at] && flows->flow[flows->slot[at] - 1].flow != hash)
		at = (at + 1) & mask;
	return &flows->slot[at];
}

int ow_lane_flows_reopen(struct ow_lane_flows *flows)
{
	uint32_t slots = 16;
	if (flows->slots > 2 * flows->count)
		return 0;
	while (slots <= 4 * flows->count)
		slots *= 2;
	uint32_t *slot = calloc(slots, sizeof *slot);
	if (!slot)
		return -ENOMEM;
	free(flows->slot);
	flows->slot = slot;
	flows->slots = slots;
	if (!flows->secret)
		flows->secret = ow_random_secret(slot);
	for (uint32_t i = 0; i < flows->count; i++)
		*look(flows, flows->flow[i].flow) = i + 1;
	return 0;
}

/* Makes room for one more flow. */
static int grow(struct ow_lane_flows *flows)
{
	int r = OW_GROW(flows->flow, flows->room, flows->count + 1);
	return r < 0 ? r : ow_lane_flows_reopen(flows);
}

uint32_t ow_lane_flows_find(const struct ow_lane_flows *flows, uint64_t hash)
{
	return flows->slots ? *look(flows, hash) : 0;
}

uint32_t ow_lane_flows_add(struct ow_lane_flows *flows, const struct ow_scope_flow *flow, uint32_t max)
{
	if (flows->count >= max || grow(flows) < 0)
		return 0;
	flows->flow[flows->count] = *flow;
	return *look(flows, flow->flow) = ++flows->count;
}

int ow_lane_flows_copy(const struct ow_lane_flows *flows, struct ow_lane_flows *ret_copy)
{
	struct ow_lane_flows copy = {.count = flows->count, .room = flows->count};
	if (flows->count) {
		copy.flow = malloc(flows->count * sizeof *copy.flow);
		if (!copy.flow)
			return -ENOMEM;
		memcpy(copy.flow, flows->flow, flows->count * sizeof *copy.flow);
	}
	*ret_copy = copy;
	return 0;
}

void ow_lane_flows_close(struct ow_lane_flows *flows)
{
	free(flows->slot);
	flows->slot = NULL;
	flows->slots = 0;
}

void ow_lane_flows_done(struct ow_lane_flows *flows)
{
	ow_lane_flows_close(flows);
	free(flows->flow);
	*flows = (struct ow_lane_flows){0};
}
