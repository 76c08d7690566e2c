/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of the generator draws the sending times ahead, because "the last n packets before the boundary" depends on
 * packets that have not been sent yet.
 */
#include "sim/drift.h"
#include "sim/models.h"
#include "sim/traffic.h"

#include <errno.h>
#include <stdlib.h>

struct ow_drift {
	const struct ow_sim_options *options;
	struct ow_gaps gaps; /* runs ahead */
	int64_t *ahead;      /* ring of future times; slot 0 is the next packet's */
	uint32_t size, first;
	int64_t sync_ns;     /* delay of the sync messages: the median of the model */
	uint64_t since;      /* packets since the last boundary */
	int64_t boundary;    /* number of the next boundary, at A */
	int64_t passed_b_ns; /* time of the last boundary at B */
	uint64_t counts[4];
};

static uint32_t larger(uint32_t x, uint32_t y)
{
	return x > y ? x : y;
}

int ow_drift_create(const struct ow_sim_options *options, struct ow_drift **ret_drift)
{
	const uint32_t *tuple = options->tuple;
	struct ow_drift *drift = calloc(1, sizeof *drift);
	if (!drift)
		return -ENOMEM;
	drift->options = options;
	drift->size = larger(tuple[0], tuple[2]) + larger(tuple[1], tuple[3]) + 2;
	drift->ahead = calloc(drift->size, sizeof *drift->ahead);
	if (!drift->ahead) {
		free(drift);
		return -ENOMEM;
	}
	ow_gaps_init(&drift->gaps, options);
	for (uint32_t i = 0; i < drift->size; i++)
		drift->ahead[i] = options->start_ns + ow_gaps_next(&drift->gaps);
	double median = 0;
	for (unsigned i = 0; i < options->delay.paths; i++)
		median += options->delay.path[i].weight * ow_model_median(&options->delay.path[i]);
	drift->sync_ns = options->base_delay_ns + (int64_t)median;
	drift->boundary = 1;
	drift->passed_b_ns = INT64_MIN;
	*ret_drift = drift;
	return 0;
}

void ow_drift_free(struct ow_drift *drift)
{
	if (drift)
		free(drift->ahead);
	free(drift);
}

static int64_t boundary_a(const struct ow_drift *drift)
{
	return drift->options->start_ns + drift->boundary * drift->options->interval_ns;
}

/* The time of the packet i places after the current one. */
static int64_t ahead(const struct ow_drift *drift, uint32_t i)
{
	return drift->ahead[(drift->first + i) % drift->size];
}

/*
 * The time of the next boundary at B: when the sync message arrives, but not before the post packets that overtake it
 * were sent. before = packets still to come before the boundary, the current one included. Beyond the known times it
 * returns the earliest possible time.
 */
static int64_t boundary_b(const struct ow_drift *drift, uint32_t before, uint32_t post)
{
	int64_t b_ns = boundary_a(drift) + drift->sync_ns;
	if (post && before + post - 1 < drift->size && ahead(drift, before + post - 1) >= b_ns)
		b_ns = ahead(drift, before + post - 1) + 1;
	return b_ns;
}

/* Packets from the current one on that are sent before the next boundary; at most `most`. */
static uint32_t count_before(const struct ow_drift *drift, uint32_t most)
{
	/* Times are in order: far from the boundary one comparison is enough. */
	if (ahead(drift, most - 1) < boundary_a(drift))
		return most;
	uint32_t n = 0;
	while (n < most && ahead(drift, n) < boundary_a(drift))
		n++;
	return n;
}

int64_t ow_drift_move(struct ow_drift *drift, int64_t time_ns, int64_t arrival_ns, bool lost)
{
	const uint32_t *tuple = drift->options->tuple;
	while (time_ns >= boundary_a(drift)) {
		drift->passed_b_ns = boundary_b(drift, 0, tuple[drift->boundary & 1 ? 1 : 3]);
		drift->boundary++;
		drift->since = 0;
	}
	/* Whether this is one of the first packets after the last boundary, which overtake its sync message. */
	int last_post = drift->boundary & 1 ? 3 : 1;
	int pre = drift->boundary & 1 ? 0 : 2, post = pre + 1;
	uint32_t before = count_before(drift, tuple[pre] + 1);
	int64_t b_ns = boundary_b(drift, before, before <= tuple[pre] ? tuple[post] : 0);
	if (drift->boundary > 1 && drift->since < tuple[last_post]) {
		if (arrival_ns >= drift->passed_b_ns)
			arrival_ns = drift->passed_b_ns - 1;
		drift->counts[last_post] += !lost;
	} else if (before <= tuple[pre]) {
		if (arrival_ns < b_ns)
			arrival_ns = b_ns;
		drift->counts[pre] += !lost;
	} else {
		if (arrival_ns < drift->passed_b_ns)
			arrival_ns = drift->passed_b_ns;
		if (arrival_ns >= b_ns)
			arrival_ns = b_ns - 1;
	}
	drift->since++;
	drift->ahead[drift->first] = drift->options->start_ns + ow_gaps_next(&drift->gaps);
	drift->first = (drift->first + 1) % drift->size;
	return arrival_ns;
}

void ow_drift_counts(const struct ow_drift *drift, uint64_t ret_counts[4])
{
	for (int i = 0; i < 4; i++)
		ret_counts[i] = drift->counts[i];
}
