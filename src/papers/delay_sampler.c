/* SPDX-License-Identifier: Apache-2.0 */
#include "papers/delay_sampler.h"

#include <math.h>

/*
 * Cells at both ends in which the inverse is computed exactly: above 99.6 %, where a Pareto tail rises steeply, and
 * below 0.4 %.
 */
#define TAIL_CELLS 16

/* The same limit as in ow_model_sample. */
#define DELAY_MAX_NS 86400e9

/* The delay below which a share u of the packets is. */
static double inverse(const struct ow_sim_model *model, double u)
{
	double x = model->kind == OW_SIM_WEIBULL ? model->a * pow(-log1p(-u), 1 / model->b)
	                                         : model->a * pow(1 - u, -1 / model->b);
	return fmin(x, DELAY_MAX_NS);
}

void ow_delay_sampler_init(struct ow_delay_sampler *sampler, const struct ow_sim_model *model)
{
	sampler->model = *model;
	sampler->tabulated = model->kind == OW_SIM_WEIBULL || model->kind == OW_SIM_PARETO;
	for (int i = 0; sampler->tabulated && i < OW_DELAY_SAMPLER_CELLS; i++)
		sampler->entry[i] = inverse(model, i / (double)OW_DELAY_SAMPLER_CELLS);
}

int64_t ow_delay_sampler_next(const struct ow_delay_sampler *sampler, struct ow_random *random)
{
	if (!sampler->tabulated)
		return ow_model_sample(&sampler->model, random);
	double u = ow_random_unit(random) * OW_DELAY_SAMPLER_CELLS;
	int cell = (int)u;
	if (cell < TAIL_CELLS || cell >= OW_DELAY_SAMPLER_CELLS - TAIL_CELLS)
		return llrint(inverse(&sampler->model, u / OW_DELAY_SAMPLER_CELLS));
	double low = sampler->entry[cell];
	return llrint(low + (u - cell) * (sampler->entry[cell + 1] - low));
}
