/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures 6 and 8 of the COLATE paper: errors of the mean of a flow, between two points and in a triangle.
 *
 * The requirement (alpha, beta) determines T: by equation 22 it grows with (beta / k)^2, so that an epoch of the high
 * requirement has 39 times fewer flows than one of the medium requirement. The error depends on the number of counters
 * per flow of an epoch; here it is 11.4 for the medium requirement.
 */
#include "papers/figures_colate.h"

#include "base/hash.h"
#include "base/time.h"
#include "estimate/distribution.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct requirement {
	const char *name;
	double alpha, beta;
};
/* By part of the figure. */
static const struct requirement requirements[] = {{"low", 0.90, 0.10}, {"medium", 0.95, 0.05}, {"high", 0.99, 0.01}};
#define MEDIUM (&requirements[1])

static double per_flow(const struct requirement *q)
{
	double k2 = ow_chi2_quantile((1 + q->alpha) / 2, 1), medium_k2 = ow_chi2_quantile((1 + MEDIUM->alpha) / 2, 1);
	return OW_COLATE_PER_FLOW * k2 / medium_k2 * MEDIUM->beta * MEDIUM->beta / (q->beta * q->beta);
}

/* -- figure 6 ----------------------------------------------------------------------------------------------------- */

/* Shares within beta, by method; all: over all traces. */
struct shares {
	struct ow_colate_text text[OW_COLATE_METHODS];
	double least[OW_COLATE_METHODS];
};

static void note_share(struct shares *shares, enum ow_colate_method method, const char *trace, double share)
{
	ow_colate_say(&shares->text[method], "%s%.30s %.1f %%", shares->text[method].length ? ", " : "", trace,
	              100 * share);
	shares->least[method] = fmin(shares->least[method], share);
}

static int share_claims(struct ow_figure_run *run, const struct shares *shares, const struct requirement *q)
{
	int r = 0;
	for (int m = 0; m < OW_COLATE_METHODS && r == 0; m++) {
		char paper[160];
		snprintf(paper, sizeof paper, "%.0f %% of the flows within %.0f %%, always", 100 * q->alpha,
		         100 * q->beta);
		r = ow_figure_claim(run, paper, shares->least[m] >= q->alpha, "%s (%.3g counters a flow): %s",
		                    ow_colate_method_name[m],
		                    ow_colate_method_counters((enum ow_colate_method)m, per_flow(q)),
		                    shares->text[m].word);
	}
	return r;
}

int ow_figure_colate_6(struct ow_figure_run *run, struct ow_error *err)
{
	const struct requirement *q = &requirements[ow_figure_part(run)];
	struct ow_colate_traces traces;
	struct shares shares = {.least = {1, 1, 1, 1}};
	int r = ow_colate_traces_find(run, &traces, err);
	for (size_t i = 0; r == 0 && i < traces.count; i++) {
		struct ow_flow_traffic traffic;
		struct ow_flow_path path;
		struct ow_flow_stream stream = {0};
		r = ow_colate_trace_stream(run, &traces, i, &traffic, &path, &stream, err);
		if (r < 0)
			break;
		uint64_t least = ow_colate_least(stream.flow, stream.flows);
		for (int m = 0; m < OW_COLATE_METHODS && r == 0; m++) {
			enum ow_colate_method method = (enum ow_colate_method)m;
			struct ow_colate_params params =
				ow_colate_recording(method, ow_colate_method_counters(method, per_flow(q)),
			                            stream.flows, ow_figure_seed(run) + i);
			struct ow_flows_options options = {.estimator = ow_colate_method_estimator(method)};
			struct ow_colate_errors errors = {0};
			char series[100], name[60];
			snprintf(name, sizeof name, "%s%s", traces.name[i], least > 1 ? "" : " (all flows)");
			snprintf(series, sizeof series, "%s, %s", ow_colate_method_name[m], name);
			r = ow_colate_method_errors(&stream, &params, &options, least, UINT64_MAX, &errors, err);
			if (r == 0)
				r = ow_colate_errors_points(run, series, &errors);
			note_share(&shares, method, name, ow_colate_errors_within(&errors, q->beta));
			ow_colate_errors_done(&errors);
		}
		ow_flow_stream_done(&stream);
		ow_flow_traffic_done(&traffic);
		ow_figure_progress(run, (double)(i + 1) / (double)traces.count);
	}
	if (r == 0)
		r = ow_colate_traces_claim(run, &traces);
	return r < 0 ? r : share_claims(run, &shares, q);
}

/* -- figure 8: three points that all send to each other ----------------------------------------------------------- */

enum { CORNERS = 3, LINKS = 6 };

struct triangle {
	struct ow_flow_stream link[LINKS];
	uint8_t from[LINKS], to[LINKS];
};

static void triangle_done(struct triangle *t)
{
	for (int i = 0; i < LINKS; i++)
		ow_flow_stream_done(&t->link[i]);
}

/* Six links with traffic like that of the ICSI trace, each with its own queue. */
static int triangle_make(const struct ow_figure_run *run, struct triangle *t, struct ow_error *err)
{
	*t = (struct triangle){0};
	int r = 0;
	for (int from = 0, i = 0; from < CORNERS; from++) {
		for (int to = 0; to < CORNERS && r == 0; to++) {
			if (to == from)
				continue;
			const struct ow_colate_paper_trace *icsi = &ow_colate_paper_traces[1];
			struct ow_flow_traffic traffic;
			struct ow_flow_path path;
			r = ow_flow_traffic_make(
				&(struct ow_flow_traffic_params){
					.flows = ow_figure_quick(run) ? 1000 : 5000,
					.shape = icsi->shape,
					.least = 1,
					.most = 20000,
					.length_ns = 3600 * OW_NS_PER_S,
					.train = 4,
					.gap_ns = {icsi->gap_ns[0], icsi->gap_ns[1]},
					.size = icsi->size,
					.seed = ow_mix64(ow_figure_seed(run) + 800 + (uint64_t)i)},
				&traffic, err);
			if (r < 0)
				break;
			r = ow_colate_red(&traffic, 0, ow_figure_seed(run) + (uint64_t)i, &path, &t->link[i], err);
			ow_flow_traffic_done(&traffic);
			t->from[i] = (uint8_t)from;
			t->to[i] = (uint8_t)to;
			i++;
		}
	}
	if (r < 0)
		triangle_done(t);
	return r;
}

/* Each point has one vector for all that it sends and one for all that it receives, independent of the other points. */
struct corners {
	struct ow_colate *sent[CORNERS], *received[CORNERS];
};

static void corners_free(struct corners *c)
{
	for (int i = 0; i < CORNERS; i++) {
		ow_colate_free(c->sent[i]);
		ow_colate_free(c->received[i]);
	}
}

static int corners_record(const struct triangle *t, const struct ow_colate_params *params, struct corners *c,
                          struct ow_error *err)
{
	int r = 0;
	*c = (struct corners){0};
	for (int i = 0; i < CORNERS && r == 0; i++) {
		r = ow_colate_create(params, &c->sent[i], err);
		if (r == 0)
			r = ow_colate_create(params, &c->received[i], err);
	}
	for (int i = 0; i < LINKS && r == 0; i++) {
		ow_colate_add(c->sent[t->from[i]], t->link[i].a, t->link[i].as);
		ow_colate_add(c->received[t->to[i]], t->link[i].b, t->link[i].bs);
	}
	return r;
}

/* Errors of the flows of some links, from the difference of two recordings. */
static int corner_errors(const struct ow_colate *a, const struct ow_colate *b, const struct triangle *t, int link,
                         int links, enum ow_flow_estimator estimator, struct ow_colate_errors *errors,
                         struct ow_error *err)
{
	size_t count = 0, at = 0;
	for (int i = link; i < link + links; i++)
		count += t->link[i].flows;
	struct ow_flow_truth *truth = calloc(count, sizeof *truth);
	struct ow_flow_estimate *estimates = calloc(count, sizeof *estimates);
	struct ow_flows flows = {0};
	int r = truth && estimates ? ow_flows_difference(a, b, &flows, err) : -ENOMEM;
	if (r == 0) {
		for (int i = link; i < link + links; i++) {
			memcpy(truth + at, t->link[i].flow, t->link[i].flows * sizeof *truth);
			at += t->link[i].flows;
		}
		r = ow_colate_estimate(&flows, truth, count, &(struct ow_flows_options){.estimator = estimator},
		                       estimates, err);
		ow_flows_done(&flows);
	}
	if (r == 0)
		r = ow_colate_errors_mean(errors, truth, estimates, count, OW_COLATE_LEAST, UINT64_MAX);
	free(truth);
	free(estimates);
	return r;
}

/* COLATE compares the vector of the sender with that of the receiver, link by link. */
static int compare_pairs(const struct triangle *t, const struct corners *c, struct ow_colate_errors *errors,
                         struct ow_error *err)
{
	int r = 0;
	for (int i = 0; i < LINKS && r == 0; i++)
		r = corner_errors(c->sent[t->from[i]], c->received[t->to[i]], t, i, 1, OW_FLOWS_COLATE, errors, err);
	return r;
}

/* Recordings add up: the sum of all that was sent equals the sum of all that was received. */
static int compare_sums(const struct triangle *t, struct corners *c, struct ow_colate_errors *errors,
                        struct ow_error *err)
{
	int r = 0;
	for (int i = 1; i < CORNERS && r == 0; i++) {
		r = ow_colate_merge(c->sent[0], c->sent[i], err);
		if (r == 0)
			r = ow_colate_merge(c->received[0], c->received[i], err);
	}
	return r < 0 ? r : corner_errors(c->sent[0], c->received[0], t, 0, LINKS, OW_FLOWS_BANKS, errors, err);
}

int ow_figure_colate_8(struct ow_figure_run *run, struct ow_error *err)
{
	const struct requirement *q = &requirements[ow_figure_part(run)];
	struct triangle triangle;
	struct shares shares = {.least = {1, 1, 1, 1}};
	int r = triangle_make(run, &triangle, err);
	if (r < 0)
		return r;
	size_t flows = 0;
	for (int i = 0; i < LINKS; i++)
		flows += triangle.link[i].flows;
	for (int m = 0; m < OW_COLATE_METHODS && r == 0; m++) {
		enum ow_colate_method method = (enum ow_colate_method)m;
		bool ours = ow_colate_is_ours(method);
		/* Each vector of a point contains two of the six links. */
		struct ow_colate_params params =
			ow_colate_recording(method, ow_colate_method_counters(method, per_flow(q)),
		                            ours ? flows : flows / CORNERS, ow_figure_seed(run));
		struct corners corners;
		struct ow_colate_errors errors = {0};
		r = corners_record(&triangle, &params, &corners, err);
		if (r == 0)
			r = ours ? compare_sums(&triangle, &corners, &errors, err)
			         : compare_pairs(&triangle, &corners, &errors, err);
		corners_free(&corners);
		if (r == 0)
			r = ow_colate_errors_points(run, ow_colate_method_name[m], &errors);
		note_share(&shares, method, "six links", ow_colate_errors_within(&errors, q->beta));
		ow_colate_errors_done(&errors);
		ow_figure_progress(run, (m + 1.) / OW_COLATE_METHODS);
	}
	triangle_done(&triangle);
	return r < 0 ? r : share_claims(run, &shares, q);
}
