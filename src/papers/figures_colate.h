/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PAPERS_FIGURES_COLATE_H
#define OW_PAPERS_FIGURES_COLATE_H

#include "flows/flows.h"
#include "papers/figure.h"
#include "papers/flow_stream.h"

/* The runs of the COLATE paper's figures, and what they share: traces, recordings, errors. */
int ow_figure_colate_2(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_3(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_4(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_5(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_6a(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_6b(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_6c(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_7(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_8a(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_8b(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_8c(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_9(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_10(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_11(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_countmin(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_sizes(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_loss(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_table_2(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_colate_table_3(struct ow_figure_run *run, struct ow_error *err);

/* -- traces ------------------------------------------------------------------------------------------------------- */

/*
 * The paper's three traces cannot be had freely. Each is replaced by made traffic with as many packets a flow, as many
 * bits a second and as large packets, but fewer flows; captures of the folder of traces follow.
 */
enum { OW_COLATE_MADE = 3, OW_COLATE_TRACES_MAX = 8 };

struct ow_colate_paper_trace {
	const char *name;
	double packets, flows, seconds, mbps; /* Table 2 */
	double per_probe[2];                  /* Table 3 */
	uint32_t made_flows;                  /* of ours; a tenth with --quick */
	double shape;                         /* of the sizes: gives packets / flows */
	int64_t gap_ns[2];                    /* between trains of a flow */
	struct ow_sim_size size;              /* mean: as the paper's packets */
};
extern const struct ow_colate_paper_trace ow_colate_paper_traces[OW_COLATE_MADE];

struct ow_colate_traces {
	char path[OW_COLATE_TRACES_MAX][512]; /* "" = made */
	char name[OW_COLATE_TRACES_MAX][40];
	size_t count;
};
/* -errno when the folder cannot be read. */
int ow_colate_traces_find(const struct ow_figure_run *run, struct ow_colate_traces *ret_traces, struct ow_error *err);
int ow_colate_trace_traffic(const struct ow_figure_run *run, const struct ow_colate_traces *traces, size_t i,
                            struct ow_flow_traffic *ret_traffic, struct ow_error *err);
/* A claim that says which captures were taken, or that there were none. */
int ow_colate_traces_claim(struct ow_figure_run *run, const struct ow_colate_traces *traces);

/*
 * The RED queue of section 6.1 in front of the slowest link that drops at most the share `loss` of the packets: the
 * paper assumes no loss and does not say how fast its links were. In steps of 1.25; finer with loss.
 */
int ow_colate_red(const struct ow_flow_traffic *traffic, double loss, uint64_t seed, struct ow_flow_path *ret_path,
                  struct ow_flow_stream *ret_stream, struct ow_error *err);

/* A trace through that queue, without loss. */
int ow_colate_trace_stream(const struct ow_figure_run *run, const struct ow_colate_traces *traces, size_t i,
                           struct ow_flow_traffic *ret_traffic, struct ow_flow_path *ret_path,
                           struct ow_flow_stream *ret_stream, struct ow_error *err);

/* -- recordings --------------------------------------------------------------------------------------------------- */

/* What formulas.md judges by: M = 10 MB of counters of 19 bits over the flows of DC, and m = 20. */
#define OW_COLATE_PER_FLOW 11.4
#define OW_COLATE_SPREAD   20
#define OW_COLATE_OURS     0.5 /* counters a flow */
#define OW_COLATE_BANKS    3

enum ow_colate_method {
	OW_COLATE_AS_PUBLISHED, /* random j */
	OW_COLATE_HASHED_J,
	OW_COLATE_BANKS_CG,    /* half a counter a flow */
	OW_COLATE_BANKS_ROOMY, /* as many counters as the two above, up to 11.4 a flow */
	OW_COLATE_METHODS
};
extern const char *const ow_colate_method_name[OW_COLATE_METHODS];
static inline bool ow_colate_is_ours(enum ow_colate_method method)
{
	return method == OW_COLATE_BANKS_CG || method == OW_COLATE_BANKS_ROOMY;
}
/* Counters a flow, if COLATE has so many. */
double ow_colate_method_counters(enum ow_colate_method method, double per_flow);
enum ow_flow_estimator ow_colate_method_estimator(enum ow_colate_method method);

/* One layer for so many flows; banks have 48 bits and a check of 16, COLATE 64 bits: whole times must fit. */
struct ow_colate_params ow_colate_recording(enum ow_colate_method method, double per_flow, size_t flows, uint64_t seed);

/* Finds flows by their hash. */
struct ow_colate_index {
	const struct ow_flow_truth *truth;
	uint32_t *place;
	unsigned bits;
};
int ow_colate_index_make(const struct ow_flow_truth *truth, size_t flows, struct ow_colate_index *ret_index);
void ow_colate_index_done(struct ow_colate_index *index);
/* SIZE_MAX = none. */
size_t ow_colate_index_find(const struct ow_colate_index *index, uint64_t flow);

/* Estimates of the flows of truth, in their order, from a difference of recordings with a single layer for all
 * packets (whose flows are not set). */
int ow_colate_estimate(struct ow_flows *flows, const struct ow_flow_truth *truth, size_t count,
                       const struct ow_flows_options *options, struct ow_flow_estimate *ret_estimates,
                       struct ow_error *err);
/* Records the stream at both points and estimates every flow, as above. */
int ow_colate_measure(const struct ow_flow_stream *stream, const struct ow_colate_params *params,
                      const struct ow_flows_options *options, struct ow_flow_estimate *ret_estimates,
                      struct ow_error *err);

/* -- errors ------------------------------------------------------------------------------------------------------- */

/* Relative errors of many flows; INFINITY where there is no number. */
struct ow_colate_errors {
	double *error;
	size_t count, room;
	bool sorted;
};
void ow_colate_errors_done(struct ow_colate_errors *errors);
int ow_colate_errors_add(struct ow_colate_errors *errors, double error);
/* Of the flows with at least `least` and fewer than `most` packets; flows of no delay, or of no deviation, are left
 * out. */
int ow_colate_errors_mean(struct ow_colate_errors *errors, const struct ow_flow_truth *truth,
                          const struct ow_flow_estimate *estimates, size_t flows, uint64_t least, uint64_t most);
int ow_colate_errors_stddev(struct ow_colate_errors *errors, const struct ow_flow_truth *truth,
                            const struct ow_flow_estimate *estimates, size_t flows, uint64_t least, uint64_t most);
/* Records, estimates and adds the errors of the mean. */
int ow_colate_method_errors(const struct ow_flow_stream *stream, const struct ow_colate_params *params,
                            const struct ow_flows_options *options, uint64_t least, uint64_t most,
                            struct ow_colate_errors *errors, struct ow_error *err);
/* The share of errors that are at most this; the error that a share stays below. */
double ow_colate_errors_within(struct ow_colate_errors *errors, double error);
double ow_colate_errors_quantile(struct ow_colate_errors *errors, double share);
/* The CDF as points, errors from 1e-5 to 1e4. */
int ow_colate_errors_points(struct ow_figure_run *run, const char *series, struct ow_colate_errors *errors);

/* Flows that figures look at: of this size or larger, or all in a trace with too few such. */
#define OW_COLATE_LEAST 64
uint64_t ow_colate_least(const struct ow_flow_truth *truth, size_t flows);

/* Words of a claim, as far as there is room. */
struct ow_colate_text {
	char word[480];
	size_t length;
};
__attribute__((format(printf, 2, 3))) void ow_colate_say(struct ow_colate_text *text, const char *format, ...);

#endif
