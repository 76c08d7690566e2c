/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/models.h"
#include "papers/spread.h"
#include "papers/trace.h"

/* The runs of the FineComb paper's figures that need no trace, from its analysis (figures_finecomb_analysis.c). */
int ow_figure_finecomb_8(struct ow_figure_run *run, struct ow_error *err);
int ow_figure_finecomb_9(struct ow_figure_run *run, struct ow_error *err);

/*
 * The other figures use one second of 5 million packets, 10 us mean delay, 1000 buckets and stash entries. Packets of
 * the neighbouring intervals drift into the interval, at its start ("forward") or end ("backward"), as in the paper's
 * text; the paper's 4-tuple counts them by where they arrive. As in the paper, the stash has the expected size without
 * a margin.
 */
#define OW_COMB_PACKETS 5000000
#define OW_COMB_STORAGE 1000

extern const struct ow_sim_model ow_comb_weibull, ow_comb_pareto;

/*
 * The structures that are compared: FineComb with and without stash, LDA; with several banks if the rates are not
 * known.
 */
enum ow_comb_kind { OW_COMB_FINECOMB, OW_COMB_MINUS, OW_COMB_LDA, OW_COMB_FOUR, OW_COMB_LDA2, OW_COMB_KINDS };

/* Errors in percent. Loss: from buckets with C_A >= C_B, as printed; from all buckets; our estimate. */
struct ow_comb_outcome {
	struct ow_spread samples, mean, loss, all, ours;
};

struct ow_comb_point {
	struct ow_comb_outcome of[OW_COMB_KINDS], plus; /* plus: LDA+ */
	double expected;                                /* samples, equation (2) */
	struct ow_trace_truth truth;
};

struct ow_comb_setting {
	unsigned kinds;
	double beta, rho;
	uint64_t lost; /* if not 0, exactly this many packets */
	bool backward;
};

/*
 * Sweeps over the reordering ratio rho, from the smallest one on. `put` draws the points that it needs. Progress goes
 * from `from` to `to`.
 */
#define OW_COMB_LEAST_RHO 4e-6
typedef int (*ow_comb_put)(struct ow_figure_run *run, const struct ow_comb_setting *setting,
                           const struct ow_comb_point *point, void *arg);
int ow_comb_sweep(struct ow_figure_run *run, const struct ow_sim_model *model, const struct ow_comb_setting *setting,
                  double from, double to, ow_comb_put put, void *arg, struct ow_error *err);
