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
	} * packet;
	size_t count, room;
	uint64_t omitted;
};

/* 0 or -ENOMEM. */
int ow_match_packets_add(struct ow_match_packets *packets, const struct ow_packet_event *event);
/* In the order of time. */
void ow_match_packets_sort(struct ow_match_packets *packets);
void ow_match_packets_done(struct ow_match_packets *packets);

void ow_report_match_packets_text(FILE *out, const struct ow_match_packets *packets, unsigned width, enum ow_look look);
/* The array of packets, and how many it does not have. */
void ow_report_match_packets_json(struct ow_json *json, const struct ow_match_packets *packets);
