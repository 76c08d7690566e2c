/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reconcile/loss_bins.h"
#include "reconcile/scope_events.h"
#include "reconcile/scope_keys.h"
#include "reconcile/scope_table.h"
#include "reconcile/scope_verdict.h"
#include "reconcile/scope_waste.h"
#include "reconcile/whole_flow.h"

/*
 * Private to the verdicts of scope: what is known of flows and networks (scope_history.c), how an interval adds to it
 * (scope_note.c), and what it says about unmatched packets (scope_verdict.c).
 */

#define OW_SCOPE_AHEAD 12 /* flows whose entries are loaded before they are needed */
/* So many packets in a row are missing, for so long: a flow may have gone another way. */
#define OW_SCOPE_WHOLE_MIN 3
#define OW_SCOPE_WHOLE_NS  INT64_C(100000000)
#define OW_SCOPE_UNLIKELY  1e-4 /* what loss does not explain */

struct ow_scope_span {
	int64_t from_ns, to_ns; /* between these */
};

/* Packets in a row that did not match, of a flow, or of all flows of a network that pass; times are those of sending. */
struct ow_scope_run {
	int64_t matched_ns;         /* the last one that matched; 0 = none */
	struct ow_scope_span whole; /* the latest run that a match ended, and that loss does not explain */
	uint32_t missing;           /* packets since the last match */
};

/* Two lines of the cache; a judgement needs the first one. */
struct ow_scope_past_flow {
	_Alignas(OW_SCOPE_LINE) struct ow_scope_entry entry;
	int32_t began;    /* ticks */
	int32_t newest;   /* match */
	uint64_t matches; /* bit k: matched in tick newest - k */
	int32_t before;   /* the newest match before those */
	uint32_t packets; /* sent */
	bool matched, counted, stopped;
	uint8_t ttl;
	float log_like; /* that all its packets since the last match are lost: in bins with loss, ... */
	uint32_t quiet; /* ... and the number of other bins */
	float run_like; /* the same of runs without a match that ended in or shortly before this tick: */
	int32_t run_end;
	struct ow_scope_run run;
	int64_t sent_ns; /* when the last one was sent */
};

/* A pair or a destination. */
struct ow_scope_past_network {
	_Alignas(OW_SCOPE_LINE) struct ow_scope_entry entry; /* the key is that of scope_keys.h */
	int32_t matched;                                     /* the newest tick + 1; 0 = never */
	struct ow_flow_share share;
	struct ow_scope_run run;
	/* The rest is in another line, and not needed for each flow. */
	int64_t missing_in; /* interval + 1 */
	int32_t sent_ttl;   /* tick in which flows were sent with another TTL, + 1 */
	int32_t told_ttl;   /* tick of the last event */
	uint8_t network[6], version;
	/* Of a destination, in the interval that is judged: flows that lose. */
	int64_t interval;
	float spray_flows, spray_sent, spray_lost, spray_squares; /* the last: sum of lost^2 / sent */
	uint32_t steady;                                          /* intervals in a row */
};

struct ow_scope_verdict {
	struct ow_scope_verdict_options options;
	int64_t tick_intervals, wait_ns;
	int32_t limit, limit_long; /* ticks */
	double seconds;            /* of an interval */
	int64_t last;              /* interval noted */
	struct ow_scope_table flows, pairs, dests;
	struct ow_scope_noted *noted;
	uint8_t *kind;             /* bits of enum kind of the same flows: small, because each packet asks */
	struct ow_flow_loss *loss; /* of those of which nothing matched */
	size_t room, kind_room, loss_room;
	struct ow_scope_gap *gap; /* in flows that matched before and after */
	size_t gaps, gap_room;
	uint32_t *place; /* of a flow of the interval that is judged, in `judged`, + 1; 0 = all of it matched */
	struct ow_scope_judged *judged;
	size_t place_room, judged_room;
	struct ow_loss_bins bins;
	double sent, lost;             /* of own flows: q */
	double whole;                  /* of lost: whole flows */
	double unlikely;               /* packets in a row that are missing */
	struct ow_scope_run run;       /* of all */
	double absent, news;           /* flows of the lane */
	double longs, longs_absent;    /* those with several packets, in each interval */
	double fast_absent, fast_news; /* the same, of the last seconds */
	bool missing;
	struct ow_scope_waste waste;
	struct ow_scope_events events;
};

static inline int32_t ow_scope_tick(const struct ow_scope_verdict *v, int64_t interval)
{
	return (int32_t)(interval / v->tick_intervals);
}

static inline int64_t ow_scope_absolute_ns(const struct ow_scope_verdict *v, int64_t interval, int64_t time_ns)
{
	return interval * v->options.length_ns + time_ns;
}

static inline double ow_scope_usual_loss(const struct ow_scope_verdict *v)
{
	return ow_usual_loss(v->lost, v->sent);
}

static inline void ow_scope_add_likelihood(const struct ow_scope_verdict *v, struct ow_flow_loss *loss, int64_t at_ns,
                                           double q)
{
	if (ow_flow_loss_begins(&v->bins, loss, at_ns))
		ow_flow_loss_add(&v->bins, loss, at_ns, q);
}

void ow_scope_mark_match(struct ow_scope_past_flow *f, int32_t tick);
bool ow_scope_network_matched(const struct ow_scope_past_network *n, int32_t since);
/* Whether the flow passes B, so that an unmatched packet of this tick is lost. f may be NULL. */
bool ow_scope_is_own(const struct ow_scope_verdict *v, const struct ow_scope_past_flow *f,
                     const struct ow_scope_past_network *dest, int32_t tick);
/* Finds or adds a network. NULL: there is no room. */
struct ow_scope_past_network *ow_scope_network_of(struct ow_scope_table *table, uint64_t key, int32_t tick,
                                                  const struct ow_scope_flow *flow);
/* Counts a new flow of the networks, as absent with this probability. */
void ow_scope_count_new_flow(struct ow_scope_verdict *v, struct ow_scope_past_network *pair,
                             struct ow_scope_past_network *dest, double absent);
void ow_scope_tell(struct ow_scope_verdict *v, enum ow_scope_event_kind kind, int64_t at_ns, const uint8_t network[6],
                   uint8_t version, struct ow_scope_event *rest);

/* Whether a run of missing packets, before this time, may have gone another way: it lasted longer than the waiting time, or
 * loss does not explain it. One packet of a flow may just be lost, while others of its networks arrive. */
bool ow_scope_is_whole(const struct ow_scope_verdict *v, const struct ow_scope_run *run, int64_t first_ns,
                       uint32_t least);
/* Packets matched, the first and the last at these times: what was missing before, if anything, is a run that ends. */
void ow_scope_end_run(const struct ow_scope_verdict *v, struct ow_scope_run *run, int64_t first_ns, int64_t last_ns,
                      uint32_t least);
static inline void ow_scope_end_missing(const struct ow_scope_verdict *v, struct ow_scope_run *run, int64_t first_ns,
                                        int64_t last_ns, uint32_t least)
{
	if (!run->matched_ns || run->missing || first_ns < run->whole.to_ns)
		ow_scope_end_run(v, run, first_ns, last_ns, least);
	else if (last_ns > run->matched_ns)
		run->matched_ns = last_ns;
}
