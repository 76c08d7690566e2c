/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reconcile/interval_copies.h"
#include "reconcile/shared_flows.h"
#include "estimate/clock_tracker.h"
#include "record/interval_log.h"
#include "result/interval_results.h"

/*
 * Both points on this host: compares the packets of an interval. Everything is exact: loss, all delays,
 * reordering (RFC 4737), duplicates (a packet sent once and received more often keeps the delay of its first arrival,
 * RFC 5560).
 *
 * If as many identical packets arrived as were sent, they are paired in turn (ow_late_packets_turns). Otherwise they are
 * aligned by their times (reconcile/interval_copies.h). If it is not clear which of them were sent before the interval,
 * they are taken in turn as well, and the result says so; the delay of a pair is ambiguous then, if the next one had
 * been sent before this one arrived.
 */

/* The comparison of two intervals. It owns the arrays. */
struct ow_joined {
	struct ow_sighting *only_a, *only_b; /* by base id */
	int64_t *delay_ns, *newest_ns, *only_b_sent_ns;
	uint8_t *is_matched; /* of A's packets, if flows are noted */
	/* Some of the delays with the time of sending since the start of the interval, of packets that no other is
	 * like. */
	struct ow_clock_sample *sample;
	size_t samples;
	bool aligned; /* the times of both points are comparable */
};
#define OW_JOINED_SAMPLES 1024

/* What earlier intervals have left. */
struct ow_interval_match_past {
	const struct ow_interval_results *results; /* waiting packets; may be NULL */
	/* packets that arrived in the last interval, to detect duplicates; or NULL */
	const struct ow_interval_packets *b;
	struct ow_shared_flows *shared;    /* if flows are noted; the flows of this interval are added */
	struct ow_interval_copies *copies; /* NULL: identical packets are taken in turn */
	bool longer;                       /* delays of the last interval may be (reconcile/running_copies.h) */
	bool two_clocks;                   /* only other packets make the times of both points comparable */
};

/*
 * Fills counts, totals, drops, delays and lists of *ret_input and clears the rest; the caller fills in names, clocks
 * and cost. The packets must be of the same interval and have the same shift. Returns 0 or -ENOMEM.
 */
int ow_interval_match_pair(const struct ow_interval_packets *a, const struct ow_interval_packets *b,
                           const struct ow_interval_match_past *past, struct ow_interval_results_input *ret_input,
                           struct ow_joined *ret_joined);
void ow_joined_done(struct ow_joined *joined);
