/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/packet_event.h"

/*
 * What a match found out about the records of one capture, by their numbers. The fate of a packet may be known long
 * after later ones, so the notes are in a file without a name, and only the parts of it that were used last in memory.
 */
struct ow_packet_notes;

/* All zero: nothing is known of the record. */
struct ow_packet_note {
	uint64_t id; /* of the packet, or of the first part of a superframe or datagram that was told */
	uint64_t part;
	int64_t time_ns;
	/* defined if other_number is not 0: the packet in the other capture, and its time by the clock of A */
	uint64_t other_number;
	int64_t other_time_ns;
	int64_t delay_ns, less_ns, more_ns; /* of the same packet, if timed */
	uint32_t packets[OW_FATES];         /* of the wire, by fate; a superframe has several */
	uint8_t fate;                       /* of the first part */
	uint8_t direction;                  /* OW_DIRECTIONS if it is not known */
	bool timed, ambiguous;
};

/* folder: where the file is, while it is used. */
int ow_packet_notes_create(const char *folder, struct ow_packet_notes **ret_notes, struct ow_error *err);
void ow_packet_notes_free(struct ow_packet_notes *notes);

/* Adds what the event tells about the record of this side; nothing if it has none. */
int ow_packet_notes_add(struct ow_packet_notes *notes, enum ow_side side, const struct ow_packet_event *event,
                        struct ow_error *err);
/* The note of a record; valid until the next call. */
int ow_packet_notes_get(struct ow_packet_notes *notes, uint64_t number, const struct ow_packet_note **ret_note,
                        struct ow_error *err);
/* The last record of which something is known. */
uint64_t ow_packet_notes_last(const struct ow_packet_notes *notes);
