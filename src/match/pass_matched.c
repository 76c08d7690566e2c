/* SPDX-License-Identifier: Apache-2.0 */
/* Counts packets that matched. */
#include "match/match_pass_private.h"

#include <errno.h>

#define MET_AHEAD 10 /* matched packets whose flows are prefetched */

/* RFC 4737 in each class of the packet, as in ow_tally_match. */
static void note_class_order(struct ow_match_pass *p, enum ow_direction direction, const struct ow_record *sent,
                             uint32_t packets)
{
	unsigned classes = ow_pass_classes(p, sent);
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

static void note_unpaired(struct ow_match_pass *p, uint32_t a, uint32_t b, uint32_t packets)
{
	struct ow_unpaired *u = &p->unpaired;
	if (ow_flow_pairs_named(&p->flow_pairs, OW_SIDE_A, a))
		return;
	if (!u->packets) {
		u->flow[OW_SIDE_A] = a;
		u->flow[OW_SIDE_B] = b;
	}
	u->several |= u->flow[OW_SIDE_A] != a || u->flow[OW_SIDE_B] != b;
	u->packets += packets;
}

/* The delay of a pair is known now: a sample, an estimate with bounds, or nothing. */
static void count_delay(struct ow_match_pass *p, const struct ow_pair *pair, enum ow_direction direction,
                        enum ow_certainty certainty)
{
	const struct ow_record *a = pair->record[OW_SIDE_A], *b = pair->record[OW_SIDE_B];
	struct ow_tally *tally = &p->tally[direction];
	uint32_t packets = ow_tcp_segments_packets(&p->pieces, OW_SIDE_A, a);
	p->repeats[direction] += pair->alike ? packets : 0;
	if ((pair->alike || pair->repeated) && p->input[OW_SIDE_A].pairs)
		note_unpaired(p, a->flow, b->flow, packets);
	if (pair->near_ns)
		ow_spacing_note(&p->alike[direction], pair->near_ns, packets);
	int64_t sent_ns = pair->record[ow_sender_of(direction)]->time_ns - pair->more_ns;
	if (pair->alike && sent_ns > p->alike_sent_ns[direction])
		p->alike_sent_ns[direction] = sent_ns;
	if (a->untimed | b->untimed) {
		certainty = OW_AMBIGUOUS;
		p->untimed[direction] += packets;
	}
	int64_t a_ns = a->time_ns, b_ns = ow_pass_shown_time(p, OW_SIDE_B, b->time_ns);
	int64_t delay = direction == OW_A_TO_B ? b_ns - a_ns : a_ns - b_ns;
	if (certainty == OW_AMBIGUOUS)
		tally->ambiguous += packets;
	else if (certainty == OW_UNCERTAIN)
		ow_pass_fail(p, ow_tally_uncertain(tally, delay, pair->less_ns, pair->more_ns, pair->step_ns, packets));
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
		ow_pass_fail(p, ow_intervals_delay(p->intervals, direction, direction == OW_A_TO_B ? a_ns : b_ns,
		                                   certainty == OW_AMBIGUOUS ? NULL : &known, packets));
	}
	if (p->details[direction])
		ow_pass_detail_pair(p, pair, direction, certainty, delay, packets);
	if (p->events)
		ow_pass_tell_pair(p, pair, direction, certainty, packets);
	if (p->log)
		ow_pass_log_note(p, &(struct ow_pass_note){.number = {a->number, b->number},
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

void ow_pass_on_matched(void *arg, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct ow_match_pass *p = arg;
	const struct ow_record *a = pair->record[OW_SIDE_A], *b = pair->record[OW_SIDE_B];
	struct ow_flow_evidence *ea = ow_directions_flow(p->directions, OW_SIDE_A, a->flow);
	struct ow_flow_evidence *eb = ow_directions_flow(p->directions, OW_SIDE_B, b->flow);
	if (!ea || !eb) {
		ow_pass_fail(p, -ENOMEM);
		return;
	}
	uint32_t packets = ow_tcp_segments_packets(&p->pieces, OW_SIDE_A, a);
	int64_t later_ns = a->untimed || b->untimed ? 0 : b->time_ns - a->time_ns; /* without times there is no vote */
	ow_flow_evidence_vote(ea, later_ns, packets);
	ow_flow_evidence_vote(eb, later_ns, packets);
	if (pair->repeated || certainty == OW_UNSETTLED)
		vote_repeats(p, pair, later_ns, packets);
	enum ow_direction direction = ow_pass_direction(p, ea);
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
		ow_pass_fail(p, ow_tcp_segments_note_pair(&p->pieces, pair));
	if (certainty == OW_CERTAIN && !pair->alike && !pair->repeated && learns_flow_pairs(p))
		ow_pass_fail(p, ow_flow_pairs_note(&p->flow_pairs, a->flow, b->flow));
	if (p->intervals)
		ow_pass_fail(p, ow_intervals_match(p->intervals, direction,
		                                   ow_pass_shown_time(p, ow_sender_of(direction), sent->time_ns),
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

/* The same for many at a time, in a pass without intervals, events and fragments. */
void ow_pass_on_met(void *arg, const struct ow_meeting *meeting, size_t count)
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
			ow_pass_fail(p, -ENOMEM);
			return;
		}
		if (flow_pairs)
			ow_pass_fail(p, ow_flow_pairs_note(&p->flow_pairs, m->flow[OW_SIDE_A], m->flow[OW_SIDE_B]));
		int64_t a_ns = m->time_ns[OW_SIDE_A], b_ns = m->time_ns[OW_SIDE_B];
		int64_t later_ns = m->untimed ? 0 : b_ns - a_ns;
		ow_flow_evidence_vote(ea, later_ns, 1);
		ow_flow_evidence_vote(eb, later_ns, 1);
		enum ow_direction direction = ow_pass_direction(p, ea);
		bool back = direction == OW_B_TO_A;
		struct ow_tally *tally = &p->tally[direction];
		ea->counted[direction]++;
		ow_tally_match(tally, m->number[back], m->time_ns[back], m->time_ns[!back], 1);
		if (p->log && !m->quiet)
			ow_pass_note_meeting(p, m);
		ow_directions_sent(p->directions, direction, m->time_ns[back], 1, false);
		if (m->untimed) {
			tally->ambiguous++;
			p->untimed[direction]++;
			continue;
		}
		if (gaps)
			note_around_gaps(p, direction, a_ns, b_ns);
		int64_t forth = ow_pass_shown_time(p, OW_SIDE_B, b_ns) - a_ns, delay = back ? -forth : forth;
		ow_tally_sample(tally, delay, 1);
		ow_skew_add(&p->skew, direction, a_ns, delay);
		ow_floor_add(&p->floor[direction], delay);
	}
}

void ow_pass_on_settled(void *arg, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct ow_match_pass *p = arg;
	const struct ow_record *a = pair->record[OW_SIDE_A], *b = pair->record[OW_SIDE_B];
	struct ow_flow_evidence *ea = ow_directions_flow(p->directions, OW_SIDE_A, a->flow);
	struct ow_flow_evidence *eb = ow_directions_flow(p->directions, OW_SIDE_B, b->flow);
	if (!ea || !eb) {
		ow_pass_fail(p, -ENOMEM);
		return;
	}
	uint32_t packets = ow_tcp_segments_packets(&p->pieces, OW_SIDE_A, a);
	if (!pair->repeated && !pair->alike) {
		int64_t later_ns = a->untimed || b->untimed ? 0 : b->time_ns - a->time_ns;
		vote_repeats(p, pair, later_ns, -(int64_t)packets);
	}
	/* A pair of another flow was counted, which has the reverse direction: its delay is unknown. */
	enum ow_direction direction = ow_pass_direction(p, ea);
	if (p->unsettled[direction] < packets) {
		direction = !direction;
		certainty = OW_AMBIGUOUS;
	}
	p->unsettled[direction] -= packets;
	count_delay(p, pair, direction, certainty);
}
