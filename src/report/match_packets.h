/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "base/table.h"
#include <oneway/match.h>
#include <stdio.h>

/* The packets of one connection, one by one. */
#define OW_MATCH_PACKETS_MAX 1000000U /* later ones are only counted */

struct ow_match_packets {
	const char *flow; /* as it was given */
	struct ow_match_packet {
		enum ow_fate fate;
		enum ow_direction direction;
		bool known, estimated; /* the delay is known, perhaps only as an estimate */
		uint64_t number[OW_SIDES];
		int64_t time_ns[OW_SIDES];
		uint32_t bytes;
		const char *last_seen; /* of a path: the last point that shows it; NULL = not known */
	} * packet;
	size_t count, room;
	uint64_t omitted;
	bool on_path; /* last_seen is of interest */
};

/* Where a packet of a path was seen last, by its numbers at both ends. */
struct ow_last_seen {
	uint64_t number[OW_SIDES];
	const char *point;
};

/* 0 or -ENOMEM. */
int ow_match_packets_add(struct ow_match_packets *packets, const struct ow_packet_event *event);
/* Sets last_seen. Sorts both. */
void ow_match_packets_place(struct ow_match_packets *packets, struct ow_last_seen *seen, size_t count);
/* In the order of time. */
void ow_match_packets_sort(struct ow_match_packets *packets);
void ow_match_packets_done(struct ow_match_packets *packets);

void ow_report_match_packets_text(FILE *out, const struct ow_match_packets *packets, unsigned width, enum ow_look look);
/* The array of packets, and how many it does not have. */
void ow_report_match_packets_json(struct ow_json *json, const struct ow_match_packets *packets);
