/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLATE compared with RLI (figure 11) and Count-Min (section 6.5), and two figures of our own: the error of the mean
 * by flow size with half a counter per flow, and with lost packets.
 */
#include "papers/figures_colate.h"

#include "base/hash.h"
#include "base/time.h"
#include "papers/rli.h"
#include "synopsis/colate_plan.h"
#include "synopsis/countmin.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PROBE_BYTES 64
#define WINDOW_NS   (100 * OW_NS_PER_MS)
#define VECTORS     15   /* of section 1.4: half, a quarter, ... of the packets */
#define EXACT       1e-6 /* the relative error that rounding leaves */
#define HIGH        450  /* counters per flow of the high requirement: figures_colate_mean.c */

/* -- figure 11 ---------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	struct ow_rli_params params;
} limits[] = {{"RLI 1:300 to 1:10", {1. / 300, 1. / 10, PROBE_BYTES, WINDOW_NS}},
              {"RLI 1:10 to 1:2", {1. / 10, 1. / 2, PROBE_BYTES, WINDOW_NS}}};
enum { LIMITS = 2 };

static int rli_errors(const struct ow_flow_traffic *traffic, const struct ow_flow_path *path, int limit, uint64_t least,
                      struct ow_colate_errors *errors, double *ret_slower, struct ow_error *err)
{
	struct ow_rli none, rli;
	int r = ow_rli_run(traffic, path, &(struct ow_rli_params){0, 0, PROBE_BYTES, WINDOW_NS}, &none, err);
	if (r < 0)
		return r;
	r = ow_rli_run(traffic, path, &limits[limit].params, &rli, err);
	for (size_t f = 0; r == 0 && f < rli.flows; f++) {
		const struct ow_flow_truth *truth = &rli.truth[f];
		if (truth->received >= least && truth->mean_ns > 0)
			r = ow_colate_errors_add(errors, rli.estimate[f].received
			                                         ? fabs(rli.estimate[f].mean_ns / truth->mean_ns - 1)
			                                         : INFINITY);
	}
	if (r == 0) {
		*ret_slower = rli.mean_ns / none.mean_ns - 1;
		ow_rli_done(&rli);
	}
	ow_rli_done(&none);
	return r;
}

struct beside {
	struct ow_colate_text rli[LIMITS], method[OW_COLATE_METHODS]; /* shares within 5 % */
	double rli_sum[LIMITS], traces;
	bool better[OW_COLATE_METHODS]; /* than both of RLI's, on all traces */
};

static int beside_one(struct ow_figure_run *run, const struct ow_colate_traces *traces, size_t i, struct beside *beside,
                      struct ow_error *err)
{
	struct ow_flow_traffic traffic;
	struct ow_flow_path path;
	struct ow_flow_stream stream = {0};
	int r = ow_colate_trace_stream(run, traces, i, &traffic, &path, &stream, err);
	if (r < 0)
		return r;
	uint64_t least = ow_colate_least(stream.flow, stream.flows);
	double best = 0;
	for (int l = 0; l < LIMITS && r == 0; l++) {
		struct ow_colate_errors errors = {0};
		double slower = 0;
		char series[100];
		snprintf(series, sizeof series, "%s, %s", limits[l].name, traces->name[i]);
		r = rli_errors(&traffic, &path, l, least, &errors, &slower, err);
		if (r == 0)
			r = ow_colate_errors_points(run, series, &errors);
		double share = ow_colate_errors_within(&errors, 0.05);
		best = fmax(best, share);
		beside->rli_sum[l] += share;
		ow_colate_say(&beside->rli[l], "%s%.30s %.0f %% (delays %.1f %% longer)", i ? ", " : "",
		              traces->name[i], 100 * share, 100 * slower);
		ow_colate_errors_done(&errors);
	}
	for (int m = 0; m < OW_COLATE_METHODS && r == 0; m++) {
		enum ow_colate_method method = (enum ow_colate_method)m;
		struct ow_colate_params params = ow_colate_recording(method, ow_colate_method_counters(method, HIGH),
		                                                     stream.flows, ow_figure_seed(run) + i);
		struct ow_flows_options options = {.estimator = ow_colate_method_estimator(method)};
		struct ow_colate_errors errors = {0};
		char series[100];
		snprintf(series, sizeof series, "%s, %s", ow_colate_method_name[m], traces->name[i]);
		r = ow_colate_method_errors(&stream, &params, &options, least, UINT64_MAX, &errors, err);
		if (r == 0)
			r = ow_colate_errors_points(run, series, &errors);
		double share = ow_colate_errors_within(&errors, 0.05);
		ow_colate_say(&beside->method[m], "%s%.30s %.0f %%", i ? ", " : "", traces->name[i], 100 * share);
		beside->better[m] &= share >= best;
		ow_colate_errors_done(&errors);
	}
	beside->traces++;
	ow_flow_stream_done(&stream);
	ow_flow_traffic_done(&traffic);
	return r;
}

int ow_figure_colate_11(struct ow_figure_run *run, struct ow_error *err)
{
	static const char *const paper[LIMITS] = {"RLI, 1:300 to 1:10: on average 77 % of the flows within 5 %",
	                                          "RLI, 1:10 to 1:2: on average 81 % of the flows within 5 %"};
	static const double published[LIMITS] = {0.77, 0.81};
	struct ow_colate_traces traces;
	struct beside beside = {.better = {true, true, true, true}};
	int r = ow_colate_traces_find(run, &traces, err);
	for (size_t i = 0; r == 0 && i < traces.count; i++) {
		r = beside_one(run, &traces, i, &beside, err);
		ow_figure_progress(run, (double)(i + 1) / (double)traces.count);
	}
	if (r == 0)
		r = ow_colate_traces_claim(run, &traces);
	for (int l = 0; l < LIMITS && r == 0; l++)
		r = ow_figure_claim(run, paper[l], fabs(beside.rli_sum[l] / beside.traces - published[l]) < 0.15, "%s",
		                    beside.rli[l].word);
	for (int m = 0; m < OW_COLATE_METHODS && r == 0; m++) {
		r = ow_figure_claim(run, "COLATE (0.99, 0.01) errs much less than RLI", beside.better[m],
		                    "%s (%g counters a flow), within 5 %%: %s", ow_colate_method_name[m],
		                    ow_colate_method_counters((enum ow_colate_method)m, HIGH), beside.method[m].word);
	}
	return r;
}

/* -- Count-Min ---------------------------------------------------------------------------------------------------- */

/*
 * Errors of a flow's mean: from the difference of two estimated sums, and from the estimate of the sum of differences.
 */
static int countmin_errors(const struct ow_flow_stream *stream, double per_flow, uint64_t seed, uint64_t least,
                           struct ow_colate_errors errors[2], struct ow_error *err)
{
	struct ow_countmin_params params = ow_countmin_size(0.95, 0.05);
	params.columns =
		(uint32_t)fmax(1, fmin(per_flow * (double)stream->flows, OW_COUNTMIN_COUNTERS_MAX) / params.rows);
	params.origin_ns = stream->a[0].time_ns;
	params.seed = seed;
	struct ow_countmin *a = NULL, *b = NULL;
	double *sum = calloc(stream->flows, sizeof *sum);
	int r = sum ? ow_countmin_create(&params, &a, err) : -ENOMEM;
	if (r == 0)
		r = ow_countmin_create(&params, &b, err);
	if (r == 0) {
		ow_countmin_add(a, stream->a, stream->as);
		ow_countmin_add(b, stream->b, stream->bs);
		for (size_t f = 0; f < stream->flows; f++)
			sum[f] = (double)(int64_t)(ow_countmin_query(b, stream->flow[f].flow) -
			                           ow_countmin_query(a, stream->flow[f].flow));
		r = ow_countmin_subtract(b, a, err);
	}
	for (size_t f = 0; r == 0 && f < stream->flows; f++) {
		const struct ow_flow_truth *t = &stream->flow[f];
		double true_sum = t->mean_ns * (double)t->received;
		if (t->received < least || !(true_sum > 0))
			continue;
		r = ow_colate_errors_add(&errors[0], fabs(sum[f] / true_sum - 1));
		if (r == 0)
			r = ow_colate_errors_add(&errors[1],
			                         fabs((double)ow_countmin_query(b, t->flow) / true_sum - 1));
	}
	ow_countmin_free(a);
	ow_countmin_free(b);
	free(sum);
	return r;
}

int ow_figure_colate_countmin(struct ow_figure_run *run, struct ow_error *err)
{
	static const double sizes[] = {OW_COLATE_OURS, OW_COLATE_PER_FLOW, 165};
	struct ow_colate_traces traces;
	struct ow_flow_traffic traffic;
	struct ow_flow_path path;
	struct ow_flow_stream stream = {0};
	int r = ow_colate_traces_find(run, &traces, err);
	if (r == 0)
		r = ow_colate_trace_stream(run, &traces, 2, &traffic, &path, &stream, err);
	if (r < 0)
		return r;
	struct ow_colate_text text[2] = {{.length = 0}};
	double shared = 0; /* share within 5 % with as many counters as COLATE has */
	for (int i = 0; i < 3 && r == 0; i++) {
		struct ow_colate_errors errors[2] = {{0}};
		r = countmin_errors(&stream, sizes[i], ow_figure_seed(run), OW_COLATE_LEAST, errors, err);
		for (int way = 0; way < 2; way++) {
			char series[100];
			snprintf(series, sizeof series, "Count-Min, %g counters a flow, %s", sizes[i],
			         way ? "of the delays" : "at each point");
			if (r == 0)
				r = ow_colate_errors_points(run, series, &errors[way]);
			double within = ow_colate_errors_within(&errors[way], 0.05);
			shared = i == 1 && way == 0 ? within : shared;
			ow_colate_say(&text[way], "%s%.0f %% at %g", i ? ", " : "", 100 * within, sizes[i]);
			ow_colate_errors_done(&errors[way]);
		}
		ow_figure_progress(run, (i + 1.) / 4);
	}
	struct ow_colate_errors ours = {0};
	struct ow_colate_params params =
		ow_colate_recording(OW_COLATE_BANKS_CG, OW_COLATE_OURS, stream.flows, ow_figure_seed(run));
	if (r == 0)
		r = ow_colate_method_errors(&stream, &params, &(struct ow_flows_options){.estimator = OW_FLOWS_BANKS},
		                            OW_COLATE_LEAST, UINT64_MAX, &ours, err);
	if (r == 0)
		r = ow_colate_errors_points(run, "banks+cg, 0.5 counters a flow", &ours);
	double share = ow_colate_errors_within(&ours, 0.05);
	ow_colate_errors_done(&ours);
	ow_flow_stream_done(&stream);
	ow_flow_traffic_done(&traffic);
	struct ow_countmin_params paper = ow_countmin_size(0.95, 0.05);
	if (r == 0)
		r = ow_figure_claim(run, "0.95, 0.05: 165 counters and 3 hash functions for each flow",
		                    paper.rows * paper.columns == 165 && paper.rows == 3,
		                    "%u counters in %u rows of e / beta", paper.rows * paper.columns, paper.rows);
	if (r == 0)
		r = ow_figure_claim(run, "a sketch that flows share cannot keep beta of a flow's own sum",
		                    shared < 0.95, "flows of 64 packets and more within 5 %%, by counters a flow: %s",
		                    text[0].word);
	return r < 0 ? r
	             : ow_figure_claim(run, "not in the paper", true,
	                               "a sketch of the delays instead (times at B less times at A): %s; banks+cg %.0f "
	                               "%% at 0.5",
	                               text[1].word, 100 * share);
}

/* -- by size, at half a counter a flow ---------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint64_t least, most;
} classes[] = {{"4-15", 4, 16}, {"16-63", 16, 64}, {"64-255", 64, 256}, {"256+", 256, UINT64_MAX}};
enum { CLASSES = 4 };

/* The median error of each class; a flow without an estimate counts as an infinite error. */
static int class_medians(const struct ow_flow_stream *stream, const struct ow_colate_params *params,
                         const struct ow_flows_options *options, double ret_median[CLASSES], struct ow_error *err)
{
	struct ow_flow_estimate *estimates = calloc(stream->flows, sizeof *estimates);
	int r = estimates ? ow_colate_measure(stream, params, options, estimates, err) : -ENOMEM;
	for (int c = 0; c < CLASSES && r == 0; c++) {
		struct ow_colate_errors errors = {0};
		r = ow_colate_errors_mean(&errors, stream->flow, estimates, stream->flows, classes[c].least,
		                          classes[c].most);
		ret_median[c] = ow_colate_errors_quantile(&errors, 0.5);
		ow_colate_errors_done(&errors);
	}
	free(estimates);
	return r;
}

/*
 * 100,000 heavy-tailed flows, a tenth with --quick. Steady flows are in the queue all the time and have similar delays.
 * Flows that come and go find it full or empty, and their means differ by more than the delays within one flow.
 */
static int heavy_traffic(const struct ow_figure_run *run, bool steady, struct ow_flow_traffic *ret_traffic,
                         struct ow_error *err)
{
	return ow_flow_traffic_make(
		&(struct ow_flow_traffic_params){.flows = ow_figure_quick(run) ? 10000 : 100000,
	                                         .shape = 0.965,
	                                         .least = 1,
	                                         .most = 20000,
	                                         .length_ns = (ow_figure_quick(run) ? 6 : 60) * OW_NS_PER_S,
	                                         .train = 4,
	                                         .gap_ns = {OW_NS_PER_MS, OW_NS_PER_S},
	                                         .steady = steady,
	                                         .seed = ow_mix64(ow_figure_seed(run) + 4000)},
		ret_traffic, err);
}

static const struct {
	const char *name;
	enum ow_colate_method method;
	double per_flow;
	uint32_t banks; /* 0 = the default */
	enum ow_flow_estimator estimator;
} ways[] = {
	{"as published, 0.5 counters a flow", OW_COLATE_AS_PUBLISHED, OW_COLATE_OURS, 0, OW_FLOWS_COLATE},
	{"hashed j, 0.5 counters a flow", OW_COLATE_HASHED_J, OW_COLATE_OURS, 0, OW_FLOWS_COLATE},
	{"hashed j, 11.4 counters a flow", OW_COLATE_HASHED_J, OW_COLATE_PER_FLOW, 0, OW_FLOWS_COLATE},
	{"BLUP of one bank, 0.5 counters a flow", OW_COLATE_BANKS_CG, OW_COLATE_OURS, 1, OW_FLOWS_BLUP},
	{"banks+cg, 0.5 counters a flow", OW_COLATE_BANKS_CG, OW_COLATE_OURS, 0, OW_FLOWS_BANKS},
	{"banks+cg, 1.3 counters a flow", OW_COLATE_BANKS_CG, 1.3, 0, OW_FLOWS_BANKS},
};
enum { WAYS = sizeof ways / sizeof *ways, WAY_PUBLISHED = 0, WAY_HASHED, WAY_ROOMY, WAY_BLUP, WAY_OURS };

static struct ow_colate_params way_params(int way, size_t flows, uint64_t seed)
{
	struct ow_colate_params params = ow_colate_recording(ways[way].method, ways[way].per_flow, flows, seed);
	if (ways[way].banks)
		params.layer[0].spread = ways[way].banks;
	return params;
}

static const char *percent(double share, char text[20])
{
	if (!isfinite(share))
		snprintf(text, 20, "no number");
	else if (share < EXACT)
		snprintf(text, 20, "0 %%");
	else
		snprintf(text, 20, "%.*f %%", share < 0.01 ? 2 : share < 0.1 ? 1 : 0, 100 * share);
	return text;
}

static const char *medians_text(const double median[CLASSES], char text[120])
{
	char word[CLASSES][20];
	for (int c = 0; c < CLASSES; c++)
		percent(median[c], word[c]);
	snprintf(text, 120, "%s / %s / %s / %s", word[0], word[1], word[2], word[3]);
	return text;
}

/* The median errors of all estimators on one kind of traffic, without loss. */
static int try_ways(struct ow_figure_run *run, bool steady, double median[WAYS][CLASSES], struct ow_error *err)
{
	struct ow_flow_traffic traffic;
	struct ow_flow_path path;
	struct ow_flow_stream stream = {0};
	int r = heavy_traffic(run, steady, &traffic, err);
	if (r < 0)
		return r;
	r = ow_colate_red(&traffic, 0, ow_figure_seed(run), &path, &stream, err);
	ow_flow_traffic_done(&traffic);
	if (r < 0)
		return r;
	for (int w = 0; w < WAYS && r == 0; w++) {
		struct ow_colate_params params = way_params(w, stream.flows, ow_figure_seed(run));
		char series[100];
		snprintf(series, sizeof series, "%s, %s", ways[w].name, steady ? "steady" : "come and go");
		r = class_medians(&stream, &params, &(struct ow_flows_options){.estimator = ways[w].estimator},
		                  median[w], err);
		for (int c = 0; c < CLASSES && r == 0; c++) {
			double y = median[w][c] < EXACT ? 0 : median[w][c];
			if (isfinite(y))
				r = ow_figure_point(run, series, (double)classes[c].least, y, y, y);
		}
		ow_figure_progress(run, (w + 1. + WAYS * !steady) / (2 * WAYS));
	}
	ow_flow_stream_done(&stream);
	return r;
}

int ow_figure_colate_sizes(struct ow_figure_run *run, struct ow_error *err)
{
	int r = 0;
	for (int steady = 1; steady >= 0 && r == 0; steady--) {
		double median[WAYS][CLASSES] = {{0}};
		r = try_ways(run, steady, median, err);
		const char *kind = steady ? "steady flows" : "flows that come and go";
		char words[120], other[120];
		if (r == 0)
			r = ow_figure_claim(
				run,
				"median error, flows of 4-15/16-63/64-255/256+ packets, COLATE with hashed j and "
				"0.5 counters a flow: recomputed 1763 / 403 / 98 / 17 %",
				median[WAY_HASHED][2] > 0.2 && median[WAY_HASHED][3] > 0.02,
				"%s: as published %s, hashed j %s", kind, medians_text(median[WAY_PUBLISHED], words),
				medians_text(median[WAY_HASHED], other));
		if (r == 0)
			r = ow_figure_claim(
				run, "hashed j, 11.4 counters a flow: recomputed 131 % for 4-15, 1.1 % for 256+",
				median[WAY_ROOMY][3] < 0.05, "%s: %s", kind, medians_text(median[WAY_ROOMY], words));
		if (r == 0)
			r = ow_figure_claim(run, "BLUP of one bank, 0.5 counters a flow: 17 / 5.4 / 1.6 / 0.20 %",
			                    median[WAY_BLUP][2] < 0.04, "%s: %s", kind,
			                    medians_text(median[WAY_BLUP], words));
		if (r == 0)
			r = ow_figure_claim(
				run,
				"three banks, 0.5 counters a flow: 19 / 4.9 / 1.2 / 0.23 %; our aim is 2 % for "
				"64-255 and 0.5 % for 256+",
				median[WAY_OURS][2] <= 0.02 && median[WAY_OURS][3] <= 0.005,
				"%s: %s; with 1.3 counters a flow %s", kind, medians_text(median[WAY_OURS], words),
				medians_text(median[WAYS - 1], other));
	}
	return r;
}

/* -- loss --------------------------------------------------------------------------------------------------------- */

/*
 * Banks for all packets, for an eighth, and for a 64th of them: if a counter of all packets has lost a packet, a
 * counter of fewer packets may not have. The total number of counters stays the same.
 */
static struct ow_colate_params layered(size_t flows, uint64_t seed)
{
	static const struct {
		double counters;
		uint32_t last;
	} part[] = {{0.6, OW_COLATE_SHARE}, {0.2, OW_COLATE_SHARE / 8}, {0.2, OW_COLATE_SHARE / 64}};
	struct ow_colate_params params = {.layers = 3};
	for (int l = 0; l < 3; l++) {
		struct ow_colate_params one =
			ow_colate_recording(OW_COLATE_BANKS_CG, OW_COLATE_OURS * part[l].counters, flows, seed);
		params.layer[l] = one.layer[0];
		params.layer[l].last = part[l].last;
		params.unit_ns = one.unit_ns;
		params.seed = one.seed;
	}
	return params;
}

/* Section 1.4: vectors for a half, a quarter, ... of the packets, each as large as the vector without loss. */
static struct ow_colate_params vectors(size_t flows, uint64_t seed)
{
	struct ow_colate_params params = ow_colate_recording(OW_COLATE_HASHED_J, OW_COLATE_OURS, flows, seed);
	params.layers = VECTORS;
	for (uint32_t l = 0; l < VECTORS; l++) {
		params.layer[l] = params.layer[0];
		params.layer[l].first = OW_COLATE_SHARE >> (l + 1);
		params.layer[l].last = OW_COLATE_SHARE >> l;
	}
	return params;
}

/* Half a counter a flow, and a table of lost packets of this room, with its counters. */
static struct ow_colate_params repaired(size_t flows, uint64_t seed, uint64_t room)
{
	struct ow_colate_params params = ow_colate_recording(OW_COLATE_BANKS_CG, OW_COLATE_OURS, flows, seed);
	ow_colate_plan_repair(&params, (uint32_t)room);
	return params;
}

enum loss_form { LOSS_VECTORS, LOSS_BANKS, LOSS_LAYERS, LOSS_REPAIRED, LOSS_FORMS };

static struct ow_colate_params loss_params(enum loss_form form, const struct ow_flow_stream *stream, uint64_t seed)
{
	switch (form) {
	case LOSS_VECTORS:
		return vectors(stream->flows, seed);
	case LOSS_LAYERS:
		return layered(stream->flows, seed);
	case LOSS_REPAIRED:
		return repaired(stream->flows, seed, stream->as - stream->bs);
	default:
		return ow_colate_recording(OW_COLATE_BANKS_CG, OW_COLATE_OURS, stream->flows, seed);
	}
}

int ow_figure_colate_loss(struct ow_figure_run *run, struct ow_error *err)
{
	static const double losses[] = {0.0001, 0.001, 0.01, 0.1};
	static const char *const name[] = {"hashed j, 15 vectors", "banks+cg", "banks+cg, sampled layers too",
	                                   "banks+cg, lost packets taken out"};
	enum { LOSSES = 4, FORMS = LOSS_FORMS };
	struct ow_flow_traffic traffic;
	struct ow_colate_text text[FORMS] = {{.length = 0}};
	double worst[FORMS] = {0};
	int r = heavy_traffic(run, true, &traffic, err);
	if (r < 0)
		return r;
	for (int i = 0; i < LOSSES && r == 0; i++) {
		struct ow_flow_path path;
		struct ow_flow_stream stream = {0};
		r = ow_colate_red(&traffic, losses[i], ow_figure_seed(run), &path, &stream, err);
		if (r < 0)
			break;
		double lost = 1 - (double)stream.bs / (double)stream.as;
		for (int form = 0; form < FORMS && r == 0; form++) {
			struct ow_colate_params params = loss_params(form, &stream, ow_figure_seed(run));
			struct ow_flows_options options = {.estimator = form ? OW_FLOWS_BANKS : OW_FLOWS_COLATE};
			double median[CLASSES] = {0};
			r = class_medians(&stream, &params, &options, median, err);
			for (int c = 2; c < CLASSES && r == 0; c++) {
				char series[100];
				snprintf(series, sizeof series, "%s, flows of %s", name[form], classes[c].name);
				if (isfinite(median[c]))
					r = ow_figure_point(run, series, lost, median[c], median[c], median[c]);
			}
			char small[20], large[20];
			ow_colate_say(&text[form], "%sat %.2g %% loss %s / %s", i ? ", " : "", 100 * lost,
			              percent(median[2], small), percent(median[3], large));
			worst[form] = fmax(worst[form], losses[i] <= 0.01 ? median[3] : 0);
		}
		ow_flow_stream_done(&stream);
		ow_figure_progress(run, (i + 1.) / LOSSES);
	}
	ow_flow_traffic_done(&traffic);
	for (int form = 0; form < FORMS && r == 0; form++) {
		r = ow_figure_claim(
			run, form ? "not in the paper" : "loss is easily handled, with several vectors that sample",
			form || worst[0] < 0.05, "%s, median error of flows of 64-255 / 256+: %.479s", name[form],
			text[form].word);
	}
	return r;
}
