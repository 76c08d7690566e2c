/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/exchange.h"
#include <stdlib.h>

/* A small lane for fuzz_exchange and its seeds: intervals of a few packets, always the same. */
#define LANE_LENGTH    INT64_C(1000000000)
#define LANE_T0        INT64_C(1000000000000)
#define LANE_INTERVALS 3
#define LANE_PACKETS   200

static inline struct ow_exchange_options lane_options(bool sending, enum ow_method method)
{
	return (struct ow_exchange_options){
		.lane = 1,
		.sending = sending,
		.method = method,
		.segment = "s",
		.class_name = "c",
		.from = "a",
		.to = "b",
		.seed = 7,
		.t0_ns = LANE_T0,
		.length_ns = LANE_LENGTH,
		.horizon = 1,
		.patience_ns = LANE_LENGTH,
		.intervals_max = 4,
		.buckets = 2,
		.sample = 3,
	};
}

/*
 * Every 9th packet is lost, every 13th arrives in the next interval, every 17th arrives twice; some are identical. Of
 * the last interval most are lost: more than the fold can decode.
 */
static inline size_t lane_stamps(int64_t interval, bool at_a, struct ow_sighting *stamps)
{
	size_t count = 0;
	for (uint64_t i = 0; i < LANE_PACKETS; i++) {
		uint64_t number = (uint64_t)interval * LANE_PACKETS + i;
		uint64_t id = ow_mix64(number % 23 == 5 ? 5 : number + 100);
		bool late = number % 13 == 1;
		bool lost = number % 9 == 0 || (interval == LANE_INTERVALS - 1 && number % 5);
		if (at_a || (!lost && !late))
			stamps[count++] = (struct ow_sighting){id, (int64_t)i * 1000 + !at_a * 777};
		if (!at_a && number % 17 == 3)
			stamps[count++] = (struct ow_sighting){id, (int64_t)i * 1000 + 900};
		uint64_t before = number - LANE_PACKETS;
		if (!at_a && interval && before % 13 == 1 && before % 9)
			stamps[count++] = (struct ow_sighting){ow_mix64(before % 23 == 5 ? 5 : before + 100),
			                                       (int64_t)i * 1000 + 5};
	}
	return count;
}

static inline struct ow_interval_packets *lane_page(int64_t interval, bool at_a, unsigned shift)
{
	struct ow_interval_packets *page = calloc(1, sizeof *page);
	struct ow_sighting *stamps = calloc(3 * LANE_PACKETS, sizeof *stamps);
	struct ow_copies copies;
	ow_copies_init(&copies);
	if (!page || !stamps || ow_copies_reserve(&copies, 3 * LANE_PACKETS) < 0)
		abort();
	page->count = lane_stamps(interval, at_a, stamps);
	ow_copies_name(&copies, stamps, page->count);
	ow_copies_sort(copies.copy, copies.copies);
	page->interval = interval;
	page->start_ns = LANE_T0 + interval * LANE_LENGTH;
	page->length_ns = LANE_LENGTH;
	page->total_packets = page->count;
	page->total_bytes = 100 * page->count;
	page->sighting = stamps;
	page->copy = copies.copy;
	page->copies = copies.copies;
	copies.copy = NULL;
	ow_copies_done(&copies);
	if (shift) {
		struct ow_identity identity = {0};
		ow_interval_packets_resample(page, &identity, shift);
	}
	return page;
}

/* The packets belong to a few flows, some of them to none. */
static inline void lane_flows(struct ow_interval_packets *page)
{
	for (uint64_t i = 0; i < 5; i++) {
		struct ow_scope_flow flow = {.flow = ow_mix64(i), .pair = ow_mix64(10 + i / 2), .dest = ow_mix64(20)};
		if (!ow_lane_flows_add(&page->flows, &flow, 5))
			abort();
	}
	for (size_t i = 0; i < page->count; i++)
		page->sighting[i].flow = (uint32_t)(page->sighting[i].id % 6);
}
