/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reconcile/scope_verdict.h"

/*
 * Late or lost, across intervals. Both points cut time by their clocks, so a packet that is sent shortly before the end
 * of interval i arrives in i + 1: the reconciliation of each interval alone finds it only at A in i, and only at B in i
 * + 1. Here such packets are matched. A packet that is only at A waits for `horizon` further intervals, then it is
 * lost.
 *
 *     sent     = matched + late + lost + pending
 *     received = matched + late + extra
 *
 * holds after every step, for the sums over all intervals and for each interval's own packets. It works on the ids that
 * any reconciliation found; times are given by the start of the interval. Not for use by several threads at once.
 *
 * Of several waiting packets with one id, the oldest is matched first. If the clocks of the points differ by more than
 * the delay, a packet sent shortly after the start of i + 1 arrives at the end of i: with early_ns such packets are
 * matched as well. So are packets that are faster than B's intervals are shifted by, as after a stall: if that is more
 * than an interval, they arrive several intervals early. They count like late ones: late for the interval that sent them,
 * late_received for the one that has them.
 */

/* Intervals that a packet can be late by. */
#define OW_LATE_PACKETS_HORIZON_MAX 1024
/* Intervals that a packet can be early by. */
#define OW_LATE_PACKETS_EARLY_MAX 8
/* Packets that can wait; with more, -ENOSPC: an interval with this many differences has another problem. */
#define OW_LATE_PACKETS_PENDING_MAX (16u << 20)

/* In only_b: the time of arrival is not known. A packet that matches it is late, with an unknown delay. */
#define OW_LATE_PACKETS_NO_TIME INT64_MIN

/* In sent_ns. */
#define OW_LATE_PACKETS_ANY    INT64_MIN
#define OW_LATE_PACKETS_OLDEST (INT64_MIN + 1) /* any, but without a time it may be another */
#define OW_LATE_PACKETS_NOBODY INT64_MAX

struct ow_late_packets;

/* The input of one interval. Times are since its start, as in the synopses. */
struct ow_late_packets_interval {
	int64_t start_ns;
	uint64_t sent, received; /* packets at A, at B; sent - only_a = received - only_b = matched */
	const struct ow_sighting *only_a, *only_b;
	size_t only_as, only_bs;
	int64_t shift_ns; /* B's interval begins so much later than A's */
	int64_t early_ns; /* a packet may arrive in an interval before its own, up to this much before it was sent */
	int64_t since_ns; /* packets without a time of arrival were rather sent at this time or later */
	/* For each of only_b: it was sent at this time or later, the first of those that wait; OW_LATE_PACKETS_ANY: not known,
	 * OW_LATE_PACKETS_NOBODY: none of those that wait. NULL: nothing is known. */
	const int64_t *sent_ns;
	uint32_t early; /* intervals that it may be early by, at most OW_LATE_PACKETS_EARLY_MAX; 0 as 1 */
	/* Whether the same was sent shortly before, so that what came early may be that; NULL: no. */
	bool (*repeats)(const void *arg, uint64_t id);
	const void *repeats_arg;
};

struct ow_late_packets_account {
	uint64_t sent, received, matched;
	uint64_t late;          /* of the packets sent: arrived in a later interval */
	uint64_t late_received; /* of the packets received: sent in an earlier interval; in the totals the same as late
	                         */
	uint64_t lost, pending, extra;
	uint64_t unshared; /* were not for B: not part of sent */
	/* Sum of the delays of the late packets (in an interval's own account, of those that it sent). */
	double late_delay_ns;
};

/* A packet of an earlier interval has arrived. */
struct ow_late_packets_late {
	uint64_t id;
	uint64_t age;     /* the interval that sent it, counted back from the newest; 0 = arrived early */
	uint64_t arrived; /* the same for the one that has it: 0, or more = arrived early */
	size_t place;     /* in only_b, unless it arrived early */
	int64_t sent_ns;
	int64_t delay_ns;
	uint32_t flow, arrival_flow; /* as only_a and only_b have them */
	bool alike;   /* another packet of this id had been sent when it arrived: its delay is uncertain */
	bool timed;   /* when it arrived is known */
	bool doubted; /* sent_ns says which it is, and it has no time: it may also be another */
};

/* Callbacks during ow_late_packets_step and ow_late_packets_flush. Each may be NULL. */
struct ow_late_packets_calls {
	void (*late)(void *arg, const struct ow_late_packets_late *late);
	/* The waiting time of a packet is over. True: it is not known whether it is lost, and it stays pending. */
	bool (*undecided)(void *arg, int64_t sent_ns);
	/* The others whose waiting time is over, in order of time: an enum ow_scope_fate for each. NULL: all are lost.
	 * A negative errno: nobody can say. */
	int (*judge)(void *arg, const struct ow_scope_packet *packets, size_t count, uint8_t *ret_fates);
	void *arg;
};

/* horizon: intervals after its own in which a packet may still arrive, 1 .. OW_LATE_PACKETS_HORIZON_MAX. -EINVAL,
 * -ENOMEM. */
int ow_late_packets_create(uint32_t horizon, struct ow_late_packets **ret_carry);
void ow_late_packets_free(struct ow_late_packets *late);
void ow_late_packets_listen(struct ow_late_packets *late, const struct ow_late_packets_calls *calls);

/*
 * Adds the next interval. If ret_settled is not NULL it gets the account of the interval that can no longer change,
 * `horizon` before this one; returns 1 then, 0 if there is none yet. -EINVAL if the counts contradict each other,
 * -ENOSPC, -ENOMEM: nothing has changed then.
 */
int ow_late_packets_step(struct ow_late_packets *late, const struct ow_late_packets_interval *interval,
                         struct ow_late_packets_account *ret_settled);

/*
 * No more packets will come: removes the oldest open interval; its waiting packets are lost (unless the callbacks
 * decide otherwise). Returns 1, or 0 if there is none.
 */
int ow_late_packets_flush(struct ow_late_packets *late, struct ow_late_packets_account *ret_settled);

/*
 * The rule for identical packets of an interval: the packet that was sent first arrives first. Of the received ones,
 * the first `late` are packets that waited; then the n-th is the n-th that was sent, for `pairs` of them. The other
 * received ones are duplicated or extra, the other sent ones wait.
 */
struct ow_late_packets_turns {
	size_t late, pairs;
};

static inline struct ow_late_packets_turns ow_late_packets_turns(size_t waiting, size_t sent, size_t received)
{
	size_t late = waiting < received ? waiting : received, left = received - late;
	return (struct ow_late_packets_turns){late, sent < left ? sent : left};
}

/* How many packets of this id wait; and of all ids. */
size_t ow_late_packets_waits(const struct ow_late_packets *late, uint64_t id);
/* Only those that were sent at this time or later. */
size_t ow_late_packets_waits_since(const struct ow_late_packets *late, uint64_t id, int64_t since_ns);
/* Their times of sending, in order; there is room for as many as wait. */
void ow_late_packets_times(const struct ow_late_packets *late, uint64_t id, int64_t *ret_sent_ns);
size_t ow_late_packets_waiting(const struct ow_late_packets *late);

/* Over all intervals so far. */
void ow_late_packets_totals(const struct ow_late_packets *late, struct ow_late_packets_account *ret_account);
