/* SPDX-License-Identifier: Apache-2.0 */
/* The linear system of flows and counters: which flow is in which counter, with how many packets. */
#include "flows/flows_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

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
		system->noise[first + c] = layer->noise ? layer->noise[c] : 0;
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

static int allocate(struct ow_flow_system *s)
{
	/* One more of each, so that an empty system is possible. */
	s->entry = calloc(s->flows * s->slots + 1, sizeof *s->entry);
	s->packets = calloc(s->flows + 1, sizeof *s->packets);
	s->sum = calloc(s->rows + 1, sizeof *s->sum);
	s->noise = calloc(s->rows + 1, sizeof *s->noise);
	s->shared = calloc(s->rows + 1, sizeof *s->shared);
	s->used = calloc(s->rows + 1, sizeof *s->used);
	return s->entry && s->packets && s->sum && s->noise && s->shared && s->used ? 0 : -ENOMEM;
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
	if (allocate(&system) < 0) {
		ow_flow_system_done(&system);
		return ow_error_set(err, ENOMEM, "no memory for %zu flows in %zu counters", system.flows, system.rows);
	}
	for (size_t f = 0; f < system.flows; f++)
		system.packets[f] = data->flow[f].packets;
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
	*ret_system = system;
	return 0;
}

void ow_flow_system_done(struct ow_flow_system *system)
{
	free(system->entry);
	free(system->packets);
	free(system->sum);
	free(system->noise);
	free(system->shared);
	free(system->used);
	*system = (struct ow_flow_system){0};
}
