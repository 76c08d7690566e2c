/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/flow.h"
#include "reconcile/loss_bins.h"
#include <oneway/match.h>

/*
 * The direction of flows, and the meaning of packets that never matched. Captures usually contain both directions, and
 * traffic that passes only one of the points; a lost packet is one that should have passed both.
 *
 * A flow with matches has the direction of most of them. The two directions between a pair of hosts are opposite: if
 * the votes contradict this (clocks differ by more than the delay), the later one at B is A to B. A flow without
 * matches gets its direction from its hosts, if the evidence allows; see ow_directions_decide.
 */

/* Evidence about one flow of one side, collected while matching: what every match counts, in one cache line. */
#define OW_FLOW_EVIDENCE_BYTES 64
struct ow_flow_evidence {
	_Alignas(OW_FLOW_EVIDENCE_BYTES) uint64_t matched; /* packets that found their counterpart */
	int64_t votes;                                     /* matches later at B minus matches later at A */
	double delay_sum_ns;                               /* B minus A, over the matches */
	uint64_t counted[OW_DIRECTIONS];                   /* matches that were counted for either direction */
	uint64_t unmatched; /* packets without a counterpart, although both captures covered their time */
	uint64_t missing;   /* for the caller: unmatched packets whose time is certain */
	uint8_t direction;  /* enum ow_direction as decided, or OW_DIRECTIONS: not decided or unclassified */
	bool decided;       /* the direction is final */
};
_Static_assert(sizeof(struct ow_flow_evidence) == OW_FLOW_EVIDENCE_BYTES, "one cache line");

/* The part of this evidence that most flows do not have: of identical packets, .. */
struct ow_flow_repeats {
	uint64_t copies;  /* unmatched packets that repeat one that matched */
	uint64_t missing; /* for the caller: copies among the missing packets */
	/* Matches of identical packets: their assignment, and so their votes, may be wrong. */
	uint64_t matched;
	int64_t votes;
	double delay_sum_ns;
	/* .. and of flows without a match: how likely it is that all is lost, and how many bins that is about. */
	struct ow_flow_loss loss;
	uint8_t bins;
};

/* A missing packet of a flow that has no match so far: the first of its bin. */
struct ow_missing_packet {
	int64_t time_ns;
	uint32_t flow;
	enum ow_side side;
};

/* Open for ow_directions_flow, which runs for every match. */
struct ow_directions {
	struct ow_flow_evidence *flow[OW_SIDES];
	struct ow_flow_repeats *repeats[OW_SIDES];
	uint32_t flows[OW_SIDES], room[OW_SIDES];
	struct ow_loss_bins bins[OW_DIRECTIONS]; /* of flows with matches */
	uint64_t sent[OW_DIRECTIONS], lost[OW_DIRECTIONS];
	int64_t origin_ns; /* of the bins: the first packet, so that results do not depend on where the clocks are */
	bool has_origin;
	struct ow_missing_packet *missed; /* in bins that are not complete yet */
	size_t misseds, missed_room;
};

int ow_directions_create(struct ow_directions **ret_directions);
void ow_directions_free(struct ow_directions *directions);

/* Makes room for a flow's evidence; NULL if there is no memory. */
struct ow_flow_evidence *ow_directions_grow(struct ow_directions *directions, enum ow_side side, uint32_t flow);

/* The evidence about a flow; the table grows if needed; NULL if there is no memory. Valid until the next call. */
static inline struct ow_flow_evidence *ow_directions_flow(struct ow_directions *directions, enum ow_side side,
                                                          uint32_t flow)
{
	if (flow < directions->flows[side])
		return &directions->flow[side][flow];
	return ow_directions_grow(directions, side, flow);
}

/* The evidence of identical packets of a flow that has evidence. */
static inline struct ow_flow_repeats *ow_directions_repeats(struct ow_directions *directions, enum ow_side side,
                                                            uint32_t flow)
{
	return &directions->repeats[side][flow];
}

/* Prefetches the evidence about a flow. */
static inline void ow_directions_prefetch(const struct ow_directions *directions, enum ow_side side, uint32_t flow)
{
	if (flow < directions->flows[side])
		__builtin_prefetch(&directions->flow[side][flow], 1);
}

/* Counts a match. delay_ns = B minus A in the common time base. */
static inline void ow_flow_evidence_vote(struct ow_flow_evidence *evidence, int64_t delay_ns, uint32_t packets)
{
	evidence->matched += packets;
	evidence->votes += ((delay_ns > 0) - (delay_ns < 0)) * (int64_t)packets;
	evidence->delay_sum_ns += (double)delay_ns * packets;
}

/* Notes that a counted match is one of identical packets; packets < 0: that it is not. */
static inline void ow_flow_repeats_vote(struct ow_flow_repeats *repeats, int64_t delay_ns, int64_t packets)
{
	repeats->matched += (uint64_t)packets;
	repeats->votes += ((delay_ns > 0) - (delay_ns < 0)) * packets;
	repeats->delay_sum_ns += (double)delay_ns * (double)packets;
}

/* The time of a packet since the first one. */
static inline int64_t ow_directions_time(struct ow_directions *directions, int64_t time_ns)
{
	if (!directions->has_origin)
		directions->origin_ns = time_ns;
	directions->has_origin = true;
	return (int64_t)((uint64_t)time_ns - (uint64_t)directions->origin_ns);
}

/* Counts a packet of a flow with matches when it was sent. */
static inline void ow_directions_sent(struct ow_directions *directions, enum ow_direction way, int64_t time_ns,
                                      uint32_t packets, bool lost)
{
	struct ow_loss_bin *bin = ow_loss_bin_at(&directions->bins[way], ow_directions_time(directions, time_ns));
	if (bin)
		bin->sent += packets;
	if (bin && lost)
		bin->lost += packets;
	directions->sent[way] += packets;
	directions->lost[way] += lost ? packets : 0;
}

/* Notes that a packet of a flow without matches is missing, in order of time. 0 or -ENOMEM. The flow has evidence. */
int ow_directions_missed(struct ow_directions *directions, enum ow_side side, uint32_t flow, int64_t time_ns);

/* Clears counts but keeps decided directions, for another pass over the same captures with the same flow numbers. */
void ow_directions_restart(struct ow_directions *directions);
/* Clears everything, because flows have other numbers now. */
void ow_directions_forget(struct ow_directions *directions);

enum ow_direction_rule {
	OW_BY_VOTES, /* as described above */
	/*
	 * All matches have one direction, whatever the signs of the delays, unless a pair of hosts shows both
	 * directions; the rest as described above.
	 */
	OW_ONE_WAY,
	OW_ALL_FORWARD, /* everything goes A to B: nothing is unclassified */
};

/* The evidence for either direction if no pair of hosts shows both. */
struct ow_direction_evidence {
	bool both;                   /* a pair of hosts shows both: the rest is not needed */
	uint64_t way[OW_DIRECTIONS]; /* packets of flows that mostly went this way, by the clocks */
	uint64_t against;            /* packets in the reverse direction of most of their flow, by the clocks */
	uint64_t only[OW_SIDES];     /* packets of flows with matches that only this side shows, without copies */
};

int ow_directions_weigh(struct ow_directions *directions, const struct ow_flow_table *const keys[OW_SIDES],
                        struct ow_direction_evidence *ret_evidence);

/*
 * Decides the direction of every flow. way: of OW_ONE_WAY. keys: the flow tables of both sides. doubt_ns: what the clocks
 * may be off by; shorter delays show no direction, if others of the same hosts or networks do. Returns the number of
 * matched packets that were counted for another direction than the final one (0 = the counts are right, otherwise match
 * again), or a negative errno.
 */
int64_t ow_directions_decide(struct ow_directions *directions, const struct ow_flow_table *const keys[OW_SIDES],
                             enum ow_direction_rule rule, enum ow_direction way, int64_t doubt_ns);
