/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the delays of the last intervals say about those of the next one: between which values they lie, so that a few
 * bits of a time tell it (estimate/low_bits.h); and how many of them a sample needs, so that half of the 95 %
 * interval of the p99 is at most this share of its value.
 */
#define OW_FORECAST_ERROR 0.1

struct ow_forecast {
	bool known;
	int64_t least_ns, most_ns; /* by the clocks as they are */
	uint32_t sample;           /* packets; 0 = not known */
};

/* delay_ns: those of an interval, sorted. surprised: they were not within the window. */
void ow_forecast_learn(struct ow_forecast *forecast, const int64_t *delay_ns, size_t count, bool surprised);

/* The same delays, once it is known what to add for the clocks. population: packets that they stand for. */
void ow_forecast_learn_sample(struct ow_forecast *forecast, const int64_t *delay_ns, size_t count, uint64_t population,
                              int64_t added_ns);

/* A delay is expected within [least_ns, least_ns + 2^bits). */
struct ow_delay_window {
	int64_t least_ns;
	unsigned bits;
};
/* any: what is possible at all. */
struct ow_delay_window ow_forecast_window(const struct ow_forecast *forecast, struct ow_delay_window any);
/* Contains least_ns .. most_ns. */
struct ow_delay_window ow_delay_window_of(int64_t least_ns, int64_t most_ns);
