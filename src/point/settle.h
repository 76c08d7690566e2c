/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_SETTLE_H
#define OW_POINT_SETTLE_H

#include "estimate/live.h"

/*
 * Late or lost: turns what each interval's comparison found, in order, into results, first provisional, then final.
 * Both ways of comparing use it: packet by packet where both points are on one host (point/join.h), and through the
 * protocol (point/sender.h).
 *
 * A packet that only the sender has waits for `horizon` further intervals; if it turns up there among those that only
 * the receiver has, it was late, else lost (reconcile/carry.h). Packets are named by base id, or by any other 64 bits
 * that both points agree on (the 48-bit keys of a fold).
 */

/* What became known of one interval. Arrays stay the caller's. */
struct ow_settle_input {
	/*
	 * Names, status, counts, totals, drops, clocks, cost and synopsis are filled in by the caller; also mean,
	 * stddev and quantiles over the matched packets (samples of them), and duplicated, ambiguous, reordered. sent,
	 * received, matched must agree with the lists: sent - only_as = received - only_bs = matched. Settle fills in
	 * late, late_received, lost, pending, extra, loss_ratio, final, and brings the delays of late packets in.
	 */
	struct ow_live_result result;
	const struct ow_stamp *only_a, *only_b; /* name, time since the start of the interval at that point */
	size_t only_as, only_bs;
	/* The delays of matched packets: all of them (exact), or a uniform sample of which each stands for
	 * matched / count packets. Sorted or not. */
	const int64_t *delay_ns;
	size_t delays;
};

struct ow_settle;

typedef void (*ow_settle_sink)(void *arg, const struct ow_live_result *result);

/* horizon: 1 .. OW_CARRY_HORIZON_MAX. sink is called from within the functions below. */
int ow_settle_create(uint32_t horizon, ow_settle_sink sink, void *arg, struct ow_settle **ret_settle);
void ow_settle_free(struct ow_settle *settle);

/* The next interval: number one more than the last, or, after a gap, larger; packets that waited for an interval in the
 * gap stay undecided and become part of `cause`. */
int ow_settle_step(struct ow_settle *settle, const struct ow_settle_input *input);
/* An interval without comparison: a result of status UNKNOWN with the cause that it carries. */
int ow_settle_unknown(struct ow_settle *settle, const struct ow_live_result *result);
/* No more intervals: all that wait are final. */
int ow_settle_finish(struct ow_settle *settle);

/*
 * Everything so far as one result (the summary at the end of a run): counts and delays of all final intervals, interval
 * = how many there were, start and length of all. Late packets count as matched here: the run is one interval.
 */
void ow_settle_total(const struct ow_settle *settle, struct ow_live_result *ret_total);

#endif
