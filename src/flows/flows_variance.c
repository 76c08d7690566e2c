/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variances of the prior, fitted to the residuals of the counters: the line and the factors of its classes, as
 * flows_prior.c has them.
 */
#include "flows/flows_private.h"

#include <math.h>

/* The weight of the line relative to the evidence of a class, in counters that contain only one flow. */
#define LINE_WEIGHT 10.0

void ow_flow_residuals(const struct ow_flow_system *system, const struct ow_flow_prior *prior, double *ret_residual,
                       double *ret_variance)
{
	for (size_t c = 0; c < system->rows; c++) {
		ret_residual[c] = system->used[c] ? system->sum[c] : 0;
		ret_variance[c] = system->used[c] ? system->noise[c] : 0;
	}
	for (size_t f = 0; f < system->flows; f++) {
		const struct ow_flow_entry *e = ow_flow_entries(system, f);
		double mean = prior->mean[f], square = mean * mean;
		for (uint32_t j = 0; j < system->slots; j++) {
			ret_residual[e[j].row] -= e[j].load * mean;
			ret_variance[e[j].row] += e[j].load * e[j].load * prior->var[f] +
			                          (e[j].partial * prior->within + e[j].unknown) * square;
		}
	}
}

struct gains {
	double up, down;
};

/* The contribution of a row to a component with weight w: w r^2 / s^2 against w / s. */
static void gain(struct gains *gains, double w, double up, double down)
{
	gains->up += w * up;
	gains->down += w * down;
}

static double factor(struct gains g, double weight, double toward)
{
	double up = g.up + weight * toward, down = g.down + weight;
	return down > 0 ? sqrt(up / down) : 1;
}

/* Replaces r by r^2 / s^2 and s by 1 / s; 0 for an empty row. */
static void turn_rows(struct ow_flow_fit *fit)
{
	for (size_t c = 0; c < fit->system->rows; c++) {
		double s = fit->variance[c], z = s > 0 ? fit->residual[c] / s : 0;
		fit->residual[c] = z * z;
		fit->variance[c] = s > 0 ? 1 / s : 0;
	}
}

static void parts_of(const struct ow_flow_fit *fit, size_t f, double part[OW_FLOW_PARTS])
{
	double p = fit->system->packets[f], m = fit->prior->mean[f], mu = fit->prior->mean_ns;
	part[0] = m * m;
	part[1] = m * m / p;
	part[2] = mu * mu;
	part[3] = mu * mu / p;
}

static double line_of(const struct ow_flow_fit *fit, size_t f)
{
	double part[OW_FLOW_PARTS], sum = 0;
	parts_of(fit, f, part);
	for (int i = 0; i < OW_FLOW_PARTS; i++)
		sum += fit->a[i] * part[i];
	return sum;
}

static void set_variances(struct ow_flow_fit *fit)
{
	for (size_t f = 0; f < fit->system->flows; f++)
		if (fit->system->packets[f] > 0)
			fit->prior->var[f] = fit->factor[fit->class_of[f]] * line_of(fit, f);
}

static void fit_within(struct ow_flow_fit *fit)
{
	struct gains g = {0};
	for (size_t f = 0; f < fit->system->flows; f++) {
		const struct ow_flow_entry *e = ow_flow_entries(fit->system, f);
		double square = fit->prior->mean[f] * fit->prior->mean[f];
		for (uint32_t j = 0; j < fit->system->slots; j++)
			if (e[j].partial > 0)
				gain(&g, e[j].partial * square, fit->residual[e[j].row], fit->variance[e[j].row]);
	}
	fit->prior->within *= factor(g, 0, 0);
}

/* The sums of the contributions of a flow's rows, weighted by its squared loads. */
static struct gains heard(const struct ow_flow_fit *fit, size_t f)
{
	struct gains g = {0};
	const struct ow_flow_entry *e = ow_flow_entries(fit->system, f);
	for (uint32_t j = 0; j < fit->system->slots; j++)
		gain(&g, e[j].load * e[j].load, fit->residual[e[j].row], fit->variance[e[j].row]);
	return g;
}

void ow_flow_fit_line(struct ow_flow_fit *fit)
{
	struct gains g[OW_FLOW_PARTS] = {0};
	set_variances(fit);
	ow_flow_residuals(fit->system, fit->prior, fit->residual, fit->variance);
	turn_rows(fit);
	for (size_t f = 0; f < fit->system->flows; f++) {
		double part[OW_FLOW_PARTS];
		struct gains own = heard(fit, f);
		if (!(own.down > 0))
			continue;
		parts_of(fit, f, part);
		for (int i = 0; i < OW_FLOW_PARTS; i++)
			gain(&g[i], part[i], own.up, own.down);
	}
	for (int i = 0; i < OW_FLOW_PARTS; i++)
		fit->a[i] *= factor(g[i], 0, 0);
	fit_within(fit);
	set_variances(fit);
}

void ow_flow_fit_classes(struct ow_flow_fit *fit)
{
	struct gains g[OW_FLOW_CLASSES] = {0};
	set_variances(fit);
	ow_flow_residuals(fit->system, fit->prior, fit->residual, fit->variance);
	turn_rows(fit);
	for (size_t f = 0; f < fit->system->flows; f++) {
		struct gains own = heard(fit, f);
		if (own.down > 0)
			gain(&g[fit->class_of[f]], fit->prior->var[f], own.up, own.down);
	}
	for (int k = 0; k < OW_FLOW_CLASSES; k++)
		fit->factor[k] *= factor(g[k], LINE_WEIGHT, 1 / fit->factor[k]);
	fit_within(fit);
	set_variances(fit);
}
