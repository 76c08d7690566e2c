/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/*
 * Estimates whether B's clock runs faster or slower than A's, from the fastest packets of each stretch of time. Their
 * delays should be constant; with a drift they increase or decrease linearly, in both directions with opposite signs.
 * Stretches double in length as time goes on, so that there are always 32 to 64 of them.
 */
#define OW_SKEW_BINS 64 /* at most OW_LINE_POINTS */
/* Delays are kept by direction, and apart from these those of identical packets. */
#define OW_SKEW_ALIKE OW_DIRECTIONS
#define OW_SKEW_KINDS (2 * OW_DIRECTIONS)

struct ow_skew {
	int64_t start_ns, width_ns; /* width_ns 0: empty */
	int64_t bin_ns;             /* start of stretch `bin`, that of the latest sample */
	unsigned bin;
	int64_t least[OW_SKEW_KINDS][OW_SKEW_BINS], at_ns[OW_SKEW_KINDS][OW_SKEW_BINS]; /* the delay, and its time */
	uint32_t count[OW_SKEW_KINDS][OW_SKEW_BINS];
};

void ow_skew_init(struct ow_skew *drift);
/* Finds the stretch of a time, and makes it the latest one. */
void ow_skew_find(struct ow_skew *drift, int64_t time_ns);

/* Adds a delay sample. kind: the direction, and OW_SKEW_ALIKE more for an identical packet. time_ns: its time at A. */
static inline void ow_skew_add(struct ow_skew *drift, unsigned kind, int64_t time_ns, int64_t delay_ns)
{
	bool same = (uint64_t)time_ns - (uint64_t)drift->bin_ns < (uint64_t)drift->width_ns;
	if (__builtin_expect(!same, 0))
		ow_skew_find(drift, time_ns);
	unsigned i = drift->bin;
	if (!drift->count[kind][i]++ || delay_ns < drift->least[kind][i]) {
		drift->least[kind][i] = delay_ns;
		drift->at_ns[kind][i] = time_ns;
	}
}

/*
 * All samples were added. If a clock is set, identical packets are taken for earlier or later ones: they are used only in
 * a direction that has no others.
 */
void ow_skew_finish(struct ow_skew *drift);

/*
 * How many nanoseconds B's clock gains in a second (parts per billion), if there is certainly a drift: a straight line
 * explains at least nine tenths of the variation of the fastest delays, or without a drift packets of both directions
 * together would take less than no time. Returns false if no drift is found.
 */
bool ow_skew_estimate(const struct ow_skew *drift, double *ret_ppb);

/* The remaining drift after a correction; it may be smaller than what ow_skew_estimate reports. False: negligible. */
bool ow_skew_refine(const struct ow_skew *drift, double *ret_ppb);

/*
 * Detects that a clock was set during the captures. From one stretch of time to the next the fastest packets of one
 * direction become slower and those of the other become faster by the same amount, which is more than the fastest
 * packets vary before and after. ret_ns: what B's clock gained; ret_at_ns: the time at A; ret_unsure: one or two packets of
 * a direction, before or after it, are all that shows it, or they vary by more than that.
 */
bool ow_skew_step(const struct ow_skew *drift, int64_t *ret_at_ns, int64_t *ret_ns, bool *ret_unsure);

/*
 * The same where hardly any packets of the other direction are there to compare with: a clock was set, or the route
 * changed. ret_ns: by how much the fastest packets of *ret_way become slower.
 */
bool ow_skew_shift(const struct ow_skew *drift, enum ow_direction *ret_way, int64_t *ret_at_ns, int64_t *ret_ns);
