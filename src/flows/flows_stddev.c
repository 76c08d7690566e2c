/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard deviation of delays within a flow. A bank contains only the sum of a flow's delays, which says nothing
 * about it; a layer of COLATE's form spreads the packets over m counters. If the means are known (from the banks) and
 * the packets of each counter are counted (count_bits), the mean is subtracted before squaring (formulas 3.1), which
 * the paper cannot do:
 *     E_c = D_c - sum_f n_cf theta_f,   E_c^2 has the mean s_c = sum_f n_cf (1 - n_cf / p_f) sigma_f^2 + N_c
 * n_cf is not known, but its sum is: each flow's expected n takes its share of the difference, and the rest adds N_c =
 * sum_f n_cf (theta_f - mean of the counter)^2. Without counts it adds sum n theta^2: the paper's second moments.
 * sigma_f^2 is then a variance component of each flow, fitted as in flows_prior.c.
 *
 * A counter in which the flow has the share h of s_c counts as h^2 observations of chi-squared: for a flow alone in m
 * counters this is the floor of 1 / sqrt(2 m) (m - 1: the mean is subtracted). Below OBSERVATIONS_MIN there is no
 * estimate.
 */
#include "estimate/distribution.h"
#include "flows/flows_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define ROUNDS 15
/*
 * With fewer (effective) observations the flow is not the main part of its counters, and the part of the others is
 * uncertain.
 */
#define OBSERVATIONS_MIN 8.0
/*
 * At most this share of the squares of a flow's counters may come from errors of means. These errors are taken as this
 * many times as large as their intervals: if a mean is far off, the packets of the flow seem to deviate.
 */
#define MEAN_SHARE  0.25
#define MEAN_ERRORS 2
/* The weight, in observations, of what all flows have in common: enough to determine flows without observations. */
#define COMMON_WEIGHT 0.25

struct spread {
	const struct ow_flows *data;
	const struct ow_flow_mean *mean;
	uint32_t layers[OW_COLATE_LAYERS_MAX], count; /* of COLATE's form */
	size_t first[OW_COLATE_LAYERS_MAX], rows;
	double *load, *center; /* of each row: expected packets; their mean delay, then E_c^2 */
	double *noise, *total; /* N_c; s_c */
	/* of each row: the part of E_c^2 that errors of means may have added */
	double *doubt;
	const struct ow_flow_estimate *estimate; /* with the intervals of the means */
	double *var;                             /* sigma_f^2 */
	double common;                           /* sigma^2 / theta^2 of all flows */
};

static double per_counter(const struct spread *s, uint32_t number, size_t f)
{
	const struct ow_colate_layer *layer = &s->data->layer[number].layer;
	const struct ow_flow_load *flow = &s->data->flow[f];
	double share = (double)(layer->last - layer->first) / OW_COLATE_SHARE;
	double n = share < 1 && flow->in_layer[number] >= 0 ? flow->in_layer[number] : flow->packets * share;
	return n > 0 && isfinite(n) ? n / layer->spread : 0;
}

typedef void visitor(struct spread *s, size_t f, size_t row, double n, void *data);

/* Calls a function for every clean counter of a flow. */
static void each_counter(struct spread *s, size_t f, visitor *visit, void *data)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct ow_flows_layer *layer = &s->data->layer[s->layers[i]];
		double n = per_counter(s, s->layers[i], f);
		for (uint32_t j = 0; n > 0 && j < layer->layer.spread; j++) {
			uint32_t c = ow_colate_counter(&layer->layer, s->data->params.seed, s->data->flow[f].flow, j);
			if (layer->clean[c])
				visit(s, f, s->first[i] + c, n, data);
		}
	}
}

static void add_load(struct spread *s, size_t f, size_t row, double n, void *data)
{
	(void)data;
	s->load[row] += n;
	s->center[row] += n * s->mean[f].mean;
}

/* The part of a flow's packets that the counter's mean does not explain, because their number is not known. */
static void add_noise(struct spread *s, size_t f, size_t row, double n, void *data)
{
	double apart = s->mean[f].mean - (*(bool *)data ? s->center[row] : 0);
	s->noise[row] += n * apart * apart + n * n * s->mean[f].var;
}

/* An error of a mean is the same in all of the flow's counters, so it does not average out. */
static void add_doubt(struct spread *s, size_t f, size_t row, double n, void *data)
{
	const struct ow_value *mean = &s->estimate[f].mean_ns;
	double off = mean->status == OW_VALUE_EXACT       ? 0
	             : mean->status == OW_VALUE_ESTIMATED ? fmax(mean->high - mean->value, mean->value - mean->low)
	                                                  : OW_ONE_PEAK_95 * sqrt(s->mean[f].var);
	(void)data;
	s->doubt[row] += (n + n * n) * MEAN_ERRORS * MEAN_ERRORS * off * off;
}

static double own_part(const struct spread *s, size_t f, double n)
{
	return n * fmax(1 - n / s->data->flow[f].packets, 0);
}

static void add_total(struct spread *s, size_t f, size_t row, double n, void *data)
{
	(void)data;
	s->total[row] += own_part(s, f, n) * s->var[f];
}

struct heard {
	double up, down, doubt, observations;
};

static void hear(struct spread *s, size_t f, size_t row, double n, void *data)
{
	struct heard *heard = data;
	double own = own_part(s, f, n) * s->var[f] / s->total[row];
	if (!(s->total[row] > 0))
		return;
	heard->up += own * s->center[row] / s->total[row];
	heard->down += own;
	heard->doubt += own * s->doubt[row] / s->total[row];
	heard->observations += own * own;
}

/* The number next to `expected` that is `count` modulo 2^bits. */
static double unwrap(uint32_t count, unsigned bits, double expected)
{
	double size = ldexp(1, (int)bits);
	return count + size * round((expected - count) / size);
}

/* Writes E_c^2 into center; rows without flows stay 0. */
static void take_out_means(struct spread *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct ow_flows_layer *layer = &s->data->layer[s->layers[i]];
		bool counted = layer->counts;
		for (uint32_t c = 0; c < layer->layer.counters; c++) {
			size_t row = s->first[i] + c;
			double n = s->load[row];
			if (!(n > 0))
				continue;
			if (counted)
				n = unwrap(layer->counts[c], layer->layer.count_bits, n);
			double e = layer->delay_ns[c] + n * ((double)s->data->offset_ns - s->center[row]);
			s->center[row] = e * e;
		}
	}
}

static void set_totals(struct spread *s)
{
	for (size_t c = 0; c < s->rows; c++)
		s->total[c] = s->noise[c];
	for (size_t f = 0; f < s->data->flows; f++)
		each_counter(s, f, add_total, NULL);
}

/* First fits what all flows have in common, then each flow. */
static void fit(struct spread *s)
{
	size_t flows = s->data->flows;
	s->common = 1;
	for (int round = 0; round < 2 * ROUNDS; round++) {
		bool all = round < ROUNDS;
		double up = 0, down = 0;
		for (size_t f = 0; all && f < flows; f++)
			s->var[f] = s->common * s->mean[f].mean * s->mean[f].mean;
		set_totals(s);
		for (size_t f = 0; f < flows; f++) {
			struct heard heard = {0};
			each_counter(s, f, hear, &heard);
			up += heard.up;
			down += heard.down;
			double prior = s->common * s->mean[f].mean * s->mean[f].mean;
			if (!all && prior > 0 && s->var[f] > 0)
				s->var[f] *= sqrt((heard.up + COMMON_WEIGHT * prior / s->var[f]) /
				                  (heard.down + COMMON_WEIGHT));
		}
		if (all && down > 0 && up > 0)
			s->common *= sqrt(up / down);
	}
	set_totals(s);
}

/* Wilson and Hilferty; z standard normal. Good to 1 % from 4 observations on. */
static double chi2_of(double observations, double z)
{
	double c = 2 / (9 * observations);
	return observations * pow(1 - c + z * sqrt(c), 3);
}

static struct ow_value value_of(struct spread *s, size_t f)
{
	struct heard heard = {0};
	if (!(s->data->flow[f].packets >= 2))
		return ow_value_none(OW_REASON_FLOW_FEW_PACKETS);
	each_counter(s, f, hear, &heard);
	if (!(heard.observations >= OBSERVATIONS_MIN))
		return ow_value_none(OW_REASON_FLOW_NOISE);
	double of_means = s->var[f] * heard.doubt / heard.down;
	if (!(of_means <= MEAN_SHARE * s->var[f]))
		return ow_value_none(OW_REASON_FLOW_MEAN_UNSURE);
	/* Delays are not normal, so the quantiles are wider than those of chi-squared. */
	double n = heard.observations, low = s->var[f] * n / chi2_of(n, OW_ONE_PEAK_95) - of_means;
	return (struct ow_value){OW_VALUE_ESTIMATED, sqrt(s->var[f]), sqrt(fmax(low, 0)),
	                         sqrt(s->var[f] * n / fmax(chi2_of(n, -OW_ONE_PEAK_95), 0) + of_means), OW_NO_REASON};
}

static int allocate(struct spread *s)
{
	s->load = calloc(s->rows + 1, sizeof *s->load);
	s->center = calloc(s->rows + 1, sizeof *s->center);
	s->noise = calloc(s->rows + 1, sizeof *s->noise);
	s->total = calloc(s->rows + 1, sizeof *s->total);
	s->doubt = calloc(s->rows + 1, sizeof *s->doubt);
	s->var = calloc(s->data->flows + 1, sizeof *s->var);
	return s->load && s->center && s->noise && s->total && s->doubt && s->var ? 0 : -ENOMEM;
}

int ow_flows_stddev(const struct ow_flows *flows, const struct ow_flow_mean *mean, struct ow_flow_estimate *ret)
{
	struct spread s = {.data = flows, .mean = mean, .estimate = ret};
	bool counted = true;
	for (uint32_t l = 0; l < flows->params.layers; l++) {
		const struct ow_flows_layer *layer = &flows->layer[l];
		if (layer->layer.form != OW_COLATE_HASHED || layer->layer.is_signed || layer->layer.spread < 2)
			continue;
		s.first[s.count] = s.rows;
		s.layers[s.count++] = l;
		s.rows += layer->layer.counters;
		counted = counted && layer->counts;
	}
	if (!s.count)
		return 0;
	int r = allocate(&s);
	if (r >= 0) {
		for (size_t f = 0; f < flows->flows; f++)
			each_counter(&s, f, add_load, NULL);
		for (size_t c = 0; c < s.rows; c++)
			s.center[c] /= s.load[c] > 0 ? s.load[c] : 1;
		for (size_t f = 0; f < flows->flows; f++)
			each_counter(&s, f, add_noise, &counted);
		for (size_t f = 0; f < flows->flows; f++)
			each_counter(&s, f, add_doubt, NULL);
		take_out_means(&s);
		fit(&s);
		for (size_t f = 0; f < flows->flows; f++)
			ret[f].stddev_ns = value_of(&s, f);
	}
	free(s.load);
	free(s.center);
	free(s.noise);
	free(s.total);
	free(s.doubt);
	free(s.var);
	return r;
}
