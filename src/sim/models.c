/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions of delays, sizes, flows and losses. */
#include "sim/models.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Longer delays are cut to 1 day, so that times do not overflow. A Pareto tail can reach years. */
#define DELAY_MAX_NS 86400e9

/* Redraws of a truncated normal before the function returns 0; only extreme parameters need that many. */
#define NORMAL_TRIES 1000

double ow_random_exponential(struct ow_random *random)
{
	return -log1p(-ow_random_unit(random));
}

/* Box and Muller; the second value is not kept, so that a sample never depends on the previous one. */
static double normal(struct ow_random *random)
{
	double radius = sqrt(2 * ow_random_exponential(random));
	return radius * cos(6.283185307179586 * ow_random_unit(random));
}

static double truncated_normal(double mean, double sd, struct ow_random *random)
{
	for (int i = 0; i < NORMAL_TRIES; i++) {
		double x = mean + sd * normal(random);
		if (x >= 0)
			return x;
	}
	return 0;
}

int64_t ow_model_sample(const struct ow_sim_model *model, struct ow_random *random)
{
	double x = 0;
	switch (model->kind) {
	case OW_SIM_CONSTANT:
		x = model->a;
		break;
	case OW_SIM_NORMAL:
		x = truncated_normal(model->a, model->b, random);
		break;
	case OW_SIM_WEIBULL:
		x = model->a * pow(ow_random_exponential(random), 1 / model->b);
		break;
	case OW_SIM_PARETO:
		x = model->a * pow(1 - ow_random_unit(random), -1 / model->b);
		break;
	case OW_SIM_FIFO:
	case OW_SIM_RED:
		break;
	}
	return llrint(fmin(x, DELAY_MAX_NS));
}

double ow_model_median(const struct ow_sim_model *model)
{
	switch (model->kind) {
	case OW_SIM_CONSTANT:
	case OW_SIM_NORMAL:
		return model->a;
	case OW_SIM_WEIBULL:
		return fmin(model->a * pow(0.6931471805599453, 1 / model->b), DELAY_MAX_NS);
	case OW_SIM_PARETO:
		return fmin(model->a * pow(2, 1 / model->b), DELAY_MAX_NS);
	case OW_SIM_FIFO:
	case OW_SIM_RED:
		break;
	}
	return 0;
}

/* Vose (1991): every cell has its own share and the rest of one other; small and large cells are paired. */
static void alias_fill(struct ow_alias *alias, double *scaled, uint32_t *small, uint32_t *large)
{
	uint32_t smalls = 0, larges = 0;
	for (uint32_t i = 0; i < alias->count; i++) {
		if (scaled[i] < 1)
			small[smalls++] = i;
		else
			large[larges++] = i;
	}
	while (smalls && larges) {
		uint32_t s = small[--smalls], l = large[larges - 1];
		alias->cell[s] = (struct ow_alias_cell){scaled[s], l};
		scaled[l] -= 1 - scaled[s];
		if (scaled[l] < 1) {
			larges--;
			small[smalls++] = l;
		}
	}
	while (larges) {
		uint32_t l = large[--larges];
		alias->cell[l] = (struct ow_alias_cell){1, l};
	}
	while (smalls) {
		uint32_t s = small[--smalls];
		alias->cell[s] = (struct ow_alias_cell){1, s};
	}
}

int ow_alias_zipf(struct ow_alias *alias, uint32_t n, double exponent)
{
	struct ow_alias_cell *cell = calloc(n, sizeof *cell);
	double *scaled = calloc(n, sizeof *scaled);
	uint32_t *work = calloc(n, 2 * sizeof *work);
	int r = -ENOMEM;
	if (cell && scaled && work) {
		double sum = 0;
		for (uint32_t i = 0; i < n; i++)
			sum += scaled[i] = pow(i + 1, -exponent);
		for (uint32_t i = 0; i < n; i++)
			scaled[i] *= n / sum;
		alias->cell = cell;
		alias->count = n;
		alias_fill(alias, scaled, work, work + n);
		cell = NULL;
		r = 0;
	}
	free(cell);
	free(scaled);
	free(work);
	return r;
}

void ow_alias_done(struct ow_alias *alias)
{
	free(alias->cell);
	*alias = (struct ow_alias){0};
}

uint32_t ow_size_sample(const struct ow_sim_size *size, struct ow_random *random)
{
	switch (size->kind) {
	case OW_SIM_SIZE_CONSTANT:
		return size->min;
	case OW_SIM_SIZE_UNIFORM:
		return size->min + (uint32_t)ow_random_below(random, (uint64_t)size->max - size->min + 1);
	case OW_SIM_SIZE_IMIX:
		break;
	}
	uint64_t draw = ow_random_below(random, 12);
	return draw < 7 ? 64 : draw < 11 ? 576 : 1500;
}

double ow_size_mean(const struct ow_sim_size *size)
{
	return size->kind == OW_SIM_SIZE_IMIX ? (7 * 64 + 4 * 576 + 1500) / 12.0 : (size->min + (double)size->max) / 2;
}

/*
 * Episodes and gaps are intervals of the real line on which packet i is at i. Their means are L and L (1-P)/P, so that
 * the share of loss episodes is P.
 */
static void turn_next(struct ow_loss *loss, struct ow_random *random)
{
	double mean = loss->model.episode;
	if (!loss->bad)
		mean *= (1 - loss->model.ratio) / loss->model.ratio;
	loss->turn += mean * ow_random_exponential(random);
}

void ow_loss_init(struct ow_loss *loss, const struct ow_sim_loss *model, struct ow_random *random)
{
	*loss = (struct ow_loss){.model = *model};
	if (model->episode > 0 && model->ratio > 0 && model->ratio < 1) {
		/* Exponential times are memoryless: choosing the first state by its share gives the steady state. */
		loss->bad = ow_random_unit(random) < model->ratio;
		turn_next(loss, random);
	}
}

bool ow_loss_next(struct ow_loss *loss, struct ow_random *random)
{
	double ratio = loss->model.ratio;
	if (ratio <= 0)
		return false;
	if (loss->model.episode <= 0 || ratio >= 1)
		return ow_random_unit(random) < ratio;
	loss->position += 1;
	while (loss->position > loss->turn) {
		loss->bad = !loss->bad;
		turn_next(loss, random);
	}
	return loss->bad;
}
