/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lab/relay.h"
#include "report/style.h"
#include <stdio.h>

/* What `oneway lab` does, and its parts: run.c and start.c (processes), results.c, show.c, plot.c. */

enum ow_lab_method { OW_LAB_FOLD, OW_LAB_RDA };

struct ow_lab_options {
	int64_t length_ns; /* of the traffic */
	int64_t interval_ns, wait_ns;
	struct ow_impair_options impair;
	bool nat;
	double rate_pps, reverse; /* of the UDP packets; the share of them that B sends */
	bool constant_rate;
	struct ow_sim_size size;
	uint32_t flows;
	uint64_t tcp, tcp_reverse; /* streams of iperf3 */
	enum ow_lab_method method;
	bool exact;           /* the points exchange all times */
	bool kernel;          /* the points record in the kernel */
	const char *captures; /* folder for captures of both hosts; NULL = none */
	const char *plot;     /* picture; NULL = none */
	const char *store;    /* folder for results.db and truth.json, a whole path; NULL = none */
	bool json;
	uint64_t seed;
	FILE *out; /* for the rows and the summary */
	struct ow_style style;
	void (*warn)(const char *text);
	void (*interrupted)(void); /* the traffic has ended early; its results are still to come */
};

/* Runs the lab and prints. */
int ow_lab_run(const struct ow_lab_options *options, struct ow_error *err);

/* Results compared with the truth. */

/*
 * The result of a point for one interval and direction, or for the run, as far as the table needs it. NAN: not known.
 */
struct ow_lab_measured {
	enum ow_direction direction;
	int64_t start_ns;
	bool final, unknown;
	struct ow_result result; /* late packets are matched */
	uint64_t pending, bytes;
	uint64_t ring_drops;
	bool has_delay; /* else result.delay is not valid */
	struct ow_lab_cost {
		uint64_t bytes;
		double ready_ns, transmit_ns, decode_ns, missing_ns, erase_ns, compute_ns;
	} cost;
	char cause[160];
	char *text; /* the JSON object as it came; to be freed */
};

/* Reads a line of a point. 1: a result, 2: the summary of a run, 0: something else; or a negative errno. */
enum ow_lab_line { OW_LAB_OTHER, OW_LAB_RESULT, OW_LAB_TOTAL };
int ow_lab_parse(const char *line, struct ow_lab_measured *ret_measured, struct ow_error *err);

struct ow_lab_results;

/* Called in order of time for each direction, once result and truth of an interval are known; final results only. */
struct ow_lab_row {
	enum ow_direction direction;
	const struct ow_lab_measured *measured;
	const struct ow_wiretruth_report *truth; /* NULL: the wire has no truth about this interval */
	double first_ready_ns;                   /* of the provisional result */
};
typedef void (*ow_lab_row_sink)(void *arg, const struct ow_lab_row *row);

int ow_lab_results_create(ow_lab_row_sink sink, void *arg, struct ow_lab_results **ret_results);
void ow_lab_results_free(struct ow_lab_results *results);
/* Takes ownership of the text. 0 or -ENOMEM. */
int ow_lab_results_measured(struct ow_lab_results *results, struct ow_lab_measured *measured);
int ow_lab_results_truth(struct ow_lab_results *results, enum ow_direction direction,
                         const struct ow_wiretruth_report *truth);
/* Reports the entries that still wait for a result or for the truth. */
void ow_lab_results_finish(struct ow_lab_results *results);

/* The picture. */
struct ow_lab_plot;
int ow_lab_plot_create(struct ow_lab_plot **ret_plot);
void ow_lab_plot_free(struct ow_lab_plot *plot);
/* start_ns: the start of the time axis. 0 or -ENOMEM. */
int ow_lab_plot_add(struct ow_lab_plot *plot, const struct ow_lab_row *row, int64_t start_ns);
/* The means as a line of bars for a terminal. */
void ow_lab_plot_sparks(const struct ow_lab_plot *plot, FILE *out, unsigned width, bool utf8);
/* Draws with gnuplot, as the name ends in .svg or .png. On failure there is no file at path. */
int ow_lab_plot_write(const struct ow_lab_plot *plot, const char *path, struct ow_error *err);

/* Printed output. */
struct ow_lab_show;
int ow_lab_show_create(const struct ow_lab_options *options, struct ow_lab_show **ret_show);
void ow_lab_show_free(struct ow_lab_show *show);
/* Before the traffic. */
void ow_lab_show_start(struct ow_lab_show *show, int64_t start_ns);
void ow_lab_show_row(void *show, const struct ow_lab_row *row);

struct ow_lab_end {
	struct ow_relay_report total[OW_DIRECTIONS];
	const struct ow_lab_measured *measured[OW_DIRECTIONS]; /* the points' own summary; NULL = none arrived */
	uint64_t kernel_drops;                                 /* frames, on any interface of the lab */
	uint64_t capture_drops;                                /* frames that are not in the captures */
	bool interrupted;
};
/* The summary, and the picture. */
int ow_lab_show_end(struct ow_lab_show *show, const struct ow_lab_end *end, struct ow_error *err);
