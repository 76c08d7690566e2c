/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the difference of two recordings: the sum of the delays in each counter, if both points put the same packets
 * there.
 */
#include "flows/bits.h"
#include "flows/flows.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t low_bits(unsigned bits)
{
	return bits ? UINT32_MAX >> (32 - bits) : 0;
}

/* Sets what follows from the differences. check_bits: of the checks, those that are compared. */
static void settle(struct ow_flows_layer *layer, uint32_t c, uint32_t unit_ns, unsigned check_bits)
{
	/* With a random j the points do not put the same packets into a counter: only the totals can agree. */
	bool random = layer->layer.form == OW_COLATE_RANDOM, equal = layer->packets[0] == layer->packets[1];
	bool checked = !random && (layer->check_off || layer->count_off);
	layer->delay_ns[c] = ow_bits_signed(layer->sum_off[c], layer->layer.bits) * unit_ns;
	layer->clean[c] =
		checked ? (!layer->check_off || !(layer->check_off[c] & low_bits(check_bits))) &&
				  (!layer->count_off || !(layer->count_off[c] & low_bits(layer->layer.count_bits)))
			: equal;
}

static int layer_difference(const struct ow_colate *a, const struct ow_colate *b, uint32_t number,
                            struct ow_flows *flows)
{
	struct ow_flows_layer *layer = &flows->layer[number];
	const uint64_t *from = ow_colate_counters(a, number), *to = ow_colate_counters(b, number);
	const uint32_t *checks[] = {ow_colate_checks(a, number), ow_colate_checks(b, number)};
	const uint32_t *counts[] = {ow_colate_counts(a, number), ow_colate_counts(b, number)};
	layer->layer = flows->params.layer[number];
	size_t count = layer->layer.counters;
	layer->packets[0] = ow_colate_layer_packets(a, number);
	layer->packets[1] = ow_colate_layer_packets(b, number);
	layer->delay_ns = calloc(count, sizeof *layer->delay_ns);
	layer->noise = calloc(count, sizeof *layer->noise);
	layer->clean = calloc(count, sizeof *layer->clean);
	layer->sum_off = calloc(count, sizeof *layer->sum_off);
	layer->check_off = checks[0] ? calloc(count, sizeof *layer->check_off) : NULL;
	layer->counts = counts[0] ? calloc(count, sizeof *layer->counts) : NULL;
	layer->count_off = counts[0] ? calloc(count, sizeof *layer->count_off) : NULL;
	if (!layer->delay_ns || !layer->noise || !layer->clean || !layer->sum_off || (checks[0] && !layer->check_off) ||
	    (counts[0] && (!layer->counts || !layer->count_off)))
		return -ENOMEM;
	for (uint32_t c = 0; c < count; c++) {
		layer->sum_off[c] = to[c] - from[c];
		if (checks[0])
			layer->check_off[c] = checks[1][c] - checks[0][c];
		if (counts[0]) {
			layer->counts[c] = counts[1][c];
			layer->count_off[c] = counts[1][c] - counts[0][c];
		}
		settle(layer, c, flows->params.unit_ns, layer->layer.check_bits);
	}
	return 0;
}

int ow_flows_difference(const struct ow_colate *a, const struct ow_colate *b, struct ow_flows *ret_flows,
                        struct ow_error *err)
{
	struct ow_flows flows = {.params = *ow_colate_params(a)};
	int r = ow_colate_comparable(ow_colate_params(a), ow_colate_params(b), err);
	if (r < 0)
		return r;
	for (uint32_t l = 0; l < flows.params.layers; l++)
		if (layer_difference(a, b, l, &flows) < 0) {
			ow_flows_done(&flows);
			return ow_error_set(err, ENOMEM, "no memory for the counters of layer %u", l);
		}
	*ret_flows = flows;
	return 0;
}

/* -- without the packets that only one point has ------------------------------------------------------------------ */

/* Only so many bits of a packet's check are known. */
#define CHECK_BITS_KNOWN 16

static unsigned check_bits_after(const struct ow_colate_layer *layer)
{
	return layer->check_bits < CHECK_BITS_KNOWN ? layer->check_bits : CHECK_BITS_KNOWN;
}

static void take_from(struct ow_flows_layer *layer, uint32_t c, const struct ow_lost_packet *packet, uint32_t unit_ns)
{
	bool minus = layer->layer.is_signed && ow_colate_is_minus(packet->hash);
	uint64_t time = minus ? -(uint64_t)packet->time : (uint64_t)packet->time;
	uint32_t one = minus ? UINT32_MAX : 1, check = ow_colate_check_word(packet->hash);
	bool at_a = packet->sign > 0;
	layer->sum_off[c] += at_a ? time : -time;
	if (layer->check_off)
		layer->check_off[c] += at_a ? check : -check;
	if (layer->count_off)
		layer->count_off[c] += at_a ? one : -one;
	if (layer->counts && !at_a)
		layer->counts[c] = (layer->counts[c] - one) & low_bits(layer->layer.count_bits);
	layer->noise[c] += packet->var * unit_ns * unit_ns;
}

static void take_from_layer(struct ow_flows *flows, uint32_t number, const struct ow_lost_packet *packet)
{
	struct ow_flows_layer *layer = &flows->layer[number];
	const struct ow_colate_layer *is = &layer->layer;
	uint32_t place = ow_colate_place(packet->hash), unit = flows->params.unit_ns;
	if (place < is->first || place >= is->last)
		return;
	layer->packets[packet->sign < 0]--;
	/* A random j is not known; another of the flow's counters is as good, because the points differ in it anyway. */
	uint32_t j = ow_colate_pick(packet->hash, is->spread);
	if (is->form == OW_COLATE_BANKS)
		for (j = 0; j < is->spread; j++)
			take_from(layer, ow_colate_counter(is, flows->params.seed, packet->flow, j), packet, unit);
	else
		take_from(layer, ow_colate_counter(is, flows->params.seed, packet->flow, j), packet, unit);
}

void ow_flows_take_out(struct ow_flows *flows, const struct ow_lost_packets *packets)
{
	bool banks = false;
	flows->lost = packets;
	for (uint32_t l = 0; l < flows->params.layers; l++)
		banks = banks || flows->params.layer[l].form == OW_COLATE_BANKS;
	for (uint32_t l = 0; l < flows->params.layers; l++) {
		struct ow_flows_layer *layer = &flows->layer[l];
		if (banks && layer->layer.form != OW_COLATE_BANKS)
			continue;
		for (size_t i = 0; i < packets->count; i++)
			take_from_layer(flows, l, &packets->packet[i]);
		for (uint32_t c = 0; c < layer->layer.counters; c++)
			settle(layer, c, flows->params.unit_ns,
			       packets->count ? check_bits_after(&layer->layer) : layer->layer.check_bits);
	}
}

void ow_flows_distrust(struct ow_flows *flows, uint64_t flow, uint32_t layer)
{
	const struct ow_colate_layer *is = &flows->layer[layer].layer;
	if (is->form != OW_COLATE_BANKS)
		return;
	for (uint32_t j = 0; j < is->spread; j++)
		flows->layer[layer].clean[ow_colate_counter(is, flows->params.seed, flow, j)] = false;
}

void ow_flows_done(struct ow_flows *flows)
{
	for (uint32_t l = 0; l < OW_COLATE_LAYERS_MAX; l++) {
		free(flows->layer[l].delay_ns);
		free(flows->layer[l].noise);
		free(flows->layer[l].sum_off);
		free(flows->layer[l].check_off);
		free(flows->layer[l].count_off);
		free(flows->layer[l].clean);
		free(flows->layer[l].counts);
	}
	*flows = (struct ow_flows){0};
}
