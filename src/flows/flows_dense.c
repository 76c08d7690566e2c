/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Solves small systems exactly: M = B B' + N = L L' with the largest pivot first. With z_f = L^-1 b_f and w = L^-1 r
 * the prediction is x_f = z_f w and its variance 1 - z_f z_f. All banks have the same sum, so M is mostly singular: the
 * elimination ends where only rounding is left.
 */
#include "flows/flows_solver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* With a diagonal of 1, a smaller pivot is rounding. */
#define PIVOT_MIN 1e-10

struct dense {
	size_t rows, rank;
	size_t *order; /* the first `rank` are the pivots */
	double *M;     /* rows * rows; then L */
	double *w, *column;
};

/* v *= L^-1, in the order of pivots. */
static void forward(const struct dense *d, double *v)
{
	for (size_t i = 0; i < d->rank; i++) {
		const double *row = &d->M[d->order[i] * d->rows];
		double sum = v[d->order[i]];
		for (size_t k = 0; k < i; k++)
			sum -= row[k] * v[d->order[k]];
		v[d->order[i]] = sum / row[i];
	}
}

/* Factorises M into L: row by row, entry k belongs to pivot k. */
static int factorise(struct dense *d, double *diagonal)
{
	double *L = calloc(d->rows * d->rows + 1, sizeof *L);
	if (!L)
		return -ENOMEM;
	for (size_t i = 0; i < d->rows; i++) {
		d->order[i] = i;
		diagonal[i] = d->M[i * d->rows + i];
	}
	for (; d->rank < d->rows; d->rank++) {
		size_t k = d->rank, best = k;
		for (size_t i = k + 1; i < d->rows; i++)
			if (diagonal[d->order[i]] > diagonal[d->order[best]])
				best = i;
		size_t pivot = d->order[best];
		d->order[best] = d->order[k];
		d->order[k] = pivot;
		if (!(diagonal[pivot] > PIVOT_MIN))
			break;
		const double *own = &L[pivot * d->rows];
		double root = sqrt(diagonal[pivot]);
		for (size_t i = k + 1; i < d->rows; i++) {
			size_t at = d->order[i];
			double *row = &L[at * d->rows], sum = d->M[at * d->rows + pivot];
			for (size_t j = 0; j < k; j++)
				sum -= row[j] * own[j];
			row[k] = sum / root;
			diagonal[at] -= row[k] * row[k];
		}
		L[pivot * d->rows + k] = root;
	}
	free(d->M);
	d->M = L;
	return 0;
}

static void fill(const struct ow_flow_solver *s, struct dense *d)
{
	for (size_t c = 0; c < d->rows; c++)
		d->M[c * d->rows + c] = s->noise[c];
	for (size_t f = 0; f < s->columns; f++)
		for (size_t i = s->start[f]; i < s->start[f + 1]; i++)
			for (size_t j = s->start[f]; j < s->start[f + 1]; j++)
				d->M[s->row[i] * d->rows + s->row[j]] += s->b[i] * s->b[j];
}

static void predict(struct ow_flow_solver *s, struct dense *d)
{
	for (size_t c = 0; c < d->rows; c++)
		d->w[c] = s->r[c];
	forward(d, d->w);
	for (size_t f = 0; f < s->columns; f++) {
		for (size_t c = 0; c < d->rows; c++)
			d->column[c] = 0;
		for (size_t i = s->start[f]; i < s->start[f + 1]; i++)
			d->column[s->row[i]] += s->b[i];
		forward(d, d->column);
		s->x[f] = 0;
		s->var[f] = 1;
		for (size_t i = 0; i < d->rank; i++) {
			double z = d->column[d->order[i]];
			s->x[f] += z * d->w[d->order[i]];
			s->var[f] -= z * z;
		}
		s->var[f] = fmax(s->var[f], 0);
	}
}

int ow_flow_solve_dense(struct ow_flow_solver *s)
{
	struct dense d = {.rows = s->rows};
	double *diagonal = calloc(d.rows + 1, sizeof *diagonal);
	int r = -ENOMEM;
	d.order = calloc(d.rows + 1, sizeof *d.order);
	d.M = calloc(d.rows * d.rows + 1, sizeof *d.M);
	d.w = calloc(d.rows + 1, sizeof *d.w);
	d.column = calloc(d.rows + 1, sizeof *d.column);
	if (diagonal && d.order && d.M && d.w && d.column) {
		fill(s, &d);
		r = factorise(&d, diagonal);
		if (r >= 0) {
			predict(s, &d);
			r = 1;
		}
	}
	free(diagonal);
	free(d.order);
	free(d.M);
	free(d.w);
	free(d.column);
	return r;
}
