/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/colate.h"

/*
 * Count-Min (Cormode and Muthukrishnan 2005) of the packets' times. A flow has one counter in each row. The smallest of
 * these is too high by at most B times the sum of all flows, with probability A. A baseline for comparison with COLATE
 * (its section 6.5).
 */
struct ow_countmin_params {
	uint32_t rows, columns;
	int64_t origin_ns; /* times count from here, because sums must not wrap: a minimum needs their order */
	uint64_t seed;
};

#define OW_COUNTMIN_ROWS_MAX     32
#define OW_COUNTMIN_COUNTERS_MAX (1u << 26)

/* The published size: columns e / B, rows ln(1 / (1 - A)), both rounded up. 0 < a, b < 1. */
struct ow_countmin_params ow_countmin_size(double a, double b);

struct ow_countmin;
/* -EINVAL, -ENOMEM. */
int ow_countmin_create(const struct ow_countmin_params *params, struct ow_countmin **ret_countmin,
                       struct ow_error *err);
void ow_countmin_free(struct ow_countmin *countmin);
/* Packets before the origin count as at the origin. */
void ow_countmin_add(struct ow_countmin *countmin, const struct ow_flow_sighting *sightings, size_t count);
/* this -= other, with the same parameters: a sketch of delays, if no packet was lost. Negative values wrap. */
int ow_countmin_subtract(struct ow_countmin *countmin, const struct ow_countmin *other, struct ow_error *err);
/* Estimates the sum of a flow's times since the origin. */
uint64_t ow_countmin_query(const struct ow_countmin *countmin, uint64_t flow);
