/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/flows.h"
#include "packet/flow_select.h"
#include <stdio.h>

/* Estimates for each flow from recordings of two or more points, in the order in which packets pass them. */
#define OW_FLOW_POINTS_MAX 16
/* Legs between neighbouring points, and from the first to the last. */
#define OW_FLOW_LEGS_MAX OW_FLOW_POINTS_MAX

struct ow_flow_point {
	const char *path, *damage; /* damage: NULL = none */
	size_t epochs;             /* number of epochs used */
	int64_t begin_ns, end_ns;  /* the time that they cover */
	uint64_t packets;
	uint8_t flaws; /* of ow_epoch_flaw */
	bool counted;  /* it has flow counts */
	uint64_t flows, uncounted;
	double counter_bits, count_bits; /* per packet, in the file; NAN if not known */
};

struct ow_flow_leg {
	unsigned from, to;        /* points */
	uint64_t counters, clean; /* counters with packets at either point; counters with the same packets at both */
	/* Packets that only one point has, as far as they could be found, and were taken out of the counters. */
	bool searched;        /* the recordings tell of such packets */
	uint64_t lost, extra; /* only at `from`; only at `to` */
	uint64_t uncovered;   /* of these: from before the first or after the last packet of the other point */
	uint64_t in_flight;   /* of these: perhaps in flight at an end of the time that was asked for */
	/* About so many packets of one point are of times for which the other one has no epoch, besides `uncovered`. */
	double unmet_from, unmet_to;
	uint64_t unread;   /* others differ as well: parts of the tables that could not be read */
	uint64_t repaired; /* of `clean`: counters that were not before */
};

struct ow_flow_answer {
	struct ow_flow_key key;
	uint64_t packets;                        /* received by the last point; 0 = the flow never arrived */
	uint64_t sent;                           /* UINT64_MAX = not known */
	const struct ow_flow_estimate *estimate; /* one for each leg */
	/* Of a group: its flows, and the packets of those with an estimate, over the last leg. */
	uint64_t flows, estimated_packets;
};

struct ow_flow_answers {
	struct ow_flow_select select;
	const char *counts; /* the file that flow counts come from; NULL = the recordings */
	struct ow_flow_point point[OW_FLOW_POINTS_MAX];
	unsigned points;
	struct ow_flow_leg leg[OW_FLOW_LEGS_MAX]; /* the last leg is from the first to the last point */
	unsigned legs;
	struct ow_flow_answer *flow;
	size_t flows; /* number of all flows, also of those that never arrived */
	struct ow_flow_estimate *estimates;
	struct ow_flow_spread *spread[OW_FLOW_LEGS_MAX]; /* that the estimates point to */
	size_t estimated;                                /* number of flows with an estimated mean over the last leg */
	uint64_t never_arrived;                          /* flows (or groups) that only the first point counted */
	uint64_t backwards;     /* flows with negative means, if chance does not explain them */
	double counted_packets; /* packets of all flows by the counts; compared with the last point's packets */
	int64_t offset_ns;      /* was added to the last point's times */
	bool grouped;           /* flows are groups of flows */
	bool lost;              /* sorted by lost packets */
	bool worst;             /* sorted by what is certain: by the lower end of the interval */
};

/* The estimate for the whole path. */
static inline const struct ow_flow_estimate *ow_flow_answer_whole(const struct ow_flow_answers *answers,
                                                                  const struct ow_flow_answer *flow)
{
	return &flow->estimate[answers->legs - 1];
}

/* Packets of a flow that did not arrive; UINT64_MAX = not known. */
static inline uint64_t ow_flow_answer_lost(const struct ow_flow_answer *flow)
{
	if (flow->sent == UINT64_MAX)
		return UINT64_MAX;
	return flow->sent > flow->packets ? flow->sent - flow->packets : 0;
}

void ow_flow_answers_done(struct ow_flow_answers *answers);
/* The slowest first, or those that are certainly slow, flows without a mean last, the largest of them first; or by lost packets. */
void ow_flow_answers_sort(struct ow_flow_answers *answers);

/* The number of flows with negative means, exact ones and intervals below 0; 0 if chance explains them all. */
uint64_t ow_flow_answers_backwards(const struct ow_flow_answers *answers);

/* Warnings: sentence i of 0, 1, ...; false if there are no more. */
#define OW_FLOW_WARNING 500
bool ow_flow_answers_warning(const struct ow_flow_answers *answers, unsigned i, char line[OW_FLOW_WARNING]);
/* For who shows means and no losses: the same answers (not to be freed), without warnings of packets that may not be lost. */
struct ow_flow_answers ow_flow_answers_of_means(const struct ow_flow_answers *answers);

/* The rows to show, in their order. */
struct ow_flow_rows {
	const struct ow_flow_answer **row;
	size_t rows;
	uint64_t least;  /* smallest number of packets of a flow; 0 = no limit */
	size_t eligible; /* number of flows from which these rows were selected */
	bool one;        /* the user asked for this one flow */
};

void ow_report_flow_answers_text(FILE *out, const struct ow_flow_answers *answers, const struct ow_flow_rows *rows,
                                 int width, bool colour);
/* The worst flows of one interval: a line each, after a heading before the first one. cut: names that are too long for it
 * get a line of their own. */
void ow_report_flow_worst_heading(FILE *out, int width);
void ow_report_flow_worst(FILE *out, int64_t begin_ns, const struct ow_flow_answers *answers,
                          const struct ow_flow_rows *rows, int width, bool cut);
/* The same if nothing can be said of it. */
void ow_report_flow_worst_none(FILE *out, int64_t begin_ns, const char *why, int width);
/* The worst flows of an interval as one line of JSON, {"worst_flows": ...}. */
void ow_report_flow_worst_json(FILE *out, int64_t begin_ns, int64_t end_ns, const struct ow_flow_answers *answers,
                               const struct ow_flow_rows *rows);
void ow_report_flow_answers_json(FILE *out, const struct ow_flow_answers *answers, const struct ow_flow_rows *rows);
/* Writes a row for each flow and leg. */
void ow_report_flow_answers_csv(FILE *out, const struct ow_flow_answers *answers, const struct ow_flow_rows *rows);
/* Plots the means of the first rows with their intervals, with gnuplot. -ENODATA if there is nothing to plot. */
int ow_report_flow_answers_plot(const struct ow_flow_answers *answers, const struct ow_flow_rows *rows,
                                const char *path, struct ow_error *err);
