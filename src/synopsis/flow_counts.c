/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the packets of each flow: flow_counts.h. Flows are entries in order of appearance, which are found by the hash
 * of the flow; it is assumed to be unique (64 bits, keyed). A batch prefetches first the slots, then the entries.
 */
#include "synopsis/flow_counts.h"

#include "base/array.h"
#include "base/id_map.h"
#include "base/sort.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 64 /* packets whose memory is prefetched together */

struct entry {
	uint64_t flow, packets;
	int64_t first_ns, last_ns;
	struct ow_flow_own own;
};

struct ow_flow_counts {
	size_t flows_max, flows, room;
	uint64_t seed, packets, uncounted;
	uint32_t layers, partials, unit_ns;
	int32_t partial_of[OW_COLATE_LAYERS_MAX];           /* index among the partial ones, or -1 */
	struct ow_colate_layer share[OW_COLATE_LAYERS_MAX]; /* of the partial ones */
	struct ow_id_map by_flow;
	struct entry *entry;
	struct ow_flow_key *key;
	uint64_t *partial; /* `partials` for each flow; NULL if there are none */
	struct ow_flow_samples *samples;
};

int ow_flow_counts_create(const struct ow_colate_params *params, size_t flows_max, struct ow_flow_counts **ret_counts)
{
	struct ow_flow_counts *counts = calloc(1, sizeof *counts);
	if (!counts)
		return -ENOMEM;
	counts->flows_max = flows_max && flows_max < OW_FLOW_COUNTS_MAX ? flows_max : OW_FLOW_COUNTS_MAX;
	counts->seed = params->seed;
	counts->unit_ns = params->unit_ns ? params->unit_ns : 1;
	counts->layers = params->layers;
	for (uint32_t i = 0; i < params->layers; i++) {
		const struct ow_colate_layer *layer = &params->layer[i];
		bool whole = layer->first == 0 && layer->last == OW_COLATE_SHARE;
		counts->partial_of[i] = whole ? -1 : (int32_t)counts->partials;
		if (!whole)
			counts->share[counts->partials++] = *layer;
	}
	counts->samples = malloc(sizeof *counts->samples);
	if (!counts->samples) {
		free(counts);
		return -ENOMEM;
	}
	ow_flow_samples_init(counts->samples, OW_FLOW_SAMPLE_RANKS);
	*ret_counts = counts;
	return 0;
}

void ow_flow_counts_free(struct ow_flow_counts *counts)
{
	if (!counts)
		return;
	ow_id_map_done(&counts->by_flow);
	free(counts->entry);
	free(counts->key);
	free(counts->partial);
	ow_flow_samples_done(counts->samples);
	free(counts->samples);
	free(counts);
}

void ow_flow_counts_reset(struct ow_flow_counts *counts)
{
	ow_id_map_clear(&counts->by_flow);
	counts->flows = 0;
	counts->packets = counts->uncounted = 0;
	ow_flow_samples_reset(counts->samples, OW_FLOW_SAMPLE_RANKS);
}

static inline uint32_t look_up(const struct ow_flow_counts *counts, uint64_t flow)
{
	return OW_ID_MAP_FIND(&counts->by_flow, flow, i, counts->entry[i].flow == flow);
}

/* Room for one more flow. On failure nothing changes, except that arrays may be larger. */
static int make_room(struct ow_flow_counts *counts)
{
	size_t entries = counts->room, keys = counts->room, partials = counts->room, needed = counts->flows + 1;
	size_t size = counts->partials * sizeof *counts->partial;
	if (OW_GROW(counts->entry, entries, needed) < 0 || OW_GROW(counts->key, keys, needed) < 0)
		return -ENOMEM;
	uint64_t *partial = size ? ow_grow(counts->partial, &partials, needed, size) : NULL;
	if (size && !partial)
		return -ENOMEM;
	counts->partial = partial;
	counts->room = entries;
	return 0;
}

/* Returns the entry of a flow, which is added if it is new (with no packets), or a negative errno. */
static int64_t enter(struct ow_flow_counts *counts, uint64_t flow, const struct ow_flow_key *key)
{
	uint32_t known = look_up(counts, flow);
	if (known != OW_ID_MAP_NONE)
		return known;
	if (counts->flows >= counts->flows_max)
		return -ENOSPC;
	int r = make_room(counts);
	if (r == 0)
		r = ow_flow_samples_flow(counts->samples, counts->flows);
	if (r == 0)
		r = ow_id_map_add(&counts->by_flow, flow, (uint32_t)counts->flows);
	if (r < 0)
		return r;
	size_t i = counts->flows++;
	counts->entry[i] = (struct entry){.flow = flow, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
	counts->key[i] = *key;
	assert(!counts->partials || counts->partial);
	if (counts->partials)
		memset(counts->partial + i * counts->partials, 0, counts->partials * sizeof *counts->partial);
	return (int64_t)i;
}

static void add_own(struct ow_flow_own *own, uint64_t hash, int64_t time_ns, uint32_t unit_ns)
{
	own->packets++;
	own->sum += unit_ns == 1 ? (uint64_t)time_ns : ow_colate_in_units(time_ns, unit_ns);
	own->check += ow_colate_check_word(hash);
}

static void add_partials(struct ow_flow_counts *counts, size_t i, uint64_t hash)
{
	uint32_t place = ow_colate_place(hash);
	for (uint32_t k = 0; k < counts->partials; k++)
		counts->partial[i * counts->partials + k] +=
			place >= counts->share[k].first && place < counts->share[k].last;
}

/* guess: probably the flow's entry, or OW_ID_MAP_NONE. */
static void add_one(struct ow_flow_counts *counts, const struct ow_flow_sighting *sighting,
                    const struct ow_flow_key *key, uint32_t guess)
{
	int64_t i = guess;
	if (guess == OW_ID_MAP_NONE || counts->entry[guess].flow != sighting->flow)
		i = enter(counts, sighting->flow, key);
	if (i < 0) {
		counts->uncounted++;
		return;
	}
	struct entry *entry = &counts->entry[i];
	entry->packets++;
	counts->packets++;
	entry->first_ns = sighting->time_ns < entry->first_ns ? sighting->time_ns : entry->first_ns;
	entry->last_ns = sighting->time_ns > entry->last_ns ? sighting->time_ns : entry->last_ns;
	uint64_t hash = ow_colate_packet_hash(counts->seed, sighting->id);
	add_own(&entry->own, hash, sighting->time_ns, counts->unit_ns);
	uint64_t rank = ow_flow_sample_rank(hash);
	if (rank < counts->samples->most)
		ow_flow_samples_add(counts->samples, (uint32_t)i, rank, sighting->time_ns);
	if (counts->partials)
		add_partials(counts, (size_t)i, hash);
}

void ow_flow_counts_add(struct ow_flow_counts *counts, const struct ow_flow_sighting *sightings,
                        const struct ow_flow_key *const *keys, size_t count)
{
	if (counts->samples->most > OW_FLOW_SAMPLE_CONSIDERED)
		counts->samples->most = OW_FLOW_SAMPLE_CONSIDERED;
	while (count) {
		size_t some = count < AHEAD ? count : AHEAD;
		struct ow_id_probe probe[AHEAD];
		uint32_t guess[AHEAD];
		for (size_t i = 0; i < some; i++) {
			probe[i] = ow_id_map_probe(&counts->by_flow, sightings[i].flow);
			__builtin_prefetch(probe[i].slot + probe[i].at);
		}
		for (size_t i = 0; i < some; i++) {
			guess[i] = ow_id_probe_next(&probe[i]);
			if (guess[i] != OW_ID_MAP_NONE)
				__builtin_prefetch(&counts->entry[guess[i]], 1);
		}
		for (size_t i = 0; i < some; i++)
			add_one(counts, &sightings[i], keys[i], guess[i]);
		sightings += some;
		keys += some;
		count -= some;
	}
}

int ow_flow_counts_put(struct ow_flow_counts *counts, const struct ow_flow_count *count, const uint64_t *in_partial,
                       const struct ow_flow_sample *sample)
{
	int64_t i = enter(counts, count->flow, &count->key);
	if (i < 0)
		return (int)i;
	struct entry *entry = &counts->entry[i];
	entry->packets += count->packets;
	counts->packets += count->packets;
	entry->first_ns = count->first_ns < entry->first_ns ? count->first_ns : entry->first_ns;
	entry->last_ns = count->last_ns > entry->last_ns ? count->last_ns : entry->last_ns;
	entry->own.packets += count->own.packets;
	entry->own.sum += count->own.sum;
	entry->own.check += count->own.check;
	if (count->own.packets)
		ow_flow_samples_put(counts->samples, (uint32_t)i, sample);
	for (uint32_t k = 0; k < counts->partials; k++)
		counts->partial[(size_t)i * counts->partials + k] += in_partial[k];
	return 0;
}

void ow_flow_counts_drop_own(struct ow_flow_counts *counts, uint64_t packets_min, const uint64_t *keep, size_t keeps)
{
	for (size_t i = 0; i < counts->flows; i++) {
		struct entry *entry = &counts->entry[i];
		if (entry->packets >= packets_min)
			continue;
		size_t place = ow_ids_below(keep, keeps, entry->flow);
		if (place == keeps || keep[place] != entry->flow)
			entry->own = (struct ow_flow_own){0};
	}
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
		.own = entry->own,
	};
}

struct ow_flow_sample ow_flow_counts_sample(const struct ow_flow_counts *counts, size_t i)
{
	return ow_flow_samples_get(counts->samples, (uint32_t)i);
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
	uint32_t i = look_up(counts, flow);
	return i == OW_ID_MAP_NONE ? -1 : (ptrdiff_t)i;
}
