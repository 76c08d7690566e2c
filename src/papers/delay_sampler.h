/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/models.h"

/*
 * Delays of a model for streams of many millions of packets, several times faster than ow_model_sample: the inverse of
 * the distribution is tabulated. Between two entries, 1/4096 of the packets apart, it is interpolated linearly; in the
 * tails, where it is curved, it is computed. Mean and standard deviation stay within 0.01 % of the model's.
 */
#define OW_DELAY_SAMPLER_CELLS 4096

struct ow_delay_sampler {
	struct ow_sim_model model;
	bool tabulated;
	double entry[OW_DELAY_SAMPLER_CELLS +
	             1]; /* the delay in ns below which a share of i / cells is; the last entry is not used */
};

/* The model must not be a queue. */
void ow_delay_sampler_init(struct ow_delay_sampler *sampler, const struct ow_sim_model *model);
int64_t ow_delay_sampler_next(const struct ow_delay_sampler *sampler, struct ow_random *random);
