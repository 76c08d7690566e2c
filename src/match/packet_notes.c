/* SPDX-License-Identifier: Apache-2.0 */
#include "match/packet_notes.h"

#include <string.h>

/* The first part of a superframe stands for all of it, of those that arrived if any did. */
static bool stands_for_all(const struct ow_packet_note *note, const struct ow_packet_event *event)
{
	bool arrived = event->fate == OW_FATE_MATCHED;
	if (!note->id || arrived != (note->other_number != 0))
		return !note->id || arrived;
	return event->part < note->part;
}

static void take_over(struct ow_packet_note *note, enum ow_side side, const struct ow_packet_event *event)
{
	note->id = event->id ? event->id : 1;
	note->part = event->part;
	note->time_ns = event->time_ns[side];
	note->fate = (uint8_t)event->fate;
	note->direction = event->fate == OW_FATE_UNCLASSIFIED ? OW_DIRECTIONS : (uint8_t)event->direction;
	note->other_number = event->number[!side];
	note->other_time_ns = event->number[!side] ? event->time_ns[!side] : 0;
	note->timed = ow_event_delay(event, &note->delay_ns);
	note->ambiguous = event->ambiguous;
	note->less_ns = event->less_ns;
	note->more_ns = event->more_ns;
}

int ow_packet_note_add(struct ow_record_file *notes, enum ow_side side, const struct ow_packet_event *event,
                       struct ow_error *err)
{
	void *item;
	if (!event->number[side])
		return 0;
	int r = ow_record_file_change(notes, event->number[side], &item, err);
	if (r < 0)
		return r;
	struct ow_packet_note *note = item;
	if (stands_for_all(note, event))
		take_over(note, side, event);
	note->packets[event->fate] += event->packets;
	return 0;
}

size_t ow_hop_note_size(unsigned points)
{
	return sizeof(struct ow_hop_note) + points * sizeof(int64_t);
}

int ow_hop_note_add(struct ow_record_file *notes, uint64_t number, const struct ow_hop_note *hop,
                    const int64_t *time_ns, unsigned points, struct ow_error *err)
{
	void *item;
	int r = ow_record_file_change(notes, number, &item, err);
	if (r < 0)
		return r;
	struct ow_hop_note *note = item;
	if (__builtin_popcount(hop->seen) <= __builtin_popcount(note->seen))
		return 0;
	*note = *hop;
	memcpy(note->time_ns, time_ns, points * sizeof *time_ns);
	return 0;
}
