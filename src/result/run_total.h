/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/delay.h"
#include "result/interval_result.h"

/* The final results of a run as one result: the summing part of interval_results. */
struct ow_run_total;

int ow_run_total_create(struct ow_run_total **ret_total);
void ow_run_total_free(struct ow_run_total *total);

/*
 * first: the interval as its comparison gave it, with the delays of the packets that arrived in time; final: with all
 * packets. known: delays of all its packets; or, if first has its own mean and a sample, of the late ones.
 */
void ow_run_total_add(struct ow_run_total *total, const struct ow_interval_result *first,
                      const struct ow_interval_result *final, bool full, const int64_t *sample, size_t samples,
                      const struct ow_delays *known);
/* Intervals without a result. */
void ow_run_total_gap(struct ow_run_total *total, uint64_t intervals);
void ow_run_total_result(const struct ow_run_total *total, struct ow_interval_result *ret_result);

/* For known delays: mean, standard deviation, extremes and quantiles of the result. */
void ow_interval_results_exact(const struct ow_delays *delays, struct ow_interval_result *result);
