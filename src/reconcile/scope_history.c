/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of flows and networks: when they matched, how many flows are absent, and runs of missing packets. */
#include "reconcile/scope_verdict_private.h"

#include <string.h>

#define PAIR_FLOWS_MAX 200
#define DEST_FLOWS_MAX 400
#define NEVER          INT32_MIN

/* -- when a flow matched ------------------------------------------------------------------------------------------- */

void ow_scope_mark_match(struct ow_scope_past_flow *f, int32_t tick)
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
static int32_t match_up_to(const struct ow_scope_past_flow *f, int32_t tick)
{
	if (!f->matched)
		return NEVER;
	if (f->newest <= tick)
		return f->newest;
	int64_t skip = (int64_t)f->newest - tick;
	uint64_t rest = skip < 64 ? f->matches >> skip : 0;
	return rest ? tick - __builtin_ctzll(rest) : f->before;
}

static bool matched_in(const struct ow_scope_past_flow *f, int32_t from, int32_t to)
{
	int32_t newest = match_up_to(f, to);
	return newest != NEVER && newest >= from;
}

bool ow_scope_network_matched(const struct ow_scope_past_network *n, int32_t since)
{
	return n && n->matched && n->matched - 1 >= since;
}

bool ow_scope_is_own(const struct ow_scope_verdict *v, const struct ow_scope_past_flow *f,
                     const struct ow_scope_past_network *dest, int32_t tick)
{
	if (!f)
		return false;
	int32_t limit = ow_scope_network_matched(dest, tick) ? v->limit_long : v->limit;
	return matched_in(f, tick - limit, tick) || (f->began >= tick - 1 && matched_in(f, tick + 1, tick + 2));
}

/* -- flows of networks ------------------------------------------------------------------------------------------- */

struct ow_scope_past_network *ow_scope_network_of(struct ow_scope_table *table, uint64_t key, int32_t tick,
                                                  const struct ow_scope_flow *flow)
{
	struct ow_scope_past_network *n = ow_scope_table_get(table, key, tick);
	if (n && !n->version) {
		n->version = flow->version;
		memcpy(n->network, flow->network, sizeof n->network);
	}
	return n;
}

void ow_scope_tell(struct ow_scope_verdict *v, enum ow_scope_event_kind kind, int64_t at_ns, const uint8_t network[6],
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
static void count_flow(struct ow_scope_past_network *n, float most, double absent)
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

void ow_scope_count_new_flow(struct ow_scope_verdict *v, struct ow_scope_past_network *pair,
                             struct ow_scope_past_network *dest, double absent)
{
	count_flow(pair, PAIR_FLOWS_MAX, absent);
	count_flow(dest, DEST_FLOWS_MAX, absent);
	v->absent += absent;
	v->fast_absent += absent;
	v->news++;
	v->fast_news++;
}

/* -- runs of missing packets -------------------------------------------------------------------------------------- */

bool ow_scope_is_whole(const struct ow_scope_verdict *v, const struct ow_scope_run *run, int64_t first_ns,
                       uint32_t least)
{
	int64_t length_ns = first_ns - run->matched_ns;
	if (run->missing >= OW_SCOPE_WHOLE_MIN && length_ns >= OW_SCOPE_WHOLE_NS && run->missing >= v->unlikely)
		return true;
	return run->missing >= least && length_ns > v->wait_ns;
}

/* A packet matched. A late one may be of the middle of a run, which then was shorter. Runs that follow each other soon
 * are one: flows move to and fro. Before the first packet of a network nothing of it arrived. */
void ow_scope_end_run(const struct ow_scope_verdict *v, struct ow_scope_run *run, int64_t first_ns, int64_t last_ns,
                      uint32_t least)
{
	bool is_first = !run->matched_ns && least == 1;
	if (is_first || (run->missing && ow_scope_is_whole(v, run, first_ns, least))) {
		if (!run->whole.to_ns || run->matched_ns - run->whole.to_ns > v->wait_ns)
			run->whole.from_ns = run->matched_ns;
		run->whole.to_ns = first_ns;
	} else if (first_ns > run->whole.from_ns && first_ns < run->whole.to_ns) {
		run->whole.to_ns = first_ns - run->whole.from_ns >= OW_SCOPE_WHOLE_NS ? first_ns : run->whole.from_ns;
	}
	if (last_ns > run->matched_ns) {
		run->matched_ns = last_ns;
		run->missing = 0;
	}
}
