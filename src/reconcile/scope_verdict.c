/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict on an unmatched packet of flow f, pair g, destination d, sent in tick j:
 *
 *     limit = d matched in j or later ? 30 s : 10 s
 *     own   = f matched at or before j, within limit; or f began in j-1..j and matched in j+1..j+2
 *     own -> lost
 *     f is of fragments that are not the first -> absent: a router may have joined them to a packet that matched
 *     g or d matched since j - 10 s -> lost or absent, as whole_flow.h has it. All packets of f since it matched, up to
 *            the newest interval, are lost as likely as loss_bins.h says, from the losses of own flows
 *     else -> unshared
 *
 * The formulas were simulated packet by packet (tests/reconcile/scope_simulation.c); each part was found necessary.
 *
 * A tick is an interval, or half of the waiting time if that is longer, and at least 100 ms.
 */
#include "reconcile/scope_verdict.h"

#include "base/array.h"
#include "base/sort.h"
#include "reconcile/loss_bins.h"
#include "reconcile/scope_events.h"
#include "reconcile/scope_keys.h"
#include "reconcile/scope_table.h"
#include "reconcile/scope_waste.h"
#include "reconcile/whole_flow.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS      1000000000.0
#define TICK_MIN_NS    INT64_C(100000000)
#define LIMIT_S        10.0
#define LIMIT_LONG_S   30.0
#define PAIR_FLOWS_MAX 200
#define DEST_FLOWS_MAX 400
#define FLOW_SLOTS     131072u
#define NETWORK_SLOTS  65536u
#define NEVER          INT32_MIN
#define AHEAD          8 /* flows whose entries are loaded */
/* So many packets in a row are missing, for so long: a flow may have gone another way. */
#define WHOLE_MIN 3
#define WHOLE_NS  INT64_C(100000000)
#define UNLIKELY  1e-4 /* what loss does not explain */
/* Short flows are absent only where long ones are, with so much of the share. */
#define SURE_SHARE .25
#define SHORT_LOSS .009 /* less than the root of UNLIKELY: two bins without losses are not short */

_Static_assert(OW_SCOPE_FLOWS_MAX == FLOW_SLOTS / 4 * 3 && OW_SCOPE_NETWORKS_MAX == NETWORK_SLOTS / 4 * 3,
               "the limits of the tables");

struct span {
	int64_t from_ns, to_ns; /* between these */
};

/* Packets in a row that did not match, of a flow, or of all flows of a network that pass; times are those of sending. */
struct run {
	int64_t matched_ns; /* the last one that matched; 0 = none */
	struct span whole;  /* the latest run that a match ended, and that loss does not explain */
	uint32_t missing;   /* packets since the last match */
};

struct flow {
	struct ow_scope_entry entry;
	int32_t began;    /* ticks */
	int32_t newest;   /* match */
	uint64_t matches; /* bit k: matched in tick newest - k */
	int32_t before;   /* the newest match before those */
	uint32_t packets; /* sent */
	float log_like;   /* that all its packets since the last match are lost: in bins with loss, ... */
	uint32_t quiet;   /* ... and the number of other bins */
	float run_like;   /* the same of runs without a match that ended in or shortly before this tick: */
	int32_t run_end;
	struct run run;
	int64_t sent_ns; /* when the last one was sent */
	uint8_t ttl;
	bool matched, counted, stopped;
};

/* A pair or a destination. */
struct network {
	struct ow_scope_entry entry; /* the key is that of scope_keys.h */
	int32_t matched;             /* the newest tick + 1; 0 = never */
	struct ow_flow_share share;
	struct run run;
	int64_t missing_in; /* interval + 1 */
	int32_t sent_ttl;   /* tick in which flows were sent with another TTL, + 1 */
	int32_t told_ttl;   /* tick of the last event */
	uint8_t network[6], version;
	/* Of a destination, in the interval that is judged: flows that lose. */
	int64_t interval;
	float spray_flows, spray_sent, spray_lost, spray_squares; /* the last: sum of lost^2 / sent */
	uint32_t steady;                                          /* intervals in a row */
};

/* Of a flow of the interval at hand. */
struct work {
	uint32_t packets, matched, before, after, unmatched; /* before and after those that matched */
	int64_t first_ns, last_ns;                           /* of the matched, or of the unmatched packets */
	struct span whole[3]; /* of the flow, its pair and its destination: packets in these are of whole flows */
	struct flow *f;       /* entries of the tables, while an interval is noted */
	struct network *pair, *dest;
	int64_t last_match_ns;
	struct ow_flow_loss loss;
	bool known;   /* has an entry */
	bool counted; /* for q */
	bool unsure;  /* its fate: absent, or lost */
	uint8_t fate;
};

/* Of a flow of the interval that is noted: it counts for the loss of a bin; nothing of it matched; its networks miss
 * packets. */
enum kind { KIND_OWN = 1, KIND_UNMATCHED = 2, KIND_IN_RUN = 4 };

struct ow_scope_verdict {
	struct ow_scope_verdict_options options;
	int64_t tick_intervals, wait_ns;
	int32_t limit, limit_long; /* ticks */
	double seconds;            /* of an interval */
	int64_t last;              /* interval noted */
	struct ow_scope_table flows, pairs, dests;
	struct work *work;
	uint8_t *kind; /* bits of enum kind of the same flows: small, because each packet asks */
	size_t room, kind_room;
	struct ow_loss_bins bins;
	double sent, lost;             /* of own flows: q */
	double whole;                  /* of lost: whole flows */
	double unlikely;               /* packets in a row that are missing */
	struct run run;                /* of all */
	double absent, news;           /* flows of the lane */
	double longs, longs_absent;    /* those with several packets, in each interval */
	double fast_absent, fast_news; /* the same, of the last seconds */
	bool missing;
	struct ow_scope_waste waste;
	struct ow_scope_events events;
};

int ow_scope_verdict_create(const struct ow_scope_verdict_options *options, struct ow_scope_verdict **ret_verdict)
{
	if (options->length_ns <= 0 || options->horizon < 1 || options->horizon > OW_SCOPE_OVERLAP_MAX)
		return -EINVAL;
	struct ow_scope_verdict *v = calloc(1, sizeof *v);
	if (!v)
		return -ENOMEM;
	v->options = *options;
	v->last = INT64_MIN;
	v->seconds = (double)options->length_ns / SECOND_NS;
	v->wait_ns = options->length_ns * options->horizon;
	v->tick_intervals = (options->horizon + 1) / 2;
	if (v->tick_intervals * options->length_ns < TICK_MIN_NS)
		v->tick_intervals = (TICK_MIN_NS + options->length_ns - 1) / options->length_ns;
	double tick_s = v->seconds * (double)v->tick_intervals;
	v->limit = (int32_t)ceil(LIMIT_S / tick_s);
	v->limit_long = (int32_t)ceil(LIMIT_LONG_S / tick_s);
	if (ow_loss_bins_create(&v->bins, v->wait_ns + 3 * options->length_ns) < 0) {
		free(v);
		return -ENOMEM;
	}
	ow_scope_table_init(&v->flows, sizeof(struct flow), FLOW_SLOTS, options->secret);
	ow_scope_table_init(&v->pairs, sizeof(struct network), NETWORK_SLOTS, options->secret);
	ow_scope_table_init(&v->dests, sizeof(struct network), NETWORK_SLOTS, options->secret);
	*ret_verdict = v;
	return 0;
}

void ow_scope_verdict_free(struct ow_scope_verdict *v)
{
	if (!v)
		return;
	ow_scope_table_done(&v->flows);
	ow_scope_table_done(&v->pairs);
	ow_scope_table_done(&v->dests);
	ow_scope_waste_done(&v->waste);
	free(v->work);
	free(v->kind);
	ow_loss_bins_done(&v->bins);
	free(v);
}

/* -- time ---------------------------------------------------------------------------------------------------------- */

static int32_t tick_of(const struct ow_scope_verdict *v, int64_t interval)
{
	return (int32_t)(interval / v->tick_intervals);
}

static int64_t absolute(const struct ow_scope_verdict *v, int64_t interval, int64_t time_ns)
{
	return interval * v->options.length_ns + time_ns;
}

static double usual_loss(const struct ow_scope_verdict *v)
{
	return ow_usual_loss(v->lost, v->sent);
}

/* -- when a flow matched ------------------------------------------------------------------------------------------- */

static void mark_match(struct flow *f, int32_t tick)
{
	if (!f->matched) {
		f->matched = true;
		f->newest = tick;
		f->matches = 1;
		f->before = NEVER;
		return;
	}
	int64_t shift = (int64_t)tick - f->newest;
	if (shift <= 0) {
		if (shift > -64)
			f->matches |= UINT64_C(1) << -shift;
		else if (tick > f->before)
			f->before = tick;
		return;
	}
	uint64_t out = shift < 64 ? f->matches >> (64 - shift) : f->matches;
	if (out)
		f->before = f->newest - (int32_t)((shift < 64 ? 64 - shift : 0) + __builtin_ctzll(out));
	f->matches = (shift < 64 ? f->matches << shift : 0) | 1;
	f->newest = tick;
}

/* The newest tick up to this one in which it matched, or NEVER. */
static int32_t match_up_to(const struct flow *f, int32_t tick)
{
	if (!f->matched)
		return NEVER;
	if (f->newest <= tick)
		return f->newest;
	int64_t skip = (int64_t)f->newest - tick;
	uint64_t rest = skip < 64 ? f->matches >> skip : 0;
	return rest ? tick - __builtin_ctzll(rest) : f->before;
}

static bool matched_in(const struct flow *f, int32_t from, int32_t to)
{
	int32_t newest = match_up_to(f, to);
	return newest != NEVER && newest >= from;
}

static bool network_matched(const struct network *n, int32_t since)
{
	return n && n->matched && n->matched - 1 >= since;
}

static bool is_own(const struct ow_scope_verdict *v, const struct flow *f, const struct network *dest, int32_t tick)
{
	if (!f)
		return false;
	int32_t limit = network_matched(dest, tick) ? v->limit_long : v->limit;
	return matched_in(f, tick - limit, tick) || (f->began >= tick - 1 && matched_in(f, tick + 1, tick + 2));
}

/* -- noting an interval -------------------------------------------------------------------------------------------- */

static int prepare(struct ow_scope_verdict *v, size_t flows)
{
	if ((flows > v->room && OW_GROW(v->work, v->room, flows) < 0) ||
	    (flows > v->kind_room && OW_GROW(v->kind, v->kind_room, flows) < 0))
		return -ENOMEM;
	if (flows)
		memset(v->work, 0, flows * sizeof *v->work);
	return 0;
}

static struct network *network_of(struct ow_scope_table *table, uint64_t key, int32_t tick,
                                  const struct ow_scope_flow *flow)
{
	struct network *n = ow_scope_table_get(table, key, tick);
	if (n && !n->version) {
		n->version = flow->version;
		memcpy(n->network, flow->network, sizeof n->network);
	}
	return n;
}

static void tell(struct ow_scope_verdict *v, enum ow_scope_event_kind kind, int64_t at_ns, const uint8_t network[6],
                 uint8_t version, struct ow_scope_event *rest)
{
	rest->kind = kind;
	rest->interval = at_ns / v->options.length_ns;
	rest->time_ns = at_ns % v->options.length_ns;
	rest->version = version;
	rest->bits = version == 4 ? 24 : version == 6 ? 48 : 0;
	if (network)
		memcpy(rest->network, network, sizeof rest->network);
	ow_scope_events_add(&v->events, rest);
}

/* Counts a flow of a network once, as absent with this probability. The past counts for less. */
static void count_flow(struct network *n, float most, double absent)
{
	if (!n)
		return;
	n->share.absent += (float)absent;
	n->share.flows++;
	if (n->share.flows > most) {
		n->share.flows /= 2;
		n->share.absent /= 2;
	}
}

static void count_new_flow(struct ow_scope_verdict *v, struct network *pair, struct network *dest, double absent)
{
	count_flow(pair, PAIR_FLOWS_MAX, absent);
	count_flow(dest, DEST_FLOWS_MAX, absent);
	v->absent += absent;
	v->fast_absent += absent;
	v->news++;
	v->fast_news++;
}

/* Whether a run of missing packets, before this time, may have gone another way: it lasted longer than the waiting time, or
 * loss does not explain it. One packet of a flow may just be lost, while others of its networks arrive. */
static bool is_whole(const struct ow_scope_verdict *v, const struct run *run, int64_t first_ns, uint32_t least)
{
	int64_t length_ns = first_ns - run->matched_ns;
	if (run->missing >= WHOLE_MIN && length_ns >= WHOLE_NS && run->missing >= v->unlikely)
		return true;
	return run->missing >= least && length_ns > v->wait_ns;
}

/* A packet matched. A late one may be of the middle of a run, which then was shorter. Runs that follow each other soon
 * are one: flows move to and fro. Before the first packet of a network nothing of it arrived. */
static void end_missing(const struct ow_scope_verdict *v, struct run *run, int64_t first_ns, int64_t last_ns,
                        uint32_t least)
{
	bool is_first = !run->matched_ns && least == 1;
	if (is_first || (run->missing && is_whole(v, run, first_ns, least))) {
		if (!run->whole.to_ns || run->matched_ns - run->whole.to_ns > v->wait_ns)
			run->whole.from_ns = run->matched_ns;
		run->whole.to_ns = first_ns;
	} else if (first_ns > run->whole.from_ns && first_ns < run->whole.to_ns) {
		run->whole.to_ns = first_ns - run->whole.from_ns >= WHOLE_NS ? first_ns : run->whole.from_ns;
	}
	if (last_ns > run->matched_ns) {
		run->matched_ns = last_ns;
		run->missing = 0;
	}
}

static void pass(struct network *n, int32_t tick)
{
	if (n && tick >= n->matched)
		n->matched = tick + 1;
}

/* Packets of the flow matched: so its networks pass. */
static void count_match(struct ow_scope_verdict *v, int32_t tick, const struct work *w, bool first)
{
	pass(w->pair, tick);
	pass(w->dest, tick);
	if (first)
		count_new_flow(v, w->pair, w->dest, 0);
}

/* A match ends a run of unmatched packets, which are still to be judged. */
static void end_run(const struct ow_scope_verdict *v, struct flow *f, int32_t tick)
{
	float run = f->log_like + (float)(f->quiet * log(usual_loss(v)));
	if (run < 0) {
		f->run_like = run + (f->run_end >= tick - 2 ? f->run_like : 0);
		f->run_end = tick;
	}
	f->log_like = 0;
	f->quiet = 0;
}

static void note_match(struct ow_scope_verdict *v, const struct work *w, int32_t tick, const struct ow_scope_flow *flow,
                       int64_t first_ns, int64_t last_ns)
{
	struct flow *f = w->f;
	if (f->stopped)
		tell(v, OW_SCOPE_BACK, first_ns, flow->network, flow->version, &(struct ow_scope_event){.flows = 1});
	f->stopped = false;
	mark_match(f, tick);
	end_run(v, f, tick);
	end_missing(v, &f->run, first_ns, last_ns, WHOLE_MIN);
	count_match(v, tick, w, !f->counted);
	f->counted = true;
}

/* A flow is sent with another TTL than before: its way to this point changed, or its sender. */
static void note_ttl(const struct work *w, int32_t tick, const struct ow_scope_flow *flow)
{
	if (!flow->ttl)
		return;
	if (w->pair && w->f->ttl && w->f->ttl != flow->ttl)
		w->pair->sent_ttl = tick + 1;
	w->f->ttl = flow->ttl;
}

/* -- the entries of an interval's flows: found once, and loaded ahead of use ------------------------------------------- */

static void find_networks(const struct ow_scope_verdict *v, const struct ow_scope_flow *flow, struct work *w)
{
	w->pair = ow_scope_table_find(&v->pairs, ow_scope_key(flow->pair));
	w->dest = ow_scope_table_find(&v->dests, ow_scope_key(flow->dest));
}

static void enter_networks(struct ow_scope_verdict *v, int32_t tick, const struct ow_scope_flow *flow, struct work *w)
{
	w->pair = network_of(&v->pairs, ow_scope_key(flow->pair), tick, flow);
	w->dest = network_of(&v->dests, ow_scope_key(flow->dest), tick, flow);
}

static void load_entry(const struct ow_scope_verdict *v, const struct ow_scope_flow *flow)
{
	ow_scope_table_prefetch(&v->flows, flow->flow);
	ow_scope_table_prefetch(&v->pairs, ow_scope_key(flow->pair));
	ow_scope_table_prefetch(&v->dests, ow_scope_key(flow->dest));
}

/* Every flow gets an entry, and the networks of those that matched. Entries move when a table grows: then all are found
 * again. */
static void find_entries(struct ow_scope_verdict *v, int32_t tick, const struct ow_scope_flow *flows, size_t count)
{
	uint64_t moves = v->flows.moves + v->pairs.moves + v->dests.moves;
	for (size_t k = 0; k < count; k++) {
		struct work *w = &v->work[k];
		if (k + AHEAD < count)
			load_entry(v, &flows[k + AHEAD]);
		if (!w->packets)
			continue;
		w->f = ow_scope_table_get(&v->flows, flows[k].flow, tick);
		if (w->matched)
			enter_networks(v, tick, &flows[k], w);
		else
			find_networks(v, &flows[k], w);
	}
	for (size_t k = 0; k < count && v->flows.moves + v->pairs.moves + v->dests.moves != moves; k++) {
		if (!v->work[k].packets)
			continue;
		v->work[k].f = ow_scope_table_find(&v->flows, flows[k].flow);
		find_networks(v, &flows[k], &v->work[k]);
	}
}

static void note_flow(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flow, struct work *w)
{
	int32_t tick = tick_of(v, interval);
	struct flow *f = w->f;
	int64_t first_ns = absolute(v, interval, w->first_ns), last_ns = absolute(v, interval, w->last_match_ns);
	if (!f) {
		if (w->matched)
			count_match(v, tick, w, true);
		return;
	}
	if (!f->packets) {
		f->began = tick;
		ow_scope_waste_flow(&v->waste, ow_scope_key(flow->pair), interval);
	}
	f->packets += w->packets;
	f->sent_ns = absolute(v, interval, w->last_ns);
	note_ttl(w, tick, flow);
	f->run.missing += w->matched ? w->before : w->packets;
	if (!w->matched)
		return;
	note_match(v, w, tick, flow, first_ns, last_ns);
	f->run.missing = w->after;
	if (w->whole[0].to_ns > w->whole[0].from_ns) {
		f->run.whole.from_ns = absolute(v, interval, w->whole[0].from_ns);
		f->run.whole.to_ns = absolute(v, interval, w->whole[0].to_ns);
	}
}

/* Which flows count for the loss: those that pass B and have more than one packet. */
static uint8_t kind_of(const struct ow_scope_verdict *v, int64_t interval, const struct work *w)
{
	bool own = w->f && w->f->packets >= 2 && is_own(v, w->f, w->dest, tick_of(v, interval));
	return (uint8_t)((own ? KIND_OWN : 0) | (w->matched ? 0 : KIND_UNMATCHED));
}

/* The flow matches again, after some packets in this interval that did not. */
static void end_gap(const struct ow_scope_verdict *v, struct work *w, int64_t time_ns)
{
	const struct run gap = {.matched_ns = w->last_match_ns, .missing = w->after};
	if (!is_whole(v, &gap, time_ns, WHOLE_MIN))
		return;
	if (!w->whole[0].to_ns)
		w->whole[0].from_ns = w->last_match_ns;
	w->whole[0].to_ns = time_ns;
}

/* Sums up the packets of each flow. */
static int sum_packets(const struct ow_scope_verdict *v, struct work *work, size_t flows,
                       const struct ow_sighting *packets, const uint8_t *matched, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (packets[i].flow > flows)
			return -EINVAL;
		if (!packets[i].flow)
			continue;
		struct work *w = &work[packets[i].flow - 1];
		w->packets++;
		w->last_ns = packets[i].time_ns;
		if (!matched[i]) {
			w->after++;
			continue;
		}
		if (!w->matched++) {
			w->first_ns = packets[i].time_ns;
			w->before = w->after;
		} else if (w->after) {
			end_gap(v, w, packets[i].time_ns);
		}
		w->after = 0;
		w->last_match_ns = packets[i].time_ns;
	}
	return 0;
}

/* Networks matched. What they miss is that of flows that pass, so one packet may be a run. */
static void end_runs(const struct ow_scope_verdict *v, const struct work *w, int64_t first_ns, int64_t last_ns)
{
	if (w->pair)
		end_missing(v, &w->pair->run, first_ns, last_ns, 1);
	if (w->dest)
		end_missing(v, &w->dest->run, first_ns, last_ns, 1);
}

static void add_missing(struct ow_scope_verdict *v, const struct work *w)
{
	if (w->pair)
		w->pair->run.missing++;
	if (w->dest)
		w->dest->run.missing++;
	v->run.missing++;
}

/* Which networks miss packets of flows that pass. Returns whether any does. */
static bool mark_missing(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flows, size_t count)
{
	bool any = v->run.missing;
	for (size_t k = 0; k < count; k++) {
		const struct work *w = &v->work[k];
		if (w->matched == w->packets || !(v->kind[k] & KIND_OWN) || flows[k].later)
			continue;
		any = true;
		if (w->pair)
			w->pair->missing_in = interval + 1;
		if (w->dest)
			w->dest->missing_in = interval + 1;
	}
	return any;
}

static bool has_run(const struct network *n, int64_t interval)
{
	return n && (n->missing_in == interval + 1 || n->run.missing);
}

/* The runs of networks and of all flows: packet by packet where any is missing, else flow by flow. */
static void note_networks(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flows,
                          size_t flow_count, const struct ow_sighting *packets, const uint8_t *matched, size_t count)
{
	bool any = mark_missing(v, interval, flows, flow_count);
	for (size_t k = 0; k < flow_count; k++) {
		const struct work *w = &v->work[k];
		int64_t first_ns = absolute(v, interval, w->first_ns);
		int64_t last_ns = absolute(v, interval, w->last_match_ns);
		if (has_run(w->pair, interval) || has_run(w->dest, interval))
			v->kind[k] |= KIND_IN_RUN;
		else if (w->matched)
			end_runs(v, w, first_ns, last_ns);
		if (w->matched && !any)
			end_missing(v, &v->run, first_ns, last_ns, 1);
	}
	for (size_t i = 0; i < count && any; i++) {
		uint32_t flow = packets[i].flow;
		if (!flow)
			continue;
		uint8_t kind = v->kind[flow - 1];
		int64_t at_ns = absolute(v, interval, packets[i].time_ns);
		if (matched[i]) {
			end_missing(v, &v->run, at_ns, at_ns, 1);
			if (kind & KIND_IN_RUN)
				end_runs(v, &v->work[flow - 1], at_ns, at_ns);
		} else if (kind & KIND_OWN && !flows[flow - 1].later) {
			add_missing(v, &v->work[flow - 1]);
		}
	}
}

/* What own flows sent and lost in each bin, as far as it is known. */
static void count_bins(struct ow_scope_verdict *v, int64_t interval, const struct ow_sighting *packets,
                       const uint8_t *matched, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!packets[i].flow || !(v->kind[packets[i].flow - 1] & KIND_OWN))
			continue;
		struct ow_loss_bin *bin = ow_loss_bin_at(&v->bins, absolute(v, interval, packets[i].time_ns));
		if (bin) {
			bin->sent++;
			bin->lost += !matched[i];
		}
	}
}

static void add_likelihood(const struct ow_scope_verdict *v, struct work *w, int64_t at_ns, double q)
{
	if (ow_flow_loss_begins(&v->bins, &w->loss, at_ns))
		ow_flow_loss_add(&v->bins, &w->loss, at_ns, q);
}

/* For flows that did not match in this interval: how likely it is that all of it was lost. */
static void note_likelihoods(struct ow_scope_verdict *v, int64_t interval, size_t flow_count,
                             const struct ow_sighting *packets, size_t count)
{
	double q = usual_loss(v);
	for (size_t i = 0; i < count; i++) {
		uint32_t flow = packets[i].flow;
		if (flow && v->kind[flow - 1] & KIND_UNMATCHED)
			add_likelihood(v, &v->work[flow - 1], absolute(v, interval, packets[i].time_ns), q);
	}
	for (size_t k = 0; k < flow_count; k++) {
		struct flow *f = v->work[k].f;
		if (!f || v->work[k].matched)
			continue;
		f->log_like += v->work[k].loss.log_like;
		f->quiet += v->work[k].loss.quiet;
	}
}

int ow_scope_verdict_note(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flows,
                          size_t flow_count, const struct ow_sighting *packets, const uint8_t *matched, size_t count)
{
	if (interval <= v->last)
		return -EINVAL;
	int r = prepare(v, flow_count);
	v->unlikely = log(UNLIKELY) / log(ow_usual_loss(v->lost - v->whole, v->sent - v->whole));
	if (r == 0)
		r = sum_packets(v, v->work, flow_count, packets, matched, count);
	if (r < 0)
		return r;
	v->last = interval;
	find_entries(v, tick_of(v, interval), flows, flow_count);
	for (size_t k = 0; k < flow_count; k++) {
		if (v->work[k].packets)
			note_flow(v, interval, &flows[k], &v->work[k]);
	}
	for (size_t k = 0; k < flow_count; k++)
		v->kind[k] = kind_of(v, interval, &v->work[k]);
	note_networks(v, interval, flows, flow_count, packets, matched, count);
	count_bins(v, interval, packets, matched, count);
	note_likelihoods(v, interval, flow_count, packets, count);
	return 0;
}

void ow_scope_verdict_late(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flow,
                           int64_t time_ns)
{
	int32_t tick = tick_of(v, interval);
	int64_t at_ns = absolute(v, interval, time_ns);
	struct flow *f = ow_scope_table_find(&v->flows, flow->flow);
	struct work found = {.f = f};
	enter_networks(v, tick, flow, &found);
	struct ow_loss_bin *bin = f ? ow_loss_bin_at(&v->bins, at_ns) : NULL;
	if (bin)
		bin->lost -= bin->lost > 0 && f->matched && f->packets >= 2;
	if (f)
		note_match(v, &found, tick, flow, at_ns, at_ns);
	else
		count_match(v, tick, &found, true);
	end_runs(v, &found, at_ns, at_ns);
	end_missing(v, &v->run, at_ns, at_ns, 1);
}

void ow_scope_verdict_ttl(struct ow_scope_verdict *v, int64_t interval, const uint64_t *pair_keys, const int8_t *change,
                          size_t count)
{
	int32_t tick = tick_of(v, interval);
	for (size_t k = 0; k < count; k++) {
		struct network *pair = ow_scope_table_find(&v->pairs, pair_keys[k]);
		bool sent_so = pair && pair->sent_ttl && pair->sent_ttl - 1 >= tick - 2;
		if (!pair || sent_so || (pair->told_ttl && tick - (pair->told_ttl - 1) < v->limit))
			continue;
		pair->told_ttl = tick + 1;
		tell(v, OW_SCOPE_REROUTED, absolute(v, interval, 0), pair->network, pair->version,
		     &(struct ow_scope_event){.flows = 1, .ttl_change = change[k]});
	}
}

/* -- judging an interval ------------------------------------------------------------------------------------------- */

struct judging {
	struct ow_scope_verdict *v;
	int64_t interval;
	int32_t tick;
	const struct ow_scope_flow *flows;
	size_t flow_count;
	const struct ow_scope_packet *unmatched;
	size_t count;
	double q;
};

static int count_unmatched(const struct judging *j)
{
	for (size_t i = 0; i < j->count; i++) {
		if (j->unmatched[i].flow >= j->flow_count)
			return -EINVAL;
		struct work *w = &j->v->work[j->unmatched[i].flow];
		if (!w->unmatched++)
			w->first_ns = absolute(j->v, j->interval, j->unmatched[i].time_ns);
	}
	return 0;
}

/* Flows that lose a part, by destination: as if packets went different ways in turn. */
static void count_spray(const struct judging *j, struct network *dest, const struct ow_scope_flow *flow, uint32_t lost)
{
	if (!dest || flow->packets < 4)
		return;
	if (dest->interval != j->interval) {
		dest->interval = j->interval;
		dest->spray_flows = dest->spray_sent = dest->spray_lost = dest->spray_squares = 0;
	}
	dest->spray_flows++;
	dest->spray_sent += (float)flow->packets;
	dest->spray_lost += (float)lost;
	dest->spray_squares += (float)lost * (float)lost / (float)flow->packets;
}

/* Which flows are own; and what these lost. */
static void find_own(const struct judging *j)
{
	struct ow_scope_verdict *v = j->v;
	for (size_t k = 0; k < j->flow_count; k++) {
		const struct ow_scope_flow *flow = &j->flows[k];
		struct work *w = &v->work[k];
		if (k + AHEAD < j->flow_count)
			load_entry(v, &j->flows[k + AHEAD]);
		const struct flow *f = ow_scope_table_find(&v->flows, flow->flow);
		struct network *dest = ow_scope_table_find(&v->dests, ow_scope_key(flow->dest));
		w->known = f;
		if (!is_own(v, f, dest, j->tick)) {
			w->fate = OW_SCOPE_UNSHARED;
			continue;
		}
		w->fate = OW_SCOPE_LOST;
		w->counted = f->packets >= 2;
		if (w->counted) {
			v->longs++;
			v->sent += flow->packets;
			v->lost += w->unmatched;
		}
		count_spray(j, dest, flow, w->unmatched);
	}
}

/* For flows without an entry: from the packets of this interval alone. */
static void add_likelihoods(const struct judging *j)
{
	for (size_t i = 0; i < j->count; i++) {
		struct work *w = &j->v->work[j->unmatched[i].flow];
		if (!w->known)
			add_likelihood(j->v, w, absolute(j->v, j->interval, j->unmatched[i].time_ns), j->q);
	}
}

/* How likely it is that all packets of the run are lost to which those of this interval belong (logarithm). */
static double run_likelihood(const struct judging *j, const struct flow *f, const struct work *w, double q)
{
	if (!f)
		return (double)w->loss.log_like + w->loss.quiet * log(q);
	if (f->matched && w->first_ns < f->run.matched_ns && f->run_end >= j->tick)
		return (double)f->run_like;
	return (double)f->log_like + f->quiet * log(q);
}

/* Of one packet, or at one moment: something may drop such flows that others do not show. */
static bool is_short(const struct judging *j, const struct flow *f, const struct work *w)
{
	return run_likelihood(j, f, w, fmax(j->q, SHORT_LOSS)) > log(UNLIKELY);
}

/* The fate of the packets of a flow that is not own. */
static uint8_t weigh(const struct judging *j, const struct ow_scope_flow *flow, struct work *w)
{
	struct ow_scope_verdict *v = j->v;
	struct network *pair = ow_scope_table_find(&v->pairs, ow_scope_key(flow->pair));
	struct network *dest = ow_scope_table_find(&v->dests, ow_scope_key(flow->dest));
	if (!network_matched(pair, j->tick - v->limit) && !network_matched(dest, j->tick - v->limit))
		return OW_SCOPE_UNSHARED;
	if (flow->later)
		return OW_SCOPE_ABSENT;
	pair = network_of(&v->pairs, ow_scope_key(flow->pair), j->tick, flow);
	double share = ow_absent_share(dest ? &dest->share : NULL, ow_absent_usual(v->absent, v->news));
	share = ow_absent_share(pair ? &pair->share : NULL, share);
	struct flow *f = ow_scope_table_find(&v->flows, flow->flow);
	double absent = ow_absent_chance(share, run_likelihood(j, f, w, j->q));
	bool brief = is_short(j, f, w);
	if (!f || !f->counted)
		count_new_flow(v, pair, dest, absent);
	v->longs += !brief;
	v->longs_absent += brief ? 0 : absent;
	/* Where no long flows are absent, there may be no other way. */
	w->unsure = brief && SURE_SHARE * share > v->longs_absent / (v->longs + 1);
	if (f)
		f->counted = true;
	return absent <= OW_ABSENT_RATHER ? OW_SCOPE_LOST : OW_SCOPE_ABSENT;
}

/* A flow that passed does not any more: more packets in a row are missing than loss explains, for longer than the
 * waiting time. */
static void note_stop(const struct judging *j, const struct ow_scope_flow *flow, struct flow *f, const struct work *w)
{
	struct ow_scope_verdict *v = j->v;
	uint32_t missing = f->run.missing;
	if (f->stopped || !f->matched || missing < WHOLE_MIN || f->sent_ns - f->run.matched_ns < v->wait_ns ||
	    missing * log(j->q) > log(UNLIKELY) || w->first_ns < f->run.matched_ns)
		return;
	f->stopped = true;
	tell(v, OW_SCOPE_STOPPED, w->first_ns, flow->network, flow->version, &(struct ow_scope_event){.flows = 1});
}

/* Which lost packets of the flow are of a run in which nothing of the flow, or of its networks, arrived: after last_ns, or
 * in a run that has ended. */
static void find_whole(const struct judging *j, const struct ow_scope_flow *flow, const struct flow *f, struct work *w)
{
	const struct network *pair = ow_scope_table_find(&j->v->pairs, ow_scope_key(flow->pair));
	const struct network *dest = ow_scope_table_find(&j->v->dests, ow_scope_key(flow->dest));
	w->last_ns = INT64_MIN;
	if (!f || !f->matched || !pair || !dest)
		return;
	w->whole[0] = f->run.whole;
	w->whole[1] = pair->run.whole;
	w->whole[2] = dest->run.whole;
	w->last_ns = pair->run.matched_ns;
	if (f->run.missing >= WHOLE_MIN && f->run.matched_ns < w->last_ns)
		w->last_ns = f->run.matched_ns;
}

static bool is_in(const struct span *span, int64_t at_ns)
{
	return at_ns > span->from_ns && at_ns < span->to_ns;
}

static bool is_of_whole(const struct ow_scope_verdict *v, const struct work *w, int64_t at_ns)
{
	return at_ns > w->last_ns || is_in(&w->whole[0], at_ns) || is_in(&w->whole[1], at_ns) ||
	       is_in(&w->whole[2], at_ns) || is_in(&v->run.whole, at_ns);
}

static void judge_flows(const struct judging *j)
{
	for (size_t k = 0; k < j->flow_count; k++) {
		const struct ow_scope_flow *flow = &j->flows[k];
		struct work *w = &j->v->work[k];
		if (!w->unmatched)
			continue;
		if (w->fate != OW_SCOPE_LOST)
			w->fate = weigh(j, flow, w);
		struct flow *f = ow_scope_table_find(&j->v->flows, flow->flow);
		if (w->fate == OW_SCOPE_LOST)
			find_whole(j, flow, f, w);
		if (f)
			note_stop(j, flow, f, w);
	}
}

static void judge_packets(const struct judging *j, uint8_t *fate, struct ow_scope_sums *sums)
{
	for (size_t i = 0; i < j->count; i++) {
		const struct ow_scope_packet *packet = &j->unmatched[i];
		const struct work *w = &j->v->work[packet->flow];
		bool lost = w->fate == OW_SCOPE_LOST;
		int64_t at_ns = absolute(j->v, j->interval, packet->time_ns);
		bool whole = lost && is_of_whole(j->v, w, at_ns);
		fate[i] = whole ? OW_SCOPE_LOST_WHOLE : w->fate;
		sums->lost += lost;
		sums->whole += whole;
		j->v->whole += whole && w->counted;
		sums->unshared += !lost;
		if (w->fate != OW_SCOPE_ABSENT)
			continue;
		sums->absent++;
		sums->unsure += w->unsure;
		if (packet->compared)
			ow_scope_waste_add(&j->v->waste, ow_scope_key(j->flows[packet->flow].pair), j->interval,
			                   OW_SCOPE_WASTE_A_ONLY);
	}
}

static int count_networks(const struct judging *j, uint64_t *ret_networks)
{
	size_t n = 0;
	uint64_t *key = malloc((j->flow_count + 1) * sizeof *key);
	if (!key)
		return -ENOMEM;
	for (size_t k = 0; k < j->flow_count; k++) {
		if (j->v->work[k].unmatched && j->v->work[k].fate == OW_SCOPE_UNSHARED)
			key[n++] = j->flows[k].dest;
	}
	ow_sort_ids(key, n);
	for (size_t k = 0; k < n; k++)
		*ret_networks += !k || key[k] != key[k - 1];
	free(key);
	return 0;
}

/* -- what is unusual ----------------------------------------------------------------------------------------------- */

static bool is_fraction(double p)
{
	static const double fraction[] = {1. / 4, 1. / 3, 1. / 2, 2. / 3, 3. / 4};
	for (size_t i = 0; i < sizeof fraction / sizeof *fraction; i++) {
		if (fabs(p - fraction[i]) < .05)
			return true;
	}
	return false;
}

/* The flows of a destination lose the same share, no more unevenly than chance would have it. */
static bool is_sprayed(const struct network *dest, double *ret_share)
{
	double p = dest->spray_sent > 0 ? (double)dest->spray_lost / (double)dest->spray_sent : 0;
	*ret_share = p;
	if (dest->spray_flows < 4 || dest->spray_sent < 64 || !is_fraction(p))
		return false;
	double chi2 = ((double)dest->spray_squares - p * (double)dest->spray_lost) / (p * (1 - p));
	return chi2 <= 2 * ((double)dest->spray_flows - 1);
}

#define STEADY_INTERVALS 3

static void judge_spray(const struct judging *j)
{
	struct ow_scope_verdict *v = j->v;
	for (size_t k = 0; k < j->flow_count; k++) {
		struct network *dest = ow_scope_table_find(&v->dests, ow_scope_key(j->flows[k].dest));
		double share;
		/* The first flow of a destination speaks for all. */
		if (!dest || dest->interval != j->interval || dest->spray_flows == 0)
			continue;
		bool sprayed = is_sprayed(dest, &share);
		uint32_t flows = (uint32_t)dest->spray_flows;
		dest->steady = sprayed ? dest->steady + 1 : 0;
		dest->spray_flows = 0;
		if (dest->steady == STEADY_INTERVALS)
			tell(v, OW_SCOPE_SPRAYED, absolute(v, j->interval - STEADY_INTERVALS + 1, 0), dest->network,
			     dest->version, &(struct ow_scope_event){.flows = flows, .share = share});
	}
}

static void judge_missing(const struct judging *j)
{
	struct ow_scope_verdict *v = j->v;
	double usual = v->absent / (v->news + 20), now = v->fast_absent / (v->fast_news + 1);
	if (!v->missing && v->fast_absent >= 10 && now > 2 * usual + .01) {
		v->missing = true;
		tell(v, OW_SCOPE_MISSING, absolute(v, j->interval, 0), NULL, 0,
		     &(struct ow_scope_event){.flows = (uint32_t)v->fast_absent, .share = now});
	} else if (v->missing && now < 1.2 * usual + .005) {
		v->missing = false;
	}
}

static void age(struct ow_scope_verdict *v)
{
	double slow = pow(.98, v->seconds), slower = pow(.99, v->seconds), fast = pow(.8, v->seconds);
	v->sent *= slow;
	v->lost *= slow;
	v->whole *= slow;
	v->absent *= slower;
	v->longs *= slower;
	v->longs_absent *= slower;
	v->news *= slower;
	v->fast_absent *= fast;
	v->fast_news *= fast;
}

int ow_scope_verdict_judge(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flows,
                           size_t flow_count, const struct ow_scope_packet *unmatched, size_t count, uint8_t *fate,
                           struct ow_scope_sums *ret_sums)
{
	struct judging j = {.v = v,
	                    .interval = interval,
	                    .tick = tick_of(v, interval),
	                    .flows = flows,
	                    .flow_count = flow_count,
	                    .unmatched = unmatched,
	                    .count = count};
	struct ow_scope_sums sums = {0};
	int r = prepare(v, flow_count);
	if (r == 0)
		r = count_unmatched(&j);
	if (r < 0)
		return r;
	find_own(&j);
	j.q = usual_loss(v);
	add_likelihoods(&j);
	judge_flows(&j);
	judge_packets(&j, fate, &sums);
	r = count_networks(&j, &sums.networks);
	judge_spray(&j);
	judge_missing(&j);
	age(v);
	*ret_sums = sums;
	return r;
}

size_t ow_scope_verdict_events(struct ow_scope_verdict *v, struct ow_scope_event *events)
{
	return ow_scope_events_take(&v->events, events);
}

size_t ow_scope_verdict_fine(struct ow_scope_verdict *v, uint64_t *pair_keys, size_t max)
{
	size_t n = v->waste.fines < max ? v->waste.fines : max;
	v->waste.fines -= n;
	if (n)
		memcpy(pair_keys, v->waste.fine + v->waste.fines, n * sizeof *pair_keys);
	return n;
}
