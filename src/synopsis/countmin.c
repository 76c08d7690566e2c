/* SPDX-License-Identifier: Apache-2.0 */
/* Count-Min of packet times. */
#include "synopsis/countmin.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct ow_countmin {
	struct ow_countmin_params params;
	uint64_t key[OW_COUNTMIN_ROWS_MAX]; /* of the rows' hashes */
	uint64_t counter[];                 /* row after row */
};

struct ow_countmin_params ow_countmin_size(double a, double b)
{
	return (struct ow_countmin_params){
		.rows = (uint32_t)fmin(OW_COUNTMIN_ROWS_MAX, fmax(1, ceil(log(1 / (1 - a))))),
		.columns = (uint32_t)fmin(OW_COUNTMIN_COUNTERS_MAX, ceil(M_E / b))};
}

int ow_countmin_create(const struct ow_countmin_params *params, struct ow_countmin **ret_countmin, struct ow_error *err)
{
	if (!params->rows || params->rows > OW_COUNTMIN_ROWS_MAX || !params->columns ||
	    (uint64_t)params->rows * params->columns > OW_COUNTMIN_COUNTERS_MAX)
		return ow_error_set(err, EINVAL, "count-min: %u rows of %u counters", params->rows, params->columns);
	size_t counters = (size_t)params->rows * params->columns;
	struct ow_countmin *countmin = calloc(1, sizeof *countmin + counters * sizeof *countmin->counter);
	if (!countmin)
		return ow_error_set(err, ENOMEM, "count-min: not enough memory for %zu counters", counters);
	countmin->params = *params;
	for (uint32_t row = 0; row < params->rows; row++)
		countmin->key[row] = ow_mix64(params->seed + row + 1);
	*ret_countmin = countmin;
	return 0;
}

void ow_countmin_free(struct ow_countmin *countmin)
{
	free(countmin);
}

static size_t place(const struct ow_countmin *c, uint32_t row, uint64_t flow)
{
	uint64_t hash = ow_mix64(flow ^ c->key[row]);
	return (size_t)row * c->params.columns + ((hash >> 32) * c->params.columns >> 32);
}

void ow_countmin_add(struct ow_countmin *countmin, const struct ow_flow_sighting *sightings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int64_t time_ns = sightings[i].time_ns - countmin->params.origin_ns;
		for (uint32_t row = 0; row < countmin->params.rows && time_ns > 0; row++)
			countmin->counter[place(countmin, row, sightings[i].flow)] += (uint64_t)time_ns;
	}
}

int ow_countmin_subtract(struct ow_countmin *countmin, const struct ow_countmin *other, struct ow_error *err)
{
	const struct ow_countmin_params *x = &countmin->params, *y = &other->params;
	if (x->rows != y->rows || x->columns != y->columns || x->seed != y->seed || x->origin_ns != y->origin_ns)
		return ow_error_set(err, EINVAL, "count-min: the sketches have other sizes, seeds or origins");
	for (size_t i = 0; i < (size_t)x->rows * x->columns; i++)
		countmin->counter[i] -= other->counter[i];
	return 0;
}

uint64_t ow_countmin_query(const struct ow_countmin *countmin, uint64_t flow)
{
	uint64_t least = UINT64_MAX;
	for (uint32_t row = 0; row < countmin->params.rows; row++) {
		uint64_t sum = countmin->counter[place(countmin, row, flow)];
		least = sum < least ? sum : least;
	}
	return least;
}
