/* SPDX-License-Identifier: Apache-2.0 */
#include "record/lane_flows.h"

#include "base/array.h"
#include <stdlib.h>
#include <string.h>

int ow_lane_flows_reopen(struct ow_lane_flows *flows)
{
	int r = ow_id_map_reserve(&flows->map, flows->count);
	for (uint32_t i = (uint32_t)flows->map.used; i < flows->count && r == 0; i++)
		r = ow_id_map_add(&flows->map, flows->flow[i].flow, i);
	return r;
}

uint32_t ow_lane_flows_find(const struct ow_lane_flows *flows, uint64_t hash)
{
	/* OW_ID_MAP_NONE becomes 0. */
	return OW_ID_MAP_FIND(&flows->map, hash, i, flows->flow[i].flow == hash) + 1;
}

uint32_t ow_lane_flows_add(struct ow_lane_flows *flows, const struct ow_scope_flow *flow, uint32_t max)
{
	if (flows->count >= max || OW_GROW(flows->flow, flows->room, flows->count + 1) < 0 ||
	    ow_id_map_add(&flows->map, flow->flow, flows->count) < 0)
		return 0;
	flows->flow[flows->count] = *flow;
	return ++flows->count;
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
	ow_id_map_done(&flows->map);
}

void ow_lane_flows_done(struct ow_lane_flows *flows)
{
	ow_lane_flows_close(flows);
	free(flows->flow);
	*flows = (struct ow_lane_flows){0};
}
