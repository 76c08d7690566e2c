/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/time.h"
#include "match/match_pass.h"
#include "packet/packet_class.h"

/* Internal to a pass: what match_pass.c and the files that count its packets (pass_*.c) have in common. */

static inline void ow_pass_fail(struct ow_match_pass *p, int r)
{
	if (r < 0 && !p->failed)
		p->failed = r;
}

/* B's times as in the results. */
static inline int64_t ow_pass_shown_time(const struct ow_match_pass *p, enum ow_side side, int64_t time_ns)
{
	return side == OW_SIDE_B ? time_ns + (p->plan.offset_ns - p->plan.shift_ns) : time_ns;
}

/* The position of a part in its superframe or datagram. */
static inline uint64_t ow_pass_part(const struct ow_record *record)
{
	return record->len ? (uint64_t)record->seq << 32 | record->len : 0;
}

/*
 * How much timestamps of the captures contradict the order of packets: two ticks of a microsecond clock, and what was
 * observed.
 */
static inline int64_t ow_pass_timestamp_error(const struct ow_match_pass *p)
{
	return 2 * OW_NS_PER_US + p->input[OW_SIDE_A].facts.backwards_most_ns +
	       p->input[OW_SIDE_B].facts.backwards_most_ns;
}

static inline enum ow_direction ow_pass_direction(const struct ow_match_pass *p, const struct ow_flow_evidence *e)
{
	if (p->plan.rule == OW_ALL_FORWARD)
		return OW_A_TO_B;
	if (e->decided && e->direction != OW_DIRECTIONS)
		return (enum ow_direction)e->direction;
	if (p->plan.rule == OW_ONE_WAY)
		return p->plan.way;
	return e->votes < 0 ? OW_B_TO_A : OW_A_TO_B;
}

/* The fate of a packet that only one side saw, by the direction of its flow. */
static inline enum ow_fate ow_pass_fate(const struct ow_flow_evidence *e, enum ow_side side, bool copy)
{
	if (e->direction == OW_DIRECTIONS)
		return OW_FATE_UNCLASSIFIED;
	if (side == ow_sender_of((enum ow_direction)e->direction))
		return OW_FATE_LOST;
	return copy ? OW_FATE_DUPLICATED : OW_FATE_EXTRA;
}

/* As in struct ow_packet_event. */
static inline uint8_t ow_pass_classes(const struct ow_match_pass *p, const struct ow_record *record)
{
	return p->options->class_by == OW_CLASS_BY_SIZE ? ow_size_class(record->bytes) : record->classes;
}

/* pass_details.c: the TCP data of a record; packets for the details; and those at the edge, by the pass before. */
struct ow_tcp_header ow_pass_header(const struct ow_match_pass *p, enum ow_side side, const struct ow_record *record);
void ow_pass_detail_pair(struct ow_match_pass *p, const struct ow_pair *pair, enum ow_direction direction,
                         enum ow_certainty certainty, int64_t delay_ns, uint32_t packets);
void ow_pass_detail_single(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record,
                           enum ow_fate fate, uint8_t direction, const struct ow_tcp_header *header, uint32_t packets);
void ow_pass_foretell(struct ow_match_pass *p, struct ow_edge *edge, uint32_t packets);
/* Puts the edges of the previous pass in order. */
void ow_pass_sort_edges(struct ow_match_pass *p);

/* pass_tell.c: events of packets, and the log. */
void ow_pass_tell_pair(struct ow_match_pass *p, const struct ow_pair *pair, enum ow_direction direction,
                       enum ow_certainty certainty, uint32_t packets);
void ow_pass_note_meeting(struct ow_match_pass *p, const struct ow_meeting *m);
void ow_pass_log_note(struct ow_match_pass *p, const struct ow_pass_note *note);
void ow_pass_note_single(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, enum ow_fate fate,
                         uint8_t direction);
void ow_pass_tell_single(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, enum ow_fate fate,
                         uint8_t direction, uint64_t resends);

/* pass_matched.c: calls of the matcher for packets that matched. */
void ow_pass_on_matched(void *arg, const struct ow_pair *pair, enum ow_certainty certainty);
void ow_pass_on_met(void *arg, const struct ow_meeting *meeting, size_t count);
void ow_pass_on_settled(void *arg, const struct ow_pair *pair, enum ow_certainty certainty);

/* pass_unmatched.c: the call of the matcher for packets that did not, and what is decided of them at the end. */
void ow_pass_on_unmatched(void *arg, enum ow_side side, const struct ow_record *record, bool copy);
void ow_pass_resolve_missing(struct ow_match_pass *p);
void ow_pass_resolve_edges(struct ow_match_pass *p);
