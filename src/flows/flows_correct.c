/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters are modular, and the sum of the delays in one may be larger than it holds: a flow of many packets, a long time, clocks
 * that are far apart. Of the numbers that a counter can mean, this takes the one next to what is likely: heavy flows have
 * counters of their own, of 64 bits, and the packets of other flows take about as long.
 */
#include "flows/bits.h"
#include "flows/flows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What a counter should hold. */
struct likely {
	double packets, delay_ns;
};

/* The number next to `expected` that is `number` modulo 2^bits. */
static double next_to(double expected, uint64_t number, unsigned bits)
{
	double value = ow_bits_signed(number, bits), size = ldexp(1, (int)bits),
	       turns = round((expected - value) / size);
	return isfinite(turns) ? value + size * turns : value;
}

/* The mean delay of the flows with counters of their own; 0 = there are none. */
static double mean_of_own(const struct ow_flows *flows)
{
	double sum = 0, packets = 0;
	for (size_t f = 0; f < flows->flows; f++) {
		sum += flows->flow[f].own_packets > 0 ? flows->flow[f].own_delay_ns : 0;
		packets += flows->flow[f].own_packets > 0 ? flows->flow[f].own_packets : 0;
	}
	return packets > 0 ? sum / packets : 0;
}

static void add_flow(const struct ow_flows *flows, uint32_t number, const struct ow_flow_load *flow, double mean_ns,
                     struct likely *likely)
{
	const struct ow_colate_layer *layer = &flows->layer[number].layer;
	double share = (double)(layer->last - layer->first) / OW_COLATE_SHARE;
	double n = share < 1 && flow->in_layer[number] >= 0 ? flow->in_layer[number] : flow->packets * share;
	if (!(n > 0 && n < 0x1p62))
		return;
	n = layer->form == OW_COLATE_BANKS ? n : n / layer->spread;
	mean_ns = flow->own_packets > 0 ? flow->own_delay_ns / flow->own_packets : mean_ns;
	for (uint32_t j = 0; j < layer->spread; j++) {
		struct likely *of = &likely[ow_colate_counter(layer, flows->params.seed, flow->flow, j)];
		of->packets += n;
		of->delay_ns += n * mean_ns;
	}
}

/* How many packets are in a counter of banks is known, so the offset is added before a number is chosen. */
static void correct(struct ow_flows *flows, struct ow_flows_layer *layer, const struct likely *likely)
{
	int64_t unit = flows->params.unit_ns, offset = flows->offset_ns / unit;
	double rest_ns = (double)(flows->offset_ns - offset * unit);
	bool banks = layer->layer.form == OW_COLATE_BANKS;
	for (uint32_t c = 0; c < layer->layer.counters; c++) {
		double n = likely[c].packets,
		       expected_ns = likely[c].delay_ns - (banks ? rest_ns : (double)flows->offset_ns) * n;
		uint64_t more = banks && n < 0x1p62 ? (uint64_t)offset * (uint64_t)llround(n) : 0;
		double units = next_to(expected_ns / (double)unit, layer->sum_off[c] + more, layer->layer.bits);
		layer->delay_ns[c] = units * (double)unit + (banks ? rest_ns * n : 0);
	}
}

int ow_flows_correct(struct ow_flows *flows, int64_t offset_ns)
{
	double mean_ns = mean_of_own(flows);
	flows->offset_ns = offset_ns;
	for (uint32_t l = 0; l < flows->params.layers; l++) {
		struct ow_flows_layer *layer = &flows->layer[l];
		if (layer->layer.is_signed)
			continue;
		struct likely *likely = calloc(layer->layer.counters, sizeof *likely);
		if (!likely)
			return -ENOMEM;
		for (size_t f = 0; f < flows->flows; f++)
			add_flow(flows, l, &flows->flow[f], mean_ns, likely);
		correct(flows, layer, likely);
		free(likely);
	}
	return 0;
}
