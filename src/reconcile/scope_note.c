/* SPDX-License-Identifier: Apache-2.0 */
/* What an interval, of which it is known what matched, adds to what is known of flows and networks. */
#include "reconcile/scope_verdict_private.h"

#include "base/array.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS_AHEAD 16 /* packets whose flow is loaded before it is needed */

/* Of a flow of the interval that is noted. Each packet asks for it: it has one line of the cache. */
struct ow_scope_noted {
	_Alignas(OW_SCOPE_LINE) struct ow_scope_past_flow *f; /* entries of the tables */
	struct ow_scope_past_network *pair, *dest;
	uint32_t packets, matched, before, after; /* before and after those that matched */
	int64_t first_ns, last_ns, last_match_ns; /* of the matched; of all; of the matched */
};

/* Nothing of a flow matched between these times of the interval, and loss does not explain it. */
struct ow_scope_gap {
	uint32_t flow;
	struct ow_scope_span span;
};

/* Of a flow of the interval that is noted: it counts for the loss of a bin; nothing of it matched; its networks miss
 * packets. */
enum kind { KIND_OWN = 1, KIND_UNMATCHED = 2, KIND_IN_RUN = 4 };

/* Zeroed, each in a line of the cache. */
static int grow_noted(struct ow_scope_verdict *v, size_t flows)
{
	if (flows > v->room) {
		size_t room = flows + flows / 2;
		struct ow_scope_noted *noted = aligned_alloc(_Alignof(struct ow_scope_noted), room * sizeof *noted);
		if (!noted)
			return -ENOMEM;
		free(v->noted);
		v->noted = noted;
		v->room = room;
	}
	if (flows)
		memset(v->noted, 0, flows * sizeof *v->noted);
	return 0;
}

static int prepare(struct ow_scope_verdict *v, size_t flows)
{
	if ((flows > v->kind_room && OW_GROW(v->kind, v->kind_room, flows) < 0) ||
	    (flows > v->loss_room && OW_GROW(v->loss, v->loss_room, flows) < 0))
		return -ENOMEM;
	v->gaps = 0;
	return grow_noted(v, flows);
}

static void pass(struct ow_scope_past_network *n, int32_t tick)
{
	if (n && tick >= n->matched)
		n->matched = tick + 1;
}

/* Packets of the flow matched: so its networks pass. The flow is counted when its interval is judged, together with
 * those that are absent: else the flows of newer intervals would make the share of absent ones too small. A flow
 * without an entry can only be counted now. */
static void count_match(struct ow_scope_verdict *v, int32_t tick, const struct ow_scope_noted *w)
{
	pass(w->pair, tick);
	pass(w->dest, tick);
	if (!w->f)
		ow_scope_count_new_flow(v, w->pair, w->dest, 0);
}

/* A match ends a run of unmatched packets, which are still to be judged. */
static void end_run(const struct ow_scope_verdict *v, struct ow_scope_past_flow *f, int32_t tick)
{
	if (f->log_like == 0 && !f->quiet)
		return;
	float run = f->log_like + (float)(f->quiet * log(ow_scope_usual_loss(v)));
	if (run < 0) {
		f->run_like = run + (f->run_end >= tick - 2 ? f->run_like : 0);
		f->run_end = tick;
	}
	f->log_like = 0;
	f->quiet = 0;
}

static void note_match(struct ow_scope_verdict *v, const struct ow_scope_noted *w, int32_t tick,
                       const struct ow_scope_flow *flow, int64_t first_ns, int64_t last_ns)
{
	struct ow_scope_past_flow *f = w->f;
	if (f->stopped)
		ow_scope_tell(v, OW_SCOPE_BACK, first_ns, flow->network, flow->version,
		              &(struct ow_scope_event){.flows = 1});
	f->stopped = false;
	ow_scope_mark_match(f, tick);
	end_run(v, f, tick);
	ow_scope_end_missing(v, &f->run, first_ns, last_ns, OW_SCOPE_WHOLE_MIN);
	count_match(v, tick, w);
}

/* A flow is sent with another TTL than before: its way to this point changed, or its sender. */
static void note_ttl(const struct ow_scope_noted *w, int32_t tick, const struct ow_scope_flow *flow)
{
	if (!flow->ttl)
		return;
	if (w->pair && w->f->ttl && w->f->ttl != flow->ttl)
		w->pair->sent_ttl = tick + 1;
	w->f->ttl = flow->ttl;
}

/* -- the entries of an interval's flows: found once, and loaded ahead of use ------------------------------------------- */

static void find_networks(const struct ow_scope_verdict *v, const struct ow_scope_flow *flow, struct ow_scope_noted *w)
{
	w->pair = ow_scope_table_find(&v->pairs, ow_scope_key(flow->pair));
	w->dest = ow_scope_table_find(&v->dests, ow_scope_key(flow->dest));
}

static void enter_networks(struct ow_scope_verdict *v, int32_t tick, const struct ow_scope_flow *flow,
                           struct ow_scope_noted *w)
{
	w->pair = ow_scope_network_of(&v->pairs, ow_scope_key(flow->pair), tick, flow);
	w->dest = ow_scope_network_of(&v->dests, ow_scope_key(flow->dest), tick, flow);
}

/* Loads the entries of a flow that comes later. */
static void load_entries(const struct ow_scope_verdict *v, const struct ow_scope_flow *flow)
{
	ow_scope_table_prefetch(&v->flows, flow->flow, sizeof(struct ow_scope_past_flow) / OW_SCOPE_LINE);
	ow_scope_table_prefetch(&v->pairs, ow_scope_key(flow->pair), 1);
	ow_scope_table_prefetch(&v->dests, ow_scope_key(flow->dest), 1);
}

static void note_flow(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flow,
                      struct ow_scope_noted *w)
{
	int32_t tick = ow_scope_tick(v, interval);
	struct ow_scope_past_flow *f = w->f;
	int64_t first_ns = ow_scope_absolute_ns(v, interval, w->first_ns),
		last_ns = ow_scope_absolute_ns(v, interval, w->last_match_ns);
	if (!f) {
		if (w->matched)
			count_match(v, tick, w);
		return;
	}
	if (!f->packets) {
		f->began = tick;
		ow_scope_waste_flow(&v->waste, ow_scope_key(flow->pair), interval);
	}
	f->packets += w->packets;
	f->sent_ns = ow_scope_absolute_ns(v, interval, w->last_ns);
	note_ttl(w, tick, flow);
	f->run.missing += w->matched ? w->before : w->packets;
	if (!w->matched)
		return;
	note_match(v, w, tick, flow, first_ns, last_ns);
	f->run.missing = w->after;
}

/* Gaps within the interval; those of one flow are one. */
static void note_gaps(struct ow_scope_verdict *v, int64_t interval)
{
	for (size_t i = 0; i < v->gaps; i++) {
		const struct ow_scope_noted *w = &v->noted[v->gap[i].flow];
		int64_t first_ns = ow_scope_absolute_ns(v, interval, w->first_ns);
		if (!w->f)
			continue;
		if (w->f->run.whole.from_ns < first_ns)
			w->f->run.whole.from_ns = ow_scope_absolute_ns(v, interval, v->gap[i].span.from_ns);
		w->f->run.whole.to_ns = ow_scope_absolute_ns(v, interval, v->gap[i].span.to_ns);
	}
}

/* Networks matched. What they miss is that of flows that pass, so one packet may be a run. */
static void end_runs(const struct ow_scope_verdict *v, const struct ow_scope_noted *w, int64_t first_ns,
                     int64_t last_ns)
{
	if (w->pair)
		ow_scope_end_missing(v, &w->pair->run, first_ns, last_ns, 1);
	if (w->dest)
		ow_scope_end_missing(v, &w->dest->run, first_ns, last_ns, 1);
}

static void end_all(struct ow_scope_verdict *v, const struct ow_scope_noted *w, int64_t first_ns, int64_t last_ns)
{
	end_runs(v, w, first_ns, last_ns);
	ow_scope_end_missing(v, &v->run, first_ns, last_ns, 1);
}

/* Every flow gets an entry, and the networks of those that matched. If nothing is missing in the interval, runs of the
 * networks end flow by flow. */
static void note_flows(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flows, size_t count,
                       bool complete)
{
	int32_t tick = ow_scope_tick(v, interval);
	for (size_t k = 0; k < count; k++) {
		struct ow_scope_noted *w = &v->noted[k];
		v->kind[k] = 0;
		if (k + OW_SCOPE_AHEAD < count)
			load_entries(v, &flows[k + OW_SCOPE_AHEAD]);
		if (!w->packets)
			continue;
		w->f = ow_scope_table_get(&v->flows, flows[k].flow, tick);
		if (w->matched)
			enter_networks(v, tick, &flows[k], w);
		else
			find_networks(v, &flows[k], w);
		note_flow(v, interval, &flows[k], w);
		v->kind[k] = w->matched ? w->f && w->f->packets >= 2 ? KIND_OWN : 0 : KIND_UNMATCHED;
		if (complete && w->matched)
			end_all(v, w, ow_scope_absolute_ns(v, interval, w->first_ns),
			        ow_scope_absolute_ns(v, interval, w->last_match_ns));
	}
}

/* Entries move when a table grows: then all are found again. */
static void find_entries(struct ow_scope_verdict *v, const struct ow_scope_flow *flows, size_t count)
{
	for (size_t k = 0; k < count; k++) {
		if (!v->noted[k].packets)
			continue;
		v->noted[k].f = ow_scope_table_find(&v->flows, flows[k].flow);
		find_networks(v, &flows[k], &v->noted[k]);
	}
}

/* Flows of which nothing matched count for the loss if they pass B otherwise, and have more than one packet. */
static void note_unmatched(struct ow_scope_verdict *v, int64_t interval, size_t count)
{
	int32_t tick = ow_scope_tick(v, interval);
	for (size_t k = 0; k < count; k++) {
		const struct ow_scope_noted *w = &v->noted[k];
		if (!(v->kind[k] & KIND_UNMATCHED))
			continue;
		v->loss[k] = (struct ow_flow_loss){0};
		if (w->f && w->f->packets >= 2 && ow_scope_is_own(v, w->f, w->dest, tick))
			v->kind[k] |= KIND_OWN;
	}
}

/* Whether certainly no flow that passes misses packets, and no run goes on. */
static bool is_complete(const struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flows,
                        size_t count)
{
	int32_t least = ow_scope_tick(v, interval) - v->limit_long;
	for (size_t k = 0; k < count && !v->run.missing; k++) {
		const struct ow_scope_noted *w = &v->noted[k];
		if (w->matched == w->packets || flows[k].later)
			continue;
		const struct ow_scope_past_flow *f = w->matched ? NULL : ow_scope_table_find(&v->flows, flows[k].flow);
		if (w->matched || (f && f->matched && f->newest >= least))
			return false;
	}
	return !v->run.missing;
}

/* The flow matches again, after some packets in this interval that did not. */
static int end_gap(struct ow_scope_verdict *v, uint32_t flow, int64_t time_ns)
{
	const struct ow_scope_noted *w = &v->noted[flow];
	const struct ow_scope_run gap = {.matched_ns = w->last_match_ns, .missing = w->after};
	if (!ow_scope_is_whole(v, &gap, time_ns, OW_SCOPE_WHOLE_MIN))
		return 0;
	if (OW_GROW(v->gap, v->gap_room, v->gaps + 1) < 0)
		return -ENOMEM;
	v->gap[v->gaps++] = (struct ow_scope_gap){flow, {w->last_match_ns, time_ns}};
	return 0;
}

/* Sums up the packets of each flow. */
static int sum_packets(struct ow_scope_verdict *v, size_t flows, const struct ow_sighting *packets,
                       const uint8_t *matched, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t flow = packets[i].flow;
		if (flow > flows)
			return -EINVAL;
		if (i + PACKETS_AHEAD < count && packets[i + PACKETS_AHEAD].flow)
			__builtin_prefetch(&v->noted[packets[i + PACKETS_AHEAD].flow - 1], 1);
		if (!flow)
			continue;
		struct ow_scope_noted *w = &v->noted[flow - 1];
		w->packets++;
		w->last_ns = packets[i].time_ns;
		if (!matched[i]) {
			w->after++;
			continue;
		}
		if (!w->matched++) {
			w->first_ns = packets[i].time_ns;
			w->before = w->after;
		} else if (w->after && end_gap(v, flow - 1, packets[i].time_ns) < 0) {
			return -ENOMEM;
		}
		w->after = 0;
		w->last_match_ns = packets[i].time_ns;
	}
	return 0;
}

static void add_missing(struct ow_scope_verdict *v, const struct ow_scope_noted *w)
{
	if (w->pair)
		w->pair->run.missing++;
	if (w->dest)
		w->dest->run.missing++;
	v->run.missing++;
}

/* Which networks miss packets of flows that pass. */
static void mark_missing(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flows, size_t count)
{
	for (size_t k = 0; k < count; k++) {
		const struct ow_scope_noted *w = &v->noted[k];
		if (w->matched == w->packets || !(v->kind[k] & KIND_OWN) || flows[k].later)
			continue;
		if (w->pair)
			w->pair->missing_in = interval + 1;
		if (w->dest)
			w->dest->missing_in = interval + 1;
	}
}

static bool has_run(const struct ow_scope_past_network *n, int64_t interval)
{
	return n && (n->missing_in == interval + 1 || n->run.missing);
}

/* The runs of networks and of all flows: packet by packet where any is missing, else flow by flow. */
static void note_networks(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flows,
                          size_t flow_count, const struct ow_sighting *packets, const uint8_t *matched, size_t count)
{
	mark_missing(v, interval, flows, flow_count);
	for (size_t k = 0; k < flow_count; k++) {
		const struct ow_scope_noted *w = &v->noted[k];
		if (k + OW_SCOPE_AHEAD < flow_count && w[OW_SCOPE_AHEAD].pair) {
			__builtin_prefetch(w[OW_SCOPE_AHEAD].pair, 1);
			__builtin_prefetch(&w[OW_SCOPE_AHEAD].pair->missing_in);
		}
		if (has_run(w->dest, interval) || has_run(w->pair, interval))
			v->kind[k] |= KIND_IN_RUN;
		else if (w->matched)
			end_runs(v, w, ow_scope_absolute_ns(v, interval, w->first_ns),
			         ow_scope_absolute_ns(v, interval, w->last_match_ns));
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t flow = packets[i].flow;
		if (!flow)
			continue;
		uint8_t kind = v->kind[flow - 1];
		int64_t at_ns = ow_scope_absolute_ns(v, interval, packets[i].time_ns);
		if (matched[i]) {
			ow_scope_end_missing(v, &v->run, at_ns, at_ns, 1);
			if (kind & KIND_IN_RUN)
				end_runs(v, &v->noted[flow - 1], at_ns, at_ns);
		} else if (kind & KIND_OWN && !flows[flow - 1].later) {
			add_missing(v, &v->noted[flow - 1]);
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
		struct ow_loss_bin *bin =
			ow_loss_bin_at(&v->bins, ow_scope_absolute_ns(v, interval, packets[i].time_ns));
		if (bin) {
			bin->sent++;
			bin->lost += !matched[i];
		}
	}
}

/* For flows that did not match in this interval: how likely it is that all of it was lost. */
static void note_likelihoods(struct ow_scope_verdict *v, int64_t interval, size_t flow_count,
                             const struct ow_sighting *packets, size_t count)
{
	double q = ow_scope_usual_loss(v);
	for (size_t i = 0; i < count; i++) {
		uint32_t flow = packets[i].flow;
		if (flow && v->kind[flow - 1] & KIND_UNMATCHED)
			ow_scope_add_likelihood(v, &v->loss[flow - 1],
			                        ow_scope_absolute_ns(v, interval, packets[i].time_ns), q);
	}
	for (size_t k = 0; k < flow_count; k++) {
		struct ow_scope_past_flow *f = v->kind[k] & KIND_UNMATCHED ? v->noted[k].f : NULL;
		if (!f)
			continue;
		f->log_like += v->loss[k].log_like;
		f->quiet += v->loss[k].quiet;
	}
}

int ow_scope_verdict_note(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flows,
                          size_t flow_count, const struct ow_sighting *packets, const uint8_t *matched, size_t count)
{
	if (interval <= v->last)
		return -EINVAL;
	int r = prepare(v, flow_count);
	v->unlikely = log(OW_SCOPE_UNLIKELY) / log(ow_usual_loss(v->lost - v->whole, v->sent - v->whole));
	if (r == 0)
		r = sum_packets(v, flow_count, packets, matched, count);
	if (r < 0)
		return r;
	v->last = interval;
	bool complete = is_complete(v, interval, flows, flow_count);
	uint64_t moves = v->flows.moves + v->pairs.moves + v->dests.moves;
	note_flows(v, interval, flows, flow_count, complete);
	if (v->flows.moves + v->pairs.moves + v->dests.moves != moves)
		find_entries(v, flows, flow_count);
	note_gaps(v, interval);
	note_unmatched(v, interval, flow_count);
	if (!complete)
		note_networks(v, interval, flows, flow_count, packets, matched, count);
	count_bins(v, interval, packets, matched, count);
	note_likelihoods(v, interval, flow_count, packets, count);
	return 0;
}

void ow_scope_verdict_late(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flow,
                           int64_t time_ns)
{
	int32_t tick = ow_scope_tick(v, interval);
	int64_t at_ns = ow_scope_absolute_ns(v, interval, time_ns);
	struct ow_scope_past_flow *f = ow_scope_table_find(&v->flows, flow->flow);
	struct ow_scope_noted found = {.f = f};
	enter_networks(v, tick, flow, &found);
	struct ow_loss_bin *bin = f ? ow_loss_bin_at(&v->bins, at_ns) : NULL;
	if (bin)
		bin->lost -= bin->lost > 0 && f->matched && f->packets >= 2;
	if (f)
		note_match(v, &found, tick, flow, at_ns, at_ns);
	else
		count_match(v, tick, &found);
	end_runs(v, &found, at_ns, at_ns);
	ow_scope_end_missing(v, &v->run, at_ns, at_ns, 1);
}

void ow_scope_verdict_ttl(struct ow_scope_verdict *v, int64_t interval, const uint64_t *pair_keys, const int8_t *change,
                          size_t count)
{
	int32_t tick = ow_scope_tick(v, interval);
	for (size_t k = 0; k < count; k++) {
		struct ow_scope_past_network *pair = ow_scope_table_find(&v->pairs, pair_keys[k]);
		bool sent_so = pair && pair->sent_ttl && pair->sent_ttl - 1 >= tick - 2;
		if (!pair || sent_so || (pair->told_ttl && tick - (pair->told_ttl - 1) < v->limit))
			continue;
		pair->told_ttl = tick + 1;
		ow_scope_tell(v, OW_SCOPE_REROUTED, ow_scope_absolute_ns(v, interval, 0), pair->network, pair->version,
		              &(struct ow_scope_event){.flows = 1, .ttl_change = change[k]});
	}
}
