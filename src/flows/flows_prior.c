/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distribution of flows, from the counters alone (formulas 3.8 takes mu, tau and cv as given). The residual of a counter,
 * r_c = D_c - sum n m_f, has the variance
 *     s_c = sum_f n_cf^2 V_f + noise_c.
 * At first V is a line: one part is in proportion to the flow's own prior mean m_f, another to the mean of all flows,
 * each with a constant part and a part that averages out over a flow's packets,
 *     V_f = (a_0 + a_1 / p_f) m_f^2 + (a_2 + a_3 / p_f) mu^2;
 * then each class of size and of m_f gets a factor. Both are fitted by maximum likelihood with the multiplicative
 * steps of variance components (Zhou, Hu, Zhou, Lange 2019): the values stay positive, and only sums are needed. One
 * bank is enough for that.
 *
 * The counters of one bank allow only a coarse curve of m_f over time. Once all banks have been solved, each flow has
 * its own measurement, and some of these are accurate: ow_flow_prior_again fits a finer curve to them.
 */
#include "flows/flows_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES OW_FLOW_CLASSES
/* Number of steps: after these the error of V is below its statistical error on 1e4 counters. */
#define STEPS_LINE  10
#define STEPS_CLASS 12
/*
 * Flows whose counters reduced the variance by less than this share give no information about the curve. With fewer
 * other flows than this the curve would not become finer.
 */
#define LEARNT_MIN   0.02
#define MEASURED_MIN 1000
/* A curve with fewer steps is not refined: for a queue the counters show as many steps as they can resolve. */
#define STEPS_MIN    16
#define OPTIMISM_MAX 2.0

/*
 * Classes by packets, and by the prior mean relative to that of all flows: powers of two; the classes at the ends
 * include the rest.
 */
static uint8_t class_of(double packets, double mean, double all)
{
	int size = packets >= 1 ? ilogb(packets) : 0;
	int level = OW_FLOW_LEVELS - 3 + (mean > 0 && all > 0 ? ilogb(mean / all) : 0);
	size = size < OW_FLOW_SIZES ? size : OW_FLOW_SIZES - 1;
	level = level < 0 ? 0 : level < OW_FLOW_LEVELS ? level : OW_FLOW_LEVELS - 1;
	return (uint8_t)(size * OW_FLOW_LEVELS + level);
}

static double mean_of_packets(const struct ow_flow_system *system)
{
	double delay = 0, packets = 0;
	for (size_t c = 0; c < system->rows; c++)
		delay += system->used[c] ? system->sum[c] : 0;
	for (size_t i = 0; i < system->flows * system->slots; i++)
		packets += system->entry[i].load;
	return packets > 0 ? delay / packets : 0;
}

/* The start of the iteration: the mean of all packets, and the same variance for all flows. */
static void begin(struct ow_flow_fit *fit, double mean_ns)
{
	const struct ow_flow_system *system = fit->system;
	struct ow_flow_prior *prior = fit->prior;
	double squares = 0, loads = 0;
	for (size_t i = 0; i < system->flows * system->slots; i++)
		loads += system->entry[i].load * system->entry[i].load;
	prior->mean_ns = mean_ns;
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

/*
 * Rows are divided into shares. With several layers a flow's rows are in different shares, so there is only one share.
 * OW_FLOW_SHARES: the flow is in no clean counter.
 */
static unsigned share_of(const struct ow_flow_entry *entry, const uint32_t *slot, uint32_t slots)
{
	bool told = false;
	for (uint32_t j = 0; j < slots; j++)
		told = told || entry[slot[j]].load > 0;
	if (!told)
		return OW_FLOW_SHARES;
	return slots == 1 ? (unsigned)(ow_mix64(entry[slot[0]].row + 1) >> 60) : OW_FLOW_SHARES - 1;
}

/* The number of flows with a clean counter in this slot. */
static size_t told_by(const struct ow_flow_system *system, uint32_t slot)
{
	size_t flows = 0;
	for (size_t f = 0; f < system->flows; f++)
		flows += ow_flow_entries(system, f)[slot].load > 0;
	return flows;
}

/* For each layer, the slot of the bank with the most flows in clean counters. Returns the number of slots. */
static uint32_t best_slots(const struct ow_flow_system *system, uint32_t *slot)
{
	uint32_t slots = 0, at = 0;
	for (uint32_t l = 0; l < system->data->params.layers; l++) {
		const struct ow_colate_layer *layer = &system->data->layer[l].layer;
		if (!ow_flow_is_bank(layer))
			continue;
		size_t most = told_by(system, slot[slots] = at);
		for (uint32_t j = 1; j < layer->spread; j++) {
			size_t told = told_by(system, at + j);
			if (told > most) {
				most = told;
				slot[slots] = at + j;
			}
		}
		slots++;
		at += layer->spread;
	}
	return slots;
}

/* Copies these slots of each flow, in the order of the fit. */
static int choose_slots(const struct ow_flow_system *system, const uint32_t *slot, uint32_t slots,
                        struct ow_flow_fit *fit, struct ow_flow_system *ret)
{
	*ret = *system;
	ret->slots = slots;
	ret->entry = calloc(ret->flows * ret->slots + 1, sizeof *ret->entry);
	ret->used = calloc(ret->rows + 1, sizeof *ret->used);
	ret->packets = calloc(ret->flows + 1, sizeof *ret->packets);
	fit->order = calloc(ret->flows + 1, sizeof *fit->order);
	if (!ret->entry || !ret->used || !ret->packets || !fit->order)
		return -ENOMEM;
	size_t at[OW_FLOW_SHARES + 1] = {0};
	for (size_t f = 0; f < ret->flows; f++) {
		unsigned share = share_of(ow_flow_entries(system, f), slot, slots);
		if (share < OW_FLOW_SHARES)
			fit->flows[share]++;
	}
	for (int i = 1; i < OW_FLOW_SHARES; i++)
		fit->flows[i] += at[i] = fit->flows[i - 1];
	at[OW_FLOW_SHARES] = fit->flows[OW_FLOW_SHARES - 1];
	for (size_t f = 0; f < ret->flows; f++) {
		const struct ow_flow_entry *from = ow_flow_entries(system, f);
		size_t to = at[share_of(from, slot, slots)]++;
		fit->order[to] = (uint32_t)f;
		ret->packets[to] = system->packets[f];
		for (uint32_t j = 0; j < ret->slots; j++) {
			ret->entry[to * ret->slots + j] = from[slot[j]];
			ret->used[from[slot[j]].row] += from[slot[j]].load > 0;
		}
	}
	return 0;
}

/* If every counter of a flow lost packets, there may be no evidence about such flows: twice the deviation. */
static void widen(const struct ow_flow_system *system, struct ow_flow_prior *prior)
{
	for (size_t f = 0; f < system->flows; f++) {
		double load = 0;
		for (uint32_t j = 0; j < system->slots; j++)
			load += ow_flow_entries(system, f)[j].load;
		prior->var[f] *= load > 0 ? 1 : 4;
	}
}

/* Copies the results back into the order of the flows. */
static void put_back(const struct ow_flow_fit *fit, struct ow_flow_prior *ret)
{
	ret->mean_ns = fit->prior->mean_ns;
	ret->within = fit->prior->within;
	ret->optimism = 1;
	ret->steps = fit->steps;
	ret->counters = 0;
	for (size_t c = 0; c < fit->system->rows; c++)
		ret->counters += fit->system->used[c] > 0;
	ret->freedom = ret->counters - (double)fit->steps - OW_FLOW_PARTS;
	memcpy(ret->line, fit->a, sizeof ret->line);
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

int ow_flow_prior_copy(const struct ow_flow_prior *prior, size_t flows, struct ow_flow_prior *ret_prior)
{
	*ret_prior = *prior;
	if (prior_allocate(ret_prior, flows) < 0)
		return -ENOMEM;
	memcpy(ret_prior->mean, prior->mean, flows * sizeof *prior->mean);
	memcpy(ret_prior->var, prior->var, flows * sizeof *prior->var);
	return 0;
}

/* A fit and its memory. */
struct work {
	struct ow_flow_prior prior;
	struct ow_flow_system system;
	struct ow_flow_fit fit;
};

static void work_done(struct work *work)
{
	ow_flow_prior_done(&work->prior);
	free(work->system.entry);
	free(work->system.used);
	free(work->system.packets);
	free(work->fit.order);
	free(work->fit.residual);
	free(work->fit.variance);
	free(work->fit.class_of);
}

static int work_init(const struct ow_flow_system *system, const uint32_t *slot, uint32_t slots, struct work *ret)
{
	*ret = (struct work){.fit = {.system = &ret->system, .prior = &ret->prior}};
	ret->fit.residual = calloc(system->rows + 1, sizeof *ret->fit.residual);
	ret->fit.variance = calloc(system->rows + 1, sizeof *ret->fit.variance);
	ret->fit.class_of = calloc(system->flows + 1, sizeof *ret->fit.class_of);
	if (prior_allocate(&ret->prior, system->flows) == 0 && ret->fit.residual && ret->fit.variance &&
	    ret->fit.class_of && choose_slots(system, slot, slots, &ret->fit, &ret->system) == 0)
		return 0;
	work_done(ret);
	return -ENOMEM;
}

/* Fits the variances around the means of the fit. */
static void settle(const struct ow_flow_system *system, struct work *work, struct ow_flow_prior *ret)
{
	const struct ow_flow_system *one = &work->system;
	for (int i = 0; i < STEPS_LINE; i++)
		ow_flow_fit_line(&work->fit);
	for (size_t f = 0; f < one->flows; f++)
		work->fit.class_of[f] = class_of(one->packets[f], work->prior.mean[f], work->prior.mean_ns);
	for (int i = 0; i < STEPS_CLASS; i++)
		ow_flow_fit_classes(&work->fit);
	put_back(&work->fit, ret);
	widen(system, ret);
}

int ow_flow_prior_init(const struct ow_flow_system *system, struct ow_flow_prior *ret_prior)
{
	uint32_t slot[OW_COLATE_LAYERS_MAX], slots = best_slots(system, slot);
	struct ow_flow_prior prior = {0};
	struct work work;
	int r = work_init(system, slot, slots, &work);
	if (r < 0)
		return r;
	begin(&work.fit, mean_of_packets(&work.system));
	r = prior_allocate(&prior, system->flows);
	if (r >= 0)
		r = ow_flow_profile(&work.fit);
	if (r >= 0) {
		settle(system, &work, &prior);
		*ret_prior = prior;
	} else {
		ow_flow_prior_done(&prior);
	}
	work_done(&work);
	return r;
}

/*
 * Fills a row for each flow with what its counters say about it, without the prior. Returns the number of flows with
 * such evidence.
 */
static size_t measure(const struct ow_flow_system *system, const struct ow_flow_prior *prior,
                      const struct ow_flow_mean *mean, struct ow_flow_system *ret)
{
	size_t measured = 0;
	for (size_t f = 0; f < system->flows; f++) {
		struct ow_flow_mean told = ow_flow_told(prior, mean, f);
		ret->entry[f].row = (uint32_t)f;
		ret->noise[f] = told.var;
		if (!(system->packets[f] > 0) || !(told.var * LEARNT_MIN < prior->var[f] * (1 - LEARNT_MIN)))
			continue;
		ret->entry[f].load = ret->used[f] = 1;
		ret->sum[f] = told.mean;
		measured++;
	}
	return measured;
}

/*
 * Fits the means of the flows by a curve through the measured values. Flows without a clean counter keep their mean:
 * flows that lost packets differ from the measured ones, and sums over packets describe them better than means of
 * flows.
 */
static int refine(const struct ow_flow_system *measured, struct ow_flow_prior *prior)
{
	struct work work = {0};
	int r = work_init(measured, &(uint32_t){0}, 1, &work);
	if (r < 0)
		return r;
	begin(&work.fit, prior->mean_ns);
	r = ow_flow_profile(&work.fit);
	for (size_t i = 0; r >= 0 && i < measured->flows; i++)
		if (isfinite(measured->noise[work.fit.order[i]]))
			prior->mean[work.fit.order[i]] = work.prior.mean[i];
	work_done(&work);
	return r;
}

/* The measured values depend on the variances, so the variances are fitted to the counters again. */
static int settle_again(const struct ow_flow_system *system, struct ow_flow_prior *prior)
{
	uint32_t slot[OW_COLATE_LAYERS_MAX], slots = best_slots(system, slot);
	struct work work;
	int r = work_init(system, slot, slots, &work);
	if (r < 0)
		return r;
	begin(&work.fit, prior->mean_ns);
	work.prior.within = prior->within;
	memcpy(work.fit.a, prior->line, sizeof prior->line);
	for (size_t i = 0; i < system->flows; i++)
		work.prior.mean[i] = prior->mean[work.fit.order[i]];
	settle(system, &work, prior);
	work_done(&work);
	return 0;
}

/* How much closer the curve is to the flows that it was fitted to than to the others, in variance. */
static double optimism(const struct ow_flow_system *measured, const struct ow_flow_prior *prior)
{
	double sum[2] = {0}, count[2] = {0};
	for (size_t f = 0; f < measured->flows; f++) {
		double off = measured->sum[f] - prior->mean[f], noise = measured->noise[f], var = prior->var[f];
		/* The other flows are only noise. Not squared, so that a few flows do not dominate. */
		if (!measured->used[f] || !(noise < var))
			continue;
		sum[ow_flow_judges(f)] += fabs(off) / sqrt(noise + var);
		count[ow_flow_judges(f)]++;
	}
	if (!(count[0] > 0) || !(count[1] > 0) || !(sum[0] > 0))
		return 1;
	double ratio = sum[1] / count[1] / (sum[0] / count[0]);
	return fmin(fmax(ratio * ratio, 1), OPTIMISM_MAX);
}

int ow_flow_prior_again(const struct ow_flow_system *system, const struct ow_flow_mean *mean,
                        struct ow_flow_prior *prior)
{
	size_t flows = system->flows;
	struct ow_flow_system measured = {
		.data = system->data, .flows = flows, .packets = system->packets, .slots = 1, .rows = flows};
	int r = -ENOMEM;
	/* As in ow_flow_profile: a curve of delays around 0 has no logarithm. */
	if (!(prior->mean_ns > 0) || prior->steps < STEPS_MIN)
		return 0;
	measured.entry = calloc(flows + 1, sizeof *measured.entry);
	measured.sum = calloc(flows + 1, sizeof *measured.sum);
	measured.noise = calloc(flows + 1, sizeof *measured.noise);
	measured.used = calloc(flows + 1, sizeof *measured.used);
	if (measured.entry && measured.sum && measured.noise && measured.used) {
		r = 0;
		if (measure(system, prior, mean, &measured) >= MEASURED_MIN) {
			r = refine(&measured, prior);
			r = r < 0 ? r : settle_again(system, prior);
			prior->optimism = r < 0 ? 1 : optimism(&measured, prior);
			for (size_t f = 0; f < flows; f++)
				prior->var[f] *= prior->optimism;
			r = r < 0 ? r : 1;
		}
	}
	free(measured.entry);
	free(measured.sum);
	free(measured.noise);
	free(measured.used);
	return r;
}

void ow_flow_prior_done(struct ow_flow_prior *prior)
{
	free(prior->mean);
	free(prior->var);
	*prior = (struct ow_flow_prior){0};
}
