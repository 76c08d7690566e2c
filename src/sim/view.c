/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the packet to the middle of a buffer and changes it there, then puts headers in front of it from the inside
 * out: tags and tunnels of the side from the last to the first, and finally the link header.
 */
#include "sim/view.h"
#include "base/bytes.h"
#include "sim/build.h"
#include "sim/rewrite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for the headers in front: the largest tunnel is 50 bytes, the largest link header 60. */
#define HEADROOM 512

#define ETHERTYPE_IP4   0x0800
#define ETHERTYPE_IP6   0x86dd
#define ETHERTYPE_VLAN  0x8100
#define ETHERTYPE_QINQ  0x88a8
#define ETHERTYPE_MPLS  0x8847
#define ETHERTYPE_PPPOE 0x8864
/* Shorter Ethernet frames are padded, without the checksum that captures do not show. */
#define ETHERNET_MIN 60

struct ow_sim_view {
	const struct ow_sim_options *options;
	const struct ow_sim_side *side;
	bool is_b;
	uint16_t outer_id; /* IP id of the tunnels' packets */
	uint8_t buffer[HEADROOM + OW_VIEW_MAX + ETHERNET_MIN];
};

/* The frame under construction: start .. end, and the ethertype of what start points to. */
struct frame {
	uint8_t *start, *end;
	uint16_t type;
	bool forward; /* A to B */
	bool far;     /* MACs of the other side of a router */
};

int ow_view_create(const struct ow_sim_options *options, enum ow_side side, struct ow_sim_view **ret_view)
{
	struct ow_sim_view *view = calloc(1, sizeof *view);
	if (!view)
		return -ENOMEM;
	view->options = options;
	view->side = &options->side[side];
	view->is_b = side == OW_SIDE_B;
	*ret_view = view;
	return 0;
}

void ow_view_free(struct ow_sim_view *view)
{
	free(view);
}

static uint8_t *push(struct frame *frame, size_t len)
{
	return frame->start -= len;
}

static void push_ethernet(struct frame *frame)
{
	uint8_t *p = push(frame, 14);
	uint8_t near[6] = {2, 0, 0, 0, frame->far ? 0xb : 0xa, 1}, other[6] = {2, 0, 0, 0, frame->far ? 0xb : 0xa, 2};
	memcpy(p, frame->forward ? other : near, 6);
	memcpy(p + 6, frame->forward ? near : other, 6);
	ow_store_be16(p + 12, frame->type);
}

/* Between the tunnel's ends 192.0.2.1 (at A) and 192.0.2.2. */
static void push_ip4(struct ow_sim_view *view, struct frame *frame, uint8_t proto)
{
	uint8_t *p = push(frame, 20);
	size_t len = (size_t)(frame->end - frame->start);
	memset(p, 0, 20);
	p[0] = 0x45;
	ow_store_be16(p + 2, len <= 65535 ? (uint16_t)len : 0);
	ow_store_be16(p + 4, view->outer_id++);
	p[8] = 64;
	p[9] = proto;
	ow_store_be32(p + 12, frame->forward ? 0xc0000201 : 0xc0000202);
	ow_store_be32(p + 16, frame->forward ? 0xc0000202 : 0xc0000201);
	ow_build_ipv4_checksum(p);
	frame->type = ETHERTYPE_IP4;
}

/* UDP without a checksum, as tunnels send it. */
static void push_udp(struct ow_sim_view *view, struct frame *frame, uint16_t port)
{
	uint8_t *p = push(frame, 8);
	size_t len = (size_t)(frame->end - frame->start);
	ow_store_be16(p, port == 2152 ? 2152 : 50000);
	ow_store_be16(p + 2, port);
	ow_store_be16(p + 4, len <= 65535 ? (uint16_t)len : 0);
	ow_store_be16(p + 6, 0);
	push_ip4(view, frame, OW_PROTO_UDP);
}

static void push_tag(struct frame *frame, uint32_t vlan, uint16_t type)
{
	uint8_t *p = push(frame, 4);
	ow_store_be16(p, (uint16_t)vlan);
	ow_store_be16(p + 2, frame->type);
	frame->type = type;
}

static void push_mpls(struct frame *frame, uint32_t label)
{
	bool bottom = frame->type != ETHERTYPE_MPLS;
	ow_store_be32(push(frame, 4), label << 12 | (bottom ? 0x100 : 0) | 64);
	frame->type = ETHERTYPE_MPLS;
}

static uint16_t ppp_protocol(uint16_t type)
{
	return type == ETHERTYPE_IP4 ? 0x0021 : type == ETHERTYPE_IP6 ? 0x0057 : 0x0281;
}

static void push_pppoe(struct frame *frame, uint32_t session)
{
	size_t len = (size_t)(frame->end - frame->start) + 2;
	uint8_t *p = push(frame, 8);
	p[0] = 0x11;
	p[1] = 0;
	ow_store_be16(p + 2, (uint16_t)session);
	ow_store_be16(p + 4, len <= 65535 ? (uint16_t)len : 0);
	ow_store_be16(p + 6, ppp_protocol(frame->type));
	frame->type = ETHERTYPE_PPPOE;
}

/* VXLAN and Geneve: an inner Ethernet header, 8 bytes, UDP. */
static void push_overlay(struct ow_sim_view *view, struct frame *frame, const struct ow_sim_encap *encap)
{
	bool geneve = encap->kind == OW_SIM_GENEVE;
	push_ethernet(frame);
	uint8_t *p = push(frame, 8);
	ow_store_be32(p, geneve ? 0x00006558 : 0x08000000);
	ow_store_be32(p + 4, encap->id << 8);
	push_udp(view, frame, geneve ? 6081 : 4789);
}

static void push_gtpu(struct ow_sim_view *view, struct frame *frame, uint32_t teid)
{
	size_t len = (size_t)(frame->end - frame->start);
	uint8_t *p = push(frame, 8);
	p[0] = 0x30;
	p[1] = 0xff;
	ow_store_be16(p + 2, (uint16_t)len);
	ow_store_be32(p + 4, teid);
	push_udp(view, frame, 2152);
}

static void push_encap(struct ow_sim_view *view, struct frame *frame, const struct ow_sim_encap *encap)
{
	switch (encap->kind) {
	case OW_SIM_VLAN:
		push_tag(frame, encap->id, ETHERTYPE_VLAN);
		break;
	case OW_SIM_QINQ:
		push_tag(frame, encap->id + 1, ETHERTYPE_VLAN);
		push_tag(frame, encap->id, ETHERTYPE_QINQ);
		break;
	case OW_SIM_MPLS:
		push_mpls(frame, encap->id);
		break;
	case OW_SIM_PPPOE:
		push_pppoe(frame, encap->id);
		break;
	case OW_SIM_VXLAN:
	case OW_SIM_GENEVE:
		push_overlay(view, frame, encap);
		break;
	case OW_SIM_GRE:
		ow_store_be32(push(frame, 4), frame->type);
		push_ip4(view, frame, 47);
		break;
	case OW_SIM_IPIP:
		push_ip4(view, frame, frame->type == ETHERTYPE_IP6 ? 41 : 4);
		break;
	case OW_SIM_GTPU:
		push_gtpu(view, frame, encap->id);
		break;
	case OW_SIM_ENCAPS:
		break;
	}
}

/* Linux cooked captures; received frames are "to us", others "from us". */
static void push_cooked(struct frame *frame, bool received, bool second)
{
	uint8_t *p = push(frame, second ? 20 : 16);
	memset(p, 0, second ? 20 : 16);
	if (second) {
		ow_store_be16(p, frame->type);
		ow_store_be32(p + 4, 2);
		ow_store_be16(p + 8, 1);
		p[10] = received ? 0 : 4;
		p[11] = 6;
		p[12] = 2;
		p[17] = 1;
	} else {
		p[1] = received ? 0 : 4;
		p[3] = 1;
		p[5] = 6;
		p[6] = 2;
		p[11] = 1;
		ow_store_be16(p + 14, frame->type);
	}
}

/* A data frame from an access point, with LLC and SNAP, behind an empty radiotap header. */
static void push_radiotap(struct frame *frame, uint16_t sequence)
{
	uint8_t *p = push(frame, 8 + 24 + 8);
	static const uint8_t head[40] = {[2] = 8,  [8] = 0x08, [9] = 0x02, [12] = 2,    [17] = 2,    [18] = 2,
	                                 [23] = 1, [24] = 2,   [29] = 3,   [32] = 0xaa, [33] = 0xaa, [34] = 0x03};
	memcpy(p, head, sizeof head);
	p[30] = (uint8_t)(sequence << 4);
	p[31] = (uint8_t)(sequence >> 4);
	ow_store_be16(p + 38, frame->type);
}

static void push_link(struct ow_sim_view *view, struct frame *frame, bool received, uint64_t number)
{
	switch (view->side->link) {
	case OW_SIM_LINK_AUTO:
	case OW_SIM_ETHERNET:
		push_ethernet(frame);
		if (frame->end - frame->start < ETHERNET_MIN) {
			size_t pad = ETHERNET_MIN - (size_t)(frame->end - frame->start);
			memset(frame->end, 0, pad);
			frame->end += pad;
		}
		break;
	case OW_SIM_SLL:
		push_cooked(frame, received, false);
		break;
	case OW_SIM_SLL2:
		push_cooked(frame, received, true);
		break;
	case OW_SIM_PPP:
		ow_store_be32(push(frame, 4), 0xff030000u | ppp_protocol(frame->type));
		break;
	case OW_SIM_NULL: {
		/* In the byte order of the host that captured: little-endian here. 30 = AF_INET6 of macOS. */
		uint8_t *p = push(frame, 4);
		memset(p, 0, 4);
		p[0] = frame->type == ETHERTYPE_IP6 ? 30 : 2;
		break;
	}
	case OW_SIM_LOOP:
		ow_store_be32(push(frame, 4), frame->type == ETHERTYPE_IP6 ? 24 : 2);
		break;
	case OW_SIM_RADIOTAP:
		push_radiotap(frame, (uint16_t)(number & 0xfff));
		break;
	case OW_SIM_RAW:
	case OW_SIM_LINKS:
		break;
	}
}

uint16_t ow_link_linktype(enum ow_sim_link link)
{
	static const uint16_t linktype[OW_SIM_LINKS] = {
		[OW_SIM_LINK_AUTO] = 1, [OW_SIM_ETHERNET] = 1, [OW_SIM_RAW] = 101,
		[OW_SIM_SLL] = 113,     [OW_SIM_SLL2] = 276,   [OW_SIM_PPP] = 9,
		[OW_SIM_NULL] = 0,      [OW_SIM_LOOP] = 108,   [OW_SIM_RADIOTAP] = 127,
	};
	return linktype[link];
}

/* The headers of the first segment, the payloads of all segments, and new lengths and checksums. */
static uint8_t *gather(const struct ow_wire *first, uint8_t *at)
{
	uint8_t *ip = at, *p = at + first->header_len, *tcp = at + first->l4;
	memcpy(at, first->head, first->header_len);
	for (const struct ow_wire *wire = first; wire; wire = wire->more) {
		uint32_t inline_len = wire->head_len - wire->header_len;
		memcpy(p, wire->head + wire->header_len, inline_len);
		memcpy(p + inline_len, wire->body, wire->body_len);
		p += inline_len + wire->body_len;
		if (!wire->more)
			tcp[13] = wire->head[wire->l4 + 13]; /* the flags of the last: PSH */
	}
	size_t len = (size_t)(p - ip);
	if (ip[0] >> 4 == 4) {
		ow_store_be16(ip + 2, len <= 65535 ? (uint16_t)len : 0);
		ow_build_ipv4_checksum(ip);
	} else {
		ow_store_be16(ip + 4, len - 40 <= 65535 ? (uint16_t)(len - 40) : 0);
	}
	uint32_t l4_len = (uint32_t)(p - tcp);
	ow_store_be16(tcp + 16, 0);
	uint64_t sum = ow_build_pseudo_sum(ip, OW_PROTO_TCP, l4_len);
	ow_store_be16(tcp + 16, ow_sum_fold(ow_sum_add(sum, tcp, l4_len)));
	return p;
}

static void rewrite(const struct ow_sim_view *view, const struct ow_wire *wire, const struct frame *frame,
                    bool received)
{
	const struct ow_sim_options *options = view->options;
	struct ow_rewrite packet = {frame->start, (size_t)(frame->end - frame->start), wire->l4, wire->proto};
	if (options->nat && view->is_b)
		ow_rewrite_nat(&packet, wire->direction == OW_A_TO_B);
	if (!received)
		return;
	if (options->router)
		ow_rewrite_hop(&packet);
	if (options->dscp >= 0)
		ow_rewrite_dscp(&packet, options->dscp);
	if (wire->ce)
		ow_rewrite_ce(&packet);
}

void ow_view_frame(struct ow_sim_view *view, const struct ow_wire *wire, bool received, const uint8_t **ret_data,
                   uint32_t *ret_len)
{
	struct frame frame = {.start = view->buffer + HEADROOM,
	                      .forward = wire->direction == OW_A_TO_B,
	                      .far = view->is_b && view->options->router};
	if (wire->more) {
		frame.end = gather(wire, frame.start);
	} else {
		memcpy(frame.start, wire->head, wire->head_len);
		if (wire->body_len)
			memcpy(frame.start + wire->head_len, wire->body, wire->body_len);
		frame.end = frame.start + ow_wire_len(wire);
	}
	if (!wire->frame) {
		rewrite(view, wire, &frame, received);
		frame.type = frame.start[0] >> 4 == 6 ? ETHERTYPE_IP6 : ETHERTYPE_IP4;
		for (unsigned i = view->side->encaps; i-- > 0;)
			push_encap(view, &frame, &view->side->encap[i]);
		push_link(view, &frame, received, wire->number);
	}
	*ret_data = frame.start;
	*ret_len = (uint32_t)(frame.end - frame.start);
}

/* Which encapsulation may follow which: tags need a frame with an ethertype, tunnels need an IP packet and make one. */
int ow_view_check(const struct ow_sim_side *side, const char *name, struct ow_error *err)
{
	static const char *const names[] = {"a VLAN tag", "QinQ", "MPLS", "PPPoE"};
	enum ow_sim_link link = side->link;
	for (unsigned i = 0; i < side->encaps; i++) {
		enum ow_sim_encap_kind kind = side->encap[i].kind, before = i ? side->encap[i - 1].kind : OW_SIM_ENCAPS;
		if (kind >= OW_SIM_VXLAN) {
			if (side->superframes)
				return ow_error_set(err, EINVAL,
				                    "--%s-encap: a tunnel and --superframes do not go together", name);
			link = kind == OW_SIM_VXLAN || kind == OW_SIM_GENEVE ? OW_SIM_ETHERNET
			       : kind == OW_SIM_GRE                          ? OW_SIM_SLL
			                                                     : OW_SIM_RAW;
			continue;
		}
		bool mpls = kind == OW_SIM_MPLS;
		bool bad = link == OW_SIM_RAW || link == OW_SIM_NULL || link == OW_SIM_LOOP ||
		           (link == OW_SIM_PPP && !mpls) || (before == OW_SIM_MPLS && !mpls) ||
		           (before == OW_SIM_PPPOE && !mpls);
		if (bad)
			return ow_error_set(err, EINVAL, "--%s-encap: %s has no place there", name, names[kind]);
	}
	return 0;
}
