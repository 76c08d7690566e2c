/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of a stream at two points, estimates of all flows and their errors. */
#include "papers/figures_colate.h"

#include "base/hash.h"
#include "base/array.h"
#include "base/sort.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BITS       48
#define CHECK_BITS 16
#define FEW        30 /* fewest flows of the wanted size for a CDF */

const char *const ow_colate_method_name[OW_COLATE_METHODS] = {"as published", "hashed j", "banks+cg",
                                                              "banks+cg, as many counters"};

double ow_colate_method_counters(enum ow_colate_method method, double per_flow)
{
	if (!ow_colate_is_ours(method))
		return per_flow;
	return method == OW_COLATE_BANKS_CG ? OW_COLATE_OURS : fmin(per_flow, OW_COLATE_PER_FLOW);
}

enum ow_flow_estimator ow_colate_method_estimator(enum ow_colate_method method)
{
	return ow_colate_is_ours(method) ? OW_FLOWS_BANKS : OW_FLOWS_COLATE;
}

struct ow_colate_params ow_colate_recording(enum ow_colate_method method, double per_flow, size_t flows, uint64_t seed)
{
	static const enum ow_colate_form form[OW_COLATE_METHODS] = {OW_COLATE_RANDOM, OW_COLATE_HASHED, OW_COLATE_BANKS,
	                                                            OW_COLATE_BANKS};
	bool banks = ow_colate_is_ours(method);
	uint32_t spread = banks ? OW_COLATE_BANKS : OW_COLATE_SPREAD;
	uint32_t counters = (uint32_t)fmin(fmax(per_flow * (double)flows, 2 * spread), OW_COLATE_COUNTERS_MAX - spread);
	if (banks)
		counters = (counters + spread - 1) / spread * spread;
	return (struct ow_colate_params){.layer = {{.form = form[method],
	                                            .counters = counters,
	                                            .spread = spread,
	                                            .bits = banks ? BITS : 64,
	                                            .check_bits = banks ? CHECK_BITS : 0,
	                                            .first = 0,
	                                            .last = OW_COLATE_SHARE}},
	                                 .layers = 1,
	                                 .unit_ns = 1,
	                                 .seed = seed};
}

/* -- loads -------------------------------------------------------------------------------------------------------- */

int ow_colate_index_make(const struct ow_flow_truth *truth, size_t flows, struct ow_colate_index *ret_index)
{
	*ret_index = (struct ow_colate_index){.truth = truth};
	int r = 0;
	for (size_t f = 0; r == 0 && f < flows; f++)
		r = ow_id_map_add(&ret_index->by_flow, truth[f].flow, (uint32_t)f);
	return r;
}

void ow_colate_index_done(struct ow_colate_index *index)
{
	ow_id_map_done(&index->by_flow);
}

size_t ow_colate_index_find(const struct ow_colate_index *index, uint64_t flow)
{
	uint32_t f = OW_ID_MAP_FIND(&index->by_flow, flow, i, index->truth[i].flow == flow);
	return f == OW_ID_MAP_NONE ? SIZE_MAX : f;
}

/* Counts the packets of each flow of truth in each layer's share, as flow counts do. ret_count: `layers` for each flow of truth. */
static int count_shares(const struct ow_flow_stream *stream, const struct ow_flow_sighting *sighting, size_t count,
                        const struct ow_colate_params *params, double *ret_count)
{
	struct ow_colate_index index;
	int r = ow_colate_index_make(stream->flow, stream->flows, &index);
	for (size_t i = 0; r == 0 && i < count; i++) {
		size_t f = ow_colate_index_find(&index, sighting[i].flow);
		uint32_t place = ow_colate_place(ow_colate_packet_hash(params->seed, sighting[i].id));
		for (uint32_t l = 0; f != SIZE_MAX && l < params->layers; l++) {
			const struct ow_colate_layer *layer = &params->layer[l];
			ret_count[f * params->layers + l] += place >= layer->first && place < layer->last;
		}
	}
	ow_colate_index_done(&index);
	return r;
}

/*
 * Loads of layers that take a share of the packets. Counters of flows whose counts differ are not trusted, unless all lost
 * packets were taken out.
 */
static int use_shares(const struct ow_flow_stream *stream, bool repaired, struct ow_flows *flows)
{
	uint32_t layers = flows->params.layers;
	double *sent = calloc(2 * stream->flows * layers + 1, sizeof *sent), *received = sent + stream->flows * layers;
	int r = sent ? count_shares(stream, stream->a, stream->as, &flows->params, sent) : -ENOMEM;
	if (r == 0)
		r = count_shares(stream, stream->b, stream->bs, &flows->params, received);
	for (size_t i = 0; r == 0 && i < stream->flows * layers; i++) {
		flows->flow[i / layers].in_layer[i % layers] = received[i];
		if (sent[i] != received[i] && !repaired)
			ow_flows_distrust(flows, flows->flow[i / layers].flow, (uint32_t)(i % layers));
	}
	free(sent);
	return r;
}

/* The loads of all flows of truth, in their order. */
static struct ow_flow_load *make_loads(const struct ow_flow_truth *truth, size_t flows)
{
	struct ow_flow_load *loads = calloc(flows + 1, sizeof *loads);
	for (size_t f = 0; loads && f < flows; f++) {
		loads[f] = (struct ow_flow_load){.flow = truth[f].flow,
		                                 .packets = (double)truth[f].received,
		                                 .first_ns = truth[f].first_ns,
		                                 .last_ns = truth[f].last_ns,
		                                 .whole = truth[f].sent == truth[f].received};
		for (int i = 0; i < OW_COLATE_LAYERS_MAX; i++)
			loads[f].in_layer[i] = i ? -1 : loads[f].packets;
	}
	return loads;
}

int ow_colate_estimate(struct ow_flows *flows, const struct ow_flow_truth *truth, size_t count,
                       const struct ow_flows_options *options, struct ow_flow_estimate *ret_estimates,
                       struct ow_error *err)
{
	flows->flow = make_loads(truth, count);
	flows->flows = count;
	int r = flows->flow ? ow_flows_estimate(flows, options, ret_estimates, err)
	                    : ow_error_set(err, ENOMEM, "not enough memory for %zu flows", count);
	free(flows->flow);
	flows->flow = NULL;
	flows->flows = 0;
	return r;
}

/* Finds the packets that only one point has, and takes them out of the counters. */
static int take_lost_out(const struct ow_flow_stream *stream, const struct ow_colate *a, const struct ow_colate *b,
                         struct ow_flows *flows, struct ow_lost_packets *packets, struct ow_error *err)
{
	const struct ow_colate_params *params = ow_colate_params(a);
	uint64_t *flow = calloc(stream->flows + 1, sizeof *flow);
	if (!flow)
		return ow_error_set(err, ENOMEM, "not enough memory for %zu flows", stream->flows);
	for (size_t f = 0; f < stream->flows; f++)
		flow[f] = stream->flow[f].flow;
	ow_sort_ids(flow, stream->flows);
	const struct ow_lost_search search = {
		.params = params,
		.flow = flow,
		.flows = stream->flows,
		.around = {ow_colate_first_ns(a) / params->unit_ns, ow_colate_first_ns(b) / params->unit_ns},
	};
	int r = ow_lost_packets_find(&search, ow_colate_repair(a), ow_colate_repair(b), packets);
	free(flow);
	if (r < 0)
		return ow_error_set(err, -r, "not enough memory for lost packets");
	ow_flows_take_out(flows, packets);
	return 0;
}

int ow_colate_measure(const struct ow_flow_stream *stream, const struct ow_colate_params *params,
                      const struct ow_flows_options *options, struct ow_flow_estimate *ret_estimates,
                      struct ow_error *err)
{
	struct ow_colate *a = NULL, *b = NULL;
	struct ow_flows flows = {0};
	struct ow_lost_packets packets = {0};
	int r = ow_colate_create(params, &a, err);
	if (r == 0)
		r = ow_colate_create(params, &b, err);
	if (r == 0) {
		ow_colate_add(a, stream->a, stream->as);
		ow_colate_add(b, stream->b, stream->bs);
		r = ow_flows_difference(a, b, &flows, err);
	}
	if (r == 0 && params->repair_cells)
		r = take_lost_out(stream, a, b, &flows, &packets, err);
	ow_colate_free(a);
	ow_colate_free(b);
	if (r == 0) {
		flows.flow = make_loads(stream->flow, stream->flows);
		flows.flows = stream->flows;
		if (!flows.flow || use_shares(stream, packets.count && !packets.unread, &flows) < 0)
			r = ow_error_set(err, ENOMEM, "not enough memory for %zu flows", stream->flows);
		else
			r = ow_flows_estimate(&flows, options, ret_estimates, err);
		free(flows.flow);
	}
	ow_flows_done(&flows);
	ow_lost_packets_done(&packets);
	return r;
}

int ow_colate_method_errors(const struct ow_flow_stream *stream, const struct ow_colate_params *params,
                            const struct ow_flows_options *options, uint64_t least, uint64_t most,
                            struct ow_colate_errors *errors, struct ow_error *err)
{
	struct ow_flow_estimate *estimates = calloc(stream->flows, sizeof *estimates);
	int r = estimates ? ow_colate_measure(stream, params, options, estimates, err) : -ENOMEM;
	if (r == 0)
		r = ow_colate_errors_mean(errors, stream->flow, estimates, stream->flows, least, most);
	free(estimates);
	return r;
}

void ow_colate_say(struct ow_colate_text *text, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	size_t room = sizeof text->word - text->length;
	int length = vsnprintf(text->word + text->length, room, format, args);
	va_end(args);
	if (length > 0)
		text->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* -- errors ------------------------------------------------------------------------------------------------------- */

void ow_colate_errors_done(struct ow_colate_errors *errors)
{
	free(errors->error);
	*errors = (struct ow_colate_errors){0};
}

int ow_colate_errors_add(struct ow_colate_errors *errors, double error)
{
	if (OW_GROW(errors->error, errors->room, errors->count + 1) < 0)
		return -ENOMEM;
	errors->error[errors->count++] = isnan(error) ? INFINITY : error;
	errors->sorted = false;
	return 0;
}

static int add_value(struct ow_colate_errors *errors, const struct ow_value *value, double truth)
{
	if (!(truth > 0))
		return 0;
	return ow_colate_errors_add(errors,
	                            value->status == OW_VALUE_NONE ? INFINITY : fabs(value->value - truth) / truth);
}

int ow_colate_errors_mean(struct ow_colate_errors *errors, const struct ow_flow_truth *truth,
                          const struct ow_flow_estimate *estimates, size_t flows, uint64_t least, uint64_t most)
{
	int r = 0;
	for (size_t f = 0; f < flows && r == 0; f++) {
		if (truth[f].received >= least && truth[f].received < most)
			r = add_value(errors, &estimates[f].mean_ns, truth[f].mean_ns);
	}
	return r;
}

int ow_colate_errors_stddev(struct ow_colate_errors *errors, const struct ow_flow_truth *truth,
                            const struct ow_flow_estimate *estimates, size_t flows, uint64_t least, uint64_t most)
{
	int r = 0;
	for (size_t f = 0; f < flows && r == 0; f++) {
		if (truth[f].received >= least && truth[f].received < most)
			r = add_value(errors, &estimates[f].stddev_ns, truth[f].stddev_ns);
	}
	return r;
}

static void sort(struct ow_colate_errors *errors)
{
	if (!errors->sorted && errors->count)
		ow_sort_doubles(errors->error, errors->count);
	errors->sorted = true;
}

double ow_colate_errors_within(struct ow_colate_errors *errors, double error)
{
	sort(errors);
	size_t low = 0, high = errors->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (errors->error[middle] <= error)
			low = middle + 1;
		else
			high = middle;
	}
	return errors->count ? (double)low / (double)errors->count : 0;
}

double ow_colate_errors_quantile(struct ow_colate_errors *errors, double share)
{
	sort(errors);
	if (!errors->count)
		return NAN;
	size_t at = (size_t)(share * (double)errors->count);
	return errors->error[at < errors->count ? at : errors->count - 1];
}

int ow_colate_errors_points(struct ow_figure_run *run, const char *series, struct ow_colate_errors *errors)
{
	int r = 0;
	for (int i = -50; i <= 40 && r == 0 && errors->count; i++) {
		double x = pow(10, i / 10.), share = ow_colate_errors_within(errors, x);
		r = ow_figure_point(run, series, x, share, share, share);
	}
	return r;
}

uint64_t ow_colate_least(const struct ow_flow_truth *truth, size_t flows)
{
	size_t large = 0;
	for (size_t f = 0; f < flows; f++)
		large += truth[f].received >= OW_COLATE_LEAST;
	return large >= FEW ? OW_COLATE_LEAST : 1;
}
