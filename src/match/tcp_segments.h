/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "match/record_reader.h"
#include "reconcile/matcher.h"

/*
 * Superframes (or fragmented datagrams): what is known about the TCP data of each flow, and so how many packets of the
 * wire a part of a superframe stands for. One pass collects it, the next one counts by it.
 */

/* IP packets of these lengths, and none longer, come from a wire with jumbo frames. */
#define OW_JUMBO_LEAST 8900u
#define OW_JUMBO_MOST  9216u

struct ow_flow_tcp_segments;

/* How packets of one direction are cut into fragments. */
struct ow_cuts {
	uint32_t longest;           /* most bytes of data in a fragment of this pass */
	uint64_t whole[65536 / 64]; /* a bit for each length of a packet of this pass that was not cut */
	uint32_t data;              /* bytes of data in a full fragment, from an earlier pass; 0 = nothing is cut */
	uint32_t mtu;               /* longest packet that is not cut, likewise */
};

struct ow_tcp_segments {
	struct ow_flow_tcp_segments *flow[OW_SIDES];
	uint32_t room[OW_SIDES];
	struct ow_cuts cuts[OW_DIRECTIONS];
	uint32_t longest_plain;                              /* longest TCP packet that fits a usual Ethernet frame */
	uint32_t jumbos[OW_JUMBO_MOST - OW_JUMBO_LEAST + 1]; /* TCP packets that fill a jumbo frame, by length */
};

void ow_tcp_segments_done(struct ow_tcp_segments *pieces);
/* To be called before a pass: drops what was collected, keeps what was learned. */
void ow_tcp_segments_restart(struct ow_tcp_segments *pieces);
/* A record with data; and a pair of pieces that matched. 0 or -ENOMEM. */
int ow_tcp_segments_note(struct ow_tcp_segments *pieces, enum ow_side side, const struct ow_record *record);
int ow_tcp_segments_note_pair(struct ow_tcp_segments *pieces, const struct ow_pair *pair);
/* After a pass: learns the wire's segment size of every flow. longest: the longest TCP packet of each capture. */
void ow_tcp_segments_learn(struct ow_tcp_segments *pieces, const uint32_t longest[OW_SIDES]);

/* Whether superframes at both points hide the segments of the wire; then full ones are taken to be packets this long. */
bool ow_tcp_segments_assumed(uint32_t longest_a, uint32_t longest_b);
uint32_t ow_tcp_segments_packet(const struct ow_tcp_segments *pieces);

/* A packet, or a part of one, that matched: what is cut in this direction and what is not. */
void ow_tcp_segments_note_cut(struct ow_tcp_segments *pieces, enum ow_direction direction, const struct ow_pair *pair);
/* After a pass: learns the MTU of both directions. */
void ow_tcp_segments_learn_cuts(struct ow_tcp_segments *pieces);

/*
 * How many packets of the wire a matched record or part stands for. If both points show it as one, whole or as a
 * fragment, it is one.
 */
uint32_t ow_tcp_segments_packets(const struct ow_tcp_segments *pieces, enum ow_side side,
                                 const struct ow_record *record);
/*
 * The same for one that only this side shows. A packet that is longer than the MTU counts as the fragments that it
 * would become.
 */
uint32_t ow_tcp_segments_single(const struct ow_tcp_segments *pieces, enum ow_side side, enum ow_direction direction,
                                const struct ow_record *record);
