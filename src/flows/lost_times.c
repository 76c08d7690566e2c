/* SPDX-License-Identifier: Apache-2.0 */
/* Least squares for the times of lost packets: lost_times.h. */
#include "flows/lost_times.h"

#include "flows/flows_private.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define STEPS_MAX  3000
#define TOLERANCE  1e-10
#define VAR_ROUNDS 100
/* Times are rounded to units, at both points: the variance of their difference, of one packet. */
#define ROUNDING (1.0 / 6)
/* A cell without common packets would have no noise at all. */
#define COMMON_MIN 0.5

struct system {
	const struct ow_lost_place *place;
	size_t count, cells;
	double *n;        /* common packets of each cell */
	double *weight;   /* 1 / n_j; 0 = not used */
	double *left;     /* of each cell */
	double *model;    /* of each cell: room for a result */
	double mean_part; /* sum w n^2: the diagonal of the mean delay */
};

/* model = M x; x[count] is the mean delay. */
static void apply(const struct system *s, const double *x)
{
	for (size_t j = 0; j < s->cells; j++)
		s->model[j] = -s->n[j] * x[s->count];
	for (size_t l = 0; l < s->count; l++)
		for (unsigned b = 0; b < OW_REPAIR_BANKS; b++)
			s->model[s->place[l].cell[b]] += s->place[l].sign * x[l];
}

/* y = M' W v */
static void back(const struct system *s, const double *v, double *y)
{
	double mean = 0;
	for (size_t j = 0; j < s->cells; j++)
		mean -= s->weight[j] * s->n[j] * v[j];
	for (size_t l = 0; l < s->count; l++) {
		double sum = 0;
		for (unsigned b = 0; b < OW_REPAIR_BANKS; b++) {
			uint32_t j = s->place[l].cell[b];
			sum += s->weight[j] * v[j];
		}
		y[l] = s->place[l].sign * sum;
	}
	y[s->count] = mean;
}

/* z = r divided by the diagonal of M' W M. */
static void precondition(const struct system *s, const double *r, double *z)
{
	for (size_t l = 0; l < s->count; l++) {
		double diagonal = 0;
		for (unsigned b = 0; b < OW_REPAIR_BANKS; b++)
			diagonal += s->weight[s->place[l].cell[b]];
		z[l] = diagonal > 0 ? r[l] / diagonal : 0;
	}
	z[s->count] = s->mean_part > 0 ? r[s->count] / s->mean_part : 0;
}

/* Conjugate gradients on the normal equations. x: count + 1 zeros. */
static int solve(const struct system *s, double *x)
{
	size_t size = s->count + 1;
	double *memory = calloc(4 * size, sizeof *memory);
	if (!memory)
		return -ENOMEM;
	double *r = memory, *z = r + size, *p = z + size, *q = p + size;
	back(s, s->left, r);
	precondition(s, r, z);
	for (size_t i = 0; i < size; i++)
		p[i] = z[i];
	double now = ow_flow_dot(r, z, size), target = now * TOLERANCE * TOLERANCE;
	for (int step = 0; step < STEPS_MAX && now > target; step++) {
		apply(s, p);
		back(s, s->model, q);
		double curvature = ow_flow_dot(p, q, size), before = now;
		if (!(curvature > 0))
			break;
		for (size_t i = 0; i < size; i++) {
			x[i] += now / curvature * p[i];
			r[i] -= now / curvature * q[i];
		}
		precondition(s, r, z);
		now = ow_flow_dot(r, z, size);
		for (size_t i = 0; i < size; i++)
			p[i] = z[i] + now / before * p[i];
	}
	free(memory);
	return 0;
}

/* The variance of a delay, from what x does not explain. INFINITY: the cells tell nothing about it. */
static double variance_of(const struct system *s, const double *x)
{
	double sum = 0, used = 0;
	apply(s, x);
	for (size_t j = 0; j < s->cells; j++) {
		double off = s->left[j] - s->model[j];
		sum += s->weight[j] * off * off;
		used += s->weight[j] > 0;
	}
	double freedom = used - (double)s->count - 1;
	return freedom >= 1 ? sum / freedom + ROUNDING : INFINITY;
}

/* What a cell knows of its packets. */
struct known {
	double var;      /* sum of those that are known */
	uint32_t others; /* packets of which nothing is known */
};

/* The precision with which each cell tells a packet's time, and the sum of these. */
static double listen(const struct system *s, const struct known *known, double variance, size_t l, const double *from,
                     double told[OW_REPAIR_BANKS])
{
	double all = 0;
	for (unsigned b = 0; b < OW_REPAIR_BANKS; b++) {
		uint32_t j = s->place[l].cell[b];
		bool own = from[b] > 0;
		double var = s->n[j] * variance + fmax(known[j].var - (own ? 1 / from[b] : 0), 0);
		told[b] = s->weight[j] > 0 && known[j].others == !own ? 1 / var : 0;
		all += told[b];
	}
	return all;
}

/*
 * The variance of each time: messages between packets and cells, which are exact on a graph without cycles. A cell
 * knows the time of one of its packets as well as those of the others are known.
 */
static int variances(const struct system *s, double variance, struct ow_lost_time *time)
{
	/* from: the precision of a packet without what this cell tells of it; at first nothing is known. */
	double *from = calloc(s->count * OW_REPAIR_BANKS + 1, sizeof *from), told[OW_REPAIR_BANKS];
	struct known *known = calloc(s->cells + 1, sizeof *known);
	int r = from && known ? 0 : -ENOMEM;
	for (int round = 0; r == 0 && round < VAR_ROUNDS; round++) {
		for (size_t j = 0; j < s->cells; j++)
			known[j] = (struct known){0};
		for (size_t i = 0; i < s->count * OW_REPAIR_BANKS; i++) {
			struct known *of = &known[s->place[i / OW_REPAIR_BANKS].cell[i % OW_REPAIR_BANKS]];
			of->var += from[i] > 0 ? 1 / from[i] : 0;
			of->others += !(from[i] > 0);
		}
		for (size_t l = 0; l < s->count; l++) {
			double *own = &from[l * OW_REPAIR_BANKS], all = listen(s, known, variance, l, own, told);
			for (unsigned b = 0; b < OW_REPAIR_BANKS; b++)
				own[b] = all - told[b];
			time[l].var = all > 0 ? 1 / all : INFINITY;
		}
	}
	free(from);
	free(known);
	return r;
}

static void fill(struct system *s, const struct ow_lost_cell *cell)
{
	for (size_t j = 0; j < s->cells; j++) {
		s->n[j] = cell[j].common;
		s->left[j] = cell[j].left;
	}
	for (size_t l = 0; l < s->count; l++)
		for (unsigned b = 0; b < OW_REPAIR_BANKS; b++)
			s->n[s->place[l].cell[b]] -= s->place[l].sign < 0;
	for (size_t j = 0; j < s->cells; j++) {
		s->n[j] = fmax(s->n[j], COMMON_MIN);
		s->weight[j] = cell[j].read ? 1 / s->n[j] : 0;
		s->mean_part += s->weight[j] * s->n[j] * s->n[j];
	}
}

int ow_lost_times(struct ow_lost_cell *cell, size_t cells, const struct ow_lost_place *place, size_t count,
                  struct ow_lost_time *ret_time)
{
	struct system s = {.place = place, .count = count, .cells = cells};
	double *memory = calloc(4 * cells + count + 1, sizeof *memory);
	if (!memory)
		return -ENOMEM;
	s.n = memory;
	s.weight = s.n + cells;
	s.left = s.weight + cells;
	s.model = s.left + cells;
	double *x = s.model + cells;
	fill(&s, cell);
	int r = solve(&s, x);
	double variance = variance_of(&s, x);
	if (r == 0)
		r = variances(&s, variance, ret_time);
	for (size_t l = 0; r == 0 && l < count; l++) {
		ret_time[l].correction = fabs(x[l]) < 0x1p62 ? llround(x[l]) : 0;
		x[l] = (double)ret_time[l].correction;
	}
	apply(&s, x);
	for (size_t j = 0; j < cells; j++) {
		cell[j].left -= s.model[j];
		cell[j].var = s.n[j] * variance;
	}
	free(memory);
	return r;
}
