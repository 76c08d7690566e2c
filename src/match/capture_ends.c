/* SPDX-License-Identifier: Apache-2.0 */
#include "match/capture_ends.h"

#include "base/side.h"
#include <errno.h>
#include <math.h>

#define LOST_RATHER 10 /* a packet is lost if that is this many times likelier than its delay */

struct ow_reach ow_match_reach(struct ow_match_pass *p, enum ow_direction direction, double share)
{
	const struct ow_delays *delays = ow_tally_borrow(&p->tally[direction]);
	if (!delays) {
		p->failed = p->failed ? p->failed : -ENOMEM;
		return (struct ow_reach){0};
	}
	int64_t correct = p->plan.shift_ns - p->plan.offset_ns;
	if (direction == OW_B_TO_A)
		correct = -correct;
	uint64_t samples = ow_delays_samples(delays);
	bool all = share * (double)samples < 1;
	struct ow_reach reach = {.known = samples > 0};
	if (reach.known) {
		ow_delays_range(delays, &reach.least_ns, &reach.most_ns);
		reach.least_ns = (all ? reach.least_ns : (int64_t)ow_delays_quantile(delays, share)) + correct;
		reach.most_ns = (all ? reach.most_ns : (int64_t)ow_delays_quantile(delays, 1 - share)) + correct;
	}
	ow_tally_return(&p->tally[direction], delays);
	return reach;
}

/* The time when the last packet was sent that certainly arrived, minus the disorder of the capture. */
static int64_t last_arrived(const struct ow_match_pass *p, enum ow_direction direction)
{
	int64_t sent_ns = p->tally[direction].last_sent_ns, alike_ns = p->alike_sent_ns[direction], before_ns;
	sent_ns = sent_ns > alike_ns ? sent_ns : alike_ns;
	int64_t disorder_ns = p->input[ow_sender_of(direction)].facts.backwards_most_ns;
	return __builtin_sub_overflow(sent_ns, disorder_ns, &before_ns) ? INT64_MIN : before_ns;
}

/* Packets of a direction without a counterpart, near an end, that were sent from then on and before then. */
static uint64_t sent_between(const struct ow_match_pass *p, enum ow_direction direction, int64_t from_ns, int64_t to_ns)
{
	enum ow_side side = ow_sender_of(direction);
	uint64_t packets = 0;
	for (size_t i = 0; i < p->edges; i++) {
		const struct ow_edge *edge = &p->edge[i];
		if (edge->side == side && edge->record.time_ns >= from_ns && edge->record.time_ns < to_ns &&
		    ow_directions_flow(p->directions, side, edge->record.flow)->direction == direction)
			packets += ow_match_packets(p, side, &edge->record, direction);
	}
	return packets;
}

/* Packets sent from then on are in the other capture, with any delay so far. */
static int64_t seen_from(const struct ow_match_pass *p, enum ow_direction direction, const struct ow_reach *all)
{
	return p->first_ns[ow_receiver_of(direction)] - all->least_ns;
}

/*
 * Packets of a direction that are certainly lost: for any delay the other capture covers their arrival, and one that
 * was sent later arrived.
 */
static uint64_t certainly_lost(const struct ow_match_pass *p, enum ow_direction direction, const struct ow_reach *all)
{
	int64_t seen_ns = p->last_ns[ow_receiver_of(direction)] - all->most_ns + 1,
		last_ns = last_arrived(p, direction);
	return p->tally[direction].lost +
	       sent_between(p, direction, seen_from(p, direction, all), seen_ns < last_ns ? seen_ns : last_ns);
}

/*
 * How long the packets that were sent last may be in flight when the other capture ends. One long delay affects all of
 * them, but losses are independent: if many are missing, a delay that is rarer than a loss is still likely. If a delay
 * longer than all others is likelier than the losses, it may be twice as far from the smallest.
 */
static int64_t longest_flight(struct ow_match_pass *p, enum ow_direction direction, const struct ow_reach *all,
                              double loss)
{
	double samples = (double)p->tally[direction].matched;
	uint64_t last = sent_between(p, direction, last_arrived(p, direction), INT64_MAX);
	double share = pow(loss, (double)last) / LOST_RATHER;
	return share * samples < 1 ? 2 * all->most_ns - all->least_ns : ow_match_reach(p, direction, share).most_ns;
}

/*
 * The same at the start: the packets before the first that arrived may have been faster than all others, and have
 * arrived before the other capture started.
 */
static int64_t shortest_flight(struct ow_match_pass *p, enum ow_direction direction, const struct ow_reach *all,
                               double loss)
{
	double samples = (double)p->tally[direction].matched;
	uint64_t first = sent_between(p, direction, seen_from(p, direction, all), p->tally[direction].first_sent_ns);
	double share = pow(loss, (double)first) / LOST_RATHER;
	if (share * samples >= 1)
		return ow_match_reach(p, direction, share).least_ns;
	int64_t soonest = 2 * all->least_ns - all->most_ns;
	return soonest > 0 || all->least_ns < 0 ? soonest : 0;
}

struct ow_end_rule ow_end_rule(struct ow_match_pass *p, enum ow_direction direction)
{
	const struct ow_tally *t = &p->tally[direction];
	struct ow_end_rule rule = {.all = ow_match_reach(p, direction, 0)};
	if (!t->matched || !rule.all.known)
		return rule;
	uint64_t lost = certainly_lost(p, direction, &rule.all);
	double loss = (double)lost / (double)(lost + t->matched), rare = loss / LOST_RATHER;
	rule.probable = ow_match_reach(p, direction, rare);
	rule.overtakes = (double)t->reordered > rare * (double)t->matched;
	rule.in_flight_ns = p->flight_ns[direction] = longest_flight(p, direction, &rule.all, loss);
	rule.soonest_ns = shortest_flight(p, direction, &rule.all, loss);
	p->last_sent[direction] = (struct ow_last_sent){.longest_ns = rule.all.most_ns, .loss = loss};
	return rule;
}

/*
 * Whether a packet without a counterpart may still be in flight when the other capture ends. If packets keep their
 * order, none is that was sent before one that arrived.
 */
static bool in_flight(const struct ow_match_pass *p, enum ow_direction direction, const struct ow_end_rule *rule,
                      int64_t sent_ns, int64_t end_ns)
{
	if (sent_ns >= last_arrived(p, direction))
		return sent_ns + rule->in_flight_ns > end_ns;
	return rule->overtakes && sent_ns + rule->probable.most_ns > end_ns;
}

bool ow_outside_overlap(const struct ow_match_pass *p, const struct ow_edge *edge, uint8_t direction,
                        const struct ow_end_rule *rule)
{
	if (p->plan.untimed || edge->record.flying)
		return !p->plan.untimed;
	int64_t t = edge->record.time_ns, first = p->first_ns[!edge->side], last = p->last_ns[!edge->side];
	const struct ow_tally *tally = direction == OW_DIRECTIONS ? NULL : &p->tally[direction];
	if (!tally || !tally->matched)
		return t < first || t > last;
	int64_t least_ns = t < tally->first_sent_ns ? rule->soonest_ns : rule->probable.least_ns;
	if (edge->side == ow_sender_of((enum ow_direction)direction))
		return t + least_ns < first || in_flight(p, (enum ow_direction)direction, rule, t, last);
	return !edge->copy && (t - rule->all.least_ns > last || t - rule->all.most_ns < first);
}

void ow_note_last_sent(struct ow_match_pass *p, enum ow_direction direction, int64_t sent_ns, enum ow_fate fate,
                       uint32_t packets)
{
	struct ow_last_sent *last = &p->last_sent[direction];
	if (sent_ns < last_arrived(p, direction))
		return;
	int64_t before_end_ns = p->last_ns[!ow_sender_of(direction)] - sent_ns;
	last->before_end_ns = before_end_ns > last->before_end_ns ? before_end_ns : last->before_end_ns;
	last->packets += packets;
	last->lost += fate == OW_FATE_LOST ? packets : 0;
}
