/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_SIM_FIGURE_H
#define OW_SIM_FIGURE_H

#include <oneway/error.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Figures and tables of the papers, recomputed. A figure is a function that produces points of named series and
 * statements of the paper beside our numbers; the frame writes CSV and a plot, prints the statements, shows progress.
 */
struct ow_figure_run; /* one run of a figure */

struct ow_figure {
	const char *name;    /* "lda-4a", "finecomb-5", "rda-6", "rda-s3" (supplement), "rda-table-1" */
	const char *title;
	const char *x_label, *y_label;
	bool log_x, log_y;   /* as in the paper */
	int (*run)(struct ow_figure_run *run, struct ow_error *err);
};

/* The figures of each paper, ended by one without a name. */
extern const struct ow_figure ow_figures_lda[], ow_figures_finecomb[], ow_figures_rda[];

/* For the run functions. Seeds: figure seed + a counter of its own, so that each point can be repeated alone. */
uint64_t ow_figure_seed(const struct ow_figure_run *run);
/* Fewer runs a point and smaller streams: seconds instead of minutes. */
bool ow_figure_quick(const struct ow_figure_run *run);
/* A point of a series: value and its spread over the runs (low = high = y if there is none). */
int ow_figure_point(struct ow_figure_run *run, const char *series, double x, double y, double low, double high);
/* A statement of the paper beside our number, and whether the two agree (as formulas.md says it should). */
int ow_figure_claim(struct ow_figure_run *run, const char *paper, const char *ours, bool agrees);
/* Share of the work done, 0..1. */
void ow_figure_progress(struct ow_figure_run *run, double done);

#endif
