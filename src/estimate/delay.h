/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/result.h>
#include <stddef.h>

/*
 * Accumulates one-way delays: mean, standard deviation, minimum and maximum exactly (integer sums), quantiles within
 * 0.05 % by a log-linear histogram (values below 2048 ns exactly). Delays may be negative.
 */
struct ow_delays;

int ow_delays_create(struct ow_delays **ret_delays);
void ow_delays_free(struct ow_delays *delays);
void ow_delays_reset(struct ow_delays *delays);
/* Adds `times` samples of the same delay. It does not allocate and never fails. */
void ow_delays_add(struct ow_delays *delays, int64_t delay_ns, uint32_t times);
/* Adds many samples; faster than one by one, because memory accesses overlap. */
void ow_delays_add_many(struct ow_delays *delays, const int64_t *delay_ns, size_t count);
void ow_delays_merge(struct ow_delays *delays, const struct ow_delays *other);
void ow_delays_summary(const struct ow_delays *delays, struct ow_delay *ret_delay);
uint64_t ow_delays_samples(const struct ow_delays *delays);
/* The least and the greatest delay. Undefined without samples. */
void ow_delays_range(const struct ow_delays *delays, int64_t *ret_min_ns, int64_t *ret_max_ns);
/* RFC 2330 percentile: the smallest x with F(x) >= q, for 0 < q <= 1. Undefined without samples. */
double ow_delays_quantile(const struct ow_delays *delays, double q);
/*
 * By how much the difference of the 0.95 quantile and the median may be off, because both are within 0.05 %: far more
 * than 0.05 % of the difference, if delays (or the clocks' difference in them) are long and vary little.
 */
double ow_delay_jitter_error(double median_ns, double q95_ns);
/* Calls back for each slot of the histogram that is not empty, in order, with the middle of its values. */
typedef void (*ow_delays_slot)(void *arg, double delay_ns, uint64_t samples);
void ow_delays_each(const struct ow_delays *delays, ow_delays_slot slot, void *arg);
