/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_MATCH_TCP_SEGMENTS_H
#define OW_MATCH_TCP_SEGMENTS_H

#include "match/record_reader.h"
#include "reconcile/matcher.h"

/*
 * Superframes (or datagrams that are cut into fragments): what is known of the TCP data of each flow, and so how many
 * packets of the wire a piece of a superframe stands for. One pass gathers it, the next one counts by it.
 */

/* IP packets of these lengths, and none longer, come from a wire with jumbo frames. */
#define OW_JUMBO_LEAST 8900u
#define OW_JUMBO_MOST  9216u

struct ow_flow_pieces;

struct ow_pieces {
	struct ow_flow_pieces *flow[OW_SIDES];
	uint32_t room[OW_SIDES];
	uint32_t fragment;                                   /* bytes of data in a full fragment; 0 = not in use */
	uint32_t longest_plain;                              /* longest TCP packet that fits a usual Ethernet frame */
	uint32_t jumbos[OW_JUMBO_MOST - OW_JUMBO_LEAST + 1]; /* TCP packets that fill a jumbo frame, by length */
};

void ow_pieces_done(struct ow_pieces *pieces);
/* Before a pass: forgets what was gathered, keeps what was learned. */
void ow_pieces_restart(struct ow_pieces *pieces);
/* A record with data; and a pair of pieces that matched. 0 or -ENOMEM. */
int ow_pieces_note(struct ow_pieces *pieces, enum ow_side side, const struct ow_record *record);
int ow_pieces_note_pair(struct ow_pieces *pieces, const struct ow_pair *pair);
/* After a pass: learns the wire's segment size of every flow. longest: the longest TCP packet of each capture. */
void ow_pieces_learn(struct ow_pieces *pieces, const uint32_t longest[OW_SIDES]);

/* How many packets of the wire this record or piece stands for. */
uint32_t ow_pieces_packets(const struct ow_pieces *pieces, enum ow_side side, const struct ow_record *record);

#endif
