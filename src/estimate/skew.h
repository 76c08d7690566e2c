/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ESTIMATE_SKEW_H
#define OW_ESTIMATE_SKEW_H

#include <oneway/match.h>

/*
 * Does B's clock run faster or slower than A's? The fastest packets of each stretch of time show it: their delays,
 * which should stay the same, climb or fall in a line; in both directions at once, with opposite signs. Stretches
 * double as time goes on, so that there are always 32 to 64 of them.
 */
#define OW_SKEW_BINS 64 /* at most OW_LINE_POINTS */

struct ow_skew {
	int64_t start_ns, width_ns; /* width 0: nothing was added yet */
	int64_t bin_ns;             /* start of the stretch of the latest sample, `bin`: most fall into the same */
	unsigned bin;
	int64_t least[OW_DIRECTIONS][OW_SKEW_BINS], at_ns[OW_DIRECTIONS][OW_SKEW_BINS]; /* the delay, and when */
	uint32_t count[OW_DIRECTIONS][OW_SKEW_BINS];
};

void ow_skew_init(struct ow_skew *drift);
/* Adds a delay sample. time_ns: A's time of it. */
void ow_skew_add(struct ow_skew *drift, enum ow_direction direction, int64_t time_ns, int64_t delay_ns);

/*
 * How many nanoseconds B's clock gains in a second (parts per billion), when there is a drift beyond doubt: a straight
 * line explains at least nine tenths of what the fastest delays vary, or without a drift packets of both directions
 * would take less than no time. Returns false when there is none to be seen.
 */
bool ow_skew_estimate(const struct ow_skew *drift, double *ret_ppb);

/* What is left of a drift that has been corrected for: less than what shows one beyond doubt. False: nothing to speak
 * of. */
bool ow_skew_refine(const struct ow_skew *drift, double *ret_ppb);

/*
 * Was a clock set while the captures ran? From one stretch of time to the next the fastest packets of one direction
 * become slower, and those of the other faster by as much, by more than the fastest of the stretches vary before and
 * after. ret_ns: what B's clock gained then; ret_at_ns: A's time.
 */
bool ow_skew_step(const struct ow_skew *drift, int64_t *ret_at_ns, int64_t *ret_ns);

#endif
