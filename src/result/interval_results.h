/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/flow_event.h"

/*
 * Late or lost: turns the comparison of each interval, in order, into results, first provisional, then final. Both
 * kinds of comparison use it: packet by packet if both points are on one host (point/interval_match.h), and through the
 * protocol (exchange/exchange.h).
 *
 * A packet that only the sender has waits for `horizon` further intervals. If it is then among those that only the
 * receiver has, it was late, otherwise it is lost (reconcile/late_packets.h). Packets are named by base id, or by any
 * other 64 bits that both points agree on (the 48-bit keys of a fold).
 *
 * A packet counts as lost only with evidence. It stays pending, and its interval is PARTIAL with a cause, if it should
 * have arrived (within twice the longest delay so far) in an interval that is unknown, in an interval in which the
 * receiving point's ring dropped frames, in one with a smaller sample than its own, or after the last one. If the
 * points' clocks may differ by more than the delay, a packet may also arrive in the interval before its own; it counts
 * as late. So it may also have arrived before the first interval, by at most twice the largest such difference so far.
 *
 * A packet also counts as extra only with evidence: if it arrives so soon after an unknown interval that it may have
 * been sent in it, it counts as late_received.
 *
 * Identical packets across boundaries: while a packet of some name waits, a packet of that name in a later interval may
 * be either. Before pairing, call ow_interval_results_in_turn: if w packets of a name have their turn and the receiver has q of it,
 * the first min(w, q) belong into only_b, and the rest are pairs. If that is not possible (times unknown), count the
 * pairs of this name as ambiguous.
 */

/* The time of a packet in only_b whose delay cannot be known if it is late. */
#define OW_INTERVAL_RESULTS_NO_TIME INT64_MIN

/* The comparison of one interval. The caller keeps the arrays. */
struct ow_interval_results_input {
	/*
	 * The caller fills in names, status, counts, totals, drops, clocks, cost and synopsis; also mean, stddev and
	 * quantiles over the matched packets (samples of them), and duplicated, ambiguous, reordered. sent, received
	 * and matched must agree with the lists: sent - only_as = received - only_bs = matched. This module fills in
	 * late, late_received, lost, pending, extra, loss_ratio, coverage and final, and includes the delays of late
	 * packets; if all delays are given, it computes mean, stddev, min, max and quantiles completely.
	 */
	struct ow_interval_result result;
	/*
	 * Times and delays below are those of the clocks as they are, by which intervals are cut. What the result says
	 * was added to the receiver's times (clock_offset_ns) is in its mean and quantiles; to single delays it is
	 * added here.
	 */
	/* Name, time since the start of the interval at that point; only_b in the order of arrival. */
	const struct ow_sighting *only_a, *only_b;
	size_t only_as, only_bs;
	/*
	 * The delays of matched packets: all except the ambiguous ones (delays = matched - ambiguous), or a uniform
	 * sample in which each stands for the same number of packets. In any order.
	 */
	const int64_t *delay_ns;
	size_t delays;
	size_t identical; /* the last so many are of packets that others are identical to: they do not show how long packets take */
	/* Packets that were sent before the first interval may have been taken for identical ones of it, and of those since. */
	bool begun_amid;
	/* Whether the same was sent shortly before one of only_a (reconcile/late_packets.h); or NULL. */
	bool (*repeats)(const void *arg, uint64_t name);
	const void *repeats_arg;
	/* For each of only_b, which of the waiting packets of its name it is, by the time of sending (absolute), or
	 * OW_LATE_PACKETS_ANY or _NOBODY (reconcile/late_packets.h). One without a time may also be of this interval, and the
	 * result says so. NULL: nothing is known. */
	const int64_t *only_b_sent_ns;
	/* Identical packets that arrived close to others: late ones, or duplicates, and as many others are lost. */
	uint64_t close;
	/* Packets that the sender shows twice, one right after the other, and the receiver once, if they are more than the loss
	 * of others explains. */
	uint64_t twice;
	/*
	 * If the order is known (otherwise NULL): for each packet of only_b, the latest sending time of the packets
	 * that had arrived before it; and the same for the end of the interval. Since the start of the interval;
	 * INT64_MIN = none.
	 */
	const int64_t *newest_ns;
	int64_t newest_at_end_ns;
	/* The receiver's interval begins so much later (record/interval_cuts.h). */
	int64_t shift_ns;
	/* With scope `shared`: all packets sent in the interval, whether each is matched, and their flows; only_a have
	 * the number of their flow, only_b 1 if packets of their flow are matched, else 0. */
	const struct ow_sighting *packet;
	const uint8_t *is_matched;
	size_t packets;
	const struct ow_scope_flow *flow;
	size_t flows;
	const uint8_t *in_scope; /* a flag for each flow: its packets were compared; NULL = all were */
	/*
	 * Of several receivers not all told what they got in this interval: packets that may have arrived in it stay
	 * undecided. The result has the cause.
	 */
	bool incomplete;
	/* Received packets of the same networks, at receivers that got hardly anything else: possibly changed on the way. */
	uint64_t changed;
	/*
	 * The interval is before or after the run: its packets are compared with those of the run, but it has no result
	 * and is not in the total.
	 */
	bool quiet;
};

struct ow_interval_results;

typedef void (*ow_interval_results_sink)(void *arg, const struct ow_interval_result *result);

/* horizon: 1 .. OW_LATE_PACKETS_HORIZON_MAX. The functions below call sink. */
int ow_interval_results_create(uint32_t horizon, ow_interval_results_sink sink, void *arg,
                               struct ow_interval_results **ret_results);
/*
 * To be called before the first interval: packets of flows that do not pass the receiver are not lost but unshared
 * (reconcile/scope_verdict.h). length_ns: of an interval. sink gets what happens to flows, with the arg of results; may
 * be NULL. 0 or -ENOMEM.
 */
typedef void (*ow_flow_event_sink)(void *arg, const struct ow_flow_event *event);
int ow_interval_results_share(struct ow_interval_results *results, int64_t length_ns, ow_flow_event_sink sink);
/*
 * To be called before the first interval: the receiver is one of several to which the packets go. What it did not get
 * may have gone to another one, so it is unshared, and there is no loss ratio (result/group_results.h has the loss).
 */
void ow_interval_results_one_of_several(struct ow_interval_results *results);
/* Adds to the cost of an interval that is not final yet. */
void ow_interval_results_add_bytes(struct ow_interval_results *results, int64_t interval, uint64_t bytes);
/* Of an interval that is not final yet, or that follows: `missed` of the packets that arrived the other way are not in the
 * capture of the receiver, which sent them: it may have missed as large a share of those that it received. */
void ow_interval_results_missed(struct ow_interval_results *results, int64_t interval, uint64_t missed, uint64_t of);
/* Delays of the last interval, by both clocks: a sample of packets that arrived in time or late. Returns their number. */
#define OW_INTERVAL_RESULTS_DELAYS 512
size_t ow_interval_results_delays(const struct ow_interval_results *results,
                                  int64_t ret_delay_ns[OW_INTERVAL_RESULTS_DELAYS]);
/* The same without those that took less than most, because most were not there yet. */
size_t ow_interval_results_usual_delays(const struct ow_interval_results *results,
                                        int64_t ret_delay_ns[OW_INTERVAL_RESULTS_DELAYS]);
/* Keys of pairs of networks for ow_scope_make_fine; and that packets of such pairs arrive with another TTL. */
size_t ow_interval_results_fine(struct ow_interval_results *results, uint64_t *pair_keys, size_t max);
void ow_interval_results_rerouted(struct ow_interval_results *results, int64_t interval, const uint64_t *pair_keys,
                                  const int8_t *ttl_change, size_t count);
void ow_interval_results_free(struct ow_interval_results *results);

/*
 * Adds the next interval: its number is one more than the last, or, after a gap, larger; packets that waited for an
 * interval in the gap stay undecided and become part of `cause`. The sink gets results that have become final, then the
 * provisional result. If too many packets differ to be remembered (OW_LATE_PACKETS_PENDING_MAX), the interval is
 * unknown. -EINVAL if the counts contradict each other, -ENOMEM: nothing has changed.
 */
int ow_interval_results_step(struct ow_interval_results *results, const struct ow_interval_results_input *input);
/*
 * Adds an interval without comparison: a result of status UNKNOWN with its cause, in which all counts except the totals
 * become 0; provisional and final as any other. quiet as above. Returns as ow_interval_results_step.
 */
int ow_interval_results_unknown(struct ow_interval_results *results, const struct ow_interval_result *result,
                                bool quiet);
/*
 * Adds an interval whose packets were counted but not identified: the result is used unchanged, provisional, final and
 * in the total. For the packets of other intervals it is unknown. Returns as ow_interval_results_step.
 */
int ow_interval_results_estimated(struct ow_interval_results *results, const struct ow_interval_result *result);
/*
 * The packets of the open intervals were changed on the way, so that the comparison did not recognise them: those that
 * wait stay undecided. To be called before ow_interval_results_finish.
 */
void ow_interval_results_distrust(struct ow_interval_results *results);
/*
 * Ends the run: all open intervals become final. Packets that could still have arrived stay pending. If more intervals
 * come (the clock was set), earlier packets are not searched in them.
 */
int ow_interval_results_finish(struct ow_interval_results *results);

/* The number of waiting packets of this name; and of all names. */
size_t ow_interval_results_waits(const struct ow_interval_results *results, uint64_t name);
/* How many of them have their turn first, if so many of the name were sent and received in the next interval: those that
 * can be late by the delays so far, and those that more packets were received for than sent. */
size_t ow_interval_results_in_turn(const struct ow_interval_results *results, uint64_t name, size_t sent,
                                   size_t received);
/* The times when the waiting packets of this name were sent, in order; room for as many. */
void ow_interval_results_waiting_times(const struct ow_interval_results *results, uint64_t name, int64_t *ret_sent_ns);
size_t ow_interval_results_waiting(const struct ow_interval_results *results);
/* A packet should arrive within this time, by the delays so far; -1 = not known yet. */
int64_t ow_interval_results_reach(const struct ow_interval_results *results);

/*
 * Everything so far as one result (the summary of a run): counts and delays of all final intervals, interval = their
 * number, start and length of all. Late packets count as matched here, because the run is one interval; late and
 * late_received are 0, and packets that were sent before the run are not part of it. Bytes and round trips of the cost
 * are sums, durations are means over the intervals. With different sample shifts, counts are plain sums, and ratios and
 * delays weight each packet by the packets that it stands for.
 */
void ow_run_total(const struct ow_interval_results *results, struct ow_interval_result *ret_total);
