/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/flow_select.h"
#include "synopsis/colate.h"
#include "synopsis/flow_samples.h"

/*
 * Counts the packets of each flow: the p_f that estimates from shared counters need (COLATE section 4 takes them from
 * NetFlow). A table by the hash of the flow, separate from the counters. Not thread-safe.
 */
#define OW_FLOW_COUNTS_MAX (1u << 26)

struct ow_flow_counts;

/*
 * A counter of the flow's own: the sum of its packets' times, in units modulo 2^64, and the sum of their check words. Every
 * flow has one while packets are added; those of small flows are then dropped, because they are better off with shared
 * counters. packets: 0 = dropped; less than the flow's: dropped in some of the epochs that were added up.
 */
struct ow_flow_own {
	uint64_t packets, sum;
	uint32_t check;
};

struct ow_flow_count {
	struct ow_flow_key key; /* the flow key (packet/flow_select.h) */
	uint64_t flow;          /* its hash */
	uint64_t packets;
	int64_t first_ns, last_ns;
	struct ow_flow_own own;
};

/* params: layers that take only a share of the packets are counted separately. flows_max: the most flows in the table;
 * 0 = OW_FLOW_COUNTS_MAX. */
int ow_flow_counts_create(const struct ow_colate_params *params, size_t flows_max, struct ow_flow_counts **ret_counts);
void ow_flow_counts_free(struct ow_flow_counts *counts);
void ow_flow_counts_reset(struct ow_flow_counts *counts);
/* keys[i]: of the flow of sightings[i], used when it is new. Allocates only when the table grows; packets of flows for
 * which there is no room (flows_max, no memory) are counted as `uncounted`. */
void ow_flow_counts_add(struct ow_flow_counts *counts, const struct ow_flow_sighting *sightings,
                        const struct ow_flow_key *const *keys, size_t count);
/* Adds a flow with all its counts; if it exists, adds to its counts. in_layer: for each partial layer, as below, or
 * NULL if there is none. sample: of the packets of its own counter; NULL = none. -ENOSPC over flows_max, -ENOMEM. */
int ow_flow_counts_put(struct ow_flow_counts *counts, const struct ow_flow_count *count, const uint64_t *in_partial,
                       const struct ow_flow_sample *sample);

/* Drops the own counters of flows of fewer than this many packets, except of those in `keep` (hashes, ascending). */
void ow_flow_counts_drop_own(struct ow_flow_counts *counts, uint64_t packets_min, const uint64_t *keep, size_t keeps);

size_t ow_flow_counts_flows(const struct ow_flow_counts *counts);
/* Packets of all flows; and of those for which there was no room. */
uint64_t ow_flow_counts_packets(const struct ow_flow_counts *counts);
uint64_t ow_flow_counts_uncounted(const struct ow_flow_counts *counts);
void ow_flow_counts_add_uncounted(struct ow_flow_counts *counts, uint64_t packets);
/* Flow i of 0 .. flows-1, in order of appearance. */
void ow_flow_counts_get(const struct ow_flow_counts *counts, size_t i, struct ow_flow_count *ret_count);
/* A sample of the packets of its own counter. Valid until the next call that adds. The first call sorts in place: two
 * threads must not call it at once. */
struct ow_flow_sample ow_flow_counts_sample(const struct ow_flow_counts *counts, size_t i);
/* Its packets in this layer's share. */
uint64_t ow_flow_counts_in_layer(const struct ow_flow_counts *counts, size_t i, uint32_t layer);
/* Number of layers with a share of the packets, and flow i's packets in each. */
uint32_t ow_flow_counts_partials(const struct ow_flow_counts *counts);
const uint64_t *ow_flow_counts_in_partials(const struct ow_flow_counts *counts, size_t i);
/* Index of a flow by its hash, or -1. */
ptrdiff_t ow_flow_counts_find(const struct ow_flow_counts *counts, uint64_t flow);
