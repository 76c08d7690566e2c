/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All banks together (formulas 3.8): x = B' (B B' + N)^-1 r, see flows_solver.h. Messages between flows and counters
 * give variances and mostly the solution; conjugate gradients correct the rest, which is everything if the messages do
 * not converge. A step costs one pass over the entries.
 */
#include "flows/flows_solver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The iteration ends when the residual's norm is below this share of r's, or after the last step. */
#define TOLERANCE       1e-3
#define TOLERANCE_ROUGH 3e-2
#define STEPS_MAX       600
/*
 * The largest number of operations of an exact solution, about a tenth of a second: in small systems short cycles are
 * common.
 */
#define DENSE_MAX 2e8
/* A row has variance 1. An unexplained part below this is rounding, not noise. */
#define ROUNDING 1e-12

/* q = (B B' + N) p */
static void apply(const struct ow_flow_solver *s, const double *p, double *q)
{
	const struct ow_flow_entry *e = s->system->entry;
	const double *b = s->b;
	uint32_t slots = s->system->slots;
	for (size_t c = 0; c < s->system->rows; c++)
		q[c] = s->noise[c] * p[c];
	for (size_t f = 0; f < s->system->flows; f++, e += slots, b += slots) {
		double sum = 0;
		for (uint32_t j = 0; j < slots; j++)
			sum += b[j] * p[e[j].row];
		for (uint32_t j = 0; j < slots; j++)
			q[e[j].row] += b[j] * sum;
	}
}

/* x += B' z */
static void correct(struct ow_flow_solver *s, const double *z)
{
	const struct ow_flow_entry *e = s->system->entry;
	const double *b = s->b;
	uint32_t slots = s->system->slots;
	for (size_t f = 0; f < s->system->flows; f++, e += slots, b += slots)
		for (uint32_t j = 0; j < slots; j++)
			s->x[f] += b[j] * z[e[j].row];
}

/* q = B x + N y */
static void explain(const struct ow_flow_solver *s, double *q)
{
	uint32_t slots = s->system->slots;
	for (size_t c = 0; c < s->system->rows; c++)
		q[c] = s->noise[c] * s->y[c];
	for (size_t i = 0; i < s->entries; i++)
		q[s->system->entry[i].row] += s->b[i] * s->x[i / slots];
}

static double dot(const double *a, const double *b, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += a[i] * b[i];
	return sum;
}

/*
 * (B B' + N) z = r - B x - N y, x += B' z. The diagonal of the rows is 1 already, which is the preconditioning. If x is
 * determined almost exactly, y is a difference of large numbers; therefore x is corrected, not computed from y.
 */
static int conjugate_gradients(struct ow_flow_solver *s)
{
	size_t rows = s->system->rows;
	double *memory = calloc(4 * rows + 1, sizeof *memory);
	if (!memory)
		return -ENOMEM;
	double *z = memory, *r = z + rows, *p = r + rows, *q = p + rows;
	explain(s, q);
	for (size_t c = 0; c < rows; c++)
		p[c] = r[c] = s->r[c] - q[c];
	double tolerance = s->rough ? TOLERANCE_ROUGH : TOLERANCE;
	double now = dot(r, r, rows), target = dot(s->r, s->r, rows) * tolerance * tolerance;
	for (int i = 0; i < STEPS_MAX && now > target; i++) {
		apply(s, p, q);
		double curvature = dot(p, q, rows), before = now;
		if (!(curvature > 0))
			break;
		for (size_t c = 0; c < rows; c++) {
			z[c] += now / curvature * p[c];
			r[c] -= now / curvature * q[c];
		}
		now = dot(r, r, rows);
		for (size_t c = 0; c < rows; c++)
			p[c] = r[c] + now / before * p[c];
	}
	correct(s, z);
	free(memory);
	return 0;
}

/* Sorts by powers of two of p, the largest first, so that flows that dominate a counter are processed early. */
static void sort_flows(struct ow_flow_solver *s)
{
	enum { KINDS = 64 };
	size_t first[KINDS + 1] = {0}, flows = s->system->flows;
	const struct ow_flow_load *flow = s->system->data->flow;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t f = 0; f < flows; f++) {
			int e = flow[f].packets >= 1 ? ilogb(flow[f].packets) : 0;
			size_t *at = &first[KINDS - 1 - (e < KINDS ? e : KINDS - 1)];
			if (pass)
				s->order[at[0]++] = (uint32_t)f;
			else
				at[1]++;
		}
		for (int k = 0; !pass && k < KINDS; k++)
			first[k + 1] += first[k];
	}
}

static void scale_rows(struct ow_flow_solver *s, const struct ow_flow_prior *prior)
{
	const struct ow_flow_system *system = s->system;
	double *scale = s->y;
	ow_flow_residuals(system, prior, s->r, scale);
	for (size_t c = 0; c < system->rows; c++) {
		bool used = system->used[c] && scale[c] > 0;
		scale[c] = used ? 1 / sqrt(scale[c] + system->shared[c]) : 0;
		s->r[c] *= scale[c];
		s->noise[c] = used;
	}
	for (size_t f = 0; f < system->flows; f++) {
		double deviation = sqrt(prior->var[f]);
		for (uint32_t j = 0; j < system->slots; j++) {
			size_t i = f * system->slots + j;
			uint32_t c = system->entry[i].row;
			s->b[i] = system->entry[i].load * deviation * scale[c];
			s->noise[c] -= s->b[i] * s->b[i];
		}
	}
	for (size_t c = 0; c < system->rows; c++) {
		s->noise[c] = s->noise[c] > ROUNDING ? s->noise[c] : 0;
		s->y[c] = 0;
	}
}

static int allocate(struct ow_flow_solver *s)
{
	/* One more of each, so that an empty system is possible. */
	size_t rows = s->system->rows + 1, flows = s->system->flows + 1;
	s->entries = s->system->flows * s->system->slots;
	s->b = calloc(s->entries + 1, sizeof *s->b);
	s->noise = calloc(rows, sizeof *s->noise);
	s->r = calloc(rows, sizeof *s->r);
	s->y = calloc(rows, sizeof *s->y);
	s->x = calloc(flows, sizeof *s->x);
	s->var = calloc(flows, sizeof *s->var);
	s->order = calloc(flows, sizeof *s->order);
	return s->b && s->noise && s->r && s->y && s->x && s->var && s->order ? 0 : -ENOMEM;
}

void ow_flow_solver_done(struct ow_flow_solver *s)
{
	free(s->b);
	free(s->noise);
	free(s->r);
	free(s->y);
	free(s->x);
	free(s->var);
	free(s->order);
}

int ow_flow_solver_init(const struct ow_flow_system *system, const struct ow_flow_prior *prior,
                        struct ow_flow_solver *ret_solver)
{
	struct ow_flow_solver s = {.system = system};
	if (allocate(&s) < 0) {
		ow_flow_solver_done(&s);
		return -ENOMEM;
	}
	scale_rows(&s, prior);
	sort_flows(&s);
	*ret_solver = s;
	return 0;
}

int ow_flow_solve_sparse(struct ow_flow_solver *s)
{
	int r = ow_flow_messages(s);
	return r < 0 ? r : conjugate_gradients(s);
}

int ow_flows_banks(const struct ow_flow_system *system, const struct ow_flow_prior *prior, bool rough,
                   struct ow_flow_mean *ret)
{
	struct ow_flow_solver s;
	int r = ow_flow_solver_init(system, prior, &s);
	if (r < 0)
		return r;
	s.rough = rough;
	double rows = (double)system->rows;
	r = rows * rows * (rows + (double)system->flows) < DENSE_MAX ? ow_flow_solve_dense(&s)
	                                                             : ow_flow_solve_sparse(&s);
	for (size_t f = 0; r >= 0 && f < system->flows; f++)
		ret[f] = (struct ow_flow_mean){prior->mean[f] + sqrt(prior->var[f]) * s.x[f], prior->var[f] * s.var[f]};
	ow_flow_solver_done(&s);
	return r;
}
