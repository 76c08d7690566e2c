/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/frame.h"
#include <oneway/match.h>

/*
 * The layers of one frame. The decoder skips link layers and tags (VLAN, QinQ, MPLS, PPPoE, ...). If asked for, it
 * enters tunnels (GRE, VXLAN, Geneve, GTP-U, IP-in-IP, ...) down to the innermost IP packet. Pointers point into the
 * frame. `ip` .. `end` are the captured bytes of the IP packet, without link padding.
 */
struct ow_packet {
	const uint8_t *ip;  /* the IP header, or NULL when the frame carries no IP */
	const uint8_t *end; /* end of the captured bytes of this IP packet */
	uint32_t ip_len;    /* length of the IP packet on the wire (total length; frame length if that is 0) */
	const uint8_t *l4;  /* transport header, or NULL when not captured or not the first fragment */
	uint32_t l4_len;    /* bytes from l4 to the end of the IP packet on the wire */
	uint8_t version;    /* 4, 6, or 0 */
	uint8_t proto;      /* the last next-header value: TCP 6, UDP 17, ... */
	bool fragment;      /* a fragment (first or later) */
	bool truncated;     /* the capture holds less than ip_len bytes of it */
	bool overlong;      /* truncated although the frame is not: malformed, or cut by an earlier capture */
	bool routed_v6;     /* an IPv6 routing header with segments left: the destination changes on the way */
	uint8_t tunnels;    /* tunnels entered */
	bool has_tunnel;    /* has a tunnel that can be entered (entered or not) */
};

enum ow_decode {
	OW_DECODE_IP,     /* an IP packet */
	OW_DECODE_NOT_IP, /* a frame of another protocol */
	OW_DECODE_SHORT,  /* captured bytes end before the headers that identity needs, or the packet is malformed */
	OW_DECODE_LINK,   /* a link type that is not supported */
};

/* Never fails: for any bytes it returns one of the above. ret_packet is valid for OW_DECODE_IP only. */
enum ow_decode ow_packet_decode(const struct ow_frame *frame, bool inner, struct ow_packet *ret_packet);
