/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the packets of each flow: flow_counts.h. Flows are entries in order of appearance. Open addressing over slots
 * of entry number + 1 finds them by the hash of the flow, which is assumed to be unique (64 bits, keyed). A batch
 * prefetches first the slots, then the entries.
 */
#include "synopsis/flow_counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLOWS_FIRST 1024u /* power of two: initial number of entries */
#define AHEAD       64    /* packets whose memory is prefetched together */

struct entry {
	uint64_t flow, packets;
	int64_t first_ns, last_ns;
};

struct ow_flow_counts {
	size_t flows_max, flows, room; /* room: a power of two; slots are twice that */
	uint64_t seed, packets, uncounted;
	uint32_t layers, partials;
	int32_t partial_of[OW_COLATE_LAYERS_MAX];           /* index among the partial ones, or -1 */
	struct ow_colate_layer share[OW_COLATE_LAYERS_MAX]; /* of the partial ones */
	uint32_t *slot;
	struct entry *entry;
	struct ow_flow_key *key;
	uint64_t *partial; /* `partials` for each flow; NULL if there are none */
};

static int make_room(struct ow_flow_counts *counts, size_t room);

int ow_flow_counts_create(const struct ow_colate_params *params, size_t flows_max, struct ow_flow_counts **ret_counts)
{
	struct ow_flow_counts *counts = calloc(1, sizeof *counts);
	if (!counts)
		return -ENOMEM;
	counts->flows_max = flows_max && flows_max < OW_FLOW_COUNTS_MAX ? flows_max : OW_FLOW_COUNTS_MAX;
	counts->seed = params->seed;
	counts->layers = params->layers;
	for (uint32_t i = 0; i < params->layers; i++) {
		const struct ow_colate_layer *layer = &params->layer[i];
		bool whole = layer->first == 0 && layer->last == OW_COLATE_SHARE;
		counts->partial_of[i] = whole ? -1 : (int32_t)counts->partials;
		if (!whole)
			counts->share[counts->partials++] = *layer;
	}
	int r = make_room(counts, FLOWS_FIRST);
	if (r < 0) {
		ow_flow_counts_free(counts);
		return r;
	}
	*ret_counts = counts;
	return 0;
}

void ow_flow_counts_free(struct ow_flow_counts *counts)
{
	if (!counts)
		return;
	free(counts->slot);
	free(counts->entry);
	free(counts->key);
	free(counts->partial);
	free(counts);
}

void ow_flow_counts_reset(struct ow_flow_counts *counts)
{
	memset(counts->slot, 0, 2 * counts->room * sizeof *counts->slot);
	counts->flows = 0;
	counts->packets = counts->uncounted = 0;
}

static inline size_t mask_of(const struct ow_flow_counts *counts)
{
	return 2 * counts->room - 1;
}

/* The slot of the flow: empty (0), or its entry + 1. */
static inline size_t look_up(const struct ow_flow_counts *counts, uint64_t flow)
{
	size_t mask = mask_of(counts), i = flow & mask;
	while (counts->slot[i] && counts->entry[counts->slot[i] - 1].flow != flow)
		i = (i + 1) & mask;
	return i;
}

/* On failure nothing changes, except that arrays may be larger. */
static int make_room(struct ow_flow_counts *counts, size_t room)
{
	struct entry *entry = realloc(counts->entry, room * sizeof *entry);
	if (entry)
		counts->entry = entry;
	struct ow_flow_key *key = realloc(counts->key, room * sizeof *key);
	if (key)
		counts->key = key;
	uint64_t *partial = NULL;
	if (counts->partials) {
		partial = realloc(counts->partial, room * counts->partials * sizeof *partial);
		if (partial)
			counts->partial = partial;
	}
	uint32_t *slot = calloc(2 * room, sizeof *slot);
	if (!entry || !key || !slot || (counts->partials && !partial)) {
		free(slot);
		return -ENOMEM;
	}
	free(counts->slot);
	counts->slot = slot;
	counts->room = room;
	for (size_t i = 0; i < counts->flows; i++)
		counts->slot[look_up(counts, counts->entry[i].flow)] = (uint32_t)i + 1;
	return 0;
}

/* Returns the entry of a flow, which is added if it is new (with no packets), or a negative errno. */
static int64_t enter(struct ow_flow_counts *counts, uint64_t flow, const struct ow_flow_key *key)
{
	size_t slot = look_up(counts, flow);
	if (counts->slot[slot])
		return counts->slot[slot] - 1;
	if (counts->flows >= counts->flows_max)
		return -ENOSPC;
	if (counts->flows == counts->room) {
		int r = make_room(counts, 2 * counts->room);
		if (r < 0)
			return r;
		slot = look_up(counts, flow);
	}
	size_t i = counts->flows++;
	counts->slot[slot] = (uint32_t)i + 1;
	counts->entry[i] = (struct entry){.flow = flow, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
	counts->key[i] = *key;
	if (counts->partials)
		memset(counts->partial + i * counts->partials, 0, counts->partials * sizeof *counts->partial);
	return (int64_t)i;
}

static void add_partials(struct ow_flow_counts *counts, size_t i, uint64_t id)
{
	uint32_t place = ow_colate_place(ow_colate_packet_hash(counts->seed, id));
	for (uint32_t k = 0; k < counts->partials; k++)
		counts->partial[i * counts->partials + k] +=
			place >= counts->share[k].first && place < counts->share[k].last;
}

static void add_one(struct ow_flow_counts *counts, const struct ow_flow_stamp *stamp, const struct ow_flow_key *key)
{
	int64_t i = enter(counts, stamp->flow, key);
	if (i < 0) {
		counts->uncounted++;
		return;
	}
	struct entry *entry = &counts->entry[i];
	entry->packets++;
	counts->packets++;
	entry->first_ns = stamp->time_ns < entry->first_ns ? stamp->time_ns : entry->first_ns;
	entry->last_ns = stamp->time_ns > entry->last_ns ? stamp->time_ns : entry->last_ns;
	if (counts->partials)
		add_partials(counts, (size_t)i, stamp->id);
}

void ow_flow_counts_add(struct ow_flow_counts *counts, const struct ow_flow_stamp *stamps,
                        const struct ow_flow_key *const *keys, size_t count)
{
	while (count) {
		size_t some = count < AHEAD ? count : AHEAD, mask = mask_of(counts);
		for (size_t i = 0; i < some; i++)
			__builtin_prefetch(&counts->slot[stamps[i].flow & mask]);
		for (size_t i = 0; i < some; i++) {
			uint32_t number = counts->slot[stamps[i].flow & mask];
			__builtin_prefetch(&counts->entry[number ? number - 1 : 0], 1);
		}
		for (size_t i = 0; i < some; i++)
			add_one(counts, &stamps[i], keys[i]);
		stamps += some;
		keys += some;
		count -= some;
	}
}

int ow_flow_counts_put(struct ow_flow_counts *counts, const struct ow_flow_count *count, const uint64_t *in_partial)
{
	int64_t i = enter(counts, count->flow, &count->key);
	if (i < 0)
		return (int)i;
	struct entry *entry = &counts->entry[i];
	entry->packets += count->packets;
	counts->packets += count->packets;
	entry->first_ns = count->first_ns < entry->first_ns ? count->first_ns : entry->first_ns;
	entry->last_ns = count->last_ns > entry->last_ns ? count->last_ns : entry->last_ns;
	for (uint32_t k = 0; k < counts->partials; k++)
		counts->partial[(size_t)i * counts->partials + k] += in_partial[k];
	return 0;
}

int ow_flow_counts_merge(struct ow_flow_counts *counts, const struct ow_flow_counts *other)
{
	for (size_t i = 0; i < other->flows; i++) {
		struct ow_flow_count count;
		ow_flow_counts_get(other, i, &count);
		int r = ow_flow_counts_put(counts, &count, ow_flow_counts_in_partials(other, i));
		if (r < 0)
			return r;
	}
	counts->uncounted += other->uncounted;
	return 0;
}

size_t ow_flow_counts_flows(const struct ow_flow_counts *counts)
{
	return counts->flows;
}

uint64_t ow_flow_counts_packets(const struct ow_flow_counts *counts)
{
	return counts->packets;
}

uint64_t ow_flow_counts_uncounted(const struct ow_flow_counts *counts)
{
	return counts->uncounted;
}

void ow_flow_counts_add_uncounted(struct ow_flow_counts *counts, uint64_t packets)
{
	counts->uncounted += packets;
}

void ow_flow_counts_get(const struct ow_flow_counts *counts, size_t i, struct ow_flow_count *ret_count)
{
	const struct entry *entry = &counts->entry[i];
	*ret_count = (struct ow_flow_count){
		.key = counts->key[i],
		.flow = entry->flow,
		.packets = entry->packets,
		.first_ns = entry->first_ns,
		.last_ns = entry->last_ns,
	};
}

uint64_t ow_flow_counts_in_layer(const struct ow_flow_counts *counts, size_t i, uint32_t layer)
{
	int32_t partial = counts->partial_of[layer];
	return partial < 0 ? counts->entry[i].packets : counts->partial[i * counts->partials + (uint32_t)partial];
}

uint32_t ow_flow_counts_partials(const struct ow_flow_counts *counts)
{
	return counts->partials;
}

const uint64_t *ow_flow_counts_in_partials(const struct ow_flow_counts *counts, size_t i)
{
	return counts->partials ? counts->partial + i * counts->partials : NULL;
}

ptrdiff_t ow_flow_counts_find(const struct ow_flow_counts *counts, uint64_t flow)
{
	return (ptrdiff_t)counts->slot[look_up(counts, flow)] - 1;
}
