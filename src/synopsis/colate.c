/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up the times of packets in counters that all flows share: COLATE sections 3 and 1.4, with the deviations of
 * formulas 1 (counters are modular; the j of a packet is a hash of it) and the banks of formulas 3.8.
 *
 * A batch is processed in blocks: first the hashes and times of all packets, then for each layer first the positions of
 * all packets, then the additions. The operations of a step are independent, so that loads and multiplications of many
 * packets overlap.
 */
#include "synopsis/colate.h"

#include "base/random.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 128 /* packets; a block fits into the first-level cache */

struct layer {
	struct ow_colate_layer is;
	uint64_t mask;
	uint32_t check_mask, count_mask;
	uint32_t size; /* of a bank, or of all counters */
	uint64_t key[OW_COLATE_SPREAD_MAX];
	uint64_t packets;
	uint64_t *counter;
	uint32_t *check, *count; /* NULL = none */
};

struct ow_colate {
	struct ow_colate_params params;
	struct ow_random random; /* for OW_COLATE_RANDOM; seeded by the first packet, so that points differ */
	uint64_t packets;
	int64_t first_ns, last_ns, base_ns; /* base_ns: reference of the sum below */
	__int128 time_sum_ns;
	struct layer layer[OW_COLATE_LAYERS_MAX];
	struct ow_repair_cell *repair; /* NULL = none */
};

/* The packets of a block, as a layer gets them. */
struct block {
	size_t count;
	uint64_t flow[BLOCK], hash[BLOCK], time[BLOCK];
};

static int check_layer(const struct ow_colate_layer *layer, unsigned number, struct ow_error *err)
{
	if (layer->form < OW_COLATE_RANDOM || layer->form > OW_COLATE_BANKS)
		return ow_error_set(err, EINVAL, "layer %u: unknown form %d", number, (int)layer->form);
	if (layer->spread < 1 || layer->spread > OW_COLATE_SPREAD_MAX)
		return ow_error_set(err, EINVAL, "layer %u: %u counters a flow, 1 to %u are possible", number,
		                    layer->spread, OW_COLATE_SPREAD_MAX);
	if (layer->counters < layer->spread || layer->counters > OW_COLATE_COUNTERS_MAX)
		return ow_error_set(err, EINVAL, "layer %u: %u counters, %u to %u are possible", number,
		                    layer->counters, layer->spread, OW_COLATE_COUNTERS_MAX);
	if (layer->form == OW_COLATE_BANKS && layer->counters % layer->spread)
		return ow_error_set(err, EINVAL, "layer %u: %u counters are not a multiple of %u banks", number,
		                    layer->counters, layer->spread);
	if (layer->bits < 8 || layer->bits > 64)
		return ow_error_set(err, EINVAL, "layer %u: counters of %u bits, 8 to 64 are possible", number,
		                    layer->bits);
	if (layer->check_bits > 32)
		return ow_error_set(err, EINVAL, "layer %u: checks of %u bits, 0 to 32 are possible", number,
		                    layer->check_bits);
	if (layer->count_bits > 32)
		return ow_error_set(err, EINVAL, "layer %u: counts of %u bits, 0 to 32 are possible", number,
		                    layer->count_bits);
	if (layer->first >= layer->last || layer->last > OW_COLATE_SHARE)
		return ow_error_set(err, EINVAL, "layer %u: a share of packets from %u to %u of %u", number,
		                    layer->first, layer->last, OW_COLATE_SHARE);
	return 0;
}

int ow_colate_check(const struct ow_colate_params *params, struct ow_error *err)
{
	uint64_t counters = 0;
	if (params->layers < 1 || params->layers > OW_COLATE_LAYERS_MAX)
		return ow_error_set(err, EINVAL, "%u layers, 1 to %d are possible", params->layers,
		                    OW_COLATE_LAYERS_MAX);
	if (params->unit_ns < 1)
		return ow_error_set(err, EINVAL, "the unit of time is 0 ns");
	for (uint32_t i = 0; i < params->layers; i++) {
		int r = check_layer(&params->layer[i], i + 1, err);
		if (r < 0)
			return r;
		counters += params->layer[i].counters;
	}
	if (params->repair_cells > OW_REPAIR_CELLS_MAX)
		return ow_error_set(err, EINVAL, "%u cells of a bank for lost packets, %u are possible",
		                    params->repair_cells, OW_REPAIR_CELLS_MAX);
	if (params->repair_shift > OW_COLATE_REPAIR_SHIFT_MAX)
		return ow_error_set(err, EINVAL, "times of lost packets without their last %u bits, %d are possible",
		                    params->repair_shift, OW_COLATE_REPAIR_SHIFT_MAX);
	if (counters > OW_COLATE_COUNTERS_MAX)
		return ow_error_set(err, EINVAL, "%llu counters in all layers, %u are possible",
		                    (unsigned long long)counters, OW_COLATE_COUNTERS_MAX);
	return 0;
}

static int differs(struct ow_error *err, unsigned layer, const char *what, uint64_t a, uint64_t b)
{
	if (layer)
		return ow_error_set(err, EINVAL, "%s of layer %u differ: %llu and %llu", what, layer,
		                    (unsigned long long)a, (unsigned long long)b);
	return ow_error_set(err, EINVAL, "%s differ: %llu and %llu", what, (unsigned long long)a,
	                    (unsigned long long)b);
}

int ow_colate_comparable(const struct ow_colate_params *a, const struct ow_colate_params *b, struct ow_error *err)
{
	if (a->seed != b->seed)
		return differs(err, 0, "seeds", a->seed, b->seed);
	if (a->unit_ns != b->unit_ns)
		return differs(err, 0, "units of time (ns)", a->unit_ns, b->unit_ns);
	if (a->layers != b->layers)
		return differs(err, 0, "numbers of layers", a->layers, b->layers);
	if (a->repair_cells != b->repair_cells)
		return differs(err, 0, "cells for lost packets", a->repair_cells, b->repair_cells);
	if (a->repair_shift != b->repair_shift)
		return differs(err, 0, "resolutions of the times of lost packets", a->repair_shift, b->repair_shift);
	for (uint32_t i = 0; i < a->layers; i++) {
		const struct ow_colate_layer *x = &a->layer[i], *y = &b->layer[i];
		const struct {
			const char *what;
			uint64_t a, b;
		} fields[] = {
			{"forms", x->form, y->form},
			{"signs", x->is_signed, y->is_signed},
			{"numbers of counters", x->counters, y->counters},
			{x->form == OW_COLATE_BANKS ? "numbers of banks" : "counters a flow", x->spread, y->spread},
			{"bits of a counter", x->bits, y->bits},
			{"bits of a check", x->check_bits, y->check_bits},
			{"bits of a count", x->count_bits, y->count_bits},
			{"starts of the share", x->first, y->first},
			{"ends of the share", x->last, y->last},
		};
		for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
			if (fields[k].a != fields[k].b)
				return differs(err, i + 1, fields[k].what, fields[k].a, fields[k].b);
		}
	}
	return 0;
}

static uint32_t mask_of_bits(uint8_t bits)
{
	return bits ? UINT32_MAX >> (32 - bits) : 0;
}

static bool init_layer(struct layer *layer, const struct ow_colate_layer *is, uint64_t seed)
{
	layer->is = *is;
	layer->mask = UINT64_MAX >> (64 - is->bits);
	layer->check_mask = mask_of_bits(is->check_bits);
	layer->count_mask = mask_of_bits(is->count_bits);
	layer->size = is->form == OW_COLATE_BANKS ? is->counters / is->spread : is->counters;
	for (uint32_t j = 0; j < is->spread; j++)
		layer->key[j] = ow_colate_key(is, seed, j);
	layer->counter = calloc(is->counters, sizeof *layer->counter);
	if (is->check_bits)
		layer->check = calloc(is->counters, sizeof *layer->check);
	if (is->count_bits)
		layer->count = calloc(is->counters, sizeof *layer->count);
	return layer->counter && (layer->check || !is->check_bits) && (layer->count || !is->count_bits);
}

static size_t repair_size(const struct ow_colate *colate)
{
	return OW_REPAIR_BANKS * (size_t)colate->params.repair_cells;
}

int ow_colate_create(const struct ow_colate_params *params, struct ow_colate **ret_colate, struct ow_error *err)
{
	int r = ow_colate_check(params, err);
	if (r < 0)
		return r;
	struct ow_colate *colate = calloc(1, sizeof *colate);
	if (!colate)
		return ow_error_set(err, ENOMEM, "not enough memory for counters");
	colate->params = *params;
	for (uint32_t i = 0; i < params->layers; i++) {
		if (!init_layer(&colate->layer[i], &params->layer[i], params->seed)) {
			ow_colate_free(colate);
			return ow_error_set(err, ENOMEM, "not enough memory for %u counters",
			                    params->layer[i].counters);
		}
	}
	if (params->repair_cells) {
		colate->repair = calloc(repair_size(colate), sizeof *colate->repair);
		if (!colate->repair) {
			ow_colate_free(colate);
			return ow_error_set(err, ENOMEM, "not enough memory for %u cells for lost packets",
			                    params->repair_cells);
		}
	}
	*ret_colate = colate;
	return 0;
}

void ow_colate_free(struct ow_colate *colate)
{
	if (!colate)
		return;
	for (uint32_t i = 0; i < colate->params.layers; i++) {
		free(colate->layer[i].counter);
		free(colate->layer[i].check);
		free(colate->layer[i].count);
	}
	free(colate->repair);
	free(colate);
}

void ow_colate_reset(struct ow_colate *colate)
{
	for (uint32_t i = 0; i < colate->params.layers; i++) {
		struct layer *layer = &colate->layer[i];
		memset(layer->counter, 0, layer->is.counters * sizeof *layer->counter);
		if (layer->check)
			memset(layer->check, 0, layer->is.counters * sizeof *layer->check);
		if (layer->count)
			memset(layer->count, 0, layer->is.counters * sizeof *layer->count);
		layer->packets = 0;
	}
	if (colate->repair)
		memset(colate->repair, 0, repair_size(colate) * sizeof *colate->repair);
	colate->packets = 0;
	colate->time_sum_ns = 0;
}

static void start(struct ow_colate *colate, const struct ow_flow_sighting *first)
{
	colate->first_ns = colate->last_ns = colate->base_ns = first->time_ns;
	ow_random_seed(&colate->random, colate->params.seed ^ ow_mix64((uint64_t)first->time_ns));
}

/* Computes the hashes and times of a block, and updates first, last and sum of the times. */
static void take(struct ow_colate *colate, const struct ow_flow_sighting *sightings, size_t count, struct block *block)
{
	uint64_t seed = colate->params.seed;
	int64_t first = colate->first_ns, last = colate->last_ns, base = colate->base_ns;
	uint64_t low = 0, high = 0; /* of the sum of differences, which may have either sign */
	for (size_t i = 0; i < count; i++) {
		int64_t t = sightings[i].time_ns;
		uint64_t since = (uint64_t)t - (uint64_t)base + (UINT64_C(1) << 63);
		block->flow[i] = sightings[i].flow;
		block->hash[i] = ow_colate_packet_hash(seed, sightings[i].id);
		block->time[i] = (uint64_t)t;
		first = t < first ? t : first;
		last = t > last ? t : last;
		low += since & UINT32_MAX;
		high += since >> 32;
	}
	if (colate->params.unit_ns != 1) {
		for (size_t i = 0; i < count; i++)
			block->time[i] = ow_colate_in_units((int64_t)block->time[i], colate->params.unit_ns);
	}
	block->count = count;
	colate->first_ns = first;
	colate->last_ns = last;
	colate->time_sum_ns += ((__int128)high << 32) + low - ((__int128)count << 63);
	colate->packets += count;
}

/* Selects the packets of a layer's share, with their signs. */
static const struct block *share(const struct layer *layer, const struct block *all, struct block *own)
{
	const struct ow_colate_layer *is = &layer->is;
	if (is->first == 0 && is->last == OW_COLATE_SHARE && !is->is_signed)
		return all;
	size_t count = 0;
	for (size_t i = 0; i < all->count; i++) {
		uint64_t hash = all->hash[i], minus = is->is_signed && ow_colate_is_minus(hash) ? UINT64_MAX : 0;
		uint32_t place = ow_colate_place(hash);
		own->flow[count] = all->flow[i];
		own->hash[count] = hash;
		own->time[count] = (all->time[i] ^ minus) - minus;
		count += place >= is->first && place < is->last;
	}
	own->count = count;
	return own;
}

/* As ow_colate_counter, with its constant part computed before. */
static inline uint32_t position(uint64_t flow, uint64_t key, uint32_t size)
{
	return (uint32_t)((ow_mix64(flow ^ key) >> 32) * size >> 32);
}

static void count_block(struct layer *layer, const uint32_t *at, const struct block *block)
{
	uint32_t mask = layer->count_mask, *count = layer->count;
	bool is_signed = layer->is.is_signed;
	for (size_t i = 0; i < block->count; i++) {
		uint32_t one = is_signed && ow_colate_is_minus(block->hash[i]) ? UINT32_MAX : 1;
		count[at[i]] = (count[at[i]] + one) & mask;
	}
}

static void add_block(struct layer *layer, const uint32_t *at, const struct block *block)
{
	uint64_t mask = layer->mask, *counter = layer->counter;
	for (size_t i = 0; i < block->count; i++)
		counter[at[i]] = (counter[at[i]] + block->time[i]) & mask;
	if (layer->check) {
		uint32_t check_mask = layer->check_mask, *check = layer->check;
		for (size_t i = 0; i < block->count; i++)
			check[at[i]] = (check[at[i]] + ow_colate_check_word(block->hash[i])) & check_mask;
	}
	if (layer->count)
		count_block(layer, at, block);
}

static void add_banks(struct layer *layer, const struct block *block)
{
	for (uint32_t bank = 0; bank < layer->is.spread; bank++) {
		uint32_t at[BLOCK], size = layer->size, base = bank * size;
		uint64_t key = layer->key[bank];
		for (size_t i = 0; i < block->count; i++)
			at[i] = base + position(block->flow[i], key, size);
		add_block(layer, at, block);
	}
}

/* Adds to one of the flow's counters, chosen by the packet or at random. */
static void add_spread(struct layer *layer, const struct block *block, struct ow_random *random)
{
	uint32_t at[BLOCK], spread = layer->is.spread;
	for (size_t i = 0; i < block->count; i++) {
		uint32_t j =
			random ? (uint32_t)ow_random_below(random, spread) : ow_colate_pick(block->hash[i], spread);
		at[i] = position(block->flow[i], layer->key[j], layer->size);
	}
	add_block(layer, at, block);
}

void ow_colate_add(struct ow_colate *colate, const struct ow_flow_sighting *sightings, size_t count)
{
	if (count && !colate->packets)
		start(colate, sightings);
	while (count) {
		size_t some = count < BLOCK ? count : BLOCK;
		struct block all, own;
		take(colate, sightings, some, &all);
		if (colate->repair)
			ow_repair_add(colate->repair, colate->params.repair_cells, colate->params.seed,
			              colate->params.repair_shift, all.flow, all.hash, all.time, some);
		for (uint32_t i = 0; i < colate->params.layers; i++) {
			struct layer *layer = &colate->layer[i];
			const struct block *block = share(layer, &all, &own);
			layer->packets += block->count;
			if (layer->is.form == OW_COLATE_BANKS)
				add_banks(layer, block);
			else
				add_spread(layer, block, layer->is.form == OW_COLATE_RANDOM ? &colate->random : NULL);
		}
		sightings += some;
		count -= some;
	}
}

static void add_times(struct ow_colate *colate, const struct ow_colate_facts *facts, int64_t base_ns, __int128 sum_ns)
{
	if (!facts->packets)
		return;
	if (!colate->packets) {
		colate->first_ns = facts->first_ns;
		colate->last_ns = facts->last_ns;
		colate->base_ns = base_ns;
		ow_random_seed(&colate->random, colate->params.seed ^ ow_mix64((uint64_t)facts->first_ns));
	}
	colate->time_sum_ns += sum_ns + (__int128)facts->packets * ((__int128)base_ns - (__int128)colate->base_ns);
	colate->first_ns = facts->first_ns < colate->first_ns ? facts->first_ns : colate->first_ns;
	colate->last_ns = facts->last_ns > colate->last_ns ? facts->last_ns : colate->last_ns;
	colate->packets += facts->packets;
	for (uint32_t i = 0; i < colate->params.layers; i++)
		colate->layer[i].packets += facts->layer_packets[i];
}

void ow_colate_facts(const struct ow_colate *colate, struct ow_colate_facts *ret_facts)
{
	*ret_facts = (struct ow_colate_facts){
		.packets = colate->packets,
		.first_ns = colate->first_ns,
		.last_ns = colate->last_ns,
		.time_sum = ow_colate_time_sum(colate),
	};
	for (uint32_t i = 0; i < colate->params.layers; i++)
		ret_facts->layer_packets[i] = colate->layer[i].packets;
}

void ow_colate_add_facts(struct ow_colate *colate, const struct ow_colate_facts *facts)
{
	add_times(colate, facts, facts->first_ns, (__int128)facts->time_sum * colate->params.unit_ns);
}

void ow_colate_add_raw(struct ow_colate *colate, uint32_t layer, uint32_t from, const uint64_t *counters,
                       const uint32_t *checks, const uint32_t *counts, size_t count)
{
	struct layer *to = &colate->layer[layer];
	for (size_t i = 0; i < count; i++)
		to->counter[from + i] = (to->counter[from + i] + counters[i]) & to->mask;
	for (size_t i = 0; to->check && i < count; i++)
		to->check[from + i] = (to->check[from + i] + checks[i]) & to->check_mask;
	for (size_t i = 0; to->count && i < count; i++)
		to->count[from + i] = (to->count[from + i] + counts[i]) & to->count_mask;
}

int ow_colate_merge(struct ow_colate *colate, const struct ow_colate *other, struct ow_error *err)
{
	int r = ow_colate_comparable(&colate->params, &other->params, err);
	if (r < 0)
		return r;
	struct ow_colate_facts facts;
	ow_colate_facts(other, &facts);
	add_times(colate, &facts, other->base_ns, other->time_sum_ns);
	for (uint32_t i = 0; i < colate->params.layers; i++) {
		const struct layer *from = &other->layer[i];
		ow_colate_add_raw(colate, i, 0, from->counter, from->check, from->count, from->is.counters);
	}
	if (colate->repair)
		ow_repair_merge(colate->repair, other->repair, repair_size(colate));
	return 0;
}

const struct ow_colate_params *ow_colate_params(const struct ow_colate *colate)
{
	return &colate->params;
}

uint64_t ow_colate_packets(const struct ow_colate *colate)
{
	return colate->packets;
}

uint64_t ow_colate_layer_packets(const struct ow_colate *colate, uint32_t layer)
{
	return colate->layer[layer].packets;
}

uint64_t ow_colate_time_sum(const struct ow_colate *colate)
{
	__int128 sum = colate->time_sum_ns +
	               (__int128)colate->packets * ((__int128)colate->base_ns - (__int128)colate->first_ns);
	sum /= colate->params.unit_ns;
	return !colate->packets || sum < 0 ? 0 : sum > (__int128)UINT64_MAX ? UINT64_MAX : (uint64_t)sum;
}

int64_t ow_colate_first_ns(const struct ow_colate *colate)
{
	return colate->first_ns;
}

int64_t ow_colate_last_ns(const struct ow_colate *colate)
{
	return colate->last_ns;
}

const uint64_t *ow_colate_counters(const struct ow_colate *colate, uint32_t layer)
{
	return colate->layer[layer].counter;
}

const uint32_t *ow_colate_checks(const struct ow_colate *colate, uint32_t layer)
{
	return colate->layer[layer].check;
}

const uint32_t *ow_colate_counts(const struct ow_colate *colate, uint32_t layer)
{
	return colate->layer[layer].count;
}

const struct ow_repair_cell *ow_colate_repair(const struct ow_colate *colate)
{
	return colate->repair;
}

struct ow_repair_cell *ow_colate_repair_of(struct ow_colate *colate)
{
	return colate->repair;
}
