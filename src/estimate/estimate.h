/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/reason.h"
#include "synopsis/synopsis.h"
#include <math.h>
#include <oneway/result.h>

/* Estimates from two synopses: each value has a 95 % interval of confidence or the reason why there is none. */

enum ow_value_status {
	OW_VALUE_NONE,      /* cannot be estimated: `reason` says why */
	OW_VALUE_ESTIMATED, /* low <= value <= high contains the true value in 95 % of cases; high may be INFINITY */
	OW_VALUE_EXACT,     /* low = value = high */
};

struct ow_value {
	enum ow_value_status status;
	double value, low, high;
	enum ow_reason reason; /* if NONE */
};

struct ow_estimate {
	uint64_t useful; /* delay samples that the estimates use (packets, each counted once) */
	bool complete;   /* every difference between the points is known */
	struct ow_value mean_ns, stddev_ns;
	struct ow_value lost, extra; /* packets */
	struct ow_value loss_ratio;
	struct ow_value quantile_ns[OW_QUANTILES];
	/* Bytes and round trips that were needed in addition to the encoded synopsis. */
	uint64_t more_bytes, round_trips;
	int64_t erase_ns; /* part of the time spent here: erasing differences from tables; RDA only */
};

/*
 * What one point has at the end of an interval: its synopsis, the number of packets it saw and, if the method keeps
 * one, its cache of all (or the sampled) packets.
 */
struct ow_view {
	const struct ow_synopsis *synopsis;
	uint64_t packets;
	const struct ow_sighting *cache;
	size_t cached;
};

static inline struct ow_value ow_value_exact(double value)
{
	return (struct ow_value){OW_VALUE_EXACT, value, value, value, OW_NO_REASON};
}

static inline struct ow_value ow_value_none(enum ow_reason reason)
{
	return (struct ow_value){.status = OW_VALUE_NONE, .reason = reason};
}

/* Adds to a delay and its interval. */
static inline void ow_value_shift(struct ow_value *value, double by_ns)
{
	if (value->status == OW_VALUE_NONE)
		return;
	value->value += by_ns;
	value->low += by_ns;
	value->high += by_ns;
}

/* number: the value, or a bound of its interval. NAN if there is none. */
static inline double ow_value_known(const struct ow_value *value, double number)
{
	return value->status == OW_VALUE_NONE ? NAN : number;
}

/* Converts a number of packets to an integer. A peer's number may be out of range, where a cast is undefined. */
static inline uint64_t ow_packets_of(double packets)
{
	return packets >= 1 ? packets < 0x1p64 ? (uint64_t)packets : UINT64_MAX : 0;
}

/* Sets all values to NONE with this reason and all counts to 0; estimators start with it. */
static inline void ow_estimate_none(struct ow_estimate *ret_estimate, enum ow_reason reason)
{
	struct ow_value none = ow_value_none(reason);
	*ret_estimate = (struct ow_estimate){
		.mean_ns = none, .stddev_ns = none, .lost = none, .extra = none, .loss_ratio = none};
	for (int q = 0; q < OW_QUANTILES; q++)
		ret_estimate->quantile_ns[q] = none;
}

/*
 * Calls the default estimator (corrected and centred) for the kind of the synopses. -EINVAL if they cannot be compared.
 */
int ow_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate,
                struct ow_error *err);
