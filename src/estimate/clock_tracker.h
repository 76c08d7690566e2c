/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/reason.h"
#include <oneway/match.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The difference of the clocks of two points, followed over time from the delays that both directions show.
 *
 *     delay as seen, A to B = true delay + offset        delay as seen, B to A = true delay - offset
 *
 * offset: what B's clock is ahead of A's; drift: what it gains, in ns a second (ppb). No packet arrives before it was
 * sent, so the offset lies between -(least delay seen B to A) and +(least delay seen A to B) whatever else is true.
 * That is the bound. The estimate is its middle, as if the fastest packets took as long in both directions; where they
 * do not, it is wrong by half of the difference, which packets cannot show and the bound contains.
 *
 * The least delays of a period (a second) of one direction are its floor. A line with one slope for both directions is
 * fitted to the floors of the last 60 periods. A floor of both directions that leaves the line in opposite ways is a
 * step of a clock; one that stays away in one direction is another route, or a queue that does not empty, and leaves
 * the offset as it was.
 *
 * The module reads no clock and allocates nothing; an object may be copied. Not for use by several threads at a time.
 */

/* A delay as it was seen, by the clocks of both points. */
struct ow_clock_sample {
	int64_t at_ns;    /* by A's clock: when A sent the packet, or when A received it */
	int64_t delay_ns; /* received less sent; may be negative */
};
/* The shortest delay first. */
void ow_clock_samples_sort(struct ow_clock_sample *samples, size_t count);

/* The fastest packets of one direction in one period. Both points need those of both directions. */
struct ow_clock_floor {
	int64_t at_ns, low_ns; /* a packet and its delay: the least without outliers */
	int64_t drift_ppb;     /* the drift by which delays of different times were compared */
	uint32_t samples;      /* delays that it was chosen from, without impossible ones; 0 = there is none */
	uint32_t impossible;   /* that contradict the other direction */
};

enum ow_clock_event {
	OW_CLOCK_NO_EVENT,
	OW_CLOCK_STEP,  /* a clock was set */
	OW_CLOCK_ROUTE, /* the fastest packets of one direction take another time */
};

struct ow_clock_estimate {
	enum ow_reason reason; /* OW_NO_REASON: usable; else why offset and bound must not be used */
	double offset_ns, drift_ppb;
	double low_ns, high_ns;       /* the bound: low <= offset <= high */
	double asymmetry_ns;          /* what the route changes add to half of the difference of the directions */
	double round_trip_ns;         /* least delays of both directions together: no clock is part of it */
	uint64_t samples, impossible; /* of the last 60 periods */
	/* The latest event; its time by A's clock, and its size: what B's clock gained, or what the delay gained. */
	enum ow_clock_event event;
	int64_t event_ns;
	double event_size_ns;
	unsigned steps, routes; /* so far */
};

#define OW_CLOCK_POINTS 60

struct ow_clock_point {
	double at_s;   /* since the tracker's first sample */
	double low_ns; /* as in the floor */
	double drift_ppb;
	uint32_t samples, impossible;
};

struct ow_clock_side {
	struct ow_clock_point point[OW_CLOCK_POINTS]; /* by rising time */
	unsigned points;
	bool is_new;     /* the latest point has no part in an estimate yet */
	double level_ns; /* of the line, at now_s */
};

struct ow_clock_tracker {
	int64_t period_ns, zero_ns;
	bool begun;
	struct ow_clock_side side[OW_DIRECTIONS];
	double now_s;   /* of the latest points */
	double start_s; /* points before this are of another clock or route */
	double drift_ppb;
	bool fitted; /* the drift was */
	double best_ns, asymmetry_ns, offset_ns;
	double stepped_s;              /* time of the last step */
	struct ow_clock_estimate last; /* events */
};

/* period_ns: the time that a floor is of; 1 s or more. */
void ow_clock_tracker_init(struct ow_clock_tracker *tracker, int64_t period_ns);

/*
 * The floor of the samples of one period and direction. They may be a sample of the packets, and must not contain
 * packets of which another copy exists. The array is reordered. count 0: a floor without samples.
 */
void ow_clock_tracker_floor(const struct ow_clock_tracker *tracker, enum ow_direction direction,
                            struct ow_clock_sample *samples, size_t count, struct ow_clock_floor *ret_floor);

/*
 * Adds a floor, of this point or as another point says: any numbers are taken, impossible ones cost the estimate only.
 * Floors of one direction come by rising time; one that does not is ignored. The estimate changes as soon as both
 * directions have a new one. Returns whether there was an event.
 */
bool ow_clock_tracker_add(struct ow_clock_tracker *tracker, enum ow_direction direction,
                          const struct ow_clock_floor *floor);

/* The estimate for this time by A's clock. */
void ow_clock_tracker_estimate(const struct ow_clock_tracker *tracker, int64_t at_ns,
                               struct ow_clock_estimate *ret_estimate);
