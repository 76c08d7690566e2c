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

/* q = (B B' + N) p */
static void apply(const struct ow_flow_solver *s, const double *p, double *q)
{
	for (size_t c = 0; c < s->rows; c++)
		q[c] = s->noise[c] * p[c];
	for (size_t f = 0; f < s->columns; f++) {
		double sum = 0;
		for (size_t i = s->start[f]; i < s->start[f + 1]; i++)
			sum += s->b[i] * p[s->row[i]];
		for (size_t i = s->start[f]; i < s->start[f + 1]; i++)
			q[s->row[i]] += s->b[i] * sum;
	}
}

/* x += B' z */
static void correct(struct ow_flow_solver *s, const double *z)
{
	for (size_t f = 0; f < s->columns; f++)
		for (size_t i = s->start[f]; i < s->start[f + 1]; i++)
			s->x[f] += s->b[i] * z[s->row[i]];
}

/* q = B x + N y */
static void explain(const struct ow_flow_solver *s, double *q)
{
	for (size_t c = 0; c < s->rows; c++)
		q[c] = s->noise[c] * s->y[c];
	for (size_t f = 0; f < s->columns; f++)
		for (size_t i = s->start[f]; i < s->start[f + 1]; i++)
			q[s->row[i]] += s->b[i] * s->x[f];
}

/* x = y = 0, and what that leaves of r. */
static void forget(struct ow_flow_solver *s, double *left)
{
	for (size_t f = 0; f < s->columns; f++)
		s->x[f] = 0;
	for (size_t c = 0; c < s->rows; c++) {
		s->y[c] = 0;
		left[c] = s->r[c];
	}
}

/*
 * (B B' + N) z = r - B x - N y, x += B' z. The diagonal of the rows is 1 already, which is the preconditioning. If x is
 * determined almost exactly, y is a difference of large numbers; therefore x is corrected, not computed from y.
 */
static int conjugate_gradients(struct ow_flow_solver *s)
{
	size_t rows = s->rows;
	double *memory = calloc(4 * rows + 1, sizeof *memory);
	if (!memory)
		return -ENOMEM;
	double *z = memory, *r = z + rows, *p = r + rows, *q = p + rows;
	explain(s, q);
	for (size_t c = 0; c < rows; c++)
		r[c] = s->r[c] - q[c];
	/* Messages that diverge lead further away: nothing is a better start. */
	if (!(ow_flow_dot(r, r, rows) <= ow_flow_dot(s->r, s->r, rows)))
		forget(s, r);
	for (size_t c = 0; c < rows; c++)
		p[c] = r[c];
	double tolerance = s->rough ? TOLERANCE_ROUGH : TOLERANCE;
	double now = ow_flow_dot(r, r, rows), target = ow_flow_dot(s->r, s->r, rows) * tolerance * tolerance;
	for (int i = 0; i < STEPS_MAX && now > target; i++) {
		apply(s, p, q);
		double curvature = ow_flow_dot(p, q, rows), before = now;
		if (!(curvature > 0))
			break;
		for (size_t c = 0; c < rows; c++) {
			z[c] += now / curvature * p[c];
			r[c] -= now / curvature * q[c];
		}
		now = ow_flow_dot(r, r, rows);
		for (size_t c = 0; c < rows; c++)
			p[c] = r[c] + now / before * p[c];
	}
	correct(s, z);
	free(memory);
	return 0;
}

/* What each column's best row alone tells: all rows together tell more. */
static void doubt(struct ow_flow_solver *s)
{
	for (size_t f = 0; f < s->columns; f++) {
		double best = 0;
		for (size_t i = s->start[f]; i < s->start[f + 1]; i++)
			best = fmax(best, s->b[i] * s->b[i]);
		s->var[f] = fmax(1 - best, 0);
	}
}

int ow_flow_solve_sparse(struct ow_flow_solver *s)
{
	int settled = ow_flow_messages(s);
	int r = settled < 0 ? settled : conjugate_gradients(s);
	if (!settled)
		doubt(s);
	return r < 0 ? r : settled;
}

static int solve(const struct ow_flow_system *system, const struct ow_flow_prior *prior, bool rough,
                 struct ow_flow_mean *ret)
{
	struct ow_flow_solver s;
	int r = ow_flow_solver_init(system, prior, &s);
	if (r < 0)
		return r;
	s.rough = rough;
	double rows = (double)s.rows;
	r = rows * rows * (rows + (double)s.columns) < DENSE_MAX ? ow_flow_solve_dense(&s) : ow_flow_solve_sparse(&s);
	for (size_t f = 0; r >= 0 && f < system->flows; f++)
		ret[f] = (struct ow_flow_mean){prior->mean[f] + sqrt(prior->var[f]) * s.x[f], prior->var[f] * s.var[f]};
	ow_flow_solver_done(&s);
	return r;
}

/*
 * With about as many counters as flows, and lost packets in many of them, the counters nearly determine the flows: the
 * messages diverge, and after any number of steps the means are wrong by more than their variances. With the times of lost
 * packets as noise of the counters the system is not as close to singular.
 */
int ow_flows_banks(const struct ow_flow_system *system, const struct ow_flow_prior *prior, bool rough,
                   struct ow_flow_mean *ret)
{
	int r = solve(system, prior, rough, ret);
	if (r != 0 || !system->lost)
		return r < 0 ? r : 0;
	struct ow_flow_system noisy = *system;
	noisy.lost = NULL;
	noisy.links = 0;
	r = solve(&noisy, prior, rough, ret);
	return r < 0 ? r : 0;
}
