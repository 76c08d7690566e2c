/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/packet_event.h"
#include "match/record_file.h"

/* What a match found out about a record of one capture: items of a record file. */

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

/* Adds what the event tells about the record of this side; nothing if it has none. The items are packet notes. */
int ow_packet_note_add(struct ow_record_file *notes, enum ow_side side, const struct ow_packet_event *event,
                       struct ow_error *err);

/* Where a packet of a path was seen. */
struct ow_hop_note {
	uint32_t seen;     /* bit p: at point p; 0 = nothing is known */
	uint8_t direction; /* OW_DIRECTIONS if it is not known */
	int64_t time_ns[]; /* of each point, by the clock of the first */
};

/* Bytes of a note. */
size_t ow_hop_note_size(unsigned points);
/* Of several packets of a record, the one that most points saw stands for it. The times are those at time_ns. */
int ow_hop_note_add(struct ow_record_file *notes, uint64_t number, const struct ow_hop_note *hop,
                    const int64_t *time_ns, unsigned points, struct ow_error *err);
