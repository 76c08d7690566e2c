/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/clock_tracker.h"
#include "result/result_clock.h"

/*
 * The clocks of the two points of a segment, as the two lanes of one class show them (estimate/clock_tracker.h). Both
 * points have one; each knows the floors of the lane that it sends on, and is told those of the other lane. The sending
 * point of a lane decides what is done to its delays, and says so in the result:
 *
 *   trusted   nothing is added. The error is what both clocks state; 0 if they are one clock, not known if a clock is
 *             not synchronised.
 *   relative  the estimated difference is taken off the receiver's times, and the bound of the estimate is the error.
 *   none      nothing is added, because nothing is known: one direction only, a clock that was just set, ...
 *
 * `auto` trusts one clock, and clocks whose stated error is at most a tenth of the least delay, unless packets show
 * that they are further apart; then it is relative. Where the difference cannot be estimated either, clocks that state
 * an error are trusted with it. Captures do not know their clocks: they are trusted as long as no packet contradicts.
 * What clocks state is also a bound of its estimate, if packets do not contradict.
 *
 * A is the point whose name comes first, so that both points see the same offset.
 */
struct ow_segment_clock_options {
	enum ow_clock_mode mode;
	int64_t length_ns; /* of an interval */
	bool same;         /* both points have one clock */
	bool files;        /* clocks of captures */
};

struct ow_segment_clock;

int ow_segment_clock_create(const struct ow_segment_clock_options *options, struct ow_segment_clock **ret_clock);
void ow_segment_clock_free(struct ow_segment_clock *clock);

/*
 * The sending point: an interval with its mean by the clocks as they are. samples: as in ow_exchange_clock; the array
 * is changed. Sets the clock_* members of *result and the numbers in which clocks have no part; the caller adds
 * clock_offset_ns to mean and quantiles. other: a clock of the same two points to ask where this one cannot tell; or
 * NULL. Returns whether a step or another route was found.
 */
bool ow_segment_clock_correct(struct ow_segment_clock *clock, enum ow_direction direction,
                              struct ow_clock_sample *samples, size_t count, const struct ow_segment_clock *other,
                              struct ow_interval_result *result, struct ow_clock_floor *ret_floor);

/* The receiving point: what the sending one has found. */
bool ow_segment_clock_told(struct ow_segment_clock *clock, enum ow_direction direction,
                           const struct ow_clock_floor *floor, const struct ow_interval_result *result);

/* Whether it has an estimate for this time. */
bool ow_segment_clock_usable(const struct ow_segment_clock *clock, int64_t at_ns);

/* The latest event in words: "B's clock stepped by +2 ms". */
#define OW_CLOCK_EVENT_TEXT 80
void ow_segment_clock_event(const struct ow_segment_clock *clock, char ret_text[OW_CLOCK_EVENT_TEXT]);
