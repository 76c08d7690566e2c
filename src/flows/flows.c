/* SPDX-License-Identifier: Apache-2.0 */
/* Per-flow delay: from counters and loads to estimates with intervals. */
#include "flows/flows.h"

#include "estimate/distribution.h"
#include "flows/flows_private.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/*
 * A flow is too small if its counters reduced the prior variance by less than this share, and the remaining interval is
 * wider than the value itself.
 */
#define LEARNT_MIN   0.1
#define ERROR_MAX    0.5
#define SHAPE_ROUNDS 2
/*
 * Half of an interval, in standard deviations, if the distribution of deviations was fitted. 1.96 would be enough if
 * all flows were alike; flows that differ by factors or by size need up to 2.5 (tests/flows/test_flows_coverage.c).
 */
#define DEVIATIONS_FITTED 2.5

const char *ow_flow_estimator_name(enum ow_flow_estimator estimator)
{
	switch (estimator) {
	case OW_FLOWS_COLATE:
		return "colate";
	case OW_FLOWS_BLUP:
		return "blup";
	case OW_FLOWS_BANKS:
		return "banks+cg";
	case OW_FLOWS_AUTO:
		break;
	}
	return "auto";
}

/* Whether a clean counter contains packets of this flow. */
static bool is_told(const struct ow_flow_system *system, size_t f)
{
	for (uint32_t j = 0; j < system->slots; j++)
		if (ow_flow_entries(system, f)[j].load > 0)
			return true;
	return false;
}

/*
 * Half of the interval. The variances of the prior are estimates as well: with few counters they are uncertain
 * (Student's t) and too low (the fit divides by the counters, not by the degrees of freedom). If the distribution of
 * deviations is not known, the interval has to hold for all distributions.
 */
static double half_of(const struct ow_flow_prior *prior, double var, bool shape_known)
{
	double few = ow_student_975(prior->freedom) / OW_NORMAL_975 * sqrt(prior->counters / prior->freedom);
	return (shape_known ? DEVIATIONS_FITTED : OW_ONE_PEAK_95) * few * sqrt(var);
}

/* What the flow's own counter says, without how flows differ in general: times of lost packets are its only error. */
static struct ow_value own_value(const struct ow_flow_load *flow)
{
	if (!(flow->own_packets > 0) || flow->own_packets != flow->packets || !isfinite(flow->own_noise))
		return ow_value_none(OW_REASON_FLOW_FEW_CLEAN_COUNTERS);
	double mean = flow->own_delay_ns / flow->own_packets;
	double half = DEVIATIONS_FITTED * sqrt(flow->own_noise) / flow->own_packets;
	return (struct ow_value){OW_VALUE_ESTIMATED, mean, mean - half, mean + half, OW_NO_REASON};
}

static struct ow_value mean_value(const struct ow_flow_system *system, const struct ow_flow_prior *prior, size_t f,
                                  struct ow_flow_mean mean, bool shape_known)
{
	if (!(system->packets[f] > 0))
		return ow_value_none(OW_REASON_FLOW_NOT_RECEIVED);
	if (!is_told(system, f))
		return ow_value_none(OW_REASON_FLOW_NO_COMMON_COUNTER);
	if (!(prior->freedom >= 1))
		return own_value(&system->data->flow[f]);
	if (!isfinite(mean.mean) || !(mean.var >= 0))
		return ow_value_none(OW_REASON_FLOW_COUNTERS_CONTRADICT);
	double half = half_of(prior, mean.var, shape_known);
	if (mean.var > (1 - LEARNT_MIN) * prior->var[f] && half > ERROR_MAX * fabs(mean.mean))
		return ow_value_none(OW_REASON_FLOW_TOO_SMALL);
	return (struct ow_value){OW_VALUE_ESTIMATED, mean.mean, mean.mean - half, mean.mean + half, OW_NO_REASON};
}

static void tell(const struct ow_flows_options *options, double done)
{
	if (options->on_progress)
		options->on_progress(options->arg, done);
}

/* Fits the distribution of deviations, and with it the means; after two rounds neither changes much. */
static int sharpen(const struct ow_flow_system *system, const struct ow_flows_options *options,
                   const struct ow_flow_prior *prior, struct ow_flow_mean *mean, bool *shape_known)
{
	struct ow_flow_prior normal;
	int r = ow_flow_prior_copy(prior, system->flows, &normal);
	for (int i = 0, more = 1; r >= 0 && more && i < SHAPE_ROUNDS; i++) {
		tell(options, i ? 0.7 : 0.5);
		more = r = ow_flow_shape(system, prior, mean, &normal, shape_known);
		if (r >= 0)
			r = ow_flows_banks(system, &normal, more && i + 1 < SHAPE_ROUNDS, mean);
	}
	ow_flow_prior_done(&normal);
	return r;
}

static int predict(const struct ow_flow_system *system, const struct ow_flows_options *options,
                   struct ow_flow_prior *prior, struct ow_flow_mean *mean, bool *shape_known)
{
	tell(options, 0);
	int r = ow_flow_prior_init(system, prior);
	if (r < 0)
		return r;
	if (options->estimator == OW_FLOWS_BLUP)
		return ow_flows_blup(system, prior, mean);
	tell(options, 0.1);
	r = ow_flows_banks(system, prior, true, mean);
	tell(options, 0.3);
	if (r >= 0)
		r = ow_flow_prior_again(system, mean, prior);
	if (r > 0)
		r = ow_flows_banks(system, prior, true, mean);
	return r < 0 ? r : sharpen(system, options, prior, mean, shape_known);
}

static int estimate_banks(const struct ow_flows *flows, const struct ow_flows_options *options,
                          struct ow_flow_estimate *ret_estimates, struct ow_error *err)
{
	struct ow_flow_system system;
	int r = ow_flow_system_init(flows, &system, err);
	if (r < 0)
		return r;
	struct ow_flow_prior prior = {0};
	struct ow_flow_mean *mean = calloc(flows->flows + 1, sizeof *mean);
	bool *exact = calloc(flows->flows + 1, sizeof *exact), *shape_known = calloc(flows->flows + 1, sizeof *exact);
	r = mean && exact && shape_known ? predict(&system, options, &prior, mean, shape_known) : -ENOMEM;
	if (r >= 0)
		r = ow_flows_peel(&system, mean, exact);
	for (size_t f = 0; r >= 0 && f < flows->flows; f++)
		ret_estimates[f] = (struct ow_flow_estimate){
			.packets = flows->flow[f].packets,
			.mean_ns = exact[f] ? ow_value_exact(mean[f].mean)
		                            : mean_value(&system, &prior, f, mean[f], shape_known[f]),
			.stddev_ns = ow_value_none(OW_REASON_FLOW_WITHOUT_STDDEV),
			.estimator = options->estimator == OW_FLOWS_BLUP ? OW_FLOWS_BLUP : OW_FLOWS_BANKS,
		};
	if (r >= 0)
		r = ow_flows_stddev(flows, mean, ret_estimates);
	free(mean);
	free(exact);
	free(shape_known);
	ow_flow_prior_done(&prior);
	ow_flow_system_done(&system);
	return r < 0 ? ow_error_set(err, -r, "no memory for %zu flows", flows->flows) : 0;
}

static bool has_banks(const struct ow_flows *flows)
{
	for (uint32_t l = 0; l < flows->params.layers; l++)
		if (ow_flow_is_bank(&flows->layer[l].layer))
			return true;
	return false;
}

int ow_flows_estimate(const struct ow_flows *flows, const struct ow_flows_options *options,
                      struct ow_flow_estimate *ret_estimates, struct ow_error *err)
{
	enum ow_flow_estimator estimator = options->estimator;
	if (estimator == OW_FLOWS_AUTO)
		estimator = has_banks(flows) ? OW_FLOWS_BANKS : OW_FLOWS_COLATE;
	if (estimator == OW_FLOWS_COLATE) {
		int r = ow_flows_colate(flows, options, ret_estimates, err);
		for (size_t f = 0; r == 0 && f < flows->flows; f++)
			ow_value_shift(&ret_estimates[f].mean_ns, (double)flows->offset_ns);
		return r;
	}
	return estimate_banks(flows, options, ret_estimates, err);
}
