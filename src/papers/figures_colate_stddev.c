/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures 7 and 9 of the COLATE paper: the standard deviation of a flow from its m counters. "Alone" is a flow that
 * shares its counters with no other flow. Its error is the scatter of m sums, which no number of virtual repetitions
 * can remove.
 */
#include "papers/figures_colate.h"

#include "base/hash.h"
#include "flows/colate_theorems.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define REPETITIONS   1000 /* of figure 7 */
#define MEAN_COUNTERS 1.4  /* counters per flow of our banks: enough for exact means */
#define COUNT_BITS    16

/* A sample of the flows of a stream, and their counters as if there were no other flows. */
struct sample {
	struct ow_flow_truth *truth;
	size_t flows;
	int64_t *own; /* OW_COLATE_SPREAD sums of delays each */
};

static void sample_done(struct sample *sample)
{
	free(sample->truth);
	free(sample->own);
	*sample = (struct sample){0};
}

static void add_own(const struct sample *sample, const struct ow_colate_index *index, uint64_t seed,
                    const struct ow_flow_sighting *sightings, size_t count, bool minus)
{
	for (size_t i = 0; i < count; i++) {
		size_t f = ow_colate_index_find(index, sightings[i].flow);
		if (f == SIZE_MAX)
			continue;
		uint32_t j = ow_colate_pick(ow_colate_packet_hash(seed, sightings[i].id), OW_COLATE_SPREAD);
		uint64_t *cell = (uint64_t *)&sample->own[f * OW_COLATE_SPREAD + j];
		*cell += minus ? -(uint64_t)sightings[i].time_ns : (uint64_t)sightings[i].time_ns;
	}
}

/* Takes at most `most` flows of at least `least` packets. */
static int sample_take(const struct ow_flow_stream *stream, uint64_t least, size_t most, uint64_t seed,
                       struct sample *ret_sample)
{
	struct sample sample = {.truth = calloc(most, sizeof *sample.truth),
	                        .own = calloc(most * OW_COLATE_SPREAD, sizeof *sample.own)};
	struct ow_colate_index index = {0};
	int r = sample.truth && sample.own ? 0 : -ENOMEM;
	for (size_t f = 0; r == 0 && f < stream->flows && sample.flows < most; f++) {
		if (stream->flow[f].received >= least && stream->flow[f].stddev_ns > 0)
			sample.truth[sample.flows++] = stream->flow[f];
	}
	if (r == 0)
		r = ow_colate_index_make(sample.truth, sample.flows, &index);
	if (r < 0) {
		sample_done(&sample);
		return r;
	}
	add_own(&sample, &index, seed, stream->a, stream->as, true);
	add_own(&sample, &index, seed, stream->b, stream->bs, false);
	ow_colate_index_done(&index);
	*ret_sample = sample;
	return 0;
}

/* Equation 5 on the flow's own counters. repetitions: 0 = infinitely many. */
static int alone_errors(const struct sample *sample, uint32_t repetitions, uint64_t seed,
                        struct ow_colate_errors *errors)
{
	int r = 0;
	for (size_t f = 0; f < sample->flows && r == 0; f++) {
		double d[OW_COLATE_SPREAD], n = (double)sample->truth[f].received, mean = sample->truth[f].mean_ns;
		for (int j = 0; j < OW_COLATE_SPREAD; j++)
			d[j] = (double)sample->own[f * OW_COLATE_SPREAD + (size_t)j];
		struct ow_random random;
		ow_random_seed(&random, seed + f);
		double squares = repetitions ? ow_colate_squares(d, OW_COLATE_SPREAD, repetitions, &random)
		                             : ow_colate_squares_closed(d, OW_COLATE_SPREAD);
		double variance = squares / n - mean * mean;
		double stddev = sample->truth[f].stddev_ns;
		r = ow_colate_errors_add(errors, variance > 0 ? fabs(sqrt(variance) / stddev - 1) : INFINITY);
	}
	return r;
}

/* Errors of the sampled flows among all other flows. */
static int shared_errors(const struct ow_flow_stream *stream, const struct sample *sample, enum ow_colate_method method,
                         double per_flow, uint32_t repetitions, uint64_t seed, struct ow_colate_errors *errors,
                         struct ow_error *err)
{
	struct ow_colate_params params = ow_colate_recording(method, per_flow, stream->flows, seed);
	struct ow_flow_stream few = *stream;
	few.flow = sample->truth;
	few.flows = sample->flows;
	struct ow_flow_estimate *estimates = calloc(sample->flows + 1, sizeof *estimates);
	struct ow_flows_options options = {OW_FLOWS_COLATE, repetitions, seed};
	int r = estimates ? ow_colate_measure(&few, &params, &options, estimates, err) : -ENOMEM;
	if (r == 0)
		r = ow_colate_errors_stddev(errors, sample->truth, estimates, sample->flows, 1, UINT64_MAX);
	free(estimates);
	return r;
}

/*
 * Our method: banks give the means. The other counters are a vector with packet counts, so that the means can be
 * subtracted before squaring.
 */
static int ours_errors(const struct ow_flow_stream *stream, double per_flow, uint64_t least, uint64_t seed,
                       struct ow_colate_errors *errors, struct ow_error *err)
{
	struct ow_colate_params params = ow_colate_recording(OW_COLATE_BANKS_CG, MEAN_COUNTERS, stream->flows, seed);
	struct ow_colate_params vector =
		ow_colate_recording(OW_COLATE_HASHED_J, per_flow - MEAN_COUNTERS, stream->flows, seed);
	params.layer[1] = vector.layer[0];
	params.layer[1].check_bits = params.layer[0].check_bits;
	params.layer[1].count_bits = COUNT_BITS;
	params.layers = 2;
	struct ow_flow_estimate *estimates = calloc(stream->flows + 1, sizeof *estimates);
	struct ow_flows_options options = {.estimator = OW_FLOWS_BANKS};
	int r = estimates ? ow_colate_measure(stream, &params, &options, estimates, err) : -ENOMEM;
	if (r == 0)
		r = ow_colate_errors_stddev(errors, stream->flow, estimates, stream->flows, least, UINT64_MAX);
	free(estimates);
	return r;
}

/* -- figure 7 ----------------------------------------------------------------------------------------------------- */

static const char *const way_name[] = {"as published", "hashed j", "alone", "banks and a counted vector"};
enum { PUBLISHED, HASHED, ALONE, OURS, WAYS };

int ow_figure_colate_7(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_colate_traces traces;
	struct ow_colate_text text[WAYS] = {{.length = 0}};
	double least_share[WAYS] = {1, 1, 1, 1};
	int r = ow_colate_traces_find(run, &traces, err);
	for (size_t i = 0; r == 0 && i < traces.count; i++) {
		struct ow_flow_traffic traffic;
		struct ow_flow_path path;
		struct ow_flow_stream stream = {0};
		struct sample sample = {0};
		uint64_t seed = ow_figure_seed(run) + i;
		r = ow_colate_trace_stream(run, &traces, i, &traffic, &path, &stream, err);
		if (r < 0)
			break;
		uint64_t least = ow_colate_least(stream.flow, stream.flows);
		r = sample_take(&stream, least, ow_figure_quick(run) ? 500 : 5000, seed, &sample);
		for (int way = 0; way < WAYS && r == 0; way++) {
			struct ow_colate_errors errors = {0};
			char series[100];
			snprintf(series, sizeof series, "%s, %s", way_name[way], traces.name[i]);
			if (way == ALONE)
				r = alone_errors(&sample, REPETITIONS, seed, &errors);
			else if (way == OURS)
				r = ours_errors(&stream, OW_COLATE_PER_FLOW, least, seed, &errors, err);
			else
				r = shared_errors(&stream, &sample,
				                  way == HASHED ? OW_COLATE_HASHED_J : OW_COLATE_AS_PUBLISHED,
				                  OW_COLATE_PER_FLOW, REPETITIONS, seed, &errors, err);
			if (r == 0)
				r = ow_colate_errors_points(run, series, &errors);
			double share = ow_colate_errors_within(&errors, 0.05);
			least_share[way] = fmin(least_share[way], share);
			double median = ow_colate_errors_quantile(&errors, 0.5);
			ow_colate_say(&text[way], "%s%.30s %.1f %%", i ? ", " : "", traces.name[i], 100 * share);
			if (isfinite(median))
				ow_colate_say(&text[way], " (median error %.0f %%)", 100 * median);
			ow_colate_errors_done(&errors);
		}
		sample_done(&sample);
		ow_flow_stream_done(&stream);
		ow_flow_traffic_done(&traffic);
		ow_figure_progress(run, (double)(i + 1) / (double)traces.count);
	}
	if (r == 0)
		r = ow_colate_traces_claim(run, &traces);
	for (int way = 0; way < WAYS && r == 0; way++) {
		r = ow_figure_claim(run, "over 91 % of the flows within 5 % with 1000 virtual repetitions",
		                    least_share[way] > 0.91, "%s: %.479s", way_name[way], text[way].word);
	}
	return r;
}

/* -- figure 9 ----------------------------------------------------------------------------------------------------- */

int ow_figure_colate_9(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_colate_traces traces;
	struct ow_flow_traffic traffic;
	struct ow_flow_path path;
	struct ow_flow_stream stream = {0};
	struct sample sample = {0};
	uint64_t seed = ow_figure_seed(run);
	int last = ow_figure_quick(run) ? 3 : 5;
	double share[WAYS][6] = {{0}}, limit = 0;
	int r = ow_colate_traces_find(run, &traces, err);
	if (r == 0)
		r = ow_colate_trace_stream(run, &traces, 2, &traffic, &path, &stream, err);
	if (r < 0)
		return r;
	r = sample_take(&stream, OW_COLATE_LEAST, ow_figure_quick(run) ? 200 : 400, seed, &sample);
	for (int i = 0; i <= last && r == 0; i++) {
		uint32_t repetitions = (uint32_t)pow(10, i);
		for (int way = HASHED; way <= ALONE && r == 0; way++) {
			struct ow_colate_errors errors = {0};
			r = way == HASHED ? shared_errors(&stream, &sample, OW_COLATE_HASHED_J, OW_COLATE_PER_FLOW,
			                                  repetitions, seed, &errors, err)
			                  : alone_errors(&sample, repetitions, seed, &errors);
			share[way][i] = ow_colate_errors_within(&errors, 0.05);
			if (r == 0)
				r = ow_figure_point(run, way_name[way], repetitions, share[way][i], share[way][i],
				                    share[way][i]);
			ow_colate_errors_done(&errors);
		}
		ow_figure_progress(run, (i + 1.) / (last + 1));
	}
	struct ow_colate_errors errors = {0};
	if (r == 0)
		r = alone_errors(&sample, 0, seed, &errors);
	limit = ow_colate_errors_within(&errors, 0.05);
	double median = ow_colate_errors_quantile(&errors, 0.5);
	ow_colate_errors_done(&errors);
	size_t flows = sample.flows;
	sample_done(&sample);
	ow_flow_stream_done(&stream);
	ow_flow_traffic_done(&traffic);
	if (r == 0)
		r = ow_figure_claim(
			run, "more virtual repetitions, more flows within 5 %: 98 % with 10^5", limit > 0.9,
			"%zu flows: alone %.0f %% with one, %.0f %% with 10^%d, %.0f %% with infinitely many; "
			"hashed j among others %.0f %%",
			flows, 100 * share[ALONE][0], 100 * share[ALONE][last], last, 100 * limit,
			100 * share[HASHED][last]);
	return r < 0 ? r
	             : ow_figure_claim(
			       run, "any reliability for the standard deviation", median < 0.05,
			       "median error %.0f %% with infinitely many, for flows alone in their 20 counters "
			       "(1 / sqrt(2 * 19) = 16 %% if the mean is small)",
			       100 * median);
}
