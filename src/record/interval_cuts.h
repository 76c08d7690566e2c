/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Where a lane cuts time into intervals. Interval i begins at t0 + i * length + shift, and ends where i + 1 begins. The
 * receiver of a lane shifts its intervals by the usual delay, so that a packet is in the interval with the same number at
 * both points (estimate/interval_shift.h). The shift changes at one boundary at a time. Times of packets are since
 * t0 + i * length, whatever the shift.
 */
struct ow_interval_cuts {
	int64_t t0_ns, length_ns;
	int64_t change; /* from this interval on the shift is */
	int64_t after_ns,
		before_ns; /* this; before it is that. A change makes no interval shorter than half its length. */
};

static inline int64_t ow_cuts_shift(const struct ow_interval_cuts *cuts, int64_t interval)
{
	return interval < cuts->change ? cuts->before_ns : cuts->after_ns;
}

/* The time that times of its packets are relative to. */
static inline int64_t ow_cuts_origin(const struct ow_interval_cuts *cuts, int64_t interval)
{
	return cuts->t0_ns + interval * cuts->length_ns;
}

static inline int64_t ow_cuts_start(const struct ow_interval_cuts *cuts, int64_t interval)
{
	return ow_cuts_origin(cuts, interval) + ow_cuts_shift(cuts, interval);
}

/* The interval of this time; negative before the first. */
static inline int64_t ow_cuts_interval(const struct ow_interval_cuts *cuts, int64_t time_ns)
{
	if (time_ns < ow_cuts_start(cuts, 0))
		return -1;
	if (time_ns >= ow_cuts_start(cuts, cuts->change))
		return (time_ns - cuts->t0_ns - cuts->after_ns) / cuts->length_ns;
	int64_t interval = (time_ns - cuts->t0_ns - cuts->before_ns) / cuts->length_ns;
	return interval < cuts->change ? interval : cuts->change - 1;
}
