/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distribution of the flows' deviations from their prior means. Delays are not negative and have long tails: most
 * flows deviate by much less than the standard deviation, a few by much more. The deviations, u = (theta_f - m_f) /
 * sqrt(V_f), are therefore a mixture of normal distributions, fitted by expectation maximisation to the evidence of the
 * counters about each flow: u with a variance. There is one mixture for each group of sizes, because the part that
 * averages out over many packets is normal and the flow's own part is not, and for each level of delay, because flows
 * deviate differently in a busy queue and in an idle one.
 *
 * The evidence of a flow's counters, z with variance o, then gives each part of the mixture its probability, and the
 * flow a mean and a variance. The normal prior that leads to the same two goes to the linear system (expectation
 * propagation, Minka 2001): a flow that deviates then has a wider prior, and disturbs its neighbours less.
 */
#include "flows/flows_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define PARTS  4
#define SIZES  4
#define LEVELS 4
#define GROUPS (SIZES * LEVELS)
#define STEPS  20
/* The number of flows that a group is fitted to, and the smallest number for this many parameters. */
#define FLOWS_MAX 2000
#define FLOWS_MIN 200
/* In units of V: flows with a larger error give no information about the distribution. */
#define NOISE_MAX 4.0
/* Below this the flow is known, and the rest is rounding. */
#define KNOWN 1e-6
/* The smallest variance of a part. */
#define VAR_MIN 2e-3
/* The widest normal prior, for a mixture that leaves more doubt than the counters alone would. */
#define PRECISION_MIN 0.05

struct shape {
	double weight[PARTS], mean[PARTS], var[PARTS];
};

/* A distribution of u. */
struct belief {
	double mean, var;
};

/*
 * Groups by packets: 1-3, 4-15, 16-63, more; and by the prior mean: below 1/64, 1/8 and 1 times the mean of all, more.
 */
static int group_of(const struct ow_flow_system *system, const struct ow_flow_prior *prior, size_t f)
{
	double packets = system->packets[f], level = prior->mean[f] / prior->mean_ns;
	int size = packets >= 1 ? ilogb(packets) / 2 : 0;
	size = size < SIZES ? size : SIZES - 1;
	return size * LEVELS + (level < 1.0 / 64 ? 0 : level < 1.0 / 8 ? 1 : level < 1 ? 2 : 3);
}

/*
 * For each part: its probability given `told`, and the distribution of u then. False if `told` is out of reach of all
 * parts.
 */
static bool consult(const struct shape *shape, struct belief told, double *weight, struct belief *part)
{
	double sum = 0;
	for (int k = 0; k < PARTS; k++) {
		double all = shape->var[k] + told.var, off = told.mean - shape->mean[k], pull = shape->var[k] / all;
		weight[k] = shape->weight[k] * exp(-off * off / (2 * all)) / sqrt(all);
		part[k] = (struct belief){shape->mean[k] + pull * off, pull * told.var};
		sum += weight[k];
	}
	for (int k = 0; k < PARTS; k++)
		weight[k] /= sum > 0 ? sum : 1;
	return sum > 0;
}

static void fit_shape(const struct belief *told, size_t flows, struct shape *shape)
{
	/* Narrow and below, about normal, wide, and a tail above; a part without evidence stays as it is. */
	*shape = (struct shape){{0.3, 0.4, 0.2, 0.1}, {-0.4, 0, 0.4, 1.5}, {0.1, 0.5, 1, 3}};
	for (int step = 0; step < STEPS; step++) {
		double count[PARTS], sum[PARTS], squares[PARTS], all = 0;
		for (int k = 0; k < PARTS; k++) {
			count[k] = 1;
			sum[k] = shape->mean[k];
			squares[k] = shape->var[k] + shape->mean[k] * shape->mean[k];
		}
		for (size_t i = 0; i < flows; i++) {
			double weight[PARTS];
			struct belief part[PARTS];
			if (!consult(shape, told[i], weight, part))
				continue;
			for (int k = 0; k < PARTS; k++) {
				count[k] += weight[k];
				sum[k] += weight[k] * part[k].mean;
				squares[k] += weight[k] * (part[k].mean * part[k].mean + part[k].var);
			}
		}
		for (int k = 0; k < PARTS; k++)
			all += count[k];
		for (int k = 0; k < PARTS; k++) {
			shape->weight[k] = count[k] / all;
			shape->mean[k] = sum[k] / count[k];
			shape->var[k] = fmax(squares[k] / count[k] - shape->mean[k] * shape->mean[k], VAR_MIN);
		}
	}
}

/* The prior of u as a normal distribution, for a flow with this evidence. */
static struct belief as_normal(const struct shape *shape, struct belief told)
{
	double weight[PARTS], mean = 0, var = 0;
	struct belief part[PARTS];
	if (!consult(shape, told, weight, part))
		return (struct belief){0, 1};
	for (int k = 0; k < PARTS; k++)
		mean += weight[k] * part[k].mean;
	for (int k = 0; k < PARTS; k++)
		var += weight[k] * (part[k].var + (part[k].mean - mean) * (part[k].mean - mean));
	double known = 1 / told.var, precision = fmax(1 / var - known, PRECISION_MIN);
	return (struct belief){(mean * (precision + known) - told.mean * known) / precision, 1 / precision};
}

/* What the counters say about a flow, in units of its prior; false if nothing. */
static bool ask(const struct ow_flow_system *system, const struct ow_flow_prior *prior, const struct ow_flow_mean *mean,
                const struct ow_flow_prior *normal, size_t f, struct belief *ret)
{
	double v = prior->var[f];
	if (!(system->packets[f] > 0) || !(v > 0) || !(normal->var[f] > 0))
		return false;
	struct ow_flow_mean told = ow_flow_told(normal, mean, f);
	*ret = (struct belief){(told.mean - prior->mean[f]) / sqrt(v), fmax(told.var / v, KNOWN)};
	return isfinite(ret->mean) && isfinite(ret->var);
}

int ow_flow_shape(const struct ow_flow_system *system, const struct ow_flow_prior *prior,
                  const struct ow_flow_mean *mean, struct ow_flow_prior *normal, bool *ret_known)
{
	struct belief *told = calloc(system->flows + 1, sizeof *told), *some = calloc(FLOWS_MAX, sizeof *some);
	struct shape shape[GROUPS];
	size_t flows[GROUPS] = {0}, taken[GROUPS] = {0};
	int r = told && some ? 0 : -ENOMEM;
	bool fitted = false;
	for (size_t f = 0; r == 0 && f < system->flows; f++)
		if (ask(system, prior, mean, normal, f, &told[f]))
			flows[group_of(system, prior, f)] += told[f].var < NOISE_MAX;
		else
			told[f].var = 0;
	for (int g = 0; r == 0 && g < GROUPS; g++) {
		/* Selects evenly from all flows, because they may be in some order. */
		size_t every = flows[g] / FLOWS_MAX + 1, at = 0;
		for (size_t f = 0; f < system->flows; f++)
			if (told[f].var > 0 && told[f].var < NOISE_MAX && group_of(system, prior, f) == g &&
			    at++ % every == 0)
				some[taken[g]++] = (struct belief){told[f].mean * sqrt(prior->optimism), told[f].var};
		if (taken[g] < FLOWS_MIN)
			continue;
		fit_shape(some, taken[g], &shape[g]);
		fitted = true;
	}
	for (size_t f = 0; r == 0 && f < system->flows; f++) {
		int g = group_of(system, prior, f);
		struct belief u = {0, 1};
		ret_known[f] = taken[g] >= FLOWS_MIN;
		if (ret_known[f] && told[f].var > 0)
			u = as_normal(&shape[g], told[f]);
		normal->mean[f] = prior->mean[f] + sqrt(prior->var[f]) * u.mean;
		normal->var[f] = prior->var[f] * u.var;
	}
	free(told);
	free(some);
	return r < 0 ? r : fitted;
}
