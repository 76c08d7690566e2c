/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the difference of two recordings: the sum of the delays in each counter, if both points put the same packets
 * there.
 */
#include "flows/flows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* b - a modulo 2^bits, as a signed number. */
static double difference(uint64_t a, uint64_t b, unsigned bits)
{
	unsigned shift = 64 - bits;
	return (double)((int64_t)((b - a) << shift) >> shift);
}

static void mark_clean(const struct ow_colate *a, const struct ow_colate *b, uint32_t number,
                       struct ow_flows_layer *layer)
{
	const uint32_t *checks[] = {ow_colate_checks(a, number), ow_colate_checks(b, number)};
	const uint32_t *counts[] = {ow_colate_counts(a, number), ow_colate_counts(b, number)};
	/* With a random j the points do not put the same packets into a counter: only the totals can agree. */
	bool random = layer->layer.form == OW_COLATE_RANDOM, equal = layer->packets[0] == layer->packets[1];
	bool checked = !random && (checks[0] || counts[0]);
	for (uint32_t c = 0; c < layer->layer.counters; c++)
		layer->clean[c] = checked ? (!checks[0] || checks[0][c] == checks[1][c]) &&
		                                    (!counts[0] || counts[0][c] == counts[1][c])
		                          : equal;
}

static int layer_difference(const struct ow_colate *a, const struct ow_colate *b, uint32_t number,
                            struct ow_flows *flows)
{
	struct ow_flows_layer *layer = &flows->layer[number];
	const uint64_t *from = ow_colate_counters(a, number), *to = ow_colate_counters(b, number);
	const uint32_t *counts = ow_colate_counts(b, number);
	layer->layer = flows->params.layer[number];
	size_t count = layer->layer.counters;
	layer->packets[0] = ow_colate_layer_packets(a, number);
	layer->packets[1] = ow_colate_layer_packets(b, number);
	layer->delay_ns = calloc(count, sizeof *layer->delay_ns);
	layer->clean = calloc(count, sizeof *layer->clean);
	layer->counts = counts ? calloc(count, sizeof *layer->counts) : NULL;
	if (!layer->delay_ns || !layer->clean || (counts && !layer->counts))
		return -ENOMEM;
	for (size_t c = 0; c < count; c++)
		layer->delay_ns[c] = difference(from[c], to[c], layer->layer.bits) * flows->params.unit_ns;
	if (counts)
		memcpy(layer->counts, counts, count * sizeof *counts);
	mark_clean(a, b, number, layer);
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

void ow_flows_done(struct ow_flows *flows)
{
	for (uint32_t l = 0; l < OW_COLATE_LAYERS_MAX; l++) {
		free(flows->layer[l].delay_ns);
		free(flows->layer[l].clean);
		free(flows->layer[l].counts);
	}
	*flows = (struct ow_flows){0};
}
