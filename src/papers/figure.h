/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Recomputes figures and tables of the papers. A figure is a function that produces the points of named series, and
 * claims: a statement of the paper and our number. The framework writes CSV and a plot, prints the claims, and shows
 * progress.
 */
struct ow_figure_run; /* one run of a figure */

struct ow_figure {
	const char *name; /* "lda-4a", "finecomb-5", "rda-6", "rda-s3" (supplement), "rda-table-1" */
	const char *title;
	const char *x_label, *y_label;
	bool log_x, log_y; /* as in the paper */
	int (*run)(struct ow_figure_run *run, struct ow_error *err);
	int part; /* which of the figures that `run` draws: ow_figure_part */
};

/* The figures of each paper; the last entry has no name. */
extern const struct ow_figure ow_figures_lda[], ow_figures_finecomb[], ow_figures_rda[], ow_figures_colate[],
	ow_figures_mplane[];

/* All figures: an array for each paper; ended by NULL. */
extern const struct ow_figure *const ow_figure_sets[];

/*
 * For the run functions. A seed is the figure's seed plus the function's own counter, so that each point can be
 * repeated alone.
 */
uint64_t ow_figure_seed(const struct ow_figure_run *run);
int ow_figure_part(const struct ow_figure_run *run);
/* Use fewer runs for a point and smaller streams: seconds instead of minutes. */
bool ow_figure_quick(const struct ow_figure_run *run);
/* A folder of captures, for figures that can use real traffic; NULL = none. */
const char *ow_figure_traces(const struct ow_figure_run *run);
/* A folder of Rocketfuel's maps, rocketfuel-AS.weights.intra; NULL = none. */
const char *ow_figure_topologies(const struct ow_figure_run *run);
/* Adds a point of a series: the value and its spread over the runs (low = high = y if there is none). */
int ow_figure_point(struct ow_figure_run *run, const char *series, double x, double y, double low, double high);
/* Adds a claim: a statement of the paper, our number, and whether the two agree (as formulas.md defines it). */
__attribute__((format(printf, 4, 5))) int ow_figure_claim(struct ow_figure_run *run, const char *paper, bool agrees,
                                                          const char *ours, ...);
/* Reports the share of the work that is done, 0..1. */
void ow_figure_progress(struct ow_figure_run *run, double done);

/* -- the frame: for the command ----------------------------------------------------------------------------------- */

/*
 * Whether the words select this figure: all, a paper (the part before the dash), one figure, or its parts a, b, ... or
 * -PART.
 */
bool ow_figure_chosen(const struct ow_figure *figure, char *const *word, int words);
/* -EINVAL if one of the words selects no figure; the error suggests a similar name. */
int ow_figure_check_words(char *const *word, int words, struct ow_error *err);

struct ow_figure_options {
	bool quick;
	uint64_t seed;
	/* Called repeatedly with the share done, 0..1; may be NULL. */
	void (*on_progress)(void *arg, double done);
	void *arg;
	const char *traces;     /* folder of captures, or NULL */
	const char *topologies; /* folder of maps, or NULL */
};

struct ow_figure_claim {
	char *paper, *ours;
	bool agrees;
};

/* Computes the figure. On failure *ret_run is unchanged. */
int ow_figure_compute(const struct ow_figure *figure, const struct ow_figure_options *options,
                      struct ow_figure_run **ret_run, struct ow_error *err);
void ow_figure_free(struct ow_figure_run *run);
const struct ow_figure_claim *ow_figure_claims(const struct ow_figure_run *run, size_t *ret_count);
size_t ow_figure_points(const struct ow_figure_run *run);

/* Writes a row series,x,y,low,high for each point. On failure there is no file at path. */
int ow_figure_write_csv(const struct ow_figure_run *run, const char *path, struct ow_error *err);
/* Plots with gnuplot, as .svg or .png; -ENOENT if gnuplot is not installed. On failure there is no file at path. */
int ow_figure_write_plot(const struct ow_figure_run *run, const char *path, struct ow_error *err);
