/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between flows and counters. A flow tells each of its counters what its other counters know about it (mean
 * and variance); a counter tells each of its flows what is left after the means of its other flows are subtracted. On
 * random banks this converges within about twenty rounds, while conjugate gradients take thousands of steps: counters
 * that one large flow dominates in every bank make B B' ill-conditioned, but in the graph they are close to each other.
 */
#include "flows/flows_solver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/*
 * Most and fewest rounds: variances need some rounds to reach the neighbours' neighbours. With lost packets and about as
 * many counters as flows it takes 60 to 120; what has not converged after 300 diverges.
 */
#define ROUNDS_MAX 300
#define ROUNDS_MIN 6
/* Diverges, if the means move by more of their standard deviations than this after the first rounds. */
#define DIVERGED 1e6
/* Converged if the means move by less than this many of their own standard deviations (root mean square). */
#define SETTLED       1e-3
#define SETTLED_ROUGH 3e-2
/* The precision of a counter is limited to this share of the flow's part of it, because of rounding. */
#define PRECISION 1e-12

struct message {
	double mean, var;
};

struct row {
	double rest; /* r_c minus all means told to it */
	double var;  /* noise plus all variances told to it */
};

static void collect(const struct ow_flow_solver *s, const struct message *message, struct row *row)
{
	for (size_t c = 0; c < s->rows; c++)
		row[c] = (struct row){s->r[c], s->noise[c]};
	for (size_t i = 0; i < s->start[s->columns]; i++) {
		struct row *to = &row[s->row[i]];
		to->rest -= s->b[i] * message[i].mean;
		to->var += s->b[i] * s->b[i] * message[i].var;
	}
}

/* A flow reads the messages of its counters and answers them at once. Returns how far its mean moved, in variances. */
static double visit(struct ow_flow_solver *s, size_t flow, struct message *message, struct row *row)
{
	/* The knowledge of each counter: precision, and precision times mean. */
	struct ow_flow_word {
		double precision, pull;
	} word[OW_COLATE_LAYERS_MAX * OW_COLATE_SPREAD_MAX + 2 + OW_REPAIR_BANKS];
	size_t first = s->start[flow], slots = s->start[flow + 1] - first;
	const uint32_t *at = &s->row[first];
	const double *b = &s->b[first];
	message += first;
	double precision = 1, pull = 0;
	for (size_t j = 0; j < slots; j++) {
		const struct row *from = &row[at[j]];
		double own = b[j] * b[j];
		if (!(own > 0)) {
			word[j] = (struct ow_flow_word){0};
			continue;
		}
		double others = fmax(from->var - own * message[j].var, PRECISION * own);
		word[j].precision = own / others;
		word[j].pull = b[j] * (from->rest + b[j] * message[j].mean) / others;
		precision += word[j].precision;
		pull += word[j].pull;
	}
	double moved = pull / precision - s->x[flow];
	s->x[flow] = pull / precision;
	s->var[flow] = 1 / precision;
	for (size_t j = 0; j < slots; j++) {
		double known = fmax(precision - word[j].precision, 1);
		struct message told = {(pull - word[j].pull) / known, 1 / known};
		struct row *to = &row[at[j]];
		to->rest -= b[j] * (told.mean - message[j].mean);
		to->var += b[j] * b[j] * (told.var - message[j].var);
		message[j] = told;
	}
	return moved * moved * precision;
}

int ow_flow_messages(struct ow_flow_solver *s)
{
	size_t entries = s->start[s->columns];
	struct message *message = calloc(entries + 1, sizeof *message);
	struct row *row = calloc(s->rows + 1, sizeof *row);
	int round = 0, r = -ENOMEM;
	if (!message || !row)
		goto out;
	for (size_t i = 0; i < entries; i++)
		message[i].var = 1;
	double settled_at = s->rough ? SETTLED_ROUGH : SETTLED;
	double moved = INFINITY, limit = settled_at * settled_at * (double)s->columns;
	while (round < ROUNDS_MAX && (moved > limit || round < ROUNDS_MIN) &&
	       (moved < DIVERGED * (double)s->columns || round < ROUNDS_MIN)) {
		/* Computed again in each round, because adding and subtracting leaves rounding errors. */
		collect(s, message, row);
		moved = 0;
		for (size_t i = 0; i < s->columns; i++)
			moved += visit(s, s->order[i], message, row);
		round++;
	}
	collect(s, message, row);
	/* Before convergence y still gives a consistent x = B' y; if the iteration diverges, it does not. */
	bool near = moved <= (double)s->columns, settled = moved <= limit;
	for (size_t c = 0; c < s->rows; c++)
		s->y[c] = near && row[c].var > 0 ? row[c].rest / row[c].var : 0;
	for (size_t f = 0; !settled && f < s->columns; f++) {
		s->x[f] = 0;
		for (size_t i = s->start[f]; i < s->start[f + 1]; i++)
			s->x[f] += s->b[i] * s->y[s->row[i]];
	}
	r = settled;
out:
	free(message);
	free(row);
	return r;
}
