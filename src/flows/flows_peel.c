/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows that are known exactly: a flow that is alone in a clean counter has that counter's sum. The sum is then
 * subtracted from its other counters, where another flow may be left alone. With at least 1.222 counters per flow in
 * three banks, this reaches nearly all flows. Sums are whole nanoseconds below 2^53, so nothing is rounded.
 *
 * This is done only if all flows of a counter have the same count at both points, but for packets that were taken out, and
 * the flows' packets are all packets of the layer: otherwise a packet of an unknown flow could be in the sum.
 *
 * All counters of a flow have the same error by the times of its packets that were taken out: it stays with the flow, and
 * the others are exact.
 */
#include "flows/flows_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct row {
	double sum;
	uint32_t left; /* number of flows in it */
	uint32_t last; /* xor of their indices: the index of the flow if one is left */
	bool bad;
};

static bool is_full(const struct ow_flow_entry *entry, double packets)
{
	return entry->load > 0 && entry->load == packets;
}

/* Whether the flows have all packets of the layers. */
static bool all_named(const struct ow_flow_system *system)
{
	double packets = 0;
	for (size_t f = 0; f < system->flows; f++)
		packets += system->packets[f] > 0 ? system->packets[f] : 0;
	for (uint32_t l = 0; l < system->data->params.layers; l++) {
		const struct ow_flows_layer *layer = &system->data->layer[l];
		if (layer->layer.last - layer->layer.first == OW_COLATE_SHARE && (double)layer->packets[1] != packets)
			return false;
	}
	return true;
}

static bool is_balanced(const struct ow_flow_system *system, size_t f)
{
	const struct ow_flow_load *flow = &system->data->flow[f];
	return flow->whole || (system->lost && flow->balanced);
}

/* The noise of a row that is only the error of flows that lost packets. */
static double taken_of(const struct ow_flow_system *system, size_t row)
{
	return system->lost ? system->taken[row] : 0;
}

/* The variance of each flow's sum by the times of its packets that were taken out. */
static void fill_errors(const struct ow_flow_system *system, double *error)
{
	double unit = system->data->params.unit_ns;
	for (size_t i = 0; system->lost && i < system->lost->count; i++)
		if (system->lost_flow[i] != OW_FLOW_NONE)
			error[system->lost_flow[i]] += system->lost->packet[i].var * unit * unit;
}

/* Counters with a packet that was taken out, and is of none of the flows: its error stays in them. */
static void drop_nameless(const struct ow_flow_system *system, struct row *row)
{
	const struct ow_flows *data = system->data;
	for (size_t i = 0; system->lost && i < system->lost->count; i++) {
		size_t first = 0;
		for (uint32_t l = 0; system->lost_flow[i] == OW_FLOW_NONE && l < data->params.layers; l++) {
			const struct ow_colate_layer *layer = &data->layer[l].layer;
			if (!ow_flow_is_bank(layer))
				continue;
			for (uint32_t j = 0; j < layer->spread; j++)
				row[first +
				    ow_colate_counter(layer, data->params.seed, system->lost->packet[i].flow, j)]
					.bad = true;
			first += layer->counters;
		}
	}
}

/* What its counters tell of a flow; with lost packets only if that is better than what all say together. */
static void prefer(double mean, double var, struct ow_flow_mean *ret)
{
	if (!(var > 0) || !(var >= ret->var))
		*ret = (struct ow_flow_mean){mean, var};
}

static void fill(const struct ow_flow_system *system, struct row *row)
{
	for (size_t c = 0; c < system->rows; c++)
		row[c].sum = system->sum[c];
	for (size_t f = 0; f < system->flows; f++) {
		const struct ow_flow_entry *e = ow_flow_entries(system, f);
		for (uint32_t j = 0; j < system->slots; j++) {
			struct row *of = &row[e[j].row];
			if (!(e[j].load > 0))
				continue;
			of->left++;
			of->last ^= (uint32_t)f;
			of->bad = of->bad || !is_full(&e[j], system->packets[f]) || !is_balanced(system, f) ||
			          system->noise[e[j].row] > taken_of(system, e[j].row) || !(fabs(of->sum) < 0x1p53);
		}
	}
}

int ow_flows_peel(const struct ow_flow_system *system, struct ow_flow_mean *ret, bool *ret_exact)
{
	if (system->data->params.unit_ns != 1 || !all_named(system))
		return 0;
	struct row *row = calloc(system->rows + 1, sizeof *row);
	uint32_t *stack = calloc(system->rows + 1, sizeof *stack);
	double *error = calloc(system->flows + 1, sizeof *error);
	size_t depth = 0;
	int r = row && stack && error ? 0 : -ENOMEM;
	if (r < 0)
		goto out;
	fill(system, row);
	drop_nameless(system, row);
	fill_errors(system, error);
	for (size_t c = 0; c < system->rows; c++)
		if (row[c].left == 1 && !row[c].bad)
			stack[depth++] = (uint32_t)c;
	while (depth > 0) {
		const struct row *alone = &row[stack[--depth]];
		/* Another bank may have solved this flow already. */
		if (alone->left != 1)
			continue;
		uint32_t f = alone->last;
		double sum = alone->sum;
		const struct ow_flow_entry *e = ow_flow_entries(system, f);
		double p = system->packets[f];
		ret_exact[f] = !(error[f] > 0);
		prefer(sum / p, error[f] / (p * p), &ret[f]);
		for (uint32_t j = 0; j < system->slots; j++) {
			struct row *of = &row[e[j].row];
			if (!(e[j].load > 0))
				continue;
			of->sum -= sum;
			of->last ^= f;
			if (--of->left == 1 && !of->bad)
				stack[depth++] = e[j].row;
		}
	}
out:
	free(row);
	free(stack);
	free(error);
	return r;
}
