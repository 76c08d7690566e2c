/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"

/*
 * Adds final results of a lane up to one of a longer time: a minute, an hour, a day, or whatever is asked for. Results,
 * and what was added up before, can be added; minutes of an hour give what its intervals give, except for rounding.
 *
 * Of a sum, counts are those of packets: where intervals were sampled by id, each packet of the sample counts as those
 * that it stands for. Mean and standard deviation are those of all packets with a delay (estimate/pool.h), quantiles
 * those of the histograms' sum. Their intervals contain that of a bucket, of samples, of the least certain clock, and
 * of packets without a histogram. The loss is that of all packets whose fate is known.
 */
struct ow_rollup;

int ow_rollup_create(struct ow_rollup **ret_rollup);
void ow_rollup_free(struct ow_rollup *rollup);

/* Begins another one, of this time. */
void ow_rollup_begin(struct ow_rollup *rollup, int64_t start_ns, int64_t length_ns);
/* In the order of time. */
void ow_rollup_add(struct ow_rollup *rollup, const struct ow_interval_result *result);
/*
 * The sum so far, final. Intervals that are longer than the time that it begun with make it longer. Without results its
 * `intervals` is 0.
 */
void ow_rollup_result(const struct ow_rollup *rollup, struct ow_interval_result *ret_result);

/* The intervals in a result or in a sum: of a result it is one. */
struct ow_rollup_intervals {
	uint64_t all, partial, unknown;
};
struct ow_rollup_intervals ow_rollup_intervals(const struct ow_interval_result *result);
/* The packets that its mean stands for, and how many a count of one is. */
uint64_t ow_rollup_delay_packets(const struct ow_interval_result *result);
