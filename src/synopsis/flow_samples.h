/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A bottom-k sample of the packets of each flow: those with the smallest ranks, which follow from a packet's hash, so that
 * two points keep the same packets. A flow's sample has every packet of it with a rank below the flow's `limit`. What two
 * points both have below the smaller of their limits is drawn evenly from the packets that both saw, whatever was lost.
 *
 * Packets of all flows are appended to one log. When it is full, all but the OW_FLOW_SAMPLE smallest ranks of each flow
 * leave, and their limits fall. If this does not make room, the limit of all flows is halved. Not thread-safe.
 */
#define OW_FLOW_SAMPLE           64 /* packets of a flow */
#define OW_FLOW_SAMPLE_RANK_BITS 40
#define OW_FLOW_SAMPLE_RANKS     (UINT64_C(1) << OW_FLOW_SAMPLE_RANK_BITS)
/* While packets are recorded, one in four is considered: most are of small flows, whose samples are dropped at the end. */
#define OW_FLOW_SAMPLE_CONSIDERED (OW_FLOW_SAMPLE_RANKS / 4)

struct ow_flow_sampled {
	uint64_t rank;
	int64_t time_ns;
	uint32_t flow;
};

/* packet: ascending by rank, then time. limit: 0 = nothing is known. */
struct ow_flow_sample {
	const struct ow_flow_sampled *packet;
	size_t count;
	uint64_t limit;
};

struct ow_flow_samples {
	uint64_t most; /* the limit of all flows */
	struct ow_flow_sampled *packet, *spare;
	size_t count, room, full; /* full: when to clear it out */
	/* Of each flow: */
	uint64_t *limit;
	uint32_t *first; /* its first packet, if sorted */
	size_t flows, flow_room, first_room;
	bool sorted;
};

/* A packet's rank, from its hash (ow_colate_packet_hash). */
static inline uint64_t ow_flow_sample_rank(uint64_t packet_hash)
{
	return packet_hash >> (64 - OW_FLOW_SAMPLE_RANK_BITS);
}

/* No memory is used before there are flows. most: OW_FLOW_SAMPLE_CONSIDERED, or OW_FLOW_SAMPLE_RANKS for sums. */
void ow_flow_samples_init(struct ow_flow_samples *samples, uint64_t most);
void ow_flow_samples_done(struct ow_flow_samples *samples);
void ow_flow_samples_reset(struct ow_flow_samples *samples, uint64_t most);

/* A new flow: number 0, then 1, and so on. -ENOMEM. */
int ow_flow_samples_flow(struct ow_flow_samples *samples, size_t flow);
/* Adds a packet of rank < most. If memory is short, the samples of all flows are given up. */
void ow_flow_samples_add(struct ow_flow_samples *samples, uint32_t flow, uint64_t rank, int64_t time_ns);
/* Adds another sample of this flow, of other packets. NULL: it has packets of which there is no sample. */
void ow_flow_samples_put(struct ow_flow_samples *samples, uint32_t flow, const struct ow_flow_sample *sample);
/* Valid until the next call that adds. It sorts in place: two threads must not call it at once. */
struct ow_flow_sample ow_flow_samples_get(struct ow_flow_samples *samples, uint32_t flow);
