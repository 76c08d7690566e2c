/* SPDX-License-Identifier: Apache-2.0 */
/* Exact results of each flow: for each direction a table that numbers flows, and an array of sums. */
#include "estimate/flow_tally.h"

#include "base/hash.h"
#include "estimate/delay_sum.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>

/* Finds busy flows by the address of their key, which does not change during a match, without hashing the key. */
#define FRONT 4096u /* power of two */

struct sums {
	uint64_t matched, lost, extra, duplicated, ambiguous;
	struct ow_delay_sum delay;
};

struct way {
	struct ow_flow_table *keys;
	struct sums *flow;
	size_t flows, room;
	struct front {
		const struct ow_flow_key *key;
		uint32_t number;
	} front[FRONT];
};

struct ow_flow_tally {
	struct ow_flow_select select;
	struct way way[OW_DIRECTIONS];
	bool coarse;
};

int ow_flow_tally_create(const struct ow_flow_select *select, uint64_t seed, struct ow_flow_tally **ret_tally)
{
	struct ow_flow_tally *tally = calloc(1, sizeof *tally);
	if (!tally)
		return -ENOMEM;
	tally->select = *select;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (ow_flow_table_create(ow_mix64(seed ^ (d + 1)), &tally->way[d].keys) < 0) {
			ow_flow_tally_free(tally);
			return -ENOMEM;
		}
	}
	*ret_tally = tally;
	return 0;
}

void ow_flow_tally_free(struct ow_flow_tally *tally)
{
	if (!tally)
		return;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		ow_flow_table_free(tally->way[d].keys);
		free(tally->way[d].flow);
	}
	free(tally);
}

static int make_room(struct way *way, uint32_t number)
{
	if (OW_GROW(way->flow, way->room, (size_t)number + 1) < 0)
		return -ENOMEM;
	while (way->flows <= number)
		way->flow[way->flows++] = (struct sums){0};
	return 0;
}

static uint32_t number_of(struct ow_flow_tally *tally, struct way *way, const struct ow_flow_key *key)
{
	struct front *front = &way->front[ow_mix64((uintptr_t)key) & (FRONT - 1)];
	if (front->key != key) {
		struct ow_flow_key kept;
		ow_flow_select_key(&tally->select, key, &kept);
		*front = (struct front){key, ow_flow_table_number(way->keys, &kept)};
		/* Either the match or this table has no more numbers. */
		tally->coarse |= ow_flow_key_is_coarse(key) || ow_flow_table_is_coarse(way->keys);
	}
	return front->number;
}

static void count_matched(struct sums *flow, const struct ow_packet_event *event)
{
	flow->matched += event->packets;
	flow->ambiguous += event->ambiguous ? event->packets : 0;
	if (event->ambiguous && !event->estimated)
		return;
	/* Times from a file may be anything: wrap instead of overflowing. */
	int64_t later = (int64_t)((uint64_t)event->time_ns[OW_SIDE_B] - (uint64_t)event->time_ns[OW_SIDE_A]);
	if (event->packets)
		ow_delay_sum_add(&flow->delay, event->direction == OW_A_TO_B ? later : (int64_t)(0 - (uint64_t)later),
		                 event->packets);
}

int ow_flow_tally_add(struct ow_flow_tally *tally, const struct ow_packet_event *event)
{
	if (event->fate == OW_FATE_UNCLASSIFIED || event->fate == OW_FATE_OUTSIDE || event->direction >= OW_DIRECTIONS)
		return 0;
	struct way *way = &tally->way[event->direction];
	uint32_t number = number_of(tally, way, event->flow);
	if (number >= way->flows && make_room(way, number) < 0)
		return -ENOMEM;
	struct sums *flow = &way->flow[number];
	switch (event->fate) {
	case OW_FATE_MATCHED:
		count_matched(flow, event);
		break;
	case OW_FATE_LOST:
		flow->lost += event->packets;
		break;
	case OW_FATE_DUPLICATED:
		flow->duplicated += event->packets;
		flow->extra += event->packets;
		break;
	default:
		flow->extra += event->packets;
	}
	return 0;
}

size_t ow_flow_tally_count(const struct ow_flow_tally *tally)
{
	return tally->way[OW_A_TO_B].flows + tally->way[OW_B_TO_A].flows;
}

void ow_flow_tally_get(const struct ow_flow_tally *tally, size_t i, struct ow_flow_result *ret_result)
{
	size_t forward = tally->way[OW_A_TO_B].flows;
	enum ow_direction direction = i < forward ? OW_A_TO_B : OW_B_TO_A;
	const struct way *way = &tally->way[direction];
	uint32_t number = (uint32_t)(i < forward ? i : i - forward);
	const struct sums *flow = &way->flow[number];
	*ret_result = (struct ow_flow_result){
		.key = *ow_flow_table_key(way->keys, number),
		.direction = direction,
		.sent = flow->matched + flow->lost,
		.received = flow->matched + flow->extra,
		.matched = flow->matched,
		.lost = flow->lost,
		.extra = flow->extra,
		.duplicated = flow->duplicated,
		.ambiguous = flow->ambiguous,
		.samples = flow->delay.samples,
	};
	if (!flow->delay.samples)
		return;
	ow_delay_sum_moments(&flow->delay, &ret_result->mean_ns, &ret_result->stddev_ns);
	ret_result->min_ns = flow->delay.min;
	ret_result->max_ns = flow->delay.max;
}

bool ow_flow_tally_is_coarse(const struct ow_flow_tally *tally)
{
	return tally->coarse;
}

bool ow_flow_tally_conserves(const struct ow_flow_tally *tally, const struct ow_match_report *report)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct way *way = &tally->way[d];
		const struct ow_result *total = &report->direction[d];
		struct sums sum = {0};
		for (size_t i = 0; i < way->flows; i++) {
			const struct sums *flow = &way->flow[i];
			sum.matched += flow->matched;
			sum.lost += flow->lost;
			sum.extra += flow->extra;
			sum.duplicated += flow->duplicated;
			sum.ambiguous += flow->ambiguous;
			sum.delay.samples += flow->delay.samples;
		}
		if (sum.matched != total->matched || sum.lost != total->lost || sum.extra != total->extra ||
		    sum.duplicated != total->duplicated || sum.ambiguous != total->ambiguous ||
		    sum.delay.samples != total->delay.samples)
			return false;
	}
	return true;
}
