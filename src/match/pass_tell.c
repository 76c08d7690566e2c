/* SPDX-License-Identifier: Apache-2.0 */
/* What a pass tells its caller of each packet: events, and the log of a joint pass. */
#include "base/array.h"
#include "base/hash.h"
#include "match/match_pass_private.h"

#include <errno.h>

static void tell(struct ow_match_pass *p, const struct ow_packet_event *event)
{
	if (p->events && !p->failed)
		ow_pass_fail(p, p->options->on_packet(p->options->arg, event));
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
void ow_pass_log_note(struct ow_match_pass *p, const struct ow_pass_note *note)
{
	if (!p->failed)
		ow_pass_fail(p, log_add(p->log, note));
}

/* A part of a superframe has the id of the whole: its position makes the difference. */
static uint64_t piece_id(const struct ow_record *record)
{
	return record->len ? ow_mix64(record->id ^ ow_mix64((uint64_t)record->seq << 32 | record->len)) : record->id;
}

void ow_pass_tell_pair(struct ow_match_pass *p, const struct ow_pair *pair, enum ow_direction direction,
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
		event.time_ns[side] = ow_pass_shown_time(p, side, pair->record[side]->time_ns);
	}
	event.side = ow_sender_of(direction);
	event.bytes = pair->record[event.side]->bytes;
	event.flow = ow_flow_table_key(p->input[event.side].flows, pair->record[event.side]->flow);
	event.classes = ow_pass_classes(p, pair->record[event.side]);
	event.resends = ow_pass_header(p, event.side, pair->record[event.side]).resends;
	event.id = piece_id(pair->record[OW_SIDE_A]);
	event.part = ow_pass_part(pair->record[OW_SIDE_A]);
	tell(p, &event);
}

void ow_pass_note_meeting(struct ow_match_pass *p, const struct ow_meeting *m)
{
	struct ow_pass_note note = {.number = {m->number[OW_SIDE_A], m->number[OW_SIDE_B]},
	                            .flow = {m->flow[OW_SIDE_A], m->flow[OW_SIDE_B]},
	                            .fate = OW_FATE_MATCHED,
	                            .ambiguous = m->untimed};
	for (unsigned side = 0; side < OW_SIDES; side++)
		note.time_ns[side] = ow_pass_shown_time(p, side, m->time_ns[side]);
	ow_pass_log_note(p, &note);
}

/* Lost, extra and duplicated are told apart by the direction of the flow, which may still change. */
void ow_pass_note_single(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, enum ow_fate fate,
                         uint8_t direction)
{
	struct ow_pass_note note = {.bytes = record->bytes,
	                            .side = (uint8_t)side,
	                            .direction = direction,
	                            .fate = fate == OW_FATE_OUTSIDE ? OW_FATE_OUTSIDE : OW_FATE_LOST,
	                            .copy = fate == OW_FATE_DUPLICATED};
	note.number[side] = record->number;
	note.time_ns[side] = ow_pass_shown_time(p, side, record->time_ns);
	note.flow[side] = record->flow;
	ow_pass_log_note(p, &note);
}

/* Reports intervals and events of a packet that only one side saw, when its fate is final. */
void ow_pass_tell_single(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record, enum ow_fate fate,
                         uint8_t direction, uint64_t resends)
{
	uint32_t packets = ow_match_packets(p, side, record, direction);
	int64_t time_ns = ow_pass_shown_time(p, side, record->time_ns);
	if (p->intervals && fate == OW_FATE_LOST)
		ow_pass_fail(p, ow_intervals_lost(p->intervals, direction, time_ns, packets));
	if (p->intervals && (fate == OW_FATE_EXTRA || fate == OW_FATE_DUPLICATED))
		ow_pass_fail(p,
		             ow_intervals_extra(p->intervals, direction, time_ns, packets, fate == OW_FATE_DUPLICATED));
	if (p->log)
		ow_pass_note_single(p, side, record, fate, direction);
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
	                                .part = ow_pass_part(record),
	                                .classes = ow_pass_classes(p, record),
	                                .resends = resends};
	event.number[side] = record->number;
	event.time_ns[side] = time_ns;
	tell(p, &event);
}
