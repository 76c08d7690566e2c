/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what became of packets that did not match, and counts them. */
#include "base/array.h"
#include "base/time.h"
#include "match/capture_ends.h"
#include "match/match_pass_private.h"

#include <errno.h>

/*
 * A packet that is sent again within this many times the lag of the other capture's copies, and this, may be one there.
 */
#define RESENT_LAG    2
#define RESENT_LAG_NS (20 * OW_NS_PER_US)

static void add_edge(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, bool copy)
{
	if (OW_GROW(p->edge, p->edge_room, p->edges + 1) < 0)
		ow_pass_fail(p, -ENOMEM);
	else
		p->edge[p->edges++] = (struct ow_edge){*record, side, copy, .header = ow_pass_header(p, side, record)};
}

static void count_single(struct ow_match_pass *p, enum ow_side side, enum ow_fate fate, uint8_t direction,
                         uint64_t packets)
{
	switch (fate) {
	case OW_FATE_LOST:
		p->tally[direction].lost += packets;
		break;
	case OW_FATE_DUPLICATED:
		p->tally[direction].duplicated += packets;
		p->tally[direction].extra += packets;
		break;
	case OW_FATE_EXTRA:
		p->tally[direction].extra += packets;
		break;
	case OW_FATE_OUTSIDE:
		p->outside[side] += packets;
		break;
	default:
		p->unclassified[side] += packets;
	}
}

/* The same, and for the details. */
static void tell_known(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, enum ow_fate fate,
                       uint8_t direction)
{
	struct ow_tcp_header header = ow_pass_header(p, side, record);
	ow_pass_detail_single(p, side, record, fate, direction, &header, ow_match_packets(p, side, record, direction));
	ow_pass_tell_single(p, side, record, fate, direction, header.resends);
}

/* No delay within the waiting time leads from here into the other capture: outside the overlap, in any direction. */
static bool beyond_reach(const struct ow_match_pass *p, enum ow_side side, int64_t t)
{
	int64_t window = p->plan.window_ns;
	if (p->plan.untimed)
		return false;
	return t < p->first_ns[!side] - window || (p->ended[!side] && t > p->last_ns[!side] + window);
}

/*
 * The time when the other point saw this packet, or would have, with the usual delays: so that a single slow packet
 * does not make a silence longer than it is.
 */
static struct ow_silence seen_there(const struct ow_reach delays[OW_DIRECTIONS], enum ow_side side, int64_t t,
                                    uint8_t direction)
{
	if (direction == OW_DIRECTIONS || !delays[direction].known)
		return (struct ow_silence){t, t};
	const struct ow_reach *reach = &delays[direction];
	if (side == ow_sender_of((enum ow_direction)direction))
		return (struct ow_silence){t + reach->least_ns, t + reach->most_ns};
	return (struct ow_silence){t - reach->most_ns, t - reach->least_ns};
}

/*
 * Whether a packet is missing because the other capture has a hole. Packets that can only be in a silence are evidence
 * for it.
 */
static bool falls_silent(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, bool copy,
                         uint8_t direction, uint32_t packets)
{
	struct ow_silence there = seen_there(p->usual, side, record->time_ns, direction);
	struct ow_silence rather = seen_there(p->common, side, record->time_ns, direction);
	bool sent = direction != OW_DIRECTIONS && side == ow_sender_of((enum ow_direction)direction);
	struct ow_silence at_most = {record->time_ns - (sent ? 0 : p->plan.window_ns),
	                             record->time_ns + (sent ? p->plan.window_ns : 0)};
	unsigned first = ow_gaps_after(p->gap[!side], p->gaps[!side],
	                               at_most.from_ns < there.from_ns ? at_most.from_ns : there.from_ns);
	for (unsigned i = first; i < p->gaps[!side] && !record->untimed; i++) {
		struct ow_gap *gap = &p->gap[!side][i];
		if (there.to_ns <= gap->silence.from_ns && at_most.to_ns <= gap->silence.from_ns)
			break;
		bool between = direction != OW_DIRECTIONS &&
		               ow_gap_between(gap, (enum ow_direction)direction, record->time_ns, at_most.to_ns);
		if (!between && (there.to_ns <= gap->silence.from_ns || there.from_ns >= gap->silence.to_ns))
			continue;
		bool within = between || (rather.from_ns > gap->silence.from_ns && rather.to_ns < gap->silence.to_ns);
		gap->unseen += direction == OW_DIRECTIONS && within ? packets : 0;
		if (direction != OW_DIRECTIONS && !copy && within)
			ow_missed_note(sent ? &gap->to : &gap->from, record->time_ns, packets);
		if (gap->verdict >= OW_HOLE_OR_OUTAGE) {
			gap->packets += packets;
			return true;
		}
	}
	return false;
}

/*
 * A packet that only this side shows, while the other capture seems to show an identical one twice: these two may be
 * packets that the host repeated. They are matched if this one was repeated about as soon as the other capture shows
 * copies. Otherwise it may be lost, or duplicated on the way.
 */
static bool match_copy(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record,
                       const struct ow_flow_evidence *e)
{
	enum ow_direction direction = ow_pass_direction(p, e);
	if (!p->aside[!side] || record->len || record->untimed || record->lag_ns == UINT32_MAX ||
	    !p->usual[direction].known)
		return false;
	int64_t longest = ow_copy_rule_longest(&p->input[!side].copies);
	bool unlikely = record->lag_ns > RESENT_LAG * longest + RESENT_LAG_NS;
	struct ow_silence there = seen_there(p->usual, side, record->time_ns, (uint8_t)direction);
	struct ow_record other;
	if (!ow_copies_aside_take(p->aside[!side], record->id, there.from_ns - longest, there.to_ns + longest, &other))
		return false;
	p->maybe_copied[!side] += unlikely && side == ow_sender_of(direction);
	if (unlikely)
		return false;
	struct ow_pair pair = {.alike = true, .repeated = true, .less_ns = other.lag_ns, .more_ns = other.lag_ns};
	pair.record[side] = record;
	pair.record[!side] = &other;
	p->resent[!side]++;
	ow_pass_on_matched(p, &pair, other.lag_ns ? OW_UNCERTAIN : OW_CERTAIN);
	return true;
}

/* Whether all of a flow without matches is lost depends on what others lose at that time. Without times each packet has
 * its own. */
static void note_missing(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record,
                         const struct ow_flow_evidence *e, uint32_t packets)
{
	enum ow_direction direction = ow_pass_direction(p, e);
	int64_t t = p->plan.untimed ? (int64_t)record->number << OW_LOSS_BIN_SHIFT : record->time_ns;
	if (!e->matched)
		ow_pass_fail(p, ow_directions_missed(p->directions, side, record->flow, t));
	else if (side == ow_sender_of(direction))
		ow_directions_sent(p->directions, direction, t, packets, true);
}

void ow_pass_on_unmatched(void *arg, enum ow_side side, const struct ow_record *record, bool copy)
{
	struct ow_match_pass *p = arg;
	struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, record->flow);
	if (!e) {
		ow_pass_fail(p, -ENOMEM);
		return;
	}
	if (match_copy(p, side, record, e))
		return;
	uint32_t packets = ow_match_packets(p, side, record, e->direction);
	int64_t t = record->time_ns, first = p->first_ns[!side];
	p->unmatched_frames[side]++;
	p->unmatched_fragments[side] += record->part & OW_PART_FRAGMENT && !copy;
	struct ow_flow_repeats *repeats = ow_directions_repeats(p->directions, side, record->flow);
	repeats->copies += copy ? packets : 0;
	if (p->gaps[!side] && falls_silent(p, side, record, copy, e->direction, packets)) {
		p->outside[side] += packets;
		tell_known(p, side, record, OW_FATE_OUTSIDE, e->direction);
		return;
	}
	if (t >= first && (!p->ended[!side] || t <= p->last_ns[!side])) {
		e->unmatched += packets;
		note_missing(p, side, record, e, packets);
	}
	if (beyond_reach(p, side, t)) {
		p->outside[side] += ow_match_packets(p, side, record, OW_DIRECTIONS);
		tell_known(p, side, record, OW_FATE_OUTSIDE, OW_DIRECTIONS);
		return;
	}
	if (t < first + p->plan.window_ns || p->ended[!side]) {
		add_edge(p, side, record, copy);
		if (!p->failed)
			ow_pass_foretell(p, &p->edge[p->edges - 1], packets);
		return;
	}
	e->missing += packets;
	repeats->missing += copy ? packets : 0;
	if (p->log && copy)
		ow_pass_note_single(p, side, record, OW_FATE_DUPLICATED, e->direction);
	else if (p->intervals || p->events || p->log || p->details[OW_A_TO_B])
		tell_known(p, side, record, ow_pass_fate(e, side, copy), e->direction);
}

void ow_pass_resolve_edges(struct ow_match_pass *p)
{
	/* [OW_DIRECTIONS]: no direction, not used. */
	const struct ow_end_rule rule[] = {ow_end_rule(p, OW_A_TO_B), ow_end_rule(p, OW_B_TO_A), {.overtakes = false}};
	for (size_t i = 0; i < p->edges; i++) {
		struct ow_edge *edge = &p->edge[i];
		const struct ow_flow_evidence *e = ow_directions_flow(p->directions, edge->side, edge->record.flow);
		enum ow_fate fate = ow_outside_overlap(p, edge, e->direction, &rule[e->direction])
		                            ? OW_FATE_OUTSIDE
		                            : ow_pass_fate(e, edge->side, edge->copy);
		uint32_t packets = ow_match_packets(p, edge->side, &edge->record, e->direction);
		count_single(p, edge->side, fate, e->direction, packets);
		if (e->direction != OW_DIRECTIONS && edge->side == ow_sender_of((enum ow_direction)e->direction))
			ow_note_last_sent(p, (enum ow_direction)e->direction, edge->record.time_ns, fate, packets);
		if (edge->foretold)
			p->misjudged += edge->fate != fate || edge->direction != e->direction;
		else
			ow_pass_detail_single(p, edge->side, &edge->record, fate, e->direction, &edge->header, packets);
		edge->fate = (uint8_t)fate;
		edge->direction = e->direction;
		ow_pass_tell_single(p, edge->side, &edge->record, fate, e->direction, edge->header.resends);
	}
}

void ow_pass_resolve_missing(struct ow_match_pass *p)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		uint32_t flows = ow_flow_table_count(p->input[side].flows);
		for (uint32_t i = 0; i < flows; i++) {
			const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, i);
			if (!e) {
				ow_pass_fail(p, -ENOMEM);
				return;
			}
			uint64_t copies = ow_directions_repeats(p->directions, side, i)->missing;
			count_single(p, side, ow_pass_fate(e, side, false), e->direction, e->missing - copies);
			count_single(p, side, ow_pass_fate(e, side, true), e->direction, copies);
		}
	}
}
