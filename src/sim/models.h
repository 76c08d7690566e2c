/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"
#include "sim/sim.h"

/* Samples by inversion: the same seed gives the same delays. */

/* A delay in ns, at least 0. Not for models that are queues. */
int64_t ow_model_sample(const struct ow_sim_model *model, struct ow_random *random);
/* The median delay, ns; for a queue, 0. */
double ow_model_median(const struct ow_sim_model *model);
static inline bool ow_model_is_queue(const struct ow_sim_model *model)
{
	return model->kind == OW_SIM_FIFO || model->kind == OW_SIM_RED;
}

/* Exponential with mean 1. */
double ow_random_exponential(struct ow_random *random);

/* Weighted choice of 0 .. n-1 in constant time (Vose's alias method). */
struct ow_alias {
	struct ow_alias_cell {
		double keep;
		uint32_t other;
	} * cell;
	uint32_t count;
};
/* Weights i^-exponent, i = 1 .. n. */
int ow_alias_zipf(struct ow_alias *alias, uint32_t n, double exponent);
void ow_alias_done(struct ow_alias *alias);
static inline uint32_t ow_alias_sample(const struct ow_alias *alias, struct ow_random *random)
{
	uint32_t i = (uint32_t)ow_random_below(random, alias->count);
	return ow_random_unit(random) < alias->cell[i].keep ? i : alias->cell[i].other;
}

/* Packet sizes: imix is 7 packets of 64, 4 of 576 and 1 of 1500 bytes, 354 on average. */
uint32_t ow_size_sample(const struct ow_sim_size *size, struct ow_random *random);
double ow_size_mean(const struct ow_sim_size *size);

/* Which packets are lost: independent ones, or exponential episodes (LDA IV-C) with exponential gaps between. */
struct ow_loss {
	struct ow_sim_loss model;
	double position, turn; /* in packets: the current position, and the next change of state */
	bool bad;
};
void ow_loss_init(struct ow_loss *loss, const struct ow_sim_loss *model, struct ow_random *random);
bool ow_loss_next(struct ow_loss *loss, struct ow_random *random);
