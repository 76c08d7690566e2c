/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What flows are like, from the counters alone (formulas 3.8 takes mu, tau and cv as given). The residual of a counter,
 * r_c = D_c - sum n m_f, has the variance
 *     s_c = sum_f n_cf^2 V_f + noise_c.
 * At first V is a line: deviations in proportion to the flow's own prior mean m_f, and others in proportion to the mean
 * of all, each with a part that stays and one that averages out over a flow's packets,
 *     V_f = (a_0 + a_1 / p_f) m_f^2 + (a_2 + a_3 / p_f) mu^2;
 * then each class of size and of m_f gets a factor on it. Both are fitted by maximum likelihood with the multiplicative
 * steps of variance components (Zhou, Hu, Zhou, Lange 2019): they stay positive and need only sums. One bank is enough
 * for that.
 */
#include "estimate/flows_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES OW_FLOW_CLASSES
/* Steps: after these the error of V is below its statistical error on 1e4 counters. */
#define STEPS_LINE  10
#define STEPS_CLASS 12
/* So many counters with a flow of their own weighs the line against what a class itself says. */
#define LINE_WEIGHT 10.0

/* By packets, and by the prior mean against that of all: powers of two, the rest is in the classes at the ends. */
static uint8_t class_of(double packets, double mean, double all)
{
	int size = packets >= 1 ? ilogb(packets) : 0;
	int level = OW_FLOW_LEVELS - 3 + (mean > 0 && all > 0 ? ilogb(mean / all) : 0);
	size = size < OW_FLOW_SIZES ? size : OW_FLOW_SIZES - 1;
	level = level < 0 ? 0 : level < OW_FLOW_LEVELS ? level : OW_FLOW_LEVELS - 1;
	return (uint8_t)(size * OW_FLOW_LEVELS + level);
}

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

/* What a row says to a component with weight w: w r^2 / s^2 against w / s. */
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

/* r^2 / s^2 in place of r, 1 / s in place of s; 0 where there is nothing. */
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

/* Sums of what a flow's rows say, weighted by its loads squared. */
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

static void fit_classes(struct ow_flow_fit *fit)
{
	struct gains g[CLASSES] = {0};
	set_variances(fit);
	ow_flow_residuals(fit->system, fit->prior, fit->residual, fit->variance);
	turn_rows(fit);
	for (size_t f = 0; f < fit->system->flows; f++) {
		struct gains own = heard(fit, f);
		if (own.down > 0)
			gain(&g[fit->class_of[f]], fit->prior->var[f], own.up, own.down);
	}
	for (int k = 0; k < CLASSES; k++)
		fit->factor[k] *= factor(g[k], LINE_WEIGHT, 1 / fit->factor[k]);
	fit_within(fit);
	set_variances(fit);
}

/* Where the steps begin: the mean of all packets, and one variance for all. */
static void begin(struct ow_flow_fit *fit)
{
	const struct ow_flow_system *system = fit->system;
	struct ow_flow_prior *prior = fit->prior;
	double delay = 0, packets = 0, squares = 0, loads = 0;
	for (size_t c = 0; c < system->rows; c++)
		delay += system->used[c] ? system->sum[c] : 0;
	for (size_t i = 0; i < system->flows * system->slots; i++) {
		packets += system->entry[i].load;
		loads += system->entry[i].load * system->entry[i].load;
	}
	prior->mean_ns = packets > 0 ? delay / packets : 0;
	for (size_t f = 0; f < system->flows; f++)
		prior->mean[f] = prior->mean_ns;
	ow_flow_residuals(system, prior, fit->residual, fit->variance);
	for (size_t c = 0; c < system->rows; c++)
		if (system->used[c])
			squares += fit->residual[c] * fit->residual[c];
	double mu2 = prior->mean_ns * prior->mean_ns;
	prior->within = loads > 0 && mu2 > 0 ? squares / loads / mu2 : 0;
	for (int i = 0; i < OW_FLOW_PARTS; i++)
		fit->a[i] = prior->within;
	for (int k = 0; k < CLASSES; k++)
		fit->factor[k] = 1;
}

/* Rows are dealt out to shares; with several layers a flow's rows are in different ones, and there is but one share. */
static unsigned share_of(const struct ow_flow_system *one, const struct ow_flow_entry *entry)
{
	return one->slots == 1 ? (unsigned)(ow_mix64(entry->row + 1) >> 60) : OW_FLOW_SHARES - 1;
}

/* The first slots of layers, and how many there are. */
static uint32_t first_slots(const struct ow_flow_system *system, uint32_t *slot)
{
	uint32_t slots = 0, at = 0;
	for (uint32_t l = 0; l < system->data->params.layers; l++) {
		const struct ow_colate_layer *layer = &system->data->layer[l].layer;
		if (!ow_flow_is_bank(layer))
			continue;
		slot[slots++] = at;
		at += layer->spread;
	}
	return slots;
}

/* One bank of each layer, in the fit's order: fits need no more. */
static int first_banks(const struct ow_flow_system *system, struct ow_flow_fit *fit, struct ow_flow_system *ret)
{
	uint32_t slot[OW_COLATE_LAYERS_MAX];
	*ret = *system;
	ret->slots = first_slots(system, slot);
	ret->entry = calloc(ret->flows * ret->slots + 1, sizeof *ret->entry);
	ret->used = calloc(ret->rows + 1, sizeof *ret->used);
	ret->packets = calloc(ret->flows + 1, sizeof *ret->packets);
	fit->order = calloc(ret->flows + 1, sizeof *fit->order);
	if (!ret->entry || !ret->used || !ret->packets || !fit->order)
		return -ENOMEM;
	size_t at[OW_FLOW_SHARES] = {0};
	for (size_t f = 0; f < ret->flows; f++)
		fit->flows[share_of(ret, &ow_flow_entries(system, f)[slot[0]])]++;
	for (int i = 1; i < OW_FLOW_SHARES; i++)
		fit->flows[i] += at[i] = fit->flows[i - 1];
	for (size_t f = 0; f < ret->flows; f++) {
		const struct ow_flow_entry *from = ow_flow_entries(system, f);
		size_t to = at[share_of(ret, &from[slot[0]])]++;
		fit->order[to] = (uint32_t)f;
		ret->packets[to] = system->packets[f];
		for (uint32_t j = 0; j < ret->slots; j++) {
			ret->entry[to * ret->slots + j] = from[slot[j]];
			ret->used[from[slot[j]].row] += from[slot[j]].load > 0;
		}
	}
	return 0;
}

/* Where every counter of a flow lost packets, nothing of its kind may have been seen: twice the deviation. */
static void widen(const struct ow_flow_system *system, struct ow_flow_prior *prior)
{
	for (size_t f = 0; f < system->flows; f++) {
		double load = 0;
		for (uint32_t j = 0; j < system->slots; j++)
			load += ow_flow_entries(system, f)[j].load;
		prior->var[f] *= load > 0 ? 1 : 4;
	}
}

/* Back into the order of the flows. */
static void put_back(const struct ow_flow_fit *fit, struct ow_flow_prior *ret)
{
	ret->mean_ns = fit->prior->mean_ns;
	ret->within = fit->prior->within;
	for (size_t i = 0; i < fit->system->flows; i++) {
		ret->mean[fit->order[i]] = fit->prior->mean[i];
		ret->var[fit->order[i]] = fit->prior->var[i];
	}
}

static int prior_allocate(struct ow_flow_prior *prior, size_t flows)
{
	prior->mean = calloc(flows + 1, sizeof *prior->mean);
	prior->var = calloc(flows + 1, sizeof *prior->var);
	return prior->mean && prior->var ? 0 : -ENOMEM;
}

int ow_flow_prior_init(const struct ow_flow_system *system, struct ow_flow_prior *ret_prior)
{
	struct ow_flow_prior prior = {0}, result = {0};
	struct ow_flow_system one = {0};
	struct ow_flow_fit fit = {.system = &one, .prior = &prior};
	int r = -ENOMEM;
	fit.residual = calloc(system->rows + 1, sizeof *fit.residual);
	fit.variance = calloc(system->rows + 1, sizeof *fit.variance);
	fit.class_of = calloc(system->flows + 1, sizeof *fit.class_of);
	if (prior_allocate(&prior, system->flows) < 0 || prior_allocate(&result, system->flows) < 0 || !fit.residual ||
	    !fit.variance || !fit.class_of || first_banks(system, &fit, &one) < 0)
		goto out;
	begin(&fit);
	r = ow_flow_profile(&fit);
	if (r < 0)
		goto out;
	for (int i = 0; i < STEPS_LINE; i++)
		ow_flow_fit_line(&fit);
	for (size_t f = 0; f < one.flows; f++)
		fit.class_of[f] = class_of(one.packets[f], prior.mean[f], prior.mean_ns);
	for (int i = 0; i < STEPS_CLASS; i++)
		fit_classes(&fit);
	put_back(&fit, &result);
	widen(system, &result);
	*ret_prior = result;
	result = (struct ow_flow_prior){0};
out:
	ow_flow_prior_done(&prior);
	ow_flow_prior_done(&result);
	free(one.entry);
	free(one.used);
	free(one.packets);
	free(fit.order);
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
