/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The delay over time. Flows that were active at the same time shared the queue, so a flow's prior mean is the mean
 * of a curve g(t) between its first and its last packet. The curve is a staircase of 1, 2, 4, .. steps:
 *     D_c = sum_f n_cf (mean of g over f) + deviations of variance s_c
 * Each number of steps begins with the curve of half as many, g0, and changes its logarithm: it stays positive, even
 * if idle and congested times differ by orders of magnitude. With u = ln(g / g0) of prior variance 1, each
 * round solves the linearised least squares
 *     (G X' S^-1 X G + 1) du = G X' S^-1 r - u
 * by conjugate gradients. Counters that the fit does not use decide how fine the curve becomes.
 */
#include "flows/flows_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Rows needed for each step of the curve. */
#define ROWS_PER_STEP 24
#define STEPS_MAX     4096
/* The number of rows that are used, as a multiple of the rows that the steps need, and its minimum. */
#define ROWS_MARGIN 4
#define ROWS_MIN    4000.0
/* Rounds for each number of steps, and steps of conjugate gradients in each round. */
#define ROUNDS        3
#define ROUNDS_COARSE 8 /* for curves of up to this many steps, with which all finer ones start */
#define STEPS         6
/* The largest change of the curve's logarithm in one round. */
#define CHANGE_MAX 2.0
/* A finer curve must be better by this much (mean of log s + r^2 / s); after two failures no finer curve is tried. */
#define BETTER 1e-3

struct span {
	double from, to; /* relative to the whole time: 0 .. 1 */
};

struct curve {
	size_t steps;
	double *g, *start; /* g and g0 */
	double *sum;       /* integral up to the start of each step, steps + 1 */
	double *rate;      /* change of the flows' contributions to whole steps */
	double *du, *r, *p, *q, *gp;
	double *flow, *row; /* one value of each */
};

/* Finds the time spans of all flows; false if no flow has times. */
static bool find_spans(const struct ow_flows *data, const uint32_t *order, struct span *span)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (size_t f = 0; f < data->flows; f++)
		if (data->flow[f].first_ns <= data->flow[f].last_ns && data->flow[f].packets > 0) {
			first = data->flow[f].first_ns < first ? data->flow[f].first_ns : first;
			last = data->flow[f].last_ns > last ? data->flow[f].last_ns : last;
		}
	double length = first < last ? (double)((uint64_t)last - (uint64_t)first) : 0;
	for (size_t f = 0; f < data->flows; f++) {
		const struct ow_flow_load *flow = &data->flow[order[f]];
		span[f] = (struct span){0, 1};
		if (length > 0 && flow->first_ns <= flow->last_ns && flow->packets > 0)
			span[f] = (struct span){(double)((uint64_t)flow->first_ns - (uint64_t)first) / length,
			                        (double)((uint64_t)flow->last_ns - (uint64_t)first) / length};
	}
	return length > 0;
}

static size_t step_of(const struct curve *curve, double at)
{
	size_t b = (size_t)(at * (double)curve->steps);
	return b < curve->steps ? b : curve->steps - 1;
}

static double integral(const struct curve *curve, const double *g, double at)
{
	size_t b = step_of(curve, at);
	return curve->sum[b] + (at * (double)curve->steps - (double)b) * g[b];
}

/* The mean of g over the span of each flow. */
static void set_means(struct curve *curve, const double *g, const struct span *span, size_t flows, double *mean)
{
	curve->sum[0] = 0;
	for (size_t b = 0; b < curve->steps; b++)
		curve->sum[b + 1] = curve->sum[b] + g[b];
	for (size_t f = 0; f < flows; f++) {
		size_t b = step_of(curve, span[f].from);
		double length = (span[f].to - span[f].from) * (double)curve->steps;
		/* Within one step, or if the integral is only rounding, the value of the step. */
		if (b == step_of(curve, span[f].to) || !(length > 1e-9))
			mean[f] = g[b];
		else
			mean[f] = (integral(curve, g, span[f].to) - integral(curve, g, span[f].from)) / length;
	}
}

/* Spreads a flow's value evenly over its span; for whole steps as a rate with start and end. */
static void share_out(struct curve *curve, struct span span, double value, double *to)
{
	size_t b = step_of(curve, span.from), e = step_of(curve, span.to);
	double steps = (double)curve->steps, length = (span.to - span.from) * steps;
	if (b == e || !(length > 1e-9)) {
		to[b] += value;
		return;
	}
	to[b] += value * ((double)(b + 1) - span.from * steps) / length;
	to[e] += value * (span.to * steps - (double)e) / length;
	curve->rate[b + 1] += value / length;
	curve->rate[e] -= value / length;
}

/* to = G X' y for rows y. */
static void backward(struct curve *curve, const struct ow_flow_system *system, const struct span *span, const double *y,
                     double *to)
{
	for (size_t b = 0; b <= curve->steps; b++)
		to[b] = curve->rate[b] = 0;
	for (size_t f = 0; f < system->flows; f++) {
		const struct ow_flow_entry *e = ow_flow_entries(system, f);
		double value = 0;
		for (uint32_t j = 0; j < system->slots; j++)
			value += e[j].load * y[e[j].row];
		share_out(curve, span[f], value, to);
	}
	double rate = 0;
	for (size_t b = 0; b < curve->steps; b++) {
		rate += curve->rate[b];
		to[b] = (to[b] + rate) * curve->g[b];
	}
}

/* q = (G X' W X G + 1) p, with W = 1 / s of the fitted rows. */
static void apply(struct curve *curve, const struct ow_flow_system *system, const struct span *span,
                  const double *weight)
{
	for (size_t b = 0; b < curve->steps; b++)
		curve->gp[b] = curve->g[b] * curve->p[b];
	set_means(curve, curve->gp, span, system->flows, curve->flow);
	for (size_t c = 0; c < system->rows; c++)
		curve->row[c] = 0;
	for (size_t f = 0; f < system->flows; f++) {
		const struct ow_flow_entry *e = ow_flow_entries(system, f);
		for (uint32_t j = 0; j < system->slots; j++)
			curve->row[e[j].row] += e[j].load * curve->flow[f];
	}
	for (size_t c = 0; c < system->rows; c++)
		curve->row[c] *= weight[c];
	backward(curve, system, span, curve->row, curve->q);
	for (size_t b = 0; b < curve->steps; b++)
		curve->q[b] += curve->p[b];
}

/* One round: computes a change of the curve from residuals and variances. Both are overwritten. */
static void improve(struct curve *curve, const struct ow_flow_system *system, const struct span *span, double *residual,
                    double *variance)
{
	size_t steps = curve->steps;
	for (size_t c = 0; c < system->rows; c++) {
		double w = variance[c] > 0 && system->used[c] && !ow_flow_judges(c) ? 1 / variance[c] : 0;
		variance[c] = w;
		residual[c] *= w;
	}
	backward(curve, system, span, residual, curve->r);
	for (size_t b = 0; b < steps; b++) {
		curve->r[b] -= log(curve->g[b] / curve->start[b]);
		curve->p[b] = curve->r[b];
		curve->du[b] = 0;
	}
	double now = ow_flow_dot(curve->r, curve->r, steps);
	for (int i = 0; i < STEPS && now > 0; i++) {
		apply(curve, system, span, variance);
		double curvature = ow_flow_dot(curve->p, curve->q, steps), before = now;
		if (!(curvature > 0))
			break;
		for (size_t b = 0; b < steps; b++) {
			curve->du[b] += now / curvature * curve->p[b];
			curve->r[b] -= now / curvature * curve->q[b];
		}
		now = ow_flow_dot(curve->r, curve->r, steps);
		for (size_t b = 0; b < steps; b++)
			curve->p[b] = curve->r[b] + now / before * curve->p[b];
	}
	/* The solution is 1 + du; if it is far from 1, the change is limited. */
	for (size_t b = 0; b < steps; b++)
		curve->g[b] *=
			exp(fmin(fmax(curve->du[b] > 0 ? log1p(curve->du[b]) : curve->du[b], -CHANGE_MAX), CHANGE_MAX));
}

/* How well the rows that were not fitted are predicted: lower is better. */
static double judge(const struct ow_flow_system *system, const double *residual, const double *variance)
{
	double sum = 0, count = 0;
	for (size_t c = 0; c < system->rows; c++)
		if (system->used[c] && variance[c] > 0 && ow_flow_judges(c)) {
			sum += log(variance[c]) + residual[c] * residual[c] / variance[c];
			count++;
		}
	return count > 0 ? sum / count : INFINITY;
}

/* Allocates all arrays as one block. */
static double *allocate(struct curve *curve, size_t most, size_t flows, size_t rows)
{
	size_t size = most + 2;
	double *memory = calloc(9 * size + flows + rows + 2, sizeof *memory), *at = memory;
	double **array[] = {&curve->g, &curve->start, &curve->sum, &curve->rate, &curve->du,
	                    &curve->r, &curve->p,     &curve->q,   &curve->gp,   &curve->flow};
	for (size_t i = 0; memory && i < sizeof array / sizeof *array; i++, at += size)
		*array[i] = at;
	curve->row = memory ? curve->flow + flows + 1 : NULL;
	return memory;
}

/* Fits one number of steps, and judges it. */
static double fit_curve(struct ow_flow_fit *fit, struct curve *curve, const struct span *span, int rounds)
{
	for (int i = 0; i <= rounds; i++) {
		set_means(curve, curve->g, span, fit->system->flows, fit->prior->mean);
		ow_flow_fit_line(fit);
		ow_flow_fit_line(fit);
		ow_flow_residuals(fit->system, fit->prior, fit->residual, fit->variance);
		if (i < rounds)
			improve(curve, fit->system, span, fit->residual, fit->variance);
	}
	return judge(fit->system, fit->residual, fit->variance);
}

/* Selects as much of the system as a curve of this many steps needs. Returns whether it has grown. */
static bool look_at(const struct ow_flow_fit *all, struct ow_flow_system *view, size_t steps)
{
	size_t rows = 0, before = view->flows;
	for (size_t c = 0; c < all->system->rows; c++)
		rows += all->system->used[c] > 0;
	double need =
		fmax(ROWS_MIN, (double)(ROWS_MARGIN * ROWS_PER_STEP * steps)) * OW_FLOW_SHARES / (double)(rows + 1);
	int share = need < OW_FLOW_SHARES ? (int)need : OW_FLOW_SHARES - 1;
	view->flows = all->flows[share];
	if (view->flows == before)
		return false;
	for (size_t c = 0; c < view->rows; c++)
		view->used[c] = 0;
	for (size_t i = 0; i < view->flows * view->slots; i++)
		view->used[view->entry[i].row] += view->entry[i].load > 0;
	return true;
}

int ow_flow_profile(struct ow_flow_fit *fit)
{
	size_t flows = fit->system->flows, rows = 0;
	for (size_t c = 0; c < fit->system->rows; c++)
		rows += fit->system->used[c] > 0;
	size_t most = rows / ROWS_PER_STEP < STEPS_MAX ? rows / ROWS_PER_STEP : STEPS_MAX;
	struct span *span = calloc(flows + 1, sizeof *span);
	double *best = calloc(most + 2, sizeof *best), least = INFINITY;
	struct curve curve = {.steps = 1};
	double *memory = allocate(&curve, most, flows, fit->system->rows);
	struct ow_flow_system view = *fit->system;
	struct ow_flow_fit part = *fit;
	size_t best_steps = 1;
	int r = -ENOMEM;
	part.system = &view;
	view.flows = 0;
	view.used = calloc(view.rows + 1, sizeof *view.used);
	if (!span || !best || !memory || !view.used)
		goto out;
	r = 0;
	/* Delays around 0, caused by clock offsets, have no logarithm: then only the mean of all flows is known. */
	if (!(fit->prior->mean_ns > 0))
		goto out;
	if (!find_spans(fit->system->data, fit->order, span))
		most = 1;
	curve.g[0] = curve.start[0] = best[0] = fit->prior->mean_ns;
	for (int worse = 0; worse < 2; curve.steps *= 2) {
		/* With more rows, the best curve so far is judged again. */
		if (look_at(fit, &view, curve.steps) && curve.steps > 1)
			least = fit_curve(&part, &curve, span, 0);
		double verdict = fit_curve(&part, &curve, span, curve.steps <= ROUNDS_COARSE ? ROUNDS_COARSE : ROUNDS);
		worse = verdict < least - BETTER ? 0 : worse + 1;
		if (!worse) {
			least = verdict;
			best_steps = curve.steps;
			for (size_t b = 0; b < curve.steps; b++)
				best[b] = curve.g[b];
		}
		if (curve.steps * 2 > most)
			break;
		for (size_t b = curve.steps; b-- > 0;)
			curve.g[2 * b] = curve.g[2 * b + 1] = curve.start[2 * b] = curve.start[2 * b + 1] = curve.g[b];
	}
	for (int i = 0; i < OW_FLOW_PARTS; i++)
		fit->a[i] = part.a[i];
	curve.steps = fit->steps = best_steps;
	set_means(&curve, best, span, flows, fit->prior->mean);
out:
	free(view.used);
	free(span);
	free(best);
	free(memory);
	return r;
}
