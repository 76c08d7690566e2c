/* SPDX-License-Identifier: Apache-2.0 */
/* The linear system of flows and counters: which flow is in which counter, with how many packets. */
#include "base/id_map.h"
#include "flows/flows_private.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* With more lost packets than this the system would take minutes; their times are then noise of the counters. */
#define LOST_MAX (1u << 20)

bool ow_flow_is_bank(const struct ow_colate_layer *layer)
{
	return layer->form == OW_COLATE_BANKS && !layer->is_signed;
}

static double share_of(const struct ow_colate_layer *layer)
{
	return (double)(layer->last - layer->first) / OW_COLATE_SHARE;
}

/* Fills the rows of a layer, which begin at `first`, with the sums of its clean counters. */
static void fill_rows(struct ow_flow_system *system, const struct ow_flows_layer *layer, size_t first)
{
	/*
	 * Rounding a time to units has the variance unit^2 / 12, at both points; the number of packets is multiplied
	 * later.
	 */
	for (uint32_t c = 0; c < layer->layer.counters; c++) {
		system->sum[first + c] = layer->clean[c] ? layer->delay_ns[c] : 0;
		system->noise[first + c] = system->taken[first + c] = layer->noise ? layer->noise[c] : 0;
		/* All banks have the same error: each gets as much noise as their average has. */
		system->shared[first + c] = system->noise[first + c] * (layer->layer.spread - 1);
	}
}

/* The packets of a flow in a layer, and whether this is only an expected value. */
static double load_of(const struct ow_flow_load *flow, const struct ow_colate_layer *layer, uint32_t number,
                      bool *ret_expected)
{
	double share = share_of(layer), known = flow->in_layer[number];
	*ret_expected = share < 1 && !(known >= 0);
	if (*ret_expected)
		return flow->packets * share;
	return share < 1 ? known : flow->packets;
}

static void fill_layer(struct ow_flow_system *system, uint32_t number, uint32_t slot, size_t first)
{
	const struct ow_flows *data = system->data;
	const struct ow_flows_layer *of = &data->layer[number];
	const struct ow_colate_layer *layer = &of->layer;
	double share = share_of(layer), unit = data->params.unit_ns;
	double rounding = unit > 1 ? unit * unit / 6 : 0;
	for (size_t f = 0; f < data->flows; f++) {
		bool expected;
		double p = data->flow[f].packets, n = load_of(&data->flow[f], layer, number, &expected);
		if (!(n > 0) || !isfinite(n) || !(p > 0))
			continue;
		for (uint32_t j = 0; j < layer->spread; j++) {
			uint32_t c = ow_colate_counter(layer, data->params.seed, data->flow[f].flow, j);
			if (!of->clean[c])
				continue;
			size_t row = first + c;
			/*
			 * n of p packets, drawn without replacement. All banks of the layer have the same n: each gets
			 * as much noise as their average has.
			 */
			system->entry[f * system->slots + slot + j] = (struct ow_flow_entry){
				.row = (uint32_t)row,
				.partial = (float)(n < p ? n * (1 - n / p) * layer->spread : 0),
				.unknown = (float)(expected ? p * share * (1 - share) * layer->spread : 0),
				.load = n,
			};
			system->used[row]++;
			system->noise[row] += n * rounding;
		}
	}
}

/* Whether the times of lost packets can be unknowns: each is in all of its flow's counters. */
static bool is_one_layer(const struct ow_flows *data)
{
	uint32_t banks = 0, whole = 0;
	for (uint32_t l = 0; l < data->params.layers; l++) {
		const struct ow_colate_layer *layer = &data->layer[l].layer;
		banks += ow_flow_is_bank(layer);
		whole += ow_flow_is_bank(layer) && layer->last - layer->first == OW_COLATE_SHARE;
	}
	return banks == 1 && whole == 1;
}

/* Finds the flow of each lost packet. */
static int name_lost(struct ow_flow_system *s)
{
	const struct ow_lost_packets *lost = s->data->lost;
	struct ow_id_map map = {0};
	if (!lost || !lost->count || lost->count + lost->both > LOST_MAX || !is_one_layer(s->data))
		return 0;
	s->lost_flow = calloc(lost->count, sizeof *s->lost_flow);
	s->link = calloc(s->flows + 1, sizeof *s->link);
	int r = s->lost_flow && s->link ? ow_id_map_reserve(&map, s->flows) : -ENOMEM;
	for (size_t f = 0; r == 0 && f < s->flows; f++) {
		s->link[f] = OW_FLOW_NONE;
		r = ow_id_map_add(&map, s->data->flow[f].flow, (uint32_t)f);
	}
	for (size_t i = 0; r == 0 && i < lost->count; i++) {
		uint64_t flow = lost->packet[i].flow;
		uint32_t at = OW_ID_MAP_FIND(&map, flow, k, s->data->flow[k].flow == flow);
		s->lost_flow[i] = at;
		if (at != OW_FLOW_NONE && !(s->packets[at] > 0))
			s->lost_flow[i] = OW_FLOW_NONE;
		else if (at != OW_FLOW_NONE)
			s->link[at] = 0;
	}
	for (size_t f = 0; r == 0 && f < s->flows; f++)
		if (s->link[f] != OW_FLOW_NONE)
			s->link[f] = (uint32_t)s->links++;
	ow_id_map_done(&map);
	s->lost = lost;
	return r;
}

/*
 * Whether a flow has a counter of its own that can be used. A part of its packets is of no use if it lost some: its other
 * counters tell about all of them.
 */
static bool has_own(const struct ow_flow_system *s, size_t f)
{
	const struct ow_flow_load *flow = &s->data->flow[f];
	return flow->own_packets > 0 && flow->packets > 0 &&
	       (flow->own_packets == flow->packets || (flow->whole && !(flow->own_noise > 0) && !s->data->lost));
}

static size_t count_own(const struct ow_flow_system *s)
{
	size_t count = 0;
	for (size_t f = 0; f < s->flows; f++)
		count += has_own(s, f);
	return count;
}

/* A row for each own counter, and an entry in the last slot. */
static void fill_own(struct ow_flow_system *s, size_t row)
{
	double unit = s->data->params.unit_ns, rounding = unit > 1 ? unit * unit / 6 : 0;
	for (size_t f = 0; f < s->flows; f++) {
		const struct ow_flow_load *flow = &s->data->flow[f];
		double n = flow->own_packets, p = flow->packets;
		if (!has_own(s, f))
			continue;
		s->sum[row] = flow->own_delay_ns;
		s->taken[row] = flow->own_noise;
		s->shared[row] = flow->own_noise * (s->slots - 1);
		s->noise[row] = flow->own_noise + n * rounding;
		s->used[row] = 1;
		s->entry[(f + 1) * s->slots - 1] = (struct ow_flow_entry){
			.row = (uint32_t)row++, .partial = (float)(n < p ? n * (1 - n / p) : 0), .load = n};
	}
}

static int allocate(struct ow_flow_system *s)
{
	/* One more of each, so that an empty system is possible. */
	s->entry = calloc(s->flows * s->slots + 1, sizeof *s->entry);
	s->packets = calloc(s->flows + 1, sizeof *s->packets);
	s->sum = calloc(s->rows + 1, sizeof *s->sum);
	s->noise = calloc(s->rows + 1, sizeof *s->noise);
	s->taken = calloc(s->rows + 1, sizeof *s->taken);
	s->shared = calloc(s->rows + 1, sizeof *s->shared);
	s->used = calloc(s->rows + 1, sizeof *s->used);
	return s->entry && s->packets && s->sum && s->noise && s->taken && s->shared && s->used ? 0 : -ENOMEM;
}

int ow_flow_system_init(const struct ow_flows *data, struct ow_flow_system *ret_system, struct ow_error *err)
{
	struct ow_flow_system system = {.data = data, .flows = data->flows};
	for (uint32_t l = 0; l < data->params.layers; l++) {
		if (!ow_flow_is_bank(&data->layer[l].layer))
			continue;
		system.slots += data->layer[l].layer.spread;
		system.rows += data->layer[l].layer.counters;
	}
	if (!system.slots)
		return ow_error_set(err, EINVAL, "the recording has no banks");
	size_t own = count_own(&system);
	system.rows += own;
	system.slots += own > 0;
	if (allocate(&system) < 0) {
		ow_flow_system_done(&system);
		return ow_error_set(err, ENOMEM, "no memory for %zu flows in %zu counters", system.flows, system.rows);
	}
	for (size_t f = 0; f < system.flows; f++)
		system.packets[f] = data->flow[f].packets;
	if (name_lost(&system) < 0) {
		ow_flow_system_done(&system);
		return ow_error_set(err, ENOMEM, "no memory for %zu flows and their lost packets", data->flows);
	}
	size_t first = 0;
	uint32_t slot = 0;
	for (uint32_t l = 0; l < data->params.layers; l++) {
		const struct ow_flows_layer *layer = &data->layer[l];
		if (!ow_flow_is_bank(&layer->layer))
			continue;
		fill_rows(&system, layer, first);
		fill_layer(&system, l, slot, first);
		first += layer->layer.counters;
		slot += layer->layer.spread;
	}
	fill_own(&system, first);
	*ret_system = system;
	return 0;
}

void ow_flow_system_done(struct ow_flow_system *system)
{
	free(system->entry);
	free(system->packets);
	free(system->sum);
	free(system->noise);
	free(system->taken);
	free(system->lost_flow);
	free(system->link);
	free(system->shared);
	free(system->used);
	*system = (struct ow_flow_system){0};
}
