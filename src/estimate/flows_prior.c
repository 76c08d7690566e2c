/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What flows are like, from the counters alone (formulas 3.8 takes mu, tau and cv as given). The residual of a counter,
 * r_c = D_c - sum n m_f, has the variance
 *     s_c = sum_f n_cf^2 V_f + noise_c,
 * with V_f = a + b / p_f at first, then one V for each class of size. Both are fitted by maximum likelihood with the
 * multiplicative steps of variance components (Zhou, Hu, Zhou, Lange 2019): they stay positive and need only sums.
 */
#include "estimate/flows_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Classes of size: packets of one power of two; all above 2^23 are one class. */
#define CLASSES 24
/* Steps: after these the error of V is below its statistical error on 1e4 counters. */
#define STEPS_LINE  12
#define STEPS_CLASS 12
/* So many counters with a flow of their own weighs the line a + b / p against what a class itself says. */
#define LINE_WEIGHT 10.0

struct fit {
	const struct ow_flow_system *system;
	struct ow_flow_prior *prior;
	double *residual;  /* r_c */
	double *variance;  /* s_c */
	uint8_t *class_of; /* of each flow */
	double a, b;       /* V = a + b / p */
	double class_var[CLASSES];
	double partials; /* sum of partial: > 0 if `within` can be told */
};

static uint8_t size_class(double packets)
{
	int e = packets >= 1 ? ilogb(packets) : 0;
	return (uint8_t)(e < CLASSES ? e : CLASSES - 1);
}

void ow_flow_residuals(const struct ow_flow_system *system, const struct ow_flow_prior *prior, double *ret_residual,
                       double *ret_variance)
{
	double square = prior->mean_ns * prior->mean_ns;
	for (size_t c = 0; c < system->rows; c++) {
		ret_residual[c] = system->sum[c];
		ret_variance[c] = system->noise[c] + system->partial[c] * prior->within + system->uncertain[c] * square;
	}
	for (size_t f = 0; f < system->flows; f++) {
		const struct ow_flow_entry *e = ow_flow_entries(system, f);
		for (uint32_t j = 0; j < system->slots; j++) {
			ret_residual[e[j].row] -= e[j].load * prior->mean[f];
			ret_variance[e[j].row] += e[j].load * e[j].load * prior->var[f];
		}
	}
}

/* The mean that explains the counters best, given their variances: sum P D / s over sum P^2 / s. */
static void fit_mean(struct fit *fit)
{
	const struct ow_flow_system *system = fit->system;
	struct ow_flow_prior *prior = fit->prior;
	double *load = calloc(system->rows + 1, sizeof *load), up = 0, down = 0;
	if (!load)
		return;
	for (size_t i = 0; i < system->flows * system->slots; i++)
		load[system->entry[i].row] += system->entry[i].load;
	for (size_t c = 0; c < system->rows; c++)
		if (fit->variance[c] > 0 && load[c] > 0) {
			up += load[c] * system->sum[c] / fit->variance[c];
			down += load[c] * load[c] / fit->variance[c];
		}
	free(load);
	if (!(down > 0))
		return;
	prior->mean_ns = up / down;
	for (size_t f = 0; f < system->flows; f++)
		prior->mean[f] = prior->mean_ns;
}

struct gains {
	double up, down;
};

/* What a row says to a component with weight w: w r^2 / s^2 against w / s. */
static void gain(struct gains *gains, double w, double residual, double variance)
{
	if (!(variance > 0))
		return;
	double z = residual / variance;
	gains->up += w * z * z;
	gains->down += w / variance;
}

static double factor(struct gains g, double weight, double toward)
{
	double up = g.up + weight * toward, down = g.down + weight;
	return down > 0 ? sqrt(up / down) : 1;
}

static void fit_within(struct fit *fit)
{
	struct gains g = {0};
	if (!(fit->partials > 0))
		return;
	for (size_t c = 0; c < fit->system->rows; c++)
		gain(&g, fit->system->partial[c], fit->residual[c], fit->variance[c]);
	fit->prior->within *= factor(g, 0, 0);
}

static void step_line(struct fit *fit)
{
	const struct ow_flow_system *system = fit->system;
	struct gains a = {0}, b = {0};
	for (size_t f = 0; f < system->flows; f++) {
		const struct ow_flow_entry *e = ow_flow_entries(system, f);
		double p = system->data->flow[f].packets;
		for (uint32_t j = 0; j < system->slots; j++) {
			if (!(e[j].load > 0))
				continue;
			double w = e[j].load * e[j].load;
			gain(&a, w, fit->residual[e[j].row], fit->variance[e[j].row]);
			gain(&b, w / p, fit->residual[e[j].row], fit->variance[e[j].row]);
		}
	}
	fit->a *= factor(a, 0, 0);
	fit->b *= factor(b, 0, 0);
	for (size_t f = 0; f < system->flows; f++)
		if (system->data->flow[f].packets > 0)
			fit->prior->var[f] = fit->a + fit->b / system->data->flow[f].packets;
}

static void step_classes(struct fit *fit)
{
	const struct ow_flow_system *system = fit->system;
	struct gains g[CLASSES] = {0};
	for (size_t f = 0; f < system->flows; f++) {
		const struct ow_flow_entry *e = ow_flow_entries(system, f);
		/* In units of the line at this flow: a class is a factor on the line. */
		double line = fit->a + fit->b / system->data->flow[f].packets;
		for (uint32_t j = 0; j < system->slots; j++)
			if (e[j].load > 0)
				gain(&g[fit->class_of[f]], e[j].load * e[j].load * line, fit->residual[e[j].row],
				     fit->variance[e[j].row]);
	}
	for (int k = 0; k < CLASSES; k++)
		fit->class_var[k] *= factor((struct gains){g[k].up * fit->class_var[k], g[k].down * fit->class_var[k]},
		                            LINE_WEIGHT, 1 / fit->class_var[k]);
	for (size_t f = 0; f < system->flows; f++)
		if (system->data->flow[f].packets > 0)
			fit->prior->var[f] =
				fit->class_var[fit->class_of[f]] * (fit->a + fit->b / system->data->flow[f].packets);
}

/* Where the steps begin: the mean of all packets, and one variance for all. */
static void begin(struct fit *fit)
{
	const struct ow_flow_system *system = fit->system;
	struct ow_flow_prior *prior = fit->prior;
	double delay = 0, packets = 0, squares = 0, loads = 0;
	for (size_t c = 0; c < system->rows; c++)
		if (system->used[c]) {
			delay += system->sum[c];
			fit->partials += system->partial[c];
		}
	for (size_t i = 0; i < system->flows * system->slots; i++) {
		packets += system->entry[i].load;
		loads += system->entry[i].load * system->entry[i].load;
	}
	prior->mean_ns = packets > 0 ? delay / packets : 0;
	for (size_t f = 0; f < system->flows; f++) {
		prior->mean[f] = prior->mean_ns;
		fit->class_of[f] = size_class(system->data->flow[f].packets);
	}
	ow_flow_residuals(system, prior, fit->residual, fit->variance);
	for (size_t c = 0; c < system->rows; c++)
		if (system->used[c])
			squares += fit->residual[c] * fit->residual[c];
	fit->a = fit->b = prior->within = loads > 0 ? squares / loads : 0;
	for (size_t f = 0; f < system->flows; f++)
		prior->var[f] = fit->a;
	for (int k = 0; k < CLASSES; k++)
		fit->class_var[k] = 1;
}

int ow_flow_prior_init(const struct ow_flow_system *system, struct ow_flow_prior *ret_prior)
{
	struct ow_flow_prior prior = {0};
	struct fit fit = {.system = system, .prior = &prior};
	int r = -ENOMEM;
	prior.mean = calloc(system->flows + 1, sizeof *prior.mean);
	prior.var = calloc(system->flows + 1, sizeof *prior.var);
	fit.residual = calloc(system->rows + 1, sizeof *fit.residual);
	fit.variance = calloc(system->rows + 1, sizeof *fit.variance);
	fit.class_of = calloc(system->flows + 1, sizeof *fit.class_of);
	if (!prior.mean || !prior.var || !fit.residual || !fit.variance || !fit.class_of)
		goto out;
	begin(&fit);
	for (int i = 0; i < STEPS_LINE + STEPS_CLASS; i++) {
		ow_flow_residuals(system, &prior, fit.residual, fit.variance);
		if (i < STEPS_LINE)
			step_line(&fit);
		else
			step_classes(&fit);
		fit_within(&fit);
		fit_mean(&fit);
	}
	*ret_prior = prior;
	prior = (struct ow_flow_prior){0};
	r = 0;
out:
	ow_flow_prior_done(&prior);
	free(fit.residual);
	free(fit.variance);
	free(fit.class_of);
	return r;
}

void ow_flow_prior_done(struct ow_flow_prior *prior)
{
	free(prior->mean);
	free(prior->var);
	*prior = (struct ow_flow_prior){0};
}
