/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/clock_words.h"
#include "result/interval_result.h"

/* What is done about the clocks of two points: key `clock` of a segment. */
enum ow_clock_mode {
	OW_CLOCK_AUTO,     /* trusted where their error is small against the delay, else relative */
	OW_CLOCK_TRUSTED,  /* delays are differences of the clocks as they are */
	OW_CLOCK_RELATIVE, /* their difference is estimated from the packets of both directions, and taken off */
};

/* What the clocks mean for the delays of a result. to: the receiving point, as it is printed. */
void ow_result_clock_words(const struct ow_interval_result *result, const char *to, struct ow_clock_words *ret_words);

/* What was added to the times of `to`, in whole nanoseconds. */
int64_t ow_result_clock_added_ns(const struct ow_interval_result *result);
/* By how much the clocks may make a delay wrong, after what was added to the times of `to`; NAN = not known. */
double ow_result_clock_error_ns(const struct ow_interval_result *result);

/*
 * Whether the delays are those of packets. Not with method `none`: then they contain the difference of the clocks, which
 * may be anything, and must not be added to others.
 */
bool ow_result_clock_known(const struct ow_interval_result *result);
/*
 * Takes such delays out: mean, extremes, quantiles and histogram are not known then, for the reason that the offset is
 * not; its packets count as without_clock. What no clock has a part in stays. Results of earlier versions have them.
 */
void ow_result_clock_forget(struct ow_interval_result *result);
/*
 * For a sum of results: the offset, drift and method of *sum and *result become such that adding them up takes those
 * that are known. first: nothing is in the sum.
 */
void ow_result_clock_meet(struct ow_interval_result *sum, struct ow_interval_result *result, bool first);

/* Widens the intervals of confidence of mean and quantiles by what the clocks may add, if that is known; without the
 * difference of the clocks, there are no delays. Once for a result. */
void ow_result_clock_widen(struct ow_interval_result *result);
/* Takes that back, for sums: what clocks add does not become less with the number of packets. */
void ow_result_clock_narrow(struct ow_interval_result *result);

/* How the clocks were treated, in a sentence: "" for clocks that were trusted. to: as above. */
#define OW_RESULT_CLOCK_NOTE 256
void ow_result_clock_note(const struct ow_interval_result *result, const char *to, char ret_note[OW_RESULT_CLOCK_NOTE]);
