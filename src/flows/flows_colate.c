/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLATE as published: theorems 2 to 4 on the differences of counters (theorem 2 is linear, and the constant of theorem
 * 3 cancels). With loss, section 1.4: the vector with the highest probability whose packet counters are equal.
 *
 * The paper gives no interval for one flow. Ours: the other flows' part of the flow's m counters is like that of any m
 * counters, so all counters together give its variance. Sizes of flows have long tails, so it is not normal.
 */
#include "flows/colate_theorems.h"
#include "estimate/distribution.h"
#include "flows/flows_private.h"

#include <errno.h>
#include <math.h>

static bool is_published(const struct ow_colate_layer *layer)
{
	return (layer->form == OW_COLATE_HASHED || layer->form == OW_COLATE_RANDOM) && !layer->is_signed;
}

/* Chooses the layer as in section 1.4; -ENODATA if every layer lost packets, -EINVAL if there is none of this form. */
static int choose(const struct ow_flows *flows)
{
	int best = -EINVAL;
	uint32_t most = 0;
	for (uint32_t l = 0; l < flows->params.layers; l++) {
		const struct ow_flows_layer *layer = &flows->layer[l];
		uint32_t share = layer->layer.last - layer->layer.first;
		if (!is_published(&layer->layer))
			continue;
		if (best == -EINVAL)
			best = -ENODATA;
		if (layer->packets[0] != layer->packets[1] || share <= most)
			continue;
		best = (int)l;
		most = share;
	}
	return best;
}

static double packets_in(const struct ow_flow_load *flow, const struct ow_colate_layer *layer, uint32_t number)
{
	double share = (double)(layer->last - layer->first) / OW_COLATE_SHARE;
	if (share >= 1)
		return flow->packets;
	return flow->in_layer[number] >= 0 ? flow->in_layer[number] : flow->packets * share;
}

/* Equation 5, with an interval from the chi-squared spread of m - 1 differences. */
static struct ow_value stddev_of(const double *d, uint32_t m, double packets, double mean,
                                 const struct ow_flows_options *options, uint64_t flow)
{
	if (m < 2)
		return ow_value_none(OW_REASON_FLOW_ONE_COUNTER);
	double squares = ow_colate_squares_closed(d, m);
	if (options->repetitions) {
		struct ow_random random;
		ow_random_seed(&random, options->seed ^ flow);
		squares = ow_colate_squares(d, m, options->repetitions, &random);
	}
	double second = squares / packets, variance = second - mean * mean;
	if (!(variance > 0))
		return ow_value_none(OW_REASON_FLOW_NEGATIVE_VARIANCE);
	double error = OW_NORMAL_975 * second * sqrt(2.0 / (m - 1));
	return (struct ow_value){OW_VALUE_ESTIMATED, sqrt(variance), sqrt(fmax(variance - error, 0)),
	                         sqrt(variance + error), OW_NO_REASON};
}

/* The standard deviation of the counters. */
static double deviation_of(const struct ow_flows_layer *layer, double mean)
{
	double squares = 0, n = layer->layer.counters;
	for (uint32_t c = 0; c < layer->layer.counters; c++)
		squares += (layer->delay_ns[c] - mean) * (layer->delay_ns[c] - mean);
	return n > 1 ? sqrt(squares / (n - 1)) : INFINITY;
}

static bool is_new(const uint32_t *at, uint32_t j)
{
	for (uint32_t i = 0; i < j; i++)
		if (at[i] == at[j])
			return false;
	return true;
}

static void estimate_flow(const struct ow_flows *flows, uint32_t number, double total, double deviation,
                          const struct ow_flows_options *options, size_t f, struct ow_flow_estimate *ret)
{
	const struct ow_flow_load *flow = &flows->flow[f];
	const struct ow_flows_layer *layer = &flows->layer[number];
	double d[OW_COLATE_SPREAD_MAX], sum = 0, n = layer->layer.counters, m = 0;
	uint32_t at[OW_COLATE_SPREAD_MAX];
	double packets = packets_in(flow, &layer->layer, number);
	*ret = (struct ow_flow_estimate){.packets = flow->packets, .estimator = OW_FLOWS_COLATE};
	ret->mean_ns = ret->stddev_ns = ow_value_none(OW_REASON_FLOW_NOT_RECEIVED);
	if (!(packets > 0) || !isfinite(packets))
		return;
	for (uint32_t j = 0; j < layer->layer.spread; j++) {
		at[j] = ow_colate_counter(&layer->layer, flows->params.seed, flow->flow, j);
		d[j] = layer->delay_ns[at[j]];
		/* Two of the flow's counters can be the same one: its packets are in the sum only once. */
		if (is_new(at, j)) {
			sum += d[j];
			m++;
		}
	}
	double mean = ow_colate_flow_sum(n, m, sum, total) / packets;
	double half = OW_ONE_PEAK_95 * sqrt(m * n / (n - m)) * deviation / packets;
	ret->mean_ns = (struct ow_value){OW_VALUE_ESTIMATED, mean, mean - half, mean + half, OW_NO_REASON};
	ret->stddev_ns = stddev_of(d, layer->layer.spread, packets, mean, options, flow->flow);
}

int ow_flows_colate(const struct ow_flows *flows, const struct ow_flows_options *options, struct ow_flow_estimate *ret,
                    struct ow_error *err)
{
	int layer = choose(flows);
	if (layer == -EINVAL)
		return ow_error_set(err, EINVAL, "colate needs a recording of its own form, but this one has banks");
	for (size_t f = 0; layer == -ENODATA && f < flows->flows; f++) {
		struct ow_value none = ow_value_none(OW_REASON_FLOW_VECTORS_LOST);
		ret[f] = (struct ow_flow_estimate){.packets = flows->flow[f].packets,
		                                   .mean_ns = none,
		                                   .stddev_ns = none,
		                                   .estimator = OW_FLOWS_COLATE};
	}
	if (layer < 0)
		return 0;
	const struct ow_flows_layer *from = &flows->layer[layer];
	if (from->layer.spread >= from->layer.counters)
		return ow_error_set(err, EINVAL, "colate needs more counters than a flow has (%u)", from->layer.spread);
	double total = 0;
	for (uint32_t c = 0; c < from->layer.counters; c++)
		total += from->delay_ns[c];
	double deviation = deviation_of(from, total / from->layer.counters);
	for (size_t f = 0; f < flows->flows; f++)
		estimate_flow(flows, (uint32_t)layer, total, deviation, options, f, &ret[f]);
	return 0;
}
