/* SPDX-License-Identifier: Apache-2.0 */
#include "match/tcp_segments.h"

#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN_MTU   1500u /* Ethernet */
#define PLAIN_LEAST 1000u /* shorter packets are not taken as the longest of a wire */
#define IPV4_HEADER 20u
#define JUMBOS_MANY 8 /* this many of one length do not come from superframes that happen to end there */

struct ow_flow_tcp_segments {
	uint32_t longest; /* bytes of data in one packet of this pass */
	uint32_t headers; /* bytes of IP and TCP headers */
	uint32_t peer;    /* flow number on the other side, plus 1; 0 = none */
	uint32_t segment; /* most bytes of data in a packet that the other side shows as a part of a longer one, */
	uint32_t often;   /* and how many packets have so many */
	uint32_t wire;    /* data bytes of a wire segment, from an earlier pass; 0 = unknown */
};

void ow_tcp_segments_done(struct ow_tcp_segments *pieces)
{
	free(pieces->flow[OW_SIDE_A]);
	free(pieces->flow[OW_SIDE_B]);
	memset(pieces, 0, sizeof *pieces);
}

void ow_tcp_segments_restart(struct ow_tcp_segments *pieces)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < pieces->room[side]; i++)
			pieces->flow[side][i] = (struct ow_flow_tcp_segments){.wire = pieces->flow[side][i].wire};
	}
	for (unsigned d = 0; d < OW_DIRECTIONS; d++)
		pieces->cuts[d] = (struct ow_cuts){.data = pieces->cuts[d].data, .mtu = pieces->cuts[d].mtu};
	pieces->longest_plain = 0;
	memset(pieces->jumbos, 0, sizeof pieces->jumbos);
}

static struct ow_flow_tcp_segments *flow_at(struct ow_tcp_segments *p, enum ow_side side, uint32_t flow)
{
	return OW_GROW_ZEROED(p->flow[side], p->room[side], (size_t)flow + 1) < 0 ? NULL : &p->flow[side][flow];
}

static bool fills_jumbo(uint32_t packet)
{
	return packet >= OW_JUMBO_LEAST && packet <= OW_JUMBO_MOST;
}

int ow_tcp_segments_note(struct ow_tcp_segments *pieces, enum ow_side side, const struct ow_record *record)
{
	struct ow_flow_tcp_segments *f = flow_at(pieces, side, record->flow);
	if (!f)
		return -ENOMEM;
	if (record->len > f->longest)
		f->longest = record->len;
	if (record->bytes <= PLAIN_MTU && record->bytes > pieces->longest_plain)
		pieces->longest_plain = record->bytes;
	if (fills_jumbo(record->bytes))
		pieces->jumbos[record->bytes - OW_JUMBO_LEAST]++;
	f->headers = record->bytes - record->len;
	return 0;
}

static void note_segment(struct ow_flow_tcp_segments *f, const struct ow_record *own, const struct ow_record *other)
{
	if (own->bytes >= other->bytes || own->len < f->segment)
		return;
	f->often = own->len == f->segment ? f->often + 1 : 1;
	f->segment = own->len;
}

int ow_tcp_segments_note_pair(struct ow_tcp_segments *pieces, const struct ow_pair *pair)
{
	struct ow_flow_tcp_segments *a = flow_at(pieces, OW_SIDE_A, pair->record[OW_SIDE_A]->flow);
	struct ow_flow_tcp_segments *b = flow_at(pieces, OW_SIDE_B, pair->record[OW_SIDE_B]->flow);
	if (!a || !b)
		return -ENOMEM;
	a->peer = pair->record[OW_SIDE_B]->flow + 1;
	b->peer = pair->record[OW_SIDE_A]->flow + 1;
	note_segment(a, pair->record[OW_SIDE_A], pair->record[OW_SIDE_B]);
	note_segment(b, pair->record[OW_SIDE_B], pair->record[OW_SIDE_A]);
	return 0;
}

/* The most frequent length that fills a jumbo frame, or 0 if none is frequent. */
static uint32_t usual_jumbo(const struct ow_tcp_segments *p)
{
	uint32_t most = 0;
	for (uint32_t i = 1; i <= OW_JUMBO_MOST - OW_JUMBO_LEAST; i++) {
		if (p->jumbos[i] > p->jumbos[most])
			most = i;
	}
	return p->jumbos[most] >= JUMBOS_MANY ? OW_JUMBO_LEAST + most : 0;
}

/* Whether a capture with this longest TCP packet shows packets as on the wire. */
static bool shows_wire(uint32_t longest)
{
	return longest <= PLAIN_MTU || fills_jumbo(longest);
}

bool ow_tcp_segments_assumed(uint32_t longest_a, uint32_t longest_b)
{
	return !shows_wire(longest_a) && !shows_wire(longest_b);
}

uint32_t ow_tcp_segments_packet(const struct ow_tcp_segments *p)
{
	uint32_t jumbo = usual_jumbo(p);
	return jumbo ? jumbo : p->longest_plain >= PLAIN_LEAST ? p->longest_plain : PLAIN_MTU;
}

#define SEGMENTS_LEAST 2 /* a single one may be the end of a superframe whose full segments were lost */

/* The data of a full segment of a flow in a capture without superframes. If none was seen, it is as long as any packet. */
static uint32_t full_segment(const struct ow_flow_tcp_segments *wire, uint32_t longest)
{
	if (wire->often >= SEGMENTS_LEAST)
		return wire->segment;
	return longest > wire->headers + wire->longest ? longest - wire->headers : wire->longest;
}

/*
 * The data of a full segment on the wire, which a capture without superframes shows. If both show superframes, the
 * longest packet that is possible on a wire is taken as a full one.
 */
static uint32_t wire_data(const struct ow_tcp_segments *p, const uint32_t longest[OW_SIDES], unsigned side,
                          uint32_t flow)
{
	const struct ow_flow_tcp_segments *f = &p->flow[side][flow];
	if (shows_wire(longest[!side]) && f->peer && f->peer <= p->room[!side])
		return full_segment(&p->flow[!side][f->peer - 1], longest[!side]);
	if (shows_wire(longest[side]) || f->longest + f->headers <= PLAIN_MTU)
		return f->longest;
	bool known = shows_wire(longest[!side]) && longest[!side] >= PLAIN_LEAST;
	uint32_t packet = known ? longest[!side] : ow_tcp_segments_packet(p);
	return packet > f->headers ? packet - f->headers : 1;
}

void ow_tcp_segments_learn(struct ow_tcp_segments *pieces, const uint32_t longest[OW_SIDES])
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < pieces->room[side]; i++) {
			if (pieces->flow[side][i].longest)
				pieces->flow[side][i].wire = wire_data(pieces, longest, side, i);
		}
	}
}

uint32_t ow_tcp_segments_packets(const struct ow_tcp_segments *pieces, enum ow_side side,
                                 const struct ow_record *record)
{
	if (!record->len || record->part & OW_PART_NAMED || record->flow >= pieces->room[side])
		return 1;
	uint32_t wire = pieces->flow[side][record->flow].wire;
	return wire ? (record->len + wire - 1) / wire : 1;
}

/* -- fragments ---------------------------------------------------------------------------------------------------- */

void ow_tcp_segments_note_cut(struct ow_tcp_segments *pieces, enum ow_direction direction, const struct ow_pair *pair)
{
	const struct ow_record *a = pair->record[OW_SIDE_A];
	struct ow_cuts *cuts = &pieces->cuts[direction];
	bool fragment = (a->part | pair->record[OW_SIDE_B]->part) & OW_PART_FRAGMENT;
	if (fragment && a->len > cuts->longest)
		cuts->longest = a->len;
	if (!fragment && a->bytes < 65536)
		cuts->whole[a->bytes / 64] |= UINT64_C(1) << a->bytes % 64;
}

/* Full fragments have a multiple of 8 bytes: the MTU is up to 7 bytes more than their length. */
void ow_tcp_segments_learn_cuts(struct ow_tcp_segments *pieces)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		struct ow_cuts *c = &pieces->cuts[d];
		c->data = c->longest & ~7u;
		c->mtu = c->data + IPV4_HEADER;
		for (uint32_t mtu = c->mtu + 1; mtu < c->data + IPV4_HEADER + 8 && mtu < 65536; mtu++) {
			if (c->whole[mtu / 64] >> mtu % 64 & 1)
				c->mtu = mtu;
		}
	}
}

uint32_t ow_tcp_segments_single(const struct ow_tcp_segments *pieces, enum ow_side side, enum ow_direction direction,
                                const struct ow_record *record)
{
	const struct ow_cuts *cuts = &pieces->cuts[direction];
	bool train = record->len && !(record->part & OW_PART_NAMED);
	bool may_cut = record->part & (OW_PART_NAMED | OW_PART_MAY_CUT);
	if (train || !may_cut || !cuts->data || record->bytes <= cuts->mtu)
		return ow_tcp_segments_packets(pieces, side, record);
	uint32_t data = record->len ? record->len : record->bytes - IPV4_HEADER;
	return (data + cuts->data - 1) / cuts->data;
}
