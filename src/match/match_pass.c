/* SPDX-License-Identifier: Apache-2.0 */
#include "match/match_pass.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/side.h"
#include "base/time.h"
#include "match/capture_ends.h"
#include "match/merge.h"
#include "packet/packet_class.h"
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define FEW_VOTES          3
#define THREADS_FROM_BYTES 4000000 /* bytes of both captures: with fewer, threads cost more than they save */
/*
 * A packet that is sent again within this many times the lag of the other capture's copies, and this, may be one there.
 */
#define RESENT_LAG    2
#define RESENT_LAG_NS (20 * OW_NS_PER_US)
#define MET_AHEAD     10    /* matched packets whose flows are prefetched */
#define RARE_DELAY    0.001 /* share of delays, at either end, that are not usual; .. */
#define FEWER_DELAYS  0.25 /* .. and that may be those of identical packets on either side of a hole, matched wrongly */

int ow_match_pass_init(struct ow_match_pass *pass, const struct ow_match_options *options)
{
	memset(pass, 0, sizeof *pass);
	pass->options = options;
	if (ow_directions_create(&pass->directions) < 0 || ow_tally_init(&pass->tally[OW_A_TO_B]) < 0 ||
	    ow_tally_init(&pass->tally[OW_B_TO_A]) < 0)
		return -ENOMEM;
	return 0;
}

void ow_match_pass_done(struct ow_match_pass *pass)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		ow_record_reader_close(&pass->input[side]);
		ow_copies_aside_free(pass->aside[side]);
	}
	ow_tcp_segments_done(&pass->pieces);
	ow_flow_pairs_done(&pass->flow_pairs);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++)
		ow_tally_done(&pass->tally[d]);
	ow_directions_free(pass->directions);
	free(pass->edge);
	free(pass->edge_before);
}

/* -- counting ----------------------------------------------------------------------------------------------------- */

static void fail(struct ow_match_pass *p, int r)
{
	if (r < 0 && !p->failed)
		p->failed = r;
}

/* B's times as in the results. */
static int64_t shown_time(const struct ow_match_pass *p, enum ow_side side, int64_t time_ns)
{
	return side == OW_SIDE_B ? time_ns + (p->plan.offset_ns - p->plan.shift_ns) : time_ns;
}

static void tell(struct ow_match_pass *p, const struct ow_packet_event *event)
{
	if (p->events && !p->failed)
		fail(p, p->options->on_packet(p->options->arg, event));
}

static int log_add(struct ow_pass_log *log, const struct ow_pass_note *note)
{
	if (log->tell)
		return log->tell(log->arg, note);
	if (log->notes == log->most) {
		log->full = true;
		return 0;
	}
	if (OW_GROW(log->note, log->room, log->notes + 1) < 0)
		return -ENOMEM;
	log->note[log->notes++] = *note;
	return 0;
}

/* After a failure nothing more is told. */
static void log_note(struct ow_match_pass *p, const struct ow_pass_note *note)
{
	if (!p->failed)
		fail(p, log_add(p->log, note));
}

/* A part of a superframe has the id of the whole: its position makes the difference. */
static uint64_t piece_id(const struct ow_record *record)
{
	return record->len ? ow_mix64(record->id ^ ow_mix64((uint64_t)record->seq << 32 | record->len)) : record->id;
}

/* The position of a part in its superframe or datagram. */
static uint64_t part_of(const struct ow_record *record)
{
	return record->len ? (uint64_t)record->seq << 32 | record->len : 0;
}

/*
 * How much timestamps of the captures contradict the order of packets: two ticks of a microsecond clock, and what was
 * observed.
 */
static int64_t timestamp_error(const struct ow_match_pass *p)
{
	return 2 * OW_NS_PER_US + p->input[OW_SIDE_A].facts.backwards_most_ns +
	       p->input[OW_SIDE_B].facts.backwards_most_ns;
}

/* -- details ------------------------------------------------------------------------------------------------------ */

/* The TCP data of a record. */
static struct ow_tcp_header header_of(const struct ow_match_pass *p, enum ow_side side, const struct ow_record *record)
{
	const struct ow_tcp_headers *headers = p->input[side].headers;
	struct ow_tcp_header header = headers ? ow_tcp_headers_get(headers, record->number) : (struct ow_tcp_header){0};
	/* A part of a superframe has its own range. */
	if (header.len && record->len && !(record->part & OW_PART_NAMED)) {
		header.seq = record->seq;
		header.len = record->len;
	}
	return header;
}

/* All packets of the direction that were sent before this time have their fate. */
static int64_t decided_before(const struct ow_match_pass *p, enum ow_direction direction)
{
	int64_t now_ns = p->matcher ? p->details_ns[direction] : INT64_MIN;
	int64_t windows = p->matcher && ow_matcher_groups(p->matcher) ? OW_DETAILS_WINDOWS : 1;
	return now_ns == INT64_MIN ? now_ns : ow_time_later(now_ns, -windows * p->plan.window_ns - timestamp_error(p));
}

static void detail_sent(struct ow_match_pass *p, enum ow_direction direction, const struct ow_record *sent,
                        const struct ow_record *received, const struct ow_tcp_header *header,
                        struct ow_ordered_packet *packet)
{
	enum ow_side side = ow_sender_of(direction);
	int64_t latest_ns = received ? received->time_ns : ow_time_later(sent->time_ns, p->plan.window_ns);
	bool coarse = ow_flow_key_is_coarse(ow_flow_table_key(p->input[side].flows, sent->flow));
	packet->number = sent->number;
	packet->part = part_of(sent);
	packet->time_ns = sent->time_ns;
	packet->flow = coarse ? UINT32_MAX : sent->flow;
	packet->seq = header->seq;
	packet->len = header->len;
	packet->syn = header->syn;
	packet->fin = header->fin;
	/* What is decided at the end of the captures says nothing about how far the others are. */
	if ((received || !p->ended[!side]) && latest_ns > p->details_ns[direction])
		p->details_ns[direction] = latest_ns;
	fail(p, ow_details_tally_sent(p->details[direction], packet, received ? received->number : 0,
	                              received ? received->time_ns : 0, decided_before(p, direction)));
}

static void detail_pair(struct ow_match_pass *p, const struct ow_pair *pair, enum ow_direction direction,
                        enum ow_certainty certainty, int64_t delay_ns, uint32_t packets)
{
	const struct ow_record *sent = pair->record[ow_sender_of(direction)];
	struct ow_tcp_header header = header_of(p, ow_sender_of(direction), sent);
	bool uncertain = certainty == OW_UNCERTAIN;
	detail_sent(p, direction, sent, pair->record[!ow_sender_of(direction)], &header,
	            &(struct ow_ordered_packet){
			    .delay_ns = delay_ns,
			    .less_ns = uncertain ? pair->less_ns : 0,
			    .more_ns = uncertain ? pair->more_ns : 0,
			    .packets = packets,
			    .has_delay = certainty == OW_CERTAIN || uncertain,
			    .alike = certainty != OW_CERTAIN,
		    });
}

/* A packet that only its sender shows. One outside of the other capture's time only separates others. */
static void detail_single(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, enum ow_fate fate,
                          uint8_t direction, const struct ow_tcp_header *header, uint32_t packets)
{
	if (direction >= OW_DIRECTIONS || !p->details[direction] ||
	    side != ow_sender_of((enum ow_direction)direction) || (fate != OW_FATE_LOST && fate != OW_FATE_OUTSIDE))
		return;
	detail_sent(p, (enum ow_direction)direction, record, NULL, header,
	            &(struct ow_ordered_packet){.packets = packets,
	                                        .is_lost = fate == OW_FATE_LOST,
	                                        .is_unknown = fate == OW_FATE_OUTSIDE,
	                                        .alike = record->doubtful});
}

static int by_record(const void *a, const void *b)
{
	const struct ow_edge *x = a, *y = b;
	const uint64_t key[2][3] = {{x->side, x->record.number, part_of(&x->record)},
	                            {y->side, y->record.number, part_of(&y->record)}};
	for (int i = 0; i < 3; i++) {
		if (key[0][i] != key[1][i])
			return key[0][i] < key[1][i] ? -1 : 1;
	}
	return 0;
}

/*
 * The fates of packets near the start of the other capture are decided at the end: too late to put them in order. Passes
 * with the same plan decide in the same way, so the previous one foretells them.
 */
static void foretell(struct ow_match_pass *p, struct ow_edge *edge, uint32_t packets)
{
	if (!p->details[OW_A_TO_B] || p->ended[!edge->side] || !p->edges_before)
		return;
	const struct ow_edge *before =
		bsearch(edge, p->edge_before, p->edges_before, sizeof *p->edge_before, by_record);
	if (!before)
		return;
	edge->foretold = true;
	edge->fate = before->fate;
	edge->direction = before->direction;
	detail_single(p, edge->side, &edge->record, (enum ow_fate)edge->fate, edge->direction, &edge->header, packets);
}

/* -- packets ------------------------------------------------------------------------------------------------------ */

/* As in struct ow_packet_event. */
static uint8_t classes_of(const struct ow_match_pass *p, const struct ow_record *record)
{
	return p->options->class_by == OW_CLASS_BY_SIZE ? ow_size_class(record->bytes) : record->classes;
}

/* RFC 4737 in each class of the packet, as in ow_tally_match. */
static void note_class_order(struct ow_match_pass *p, enum ow_direction direction, const struct ow_record *sent,
                             uint32_t packets)
{
	unsigned classes = classes_of(p, sent);
	bool numbered = p->options->class_by != OW_CLASS_BY_FILTER;
	for (unsigned i = numbered ? classes : 0; i < OW_CLASSES_MAX && (numbered || classes >> i); i++) {
		struct ow_class_order *order = &p->class_order[i][direction];
		if (!numbered && !(classes >> i & 1))
			continue;
		order->reordered += sent->number < order->newest_sent ? packets : 0;
		order->newest_sent = sent->number > order->newest_sent ? sent->number : order->newest_sent;
		if (numbered)
			break;
	}
}

static void tell_pair(struct ow_match_pass *p, const struct ow_pair *pair, enum ow_direction direction,
                      enum ow_certainty certainty, uint32_t packets)
{
	struct ow_packet_event event = {.size = sizeof event,
	                                .fate = OW_FATE_MATCHED,
	                                .direction = direction,
	                                .ambiguous = certainty != OW_CERTAIN,
	                                .estimated = certainty == OW_UNCERTAIN,
	                                .less_ns = certainty == OW_UNCERTAIN ? pair->less_ns : 0,
	                                .more_ns = certainty == OW_UNCERTAIN ? pair->more_ns : 0,
	                                .packets = packets};
	for (unsigned side = 0; side < OW_SIDES; side++) {
		event.number[side] = pair->record[side]->number;
		event.time_ns[side] = shown_time(p, side, pair->record[side]->time_ns);
	}
	event.side = ow_sender_of(direction);
	event.bytes = pair->record[event.side]->bytes;
	event.flow = ow_flow_table_key(p->input[event.side].flows, pair->record[event.side]->flow);
	event.classes = classes_of(p, pair->record[event.side]);
	event.resends = header_of(p, event.side, pair->record[event.side]).resends;
	event.id = piece_id(pair->record[OW_SIDE_A]);
	event.part = part_of(pair->record[OW_SIDE_A]);
	tell(p, &event);
}

/* The delay of a pair is known now: a sample, an estimate with bounds, or nothing. */
static void count_delay(struct ow_match_pass *p, const struct ow_pair *pair, enum ow_direction direction,
                        enum ow_certainty certainty)
{
	const struct ow_record *a = pair->record[OW_SIDE_A], *b = pair->record[OW_SIDE_B];
	struct ow_tally *tally = &p->tally[direction];
	uint32_t packets = ow_tcp_segments_packets(&p->pieces, OW_SIDE_A, a);
	p->repeats[direction] += pair->alike ? packets : 0;
	if (pair->near_ns)
		ow_spacing_note(&p->alike[direction], pair->near_ns, packets);
	int64_t sent_ns = pair->record[ow_sender_of(direction)]->time_ns - pair->more_ns;
	if (pair->alike && sent_ns > p->alike_sent_ns[direction])
		p->alike_sent_ns[direction] = sent_ns;
	if (a->untimed | b->untimed)
		certainty = OW_AMBIGUOUS;
	int64_t a_ns = a->time_ns, b_ns = shown_time(p, OW_SIDE_B, b->time_ns);
	int64_t delay = direction == OW_A_TO_B ? b_ns - a_ns : a_ns - b_ns;
	if (certainty == OW_AMBIGUOUS)
		tally->ambiguous += packets;
	else if (certainty == OW_UNCERTAIN)
		fail(p, ow_tally_uncertain(tally, delay, pair->less_ns, pair->more_ns, pair->step_ns, packets));
	else
		ow_tally_sample(tally, delay, packets);
	if (certainty == OW_CERTAIN)
		ow_skew_add(&p->skew, direction + (pair->repeated ? OW_SKEW_ALIKE : 0), a_ns, delay);
	if (certainty == OW_CERTAIN && !pair->repeated)
		ow_floor_add(&p->floor[direction], delay);
	if (p->intervals) {
		const struct ow_interval_delay known = {
			.delay_ns = delay,
			.less_ns = certainty == OW_UNCERTAIN ? pair->less_ns : 0,
			.more_ns = certainty == OW_UNCERTAIN ? pair->more_ns : 0,
		};
		fail(p, ow_intervals_delay(p->intervals, direction, direction == OW_A_TO_B ? a_ns : b_ns,
		                           certainty == OW_AMBIGUOUS ? NULL : &known, packets));
	}
	if (p->details[direction])
		detail_pair(p, pair, direction, certainty, delay, packets);
	if (p->events)
		tell_pair(p, pair, direction, certainty, packets);
	if (p->log)
		log_note(p, &(struct ow_pass_note){.number = {a->number, b->number},
		                                   .time_ns = {a_ns, b_ns},
		                                   .flow = {a->flow, b->flow},
		                                   .bytes = pair->record[ow_sender_of(direction)]->bytes,
		                                   .fate = OW_FATE_MATCHED,
		                                   .ambiguous = certainty != OW_CERTAIN});
}

/* Whether flows behind a NAT are still to be paired, from unique packets. */
static bool learns_flow_pairs(const struct ow_match_pass *p)
{
	return p->plan.identity.level == OW_LEVEL_NAT && !p->input[OW_SIDE_A].pairs;
}

static enum ow_direction current_direction(const struct ow_match_pass *p, const struct ow_flow_evidence *e)
{
	if (p->plan.rule == OW_ALL_FORWARD)
		return OW_A_TO_B;
	if (e->decided && e->direction != OW_DIRECTIONS)
		return (enum ow_direction)e->direction;
	if (p->plan.rule == OW_ONE_WAY)
		return p->plan.way;
	return e->votes < 0 ? OW_B_TO_A : OW_A_TO_B;
}

/* Adds a match to the evidence of identical packets; packets < 0: removes it. Both flows have evidence. */
static void vote_repeats(struct ow_match_pass *p, const struct ow_pair *pair, int64_t later_ns, int64_t packets)
{
	for (unsigned side = 0; side < OW_SIDES; side++)
		ow_flow_repeats_vote(ow_directions_repeats(p->directions, side, pair->record[side]->flow), later_ns,
		                     packets);
}

static void note_around_gaps(struct ow_match_pass *p, enum ow_direction direction, int64_t a_ns, int64_t b_ns)
{
	ow_gaps_note(p->gap[OW_SIDE_A], p->gaps[OW_SIDE_A], direction, a_ns, b_ns);
	ow_gaps_note(p->gap[OW_SIDE_B], p->gaps[OW_SIDE_B], direction, b_ns, a_ns);
}

static void on_matched(void *arg, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct ow_match_pass *p = arg;
	const struct ow_record *a = pair->record[OW_SIDE_A], *b = pair->record[OW_SIDE_B];
	struct ow_flow_evidence *ea = ow_directions_flow(p->directions, OW_SIDE_A, a->flow);
	struct ow_flow_evidence *eb = ow_directions_flow(p->directions, OW_SIDE_B, b->flow);
	if (!ea || !eb) {
		fail(p, -ENOMEM);
		return;
	}
	uint32_t packets = ow_tcp_segments_packets(&p->pieces, OW_SIDE_A, a);
	int64_t later_ns = a->untimed || b->untimed ? 0 : b->time_ns - a->time_ns; /* without times there is no vote */
	ow_flow_evidence_vote(ea, later_ns, packets);
	ow_flow_evidence_vote(eb, later_ns, packets);
	if (pair->repeated || certainty == OW_UNSETTLED)
		vote_repeats(p, pair, later_ns, packets);
	enum ow_direction direction = current_direction(p, ea);
	ea->counted[direction] += packets;
	const struct ow_record *sent = pair->record[ow_sender_of(direction)],
			       *received = pair->record[!ow_sender_of(direction)];
	uint64_t reordered = p->tally[direction].reordered;
	ow_tally_match(&p->tally[direction], pair->alike ? OW_TALLY_UNPLACED : sent->number, sent->time_ns,
	               received->time_ns, packets);
	if (!pair->alike && (p->options->classes || p->options->class_by))
		note_class_order(p, direction, sent, packets);
	if (p->details[direction] && !pair->alike)
		ow_details_tally_arrived(p->details[direction], sent->number, packets);
	ow_directions_sent(p->directions, direction, sent->time_ns, packets, false);
	if (!pair->alike && !pair->repeated && !a->untimed && !b->untimed)
		note_around_gaps(p, direction, a->time_ns, b->time_ns);
	if (p->plan.identity.cut)
		ow_tcp_segments_note_cut(&p->pieces, direction, pair);
	if (a->len && !(a->part & OW_PART_NAMED))
		fail(p, ow_tcp_segments_note_pair(&p->pieces, pair));
	if (certainty == OW_CERTAIN && !pair->alike && !pair->repeated && learns_flow_pairs(p))
		fail(p, ow_flow_pairs_note(&p->flow_pairs, a->flow, b->flow));
	if (p->intervals)
		fail(p,
		     ow_intervals_match(p->intervals, direction, shown_time(p, ow_sender_of(direction), sent->time_ns),
		                        packets, p->tally[direction].reordered > reordered));
	if (certainty != OW_UNSETTLED)
		count_delay(p, pair, direction, certainty);
	else
		p->unsettled[direction] += packets;
}

static inline void load_evidence(const struct ow_match_pass *p, const struct ow_meeting *m)
{
	ow_directions_prefetch(p->directions, OW_SIDE_A, m->flow[OW_SIDE_A]);
	ow_directions_prefetch(p->directions, OW_SIDE_B, m->flow[OW_SIDE_B]);
}

static void note_meeting(struct ow_match_pass *p, const struct ow_meeting *m)
{
	struct ow_pass_note note = {.number = {m->number[OW_SIDE_A], m->number[OW_SIDE_B]},
	                            .flow = {m->flow[OW_SIDE_A], m->flow[OW_SIDE_B]},
	                            .fate = OW_FATE_MATCHED,
	                            .ambiguous = m->untimed};
	for (unsigned side = 0; side < OW_SIDES; side++)
		note.time_ns[side] = shown_time(p, side, m->time_ns[side]);
	log_note(p, &note);
}

/* The same for many at a time, in a pass without intervals, events and fragments. */
static void on_met(void *arg, const struct ow_meeting *meeting, size_t count)
{
	struct ow_match_pass *p = arg;
	bool flow_pairs = learns_flow_pairs(p), gaps = p->gaps[OW_SIDE_A] + p->gaps[OW_SIDE_B] > 0;
	for (size_t i = 0; i < count && i < MET_AHEAD; i++)
		load_evidence(p, &meeting[i]);
	for (const struct ow_meeting *m = meeting; m < meeting + count; m++) {
		if (m + MET_AHEAD < meeting + count)
			load_evidence(p, m + MET_AHEAD);
		struct ow_flow_evidence *ea = ow_directions_flow(p->directions, OW_SIDE_A, m->flow[OW_SIDE_A]);
		struct ow_flow_evidence *eb = ow_directions_flow(p->directions, OW_SIDE_B, m->flow[OW_SIDE_B]);
		if (!ea || !eb) {
			fail(p, -ENOMEM);
			return;
		}
		if (flow_pairs)
			fail(p, ow_flow_pairs_note(&p->flow_pairs, m->flow[OW_SIDE_A], m->flow[OW_SIDE_B]));
		int64_t a_ns = m->time_ns[OW_SIDE_A], b_ns = m->time_ns[OW_SIDE_B];
		int64_t later_ns = m->untimed ? 0 : b_ns - a_ns;
		ow_flow_evidence_vote(ea, later_ns, 1);
		ow_flow_evidence_vote(eb, later_ns, 1);
		enum ow_direction direction = current_direction(p, ea);
		bool back = direction == OW_B_TO_A;
		struct ow_tally *tally = &p->tally[direction];
		ea->counted[direction]++;
		ow_tally_match(tally, m->number[back], m->time_ns[back], m->time_ns[!back], 1);
		if (p->log && !m->quiet)
			note_meeting(p, m);
		ow_directions_sent(p->directions, direction, m->time_ns[back], 1, false);
		if (m->untimed) {
			tally->ambiguous++;
			continue;
		}
		if (gaps)
			note_around_gaps(p, direction, a_ns, b_ns);
		int64_t forth = shown_time(p, OW_SIDE_B, b_ns) - a_ns, delay = back ? -forth : forth;
		ow_tally_sample(tally, delay, 1);
		ow_skew_add(&p->skew, direction, a_ns, delay);
		ow_floor_add(&p->floor[direction], delay);
	}
}

static void on_settled(void *arg, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct ow_match_pass *p = arg;
	const struct ow_record *a = pair->record[OW_SIDE_A], *b = pair->record[OW_SIDE_B];
	struct ow_flow_evidence *ea = ow_directions_flow(p->directions, OW_SIDE_A, a->flow);
	struct ow_flow_evidence *eb = ow_directions_flow(p->directions, OW_SIDE_B, b->flow);
	if (!ea || !eb) {
		fail(p, -ENOMEM);
		return;
	}
	uint32_t packets = ow_tcp_segments_packets(&p->pieces, OW_SIDE_A, a);
	if (!pair->repeated && !pair->alike) {
		int64_t later_ns = a->untimed || b->untimed ? 0 : b->time_ns - a->time_ns;
		vote_repeats(p, pair, later_ns, -(int64_t)packets);
	}
	/* A pair of another flow was counted, which has the reverse direction: its delay is unknown. */
	enum ow_direction direction = current_direction(p, ea);
	if (p->unsettled[direction] < packets) {
		direction = !direction;
		certainty = OW_AMBIGUOUS;
	}
	p->unsettled[direction] -= packets;
	count_delay(p, pair, direction, certainty);
}

static enum ow_direction only_way(const struct ow_plan *plan)
{
	return plan->rule == OW_ALL_FORWARD ? OW_A_TO_B : plan->way;
}

static enum ow_direction on_direction(void *arg, enum ow_side side, uint32_t flow)
{
	struct ow_match_pass *p = arg;
	const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, flow);
	if (p->plan.rule != OW_BY_VOTES)
		return only_way(&p->plan);
	if (!e)
		return OW_DIRECTIONS;
	bool few = llabs(e->votes - ow_directions_repeats(p->directions, side, flow)->votes) < FEW_VOTES;
	return few && !e->decided ? OW_DIRECTIONS : current_direction(p, e);
}

static void add_edge(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, bool copy)
{
	if (OW_GROW(p->edge, p->edge_room, p->edges + 1) < 0)
		fail(p, -ENOMEM);
	else
		p->edge[p->edges++] = (struct ow_edge){*record, side, copy, .header = header_of(p, side, record)};
}

/* The fate of a packet that only one side saw, by the direction of its flow. */
static enum ow_fate fate_of(const struct ow_flow_evidence *e, enum ow_side side, bool copy)
{
	if (e->direction == OW_DIRECTIONS)
		return OW_FATE_UNCLASSIFIED;
	if (side == ow_sender_of((enum ow_direction)e->direction))
		return OW_FATE_LOST;
	return copy ? OW_FATE_DUPLICATED : OW_FATE_EXTRA;
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

/* Lost, extra and duplicated are told apart by the direction of the flow, which may still change. */
static void note_single(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, enum ow_fate fate,
                        uint8_t direction)
{
	struct ow_pass_note note = {.bytes = record->bytes,
	                            .side = (uint8_t)side,
	                            .direction = direction,
	                            .fate = fate == OW_FATE_OUTSIDE ? OW_FATE_OUTSIDE : OW_FATE_LOST,
	                            .copy = fate == OW_FATE_DUPLICATED};
	note.number[side] = record->number;
	note.time_ns[side] = shown_time(p, side, record->time_ns);
	note.flow[side] = record->flow;
	log_note(p, &note);
}

/* Reports intervals and events of a packet that only one side saw, when its fate is final. */
static void tell_single(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, enum ow_fate fate,
                        uint8_t direction, uint64_t resends)
{
	uint32_t packets = ow_match_packets(p, side, record, direction);
	int64_t time_ns = shown_time(p, side, record->time_ns);
	if (p->intervals && fate == OW_FATE_LOST)
		fail(p, ow_intervals_lost(p->intervals, direction, time_ns, packets));
	if (p->intervals && (fate == OW_FATE_EXTRA || fate == OW_FATE_DUPLICATED))
		fail(p, ow_intervals_extra(p->intervals, direction, time_ns, packets, fate == OW_FATE_DUPLICATED));
	if (p->log)
		note_single(p, side, record, fate, direction);
	if (!p->events)
		return;
	struct ow_packet_event event = {.size = sizeof event,
	                                .fate = fate,
	                                .direction = direction,
	                                .side = side,
	                                .packets = packets,
	                                .bytes = record->bytes,
	                                .flow = ow_flow_table_key(p->input[side].flows, record->flow),
	                                .id = piece_id(record),
	                                .part = part_of(record),
	                                .classes = classes_of(p, record),
	                                .resends = resends};
	event.number[side] = record->number;
	event.time_ns[side] = time_ns;
	tell(p, &event);
}

/* The same, and for the details. */
static void tell_known(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, enum ow_fate fate,
                       uint8_t direction)
{
	struct ow_tcp_header header = header_of(p, side, record);
	detail_single(p, side, record, fate, direction, &header, ow_match_packets(p, side, record, direction));
	tell_single(p, side, record, fate, direction, header.resends);
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
	enum ow_direction direction = current_direction(p, e);
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
	on_matched(p, &pair, other.lag_ns ? OW_UNCERTAIN : OW_CERTAIN);
	return true;
}

/* Whether all of a flow without matches is lost depends on what others lose at that time. Without times each packet has
 * its own. */
static void note_missing(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record,
                         const struct ow_flow_evidence *e, uint32_t packets)
{
	enum ow_direction direction = current_direction(p, e);
	int64_t t = p->plan.untimed ? (int64_t)record->number << OW_LOSS_BIN_SHIFT : record->time_ns;
	if (!e->matched)
		fail(p, ow_directions_missed(p->directions, side, record->flow, t));
	else if (side == ow_sender_of(direction))
		ow_directions_sent(p->directions, direction, t, packets, true);
}

static void on_unmatched(void *arg, enum ow_side side, const struct ow_record *record, bool copy)
{
	struct ow_match_pass *p = arg;
	struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, record->flow);
	if (!e) {
		fail(p, -ENOMEM);
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
			foretell(p, &p->edge[p->edges - 1], packets);
		return;
	}
	e->missing += packets;
	repeats->missing += copy ? packets : 0;
	if (p->log && copy)
		note_single(p, side, record, OW_FATE_DUPLICATED, e->direction);
	else if (p->intervals || p->events || p->log || p->details[OW_A_TO_B])
		tell_known(p, side, record, fate_of(e, side, copy), e->direction);
}

/* -- fates ------------------------------------------------------------------------------------------------------- */

static void resolve_edges(struct ow_match_pass *p)
{
	/* [OW_DIRECTIONS]: no direction, not used. */
	const struct ow_end_rule rule[] = {ow_end_rule(p, OW_A_TO_B), ow_end_rule(p, OW_B_TO_A), {.overtakes = false}};
	for (size_t i = 0; i < p->edges; i++) {
		struct ow_edge *edge = &p->edge[i];
		const struct ow_flow_evidence *e = ow_directions_flow(p->directions, edge->side, edge->record.flow);
		enum ow_fate fate = ow_outside_overlap(p, edge, e->direction, &rule[e->direction])
		                            ? OW_FATE_OUTSIDE
		                            : fate_of(e, edge->side, edge->copy);
		uint32_t packets = ow_match_packets(p, edge->side, &edge->record, e->direction);
		count_single(p, edge->side, fate, e->direction, packets);
		if (e->direction != OW_DIRECTIONS && edge->side == ow_sender_of((enum ow_direction)e->direction))
			ow_note_last_sent(p, (enum ow_direction)e->direction, edge->record.time_ns, fate, packets);
		if (edge->foretold)
			p->misjudged += edge->fate != fate || edge->direction != e->direction;
		else
			detail_single(p, edge->side, &edge->record, fate, e->direction, &edge->header, packets);
		edge->fate = (uint8_t)fate;
		edge->direction = e->direction;
		tell_single(p, edge->side, &edge->record, fate, e->direction, edge->header.resends);
	}
}

static void resolve_missing(struct ow_match_pass *p)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		uint32_t flows = ow_flow_table_count(p->input[side].flows);
		for (uint32_t i = 0; i < flows; i++) {
			const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, i);
			if (!e) {
				fail(p, -ENOMEM);
				return;
			}
			uint64_t copies = ow_directions_repeats(p->directions, side, i)->missing;
			count_single(p, side, fate_of(e, side, false), e->direction, e->missing - copies);
			count_single(p, side, fate_of(e, side, true), e->direction, copies);
		}
	}
}

/* Copies were matched because they have about the usual delays: they do not show which delays are usual. */
static void note_usual_delays(struct ow_match_pass *p)
{
	bool resent = p->resent[OW_SIDE_A] + p->resent[OW_SIDE_B] > 0;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (!resent)
			p->usual[d] = ow_match_reach(p, d, RARE_DELAY);
		p->common[d] = ow_match_reach(p, d, FEWER_DELAYS);
	}
}

/* -- the pass ----------------------------------------------------------------------------------------------------- */

/* Flows will have other numbers. */
static void forget_flows(struct ow_match_pass *p)
{
	ow_directions_forget(p->directions);
	ow_flow_pairs_done(&p->flow_pairs);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		p->input[side].pair = NULL;
		p->input[side].pairs = 0;
	}
}

/* Those of the pass before foretell the next one's. */
static void keep_edges(struct ow_match_pass *p)
{
	struct ow_edge *edge = p->edge_before;
	size_t room = p->edge_room_before;
	p->edge_before = p->edge;
	p->edge_room_before = p->edge_room;
	p->edges_before = p->edges;
	p->edge = edge;
	p->edge_room = room;
	p->edges = 0;
	if (p->details[OW_A_TO_B] && p->edges_before)
		qsort(p->edge_before, p->edges_before, sizeof *p->edge_before, by_record);
}

static void reset(struct ow_match_pass *p)
{
	const struct ow_identity *now = &p->plan.identity, *then = &p->numbered_by;
	if (now->level != then->level || now->inner != then->inner || now->segments != then->segments ||
	    now->hash_limit != then->hash_limit || now->cut != then->cut || now->cut_df != then->cut_df ||
	    now->routed != then->routed || now->tcp != then->tcp || now->any_ip_id != then->any_ip_id)
		forget_flows(p);
	p->numbered_by = *now;
	ow_directions_restart(p->directions);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		ow_tally_reset(&p->tally[d]);
		ow_floor_init(&p->floor[d]);
	}
	p->repeats[OW_A_TO_B] = p->repeats[OW_B_TO_A] = 0;
	p->alike[OW_A_TO_B] = p->alike[OW_B_TO_A] = (struct ow_spacing){0};
	p->alike_sent_ns[OW_A_TO_B] = p->alike_sent_ns[OW_B_TO_A] = INT64_MIN;
	p->last_sent[OW_A_TO_B] = p->last_sent[OW_B_TO_A] = (struct ow_last_sent){0};
	p->unsettled[OW_A_TO_B] = p->unsettled[OW_B_TO_A] = 0;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		p->first_ns[side] = p->last_ns[side] = 0;
		p->ended[side] = false;
		p->unclassified[side] = p->outside[side] = p->records[side] = p->unmatched_frames[side] = 0;
		p->unmatched_fragments[side] = 0;
		p->resent[side] = p->maybe_copied[side] = 0;
	}
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (unsigned i = 0; i < p->gaps[side]; i++)
			ow_gap_init(&p->gap[side][i], p->gap[side][i].silence, p->gap[side][i].verdict);
	}
	ow_tcp_segments_restart(&p->pieces);
	ow_skew_init(&p->skew);
	keep_edges(p);
	p->details_ns[OW_A_TO_B] = p->details_ns[OW_B_TO_A] = INT64_MIN;
	p->misjudged = 0;
	memset(p->class_order, 0, sizeof p->class_order);
	p->failed = 0;
}

/* The processors that this process may use: fewer than the machine has under taskset or in a container. */
static int cores(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

unsigned ow_match_pass_threads(const struct ow_match_pass *p)
{
	uint64_t bytes = ow_reader_info(p->input[OW_SIDE_A].reader)->size_bytes +
	                 ow_reader_info(p->input[OW_SIDE_B].reader)->size_bytes;
	/* Details need the TCP headers that the readers note. */
	if (p->details[OW_A_TO_B])
		return 0;
	if (p->options->threads)
		return p->options->threads - 1;
	return bytes < THREADS_FROM_BYTES ? 0 : (unsigned)(cores() - 1);
}

struct ow_time_base ow_match_pass_time_base(const struct ow_match_pass *p, enum ow_side side)
{
	if (side == OW_SIDE_A)
		return (struct ow_time_base){0};
	return (struct ow_time_base){p->plan.shift_ns, p->plan.drift_from_ns, p->plan.drift};
}

static int start_batches(struct ow_match_pass *p, struct ow_record_batches *batches[OW_SIDES], struct ow_error *err)
{
	struct ow_time_base base[OW_SIDES] = {ow_match_pass_time_base(p, OW_SIDE_A),
	                                      ow_match_pass_time_base(p, OW_SIDE_B)};
	int r = 0;
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		if (p->input[side].dedup && !p->aside[side] && !(p->aside[side] = ow_copies_aside_create()))
			return -ENOMEM;
		if (p->aside[side])
			ow_copies_aside_reset(p->aside[side]);
		p->input[side].wants_classes = p->events;
		r = ow_record_reader_start(&p->input[side], &p->plan.identity, err);
	}
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++)
		r = ow_record_batches_start(&p->input[side], &base[side], &batches[side]);
	return r;
}

bool ow_match_pass_is_plain(const struct ow_match_pass *pass)
{
	return !pass->events && !pass->details[OW_A_TO_B] && !pass->intervals && !pass->plan.identity.cut;
}

int ow_match_pass_begin(struct ow_match_pass *pass, struct ow_matcher **ret_matcher)
{
	const struct ow_matcher_calls calls = {.met = ow_match_pass_is_plain(pass) ? on_met : NULL,
	                                       .matched = on_matched,
	                                       .settled = on_settled,
	                                       .unmatched = on_unmatched,
	                                       .direction = on_direction,
	                                       .arg = pass};
	struct ow_matcher *matcher;
	reset(pass);
	int r = ow_matcher_create(pass->plan.window_ns, &calls, &matcher);
	if (r < 0)
		return r;
	pass->matcher = matcher;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (pass->plan.expects[d])
			ow_matcher_expect(matcher, d, pass->plan.low_ns[d], pass->plan.high_ns[d]);
		ow_matcher_reorders(matcher, d, pass->plan.reorder_ns[d]);
		ow_matcher_flight(matcher, d, pass->flight_ns[d]);
		if (pass->plan.has_least[d])
			ow_matcher_least(matcher, d, pass->plan.least_ns[d]);
		if (pass->plan.in_order[d] && r == 0)
			r = ow_matcher_in_order(matcher, d, timestamp_error(pass));
	}
	if (pass->plan.rule != OW_BY_VOTES)
		ow_matcher_one_way(matcher, only_way(&pass->plan));
	if (r < 0)
		ow_matcher_free(matcher);
	else
		*ret_matcher = matcher;
	return r;
}

int ow_match_pass_end(struct ow_match_pass *pass, struct ow_matcher *matcher, int r)
{
	const struct ow_flow_table *const keys[OW_SIDES] = {pass->input[OW_SIDE_A].flows, pass->input[OW_SIDE_B].flows};
	pass->matcher = NULL; /* what is decided now comes in any order */
	if (r == 0)
		r = ow_matcher_finish(matcher);
	if (r == 0) {
		ow_tally_flush(&pass->tally[OW_A_TO_B]);
		ow_tally_flush(&pass->tally[OW_B_TO_A]);
		ow_skew_finish(&pass->skew);
		pass->miscounted = ow_directions_decide(pass->directions, keys, pass->plan.rule, pass->plan.way,
		                                        pass->plan.doubt_ns);
		r = pass->miscounted < 0 ? (int)pass->miscounted : 0;
	}
	if (r == 0) {
		resolve_missing(pass);
		resolve_edges(pass);
		note_usual_delays(pass);
		r = pass->failed;
	}
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		pass->crowded[d] = ow_matcher_crowded(matcher, d);
		pass->impossible[d] = ow_matcher_impossible(matcher, d);
	}
	ow_matcher_free(matcher);
	return r;
}

int ow_match_pass_run(struct ow_match_pass *pass, struct ow_error *err)
{
	struct ow_matcher *matcher = NULL;
	struct ow_record_batches *batches[OW_SIDES] = {NULL, NULL};
	int r = ow_match_pass_begin(pass, &matcher);
	if (r == 0) {
		r = start_batches(pass, batches, err);
		struct ow_readahead *readahead =
			r == 0 ? ow_readahead_start(batches, OW_SIDES, ow_match_pass_threads(pass)) : NULL;
		if (r == 0)
			r = ow_merge_run(pass, matcher, batches, err);
		ow_readahead_leave(readahead);
		for (unsigned side = 0; side < OW_SIDES; side++)
			ow_record_batches_stop(batches[side]);
		r = ow_match_pass_end(pass, matcher, r);
	}
	if (r == -ENOMEM)
		ow_error_set(err, ENOMEM, "out of memory");
	return r;
}

void ow_match_pass_event(const struct ow_match_pass *p, const struct ow_pass_note *note,
                         struct ow_packet_event *ret_event)
{
	enum ow_side side = note->fate == OW_FATE_MATCHED ? OW_SIDE_A : note->side;
	const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, note->flow[side]);
	struct ow_packet_event event = {.size = sizeof event,
	                                .fate = note->fate,
	                                .direction = e ? e->direction : OW_DIRECTIONS,
	                                .side = side,
	                                .ambiguous = note->ambiguous,
	                                .packets = 1,
	                                .bytes = note->bytes};
	if (note->fate == OW_FATE_OUTSIDE)
		event.direction = note->direction;
	if (note->fate == OW_FATE_LOST)
		event.fate = e ? fate_of(e, side, note->copy) : OW_FATE_UNCLASSIFIED;
	if (note->fate == OW_FATE_MATCHED) {
		event.direction = e ? current_direction(p, e) : OW_A_TO_B;
		event.side = side = ow_sender_of(event.direction);
	}
	event.flow = ow_flow_table_key(p->input[side].flows, note->flow[side]);
	memcpy(event.number, note->number, sizeof event.number);
	memcpy(event.time_ns, note->time_ns, sizeof event.time_ns);
	*ret_event = event;
}
