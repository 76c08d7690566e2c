/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reconcile/align.h"

/*
 * Private to the alignment: align.c (one call from input to result), align_costs.c (costs of assignments),
 * align_lattice.c (the dynamic programme over all assignments), align_bounds.c (plausible delays).
 */

#define OW_ALIGN_BEAM  120.0 /* states that cost this much more than the best of their row are dropped */
#define OW_ALIGN_EXTRA 60.0  /* price of an arrival that nobody sent */
#define OW_ALIGN_WIDTH 512u  /* most states of a row, .. */
#define OW_ALIGN_CROWD 64u   /* .. and if more packets than that are possible */

/* The states of one arrival: it may be packet low, .., low + count - 1. */
struct ow_align_row {
	uint32_t low, count;
	size_t at; /* index of their costs */
};

/* The state before another one. Row OW_ALIGN_NONE: the assignment starts here. */
struct ow_align_origin {
	uint32_t row, sent;
};

/* One run of the dynamic programme. */
struct ow_align_run {
	struct ow_align_row *row;
	double *cost;
	struct ow_align_origin *origin; /* NULL when the run is not traced */
	size_t states, room;
	/*
	 * By packet: the cheapest assignment that ends with it and skips arrivals from then on, minus the price of all
	 * arrivals up to there; and the row in which it ends.
	 */
	double *far;
	uint32_t *far_row;
};

/* The copies in the order of a run: forwards, or reversed. */
struct ow_align_view {
	const double *sent, *received, *skip; /* skip[j]: the price of skipping all arrivals before j */
	uint32_t sents, receiveds;
	uint32_t first;                  /* the first row to compute: those before are given */
	uint32_t after;                  /* only packets from here on are used */
	double sent_from, received_from; /* what the captures cover */
	double sign;                     /* of the delay */
	bool starts;                     /* an assignment may start here */
	double shortest;                 /* price of a nanosecond more or less than `usual` */
	double usual;
	const double *not_before, *not_after; /* by arrival: the time when it was sent, if the path keeps order */
};

/* The last decided arrivals, with the costs of their states, and the packets that they may be. */
struct ow_align_carry {
	int64_t base_ns;
	double usual;
	bool crowded;
	uint32_t sents, receiveds; /* decided packets among them, which come first; arrivals */
	double received[OW_ALIGN_KEPT];
	uint32_t chosen[OW_ALIGN_KEPT]; /* the packet that the arrival is, or OW_ALIGN_NONE */
	struct ow_align_row row[OW_ALIGN_KEPT];
	double *cost, *sent;
};

struct ow_aligner {
	struct ow_align_model model;
	int64_t base_ns;
	/* Times since base_ns; the packets and arrivals of earlier calls come first. */
	double *sent, *received, *skip;
	double *turned_sent, *turned_received, *turned_skip;
	double *not_before, *not_after, *turned_not_before, *turned_not_after;
	uint32_t sents, receiveds, old_sents, old_receiveds;
	uint32_t sent_room, received_room;
	struct ow_align_run plain, back, choice;
	double *least, *most; /* by packet: the plausible delays */
	uint32_t *queue;      /* of the sliding minimum: packets, .. */
	double *queue_key;    /* .. and what is compared */
	uint32_t *chosen;     /* by arrival: the packet that it is, or OW_ALIGN_NONE */
	bool *forced;         /* by arrival: paired only because both were left */
	double *change;       /* of the delay, from one pair to the next */
	uint32_t changes;
	bool crowded;   /* more packets were possible for an arrival than are compared */
	uint32_t width; /* most states of a row */
	double gap;     /* usual time between two arrivals */
	double usual;   /* the delay that is preferred if nothing else decides */
};

/* A time since the base: exact within a hundred days of it. */
static inline double ow_align_since_base(const struct ow_aligner *aligner, int64_t time_ns)
{
	return (double)((__int128)time_ns - aligner->base_ns);
}

/* align_costs.c */

/* Whether both captures started at about the same time: then the first arrival is the first packet. */
bool ow_align_start_together(const struct ow_aligner *aligner);
/* How many of the first `count` times, which ascend, are below the limit. */
uint32_t ow_align_below(const double *time, uint32_t count, double limit);
/* The same for a limit, of which INT64_MIN and INT64_MAX are infinite. */
double ow_align_offset(const struct ow_aligner *aligner, int64_t time_ns);
/* The price of assigning arrival j to packet i: of the delay itself, and of overtaking packets of the same path. */
double ow_align_pair_cost(const struct ow_align_model *model, const struct ow_align_view *view, uint32_t i, uint32_t j);
/* The price of everything before (i, j), if the assignment starts with it. */
double ow_align_lead(const struct ow_align_model *model, const struct ow_align_view *view, uint32_t i, uint32_t j);
/* Whether an assignment may start with arrival j. */
bool ow_align_may_start(const struct ow_aligner *aligner, const struct ow_align_view *view, uint32_t j);
/* The price of everything after (i, j), if the assignment ends with it; and a lower bound of it for all i. */
double ow_align_tail(const struct ow_aligner *aligner, const struct ow_align_view *view, uint32_t i, uint32_t j);
double ow_align_least_tail(const struct ow_aligner *aligner, uint32_t j);
/* The price of an arrival that is not a packet's first, this long after the previous one. */
double ow_align_skip_cost(const struct ow_aligner *aligner, double since_last);

/* align_lattice.c: all return 0 or -ENOMEM. */

/* Makes room in an array, a pointer to which is given. */
int ow_align_resize(void *array, size_t count, size_t size);
/* Starts a run with the rows of earlier calls: all their states, or the chosen ones. */
int ow_align_begin(struct ow_aligner *aligner, struct ow_align_run *run, const struct ow_align_carry *carry,
                   bool chosen);
/* Computes all rows of the plain run; and of another run, with the same states. */
int ow_align_run_plain(struct ow_aligner *aligner, const struct ow_align_view *view);
int ow_align_run_like_plain(struct ow_aligner *aligner, struct ow_align_run *run, const struct ow_align_view *view,
                            bool turned);
/* The least cost of a state of this row. */
double ow_align_least_of_row(const struct ow_align_run *run, const struct ow_align_row *row);

/* align_bounds.c */

/* The result of all arrivals, after all runs. */
void ow_align_judge(struct ow_aligner *aligner, const struct ow_align_view *forth, struct ow_align_arrival *arrival);
/* The same if not all packets were compared: every delay within the waiting time is plausible. */
void ow_align_judge_crowd(const struct ow_aligner *aligner, struct ow_align_arrival *arrival);
