/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/id_map.h"
#include "flows/flows.h"
#include "papers/figure.h"
#include "papers/flow_stream.h"

/* The runs of the COLATE paper's figures, and what they have in common: traces, recordings, errors. */
int ow_figure_colate_6(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_7(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_8(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_9(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_11(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_countmin(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_sizes(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_loss(struct ow_figure_run *run, struct ow_error *err);

/* -- traces ------------------------------------------------------------------------------------------------------- */

/*
 * The paper's three traces are not freely available. Each is replaced by synthetic traffic with the same number of
 * packets per flow, bit rate and packet size, but fewer flows. The captures in the folder of traces are used in
 * addition.
 */
enum { OW_COLATE_MADE = 3, OW_COLATE_TRACES_MAX = 8 };

struct ow_colate_paper_trace {
	const char *name;
	double packets, flows, seconds, mbps; /* Table 2 */
	double per_probe[2];                  /* Table 3 */
	uint32_t made_flows;                  /* flows of our traffic; a tenth with --quick */
	double shape;                         /* of the flow sizes: chosen to give packets / flows */
	int64_t gap_ns[2];                    /* between bursts of a flow */
	struct ow_sim_size size;              /* same mean as the paper's packets */
};
extern const struct ow_colate_paper_trace ow_colate_paper_traces[OW_COLATE_MADE];

struct ow_colate_traces {
	char path[OW_COLATE_TRACES_MAX][512]; /* "" = synthetic */
	char name[OW_COLATE_TRACES_MAX][40];
	size_t count;
};
/* -errno if the folder cannot be read. */
int ow_colate_traces_find(const struct ow_figure_run *run, struct ow_colate_traces *ret_traces, struct ow_error *err);
int ow_colate_trace_traffic(const struct ow_figure_run *run, const struct ow_colate_traces *traces, size_t i,
                            struct ow_flow_traffic *ret_traffic, struct ow_error *err);
/* Adds a claim that says which captures were used, or that there were none. */
int ow_colate_traces_claim(struct ow_figure_run *run, const struct ow_colate_traces *traces);

/*
 * The RED queue of section 6.1 in front of the slowest link that drops at most the share `loss` of the packets: the
 * paper assumes no loss and does not give the rates of its links. Rates are tried in steps of 1.25; finer with loss.
 */
int ow_colate_red(const struct ow_flow_traffic *traffic, double loss, uint64_t seed, struct ow_flow_path *ret_path,
                  struct ow_flow_stream *ret_stream, struct ow_error *err);

/* Sends a trace through that queue, without loss. */
int ow_colate_trace_stream(const struct ow_figure_run *run, const struct ow_colate_traces *traces, size_t i,
                           struct ow_flow_traffic *ret_traffic, struct ow_flow_path *ret_path,
                           struct ow_flow_stream *ret_stream, struct ow_error *err);

/* -- recordings --------------------------------------------------------------------------------------------------- */

/* The parameters that formulas.md uses: M = 10 MB of counters of 19 bits for the flows of DC, and m = 20. */
#define OW_COLATE_PER_FLOW 11.4
#define OW_COLATE_SPREAD   20
#define OW_COLATE_OURS     0.5 /* counters per flow */
#define OW_COLATE_BANKS    3

enum ow_colate_method {
	OW_COLATE_AS_PUBLISHED, /* random j */
	OW_COLATE_HASHED_J,
	OW_COLATE_BANKS_CG,    /* half a counter per flow */
	OW_COLATE_BANKS_ROOMY, /* as many counters as the two above, up to 11.4 per flow */
	OW_COLATE_METHODS
};
extern const char *const ow_colate_method_name[OW_COLATE_METHODS];
static inline bool ow_colate_is_ours(enum ow_colate_method method)
{
	return method == OW_COLATE_BANKS_CG || method == OW_COLATE_BANKS_ROOMY;
}
/* Counters per flow of the method, if COLATE has this many. */
double ow_colate_method_counters(enum ow_colate_method method, double per_flow);
enum ow_flow_estimator ow_colate_method_estimator(enum ow_colate_method method);

/*
 * Parameters of one layer for this many flows. Banks have 48 bits and a check of 16; COLATE has 64 bits, because whole
 * times must fit.
 */
struct ow_colate_params ow_colate_recording(enum ow_colate_method method, double per_flow, size_t flows, uint64_t seed);

/* Finds flows by their hash. */
struct ow_colate_index {
	const struct ow_flow_truth *truth;
	struct ow_id_map by_flow;
};
int ow_colate_index_make(const struct ow_flow_truth *truth, size_t flows, struct ow_colate_index *ret_index);
void ow_colate_index_done(struct ow_colate_index *index);
/* SIZE_MAX if the flow is not there. */
size_t ow_colate_index_find(const struct ow_colate_index *index, uint64_t flow);

/*
 * Estimates the flows of truth, in their order, from the difference of two recordings with a single layer for all
 * packets. The flows of the recordings need not be set.
 */
int ow_colate_estimate(struct ow_flows *flows, const struct ow_flow_truth *truth, size_t count,
                       const struct ow_flows_options *options, struct ow_flow_estimate *ret_estimates,
                       struct ow_error *err);
/* Records the stream at both points and estimates every flow, as above. */
int ow_colate_measure(const struct ow_flow_stream *stream, const struct ow_colate_params *params,
                      const struct ow_flows_options *options, struct ow_flow_estimate *ret_estimates,
                      struct ow_error *err);

/* -- errors ------------------------------------------------------------------------------------------------------- */

/* Relative errors of many flows; INFINITY for a flow without an estimate. */
struct ow_colate_errors {
	double *error;
	size_t count, room;
	bool sorted;
};
void ow_colate_errors_done(struct ow_colate_errors *errors);
int ow_colate_errors_add(struct ow_colate_errors *errors, double error);
/*
 * For the flows with at least `least` and fewer than `most` packets; flows without delay, or without deviation, are
 * omitted.
 */
int ow_colate_errors_mean(struct ow_colate_errors *errors, const struct ow_flow_truth *truth,
                          const struct ow_flow_estimate *estimates, size_t flows, uint64_t least, uint64_t most);
int ow_colate_errors_stddev(struct ow_colate_errors *errors, const struct ow_flow_truth *truth,
                            const struct ow_flow_estimate *estimates, size_t flows, uint64_t least, uint64_t most);
/* Records, estimates and adds the errors of the mean. */
int ow_colate_method_errors(const struct ow_flow_stream *stream, const struct ow_colate_params *params,
                            const struct ow_flows_options *options, uint64_t least, uint64_t most,
                            struct ow_colate_errors *errors, struct ow_error *err);
/* The share of errors that are at most `error`; the error below which a share of the flows is. */
double ow_colate_errors_within(struct ow_colate_errors *errors, double error);
double ow_colate_errors_quantile(struct ow_colate_errors *errors, double share);
/* The CDF as points, errors from 1e-5 to 1e4. */
int ow_colate_errors_points(struct ow_figure_run *run, const char *series, struct ow_colate_errors *errors);

/* The smallest flows in the figures; all flows are used if a trace has too few of this size. */
#define OW_COLATE_LEAST 64
uint64_t ow_colate_least(const struct ow_flow_truth *truth, size_t flows);

/* The text of a claim; it is cut if there is no room. */
struct ow_colate_text {
	char word[480];
	size_t length;
};
__attribute__((format(printf, 2, 3))) void ow_colate_say(struct ow_colate_text *text, const char *format, ...);
