/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include <stdio.h>

/* Live results with something in every field. */

static inline struct ow_value sample_value(enum ow_value_status status, double value, double half)
{
	return (struct ow_value){status, value, value - half, value + half, OW_NO_REASON};
}

static inline struct ow_value sample_none(enum ow_reason reason)
{
	return (struct ow_value){.status = OW_VALUE_NONE, .reason = reason};
}

/* A final result of interval i, by a synopsis: no minimum, no order. */
static inline struct ow_interval_result sample_live(int64_t interval)
{
	struct ow_interval_result r = {
		.segment = "london-paris",
		.class_name = "voice",
		.from = "london",
		.to = "paris",
		.interval = interval,
		.start_ns = INT64_C(1700000000250000000) + interval * INT64_C(1000000000),
		.length_ns = 1000000000,
		.final = true,
		.sent = 100000,
		.matched = 99700,
		.late = 40,
		.lost = 260,
		.late_received = 35,
		.extra = 5,
		.received = 99740,
		.duplicated = 3,
		.ambiguous = 12,
		.reordered = OW_RESULT_NOT_COUNTED,
		.bytes = 50000000,
		.total_sent = 100000,
		.total_received = 99740,
		.coverage = 1,
		.ring_drops_to = 7,
		.samples = 2048,
		.mean_ns = sample_value(OW_VALUE_EXACT, 50123.5, 0),
		.stddev_ns = sample_value(OW_VALUE_EXACT, 1234.25, 0),
		.min_ns = sample_none(OW_REASON_SAMPLED),
		.max_ns = sample_none(OW_REASON_SAMPLED),
		.loss_ratio = sample_value(OW_VALUE_EXACT, 0.0026, 0),
		.clock_from = {true, 4000},
		.clock_to = {false, OW_CLOCK_UNKNOWN},
		.synopsis = "fold 4 x 1024",
		.cost = {16384, 2, 100000, 200000, 300000, 400000, 500000, 1600000},
	};
	for (int i = 0; i < OW_QUANTILES; i++)
		r.quantile_ns[i] = sample_value(OW_VALUE_ESTIMATED, 50000 + 1000 * i, 100);
	r.quantile_ns[OW_Q999].high = __builtin_inf();
	return r;
}

/* The same interval soon after its end. */
static inline struct ow_interval_result sample_provisional(int64_t interval)
{
	struct ow_interval_result r = sample_live(interval);
	r.final = false;
	r.pending = r.lost + r.late;
	r.lost = r.late = 0;
	r.loss_ratio = sample_value(OW_VALUE_EXACT, 0, 0);
	return r;
}

static inline struct ow_interval_result sample_unknown(int64_t interval)
{
	struct ow_interval_result r = {
		.segment = "london-paris",
		.class_name = "voice",
		.from = "london",
		.to = "paris",
		.interval = interval,
		.start_ns = INT64_C(1700000000250000000) + interval * INT64_C(1000000000),
		.length_ns = 1000000000,
		.final = true,
		.status = OW_RESULT_UNKNOWN,
		.cause = "paris does not answer",
	};
	return r;
}
