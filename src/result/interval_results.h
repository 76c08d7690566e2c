/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RESULT_INTERVAL_RESULTS_H
#define OW_RESULT_INTERVAL_RESULTS_H

#include "reconcile/scope_verdict.h"
#include "result/interval_result.h"

/*
 * Late or lost: turns what each interval's comparison found, in order, into results, first provisional, then final.
 * Both ways of comparing use it: packet by packet where both points are on one host (point/page_match.h), and through
 * the protocol (exchange/exchange.h).
 *
 * A packet that only the sender has waits for `horizon` further intervals; if it turns up there among those that only
 * the receiver has, it was late, else lost (reconcile/late_packets.h). Packets are named by base id, or by any other 64
 * bits that both points agree on (the 48-bit keys of a fold).
 *
 * Nothing is lost without evidence. A packet stays pending for ever, and its interval is PARTIAL with a cause, if it
 * should have arrived (within twice the longest delay seen so far) in an interval that is unknown, in which the
 * receiving point's ring dropped frames, which has a smaller sample than its own, or after the last one. Where the
 * points' clocks may be apart by more than the delay, a packet may also arrive in the interval before its own; it
 * counts as late. So it may be that it arrived before the first one, by as much as twice the most that a packet was
 * early so far.
 *
 * Nor is a packet extra without evidence: what arrives so soon after an unknown interval that it may have been sent in
 * it counts as late_received.
 *
 * Identical packets over boundaries: while a packet of some name waits, a packet of that name in a later interval may
 * be either. Before pairing, ask ow_interval_results_waits: if w of a name wait and the receiver has q of it, the first
 * min(w, q) belong into only_b, the rest pairs. If that cannot be done (times unknown), count the pairs of this name as
 * ambiguous.
 */

/* Of a packet in only_b: its delay, if it is late, cannot be told. */
#define OW_INTERVAL_RESULTS_NO_TIME INT64_MIN

/* What became known of one interval. Arrays stay the caller's. */
struct ow_interval_results_input {
	/*
	 * Names, status, counts, totals, drops, clocks, cost and synopsis are filled in by the caller; also mean,
	 * stddev and quantiles over the matched packets (samples of them), and duplicated, ambiguous, reordered. sent,
	 * received, matched must agree with the lists: sent - only_as = received - only_bs = matched. Settle fills in
	 * late, late_received, lost, pending, extra, loss_ratio, coverage, final, and brings the delays of late packets
	 * in; where all delays are given, mean, stddev, min, max and quantiles are its work altogether.
	 */
	struct ow_interval_result result;
	/* Name, time since the start of the interval at that point; only_b in the order of arrival. */
	const struct ow_sighting *only_a, *only_b;
	size_t only_as, only_bs;
	/* The delays of matched packets: all of them but the ambiguous (delays = matched - ambiguous), or a uniform
	 * sample of which each stands for as many packets. Sorted or not. */
	const int64_t *delay_ns;
	size_t delays;
	/* Where order is known (or NULL): for each of only_b, when the latest of the packets was sent that had arrived
	 * before it, and the same for the end of the interval. Since its start; INT64_MIN = none had. */
	const int64_t *newest_ns;
	int64_t newest_at_end_ns;
	/* With scope `shared`: all packets sent in the interval, whether each is matched, and their flows; only_a have
	 * the number of their flow, only_b 1 if packets of their flow are matched, else 0. */
	const struct ow_sighting *packet;
	const uint8_t *is_matched;
	size_t packets;
	const struct ow_scope_flow *flow;
	size_t flows;
	/* Of the time before or after the run: its packets meet those of the run, but it has no result and no part in
	 * the total. */
	bool quiet;
};

struct ow_interval_results;

typedef void (*ow_interval_results_sink)(void *arg, const struct ow_interval_result *result);

/* horizon: 1 .. OW_LATE_PACKETS_HORIZON_MAX. sink is called from within the functions below. */
int ow_interval_results_create(uint32_t horizon, ow_interval_results_sink sink, void *arg,
                               struct ow_interval_results **ret_settle);
/* To be called before the first interval: packets of flows that do not pass the receiver are not lost but unshared
 * (reconcile/scope_verdict.h). length_ns: of an interval. 0 or -ENOMEM. */
int ow_interval_results_share(struct ow_interval_results *settle, int64_t length_ns);
/* What happened to flows since the last call; `events` has room for OW_SCOPE_EVENTS_MAX. Returns their number. */
size_t ow_interval_results_events(struct ow_interval_results *settle, struct ow_scope_event *events);
void ow_interval_results_free(struct ow_interval_results *settle);

/*
 * The next interval: number one more than the last, or, after a gap, larger; packets that waited for an interval in the
 * gap stay undecided and become part of `cause`. The sink gets what has become final, then the provisional result.
 * Where too many packets differ to remember (OW_LATE_PACKETS_PENDING_MAX) the interval is unknown. -EINVAL when the
 * counts contradict each other, -ENOMEM: nothing has changed.
 */
int ow_interval_results_step(struct ow_interval_results *settle, const struct ow_interval_results_input *input);
/* An interval without comparison: a result of status UNKNOWN with the cause that it carries, of which all counts but
 * the totals become 0; provisional and final as any other. quiet as above. Returns as ow_interval_results_step. */
int ow_interval_results_unknown(struct ow_interval_results *settle, const struct ow_interval_result *result,
                                bool quiet);
/* An interval whose packets were not told apart, but counted: the result stands as it is, provisional, final and in the
 * total. To the packets of other intervals it is unknown. Returns as ow_interval_results_step. */
int ow_interval_results_estimated(struct ow_interval_results *settle, const struct ow_interval_result *result);
/* No more intervals: all that are open become final. What could still have arrived stays pending. If more come after
 * all (the clock was set), nothing of those before is looked for in them. */
int ow_interval_results_finish(struct ow_interval_results *settle);

/* How many packets of this name wait for their arrival; and of all names. */
size_t ow_interval_results_waits(const struct ow_interval_results *settle, uint64_t name);
size_t ow_interval_results_waiting(const struct ow_interval_results *settle);

/*
 * Everything so far as one result (the summary at the end of a run): counts and delays of all final intervals, interval
 * = how many there were, start and length of all. Late packets count as matched here: the run is one interval; late and
 * late_received are 0, and packets that were sent before the run are not part of it. Bytes and round trips of the cost
 * are sums, durations means over the intervals. With different sample shifts, counts are plain sums, and ratios and
 * delays weigh each packet by those it stands for.
 */
void ow_run_total(const struct ow_interval_results *settle, struct ow_interval_result *ret_total);

#endif
