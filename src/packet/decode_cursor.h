/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PACKET_DECODE_CURSOR_H
#define OW_PACKET_DECODE_CURSOR_H

#include "base/bytes.h"
#include "packet/packet.h"
#include <stddef.h>

/*
 * Internal to src/packet: the walk from the start of a frame to its IP packet. Each step looks at one layer, moves the
 * cursor past it and names the next layer, so that layers can follow each other in any order without recursion.
 */

/* More layers (tags, link headers, tunnels) than this is nobody's traffic. */
#define OW_LAYERS_MAX      40
#define OW_TUNNELS_MAX     8
#define OW_MPLS_LABELS_MAX 16
/* IPv6 extension headers and AH in one IP packet. */
#define OW_EXTENSIONS_MAX 16

enum ow_layer {
	OW_LAYER_ETHERNET,
	OW_LAYER_TYPE, /* what walk.type (an ethertype) says */
	OW_LAYER_IP,   /* version by its first nibble */
	OW_LAYER_LLC,
	OW_LAYER_PPP, /* from the address field or, without it, the protocol field */
	OW_LAYER_MPLS,
	OW_LAYER_NSH,
	/* Ends. */
	OW_LAYER_FOUND, /* walk.packet is filled */
	OW_LAYER_NOT_IP,
	OW_LAYER_SHORT,
	OW_LAYER_UNKNOWN_LINK,
	OW_LAYER_NONE, /* tunnels only: no tunnel here */
};

/* The bytes p .. end are captured; the wire had `wire` bytes from p on, never fewer than are captured. */
struct ow_decode_cursor {
	const uint8_t *p, *end;
	uint32_t wire;
	uint16_t type;
	bool inner;
	struct ow_packet *packet;
};

static inline bool ow_decode_cursor_has(const struct ow_decode_cursor *w, size_t n)
{
	return (size_t)(w->end - w->p) >= n;
}

/* The caller has checked that n bytes are captured. */
static inline void ow_decode_cursor_skip(struct ow_decode_cursor *w, uint32_t n)
{
	w->p += n;
	w->wire -= n;
}

/* Passes over n bytes to the given layer, or ends the walk when they are not captured. */
static inline enum ow_layer ow_decode_cursor_over(struct ow_decode_cursor *w, uint32_t n, enum ow_layer next)
{
	if (!ow_decode_cursor_has(w, n))
		return OW_LAYER_SHORT;
	ow_decode_cursor_skip(w, n);
	return next;
}

/* link.c: the first layer of a frame of this LINKTYPE_. */
enum ow_layer ow_decode_cursor_link(struct ow_decode_cursor *w, uint32_t linktype);
/* wifi.c: 802.11 with or without a header of its own in front. */
enum ow_layer ow_decode_cursor_wifi(struct ow_decode_cursor *w);
enum ow_layer ow_decode_cursor_radiotap(struct ow_decode_cursor *w);
enum ow_layer ow_decode_cursor_prism(struct ow_decode_cursor *w);
enum ow_layer ow_decode_cursor_ppi(struct ow_decode_cursor *w);
/* tags.c: one layer between the link and IP. */
enum ow_layer ow_decode_cursor_ethernet(struct ow_decode_cursor *w);
enum ow_layer ow_decode_cursor_type(struct ow_decode_cursor *w);
enum ow_layer ow_decode_cursor_llc(struct ow_decode_cursor *w);
enum ow_layer ow_decode_cursor_ppp(struct ow_decode_cursor *w);
enum ow_layer ow_decode_cursor_mpls(struct ow_decode_cursor *w);
enum ow_layer ow_decode_cursor_nsh(struct ow_decode_cursor *w);
/*
 * tunnel.c: with the cursor at the transport header of a whole (not fragmented) packet of walk.packet->proto. Returns
 * the layer inside with the cursor there, NONE when this is no tunnel, SHORT when too little is captured to tell.
 */
enum ow_layer ow_decode_cursor_tunnel(struct ow_decode_cursor *w);

/* The tunnel port of the UDP header at p, or 0. Branch-free: this is on the way of every UDP packet. */
static inline uint16_t ow_decode_cursor_tunnel_port(const uint8_t *p)
{
	static const uint16_t known[8] = {1701, 2152, 3544, 4789, 4790, 6081, 6635, 8472};
	uint16_t source = ow_load_be16(p), port = ow_load_be16(p + 2), hit = 0;
	if (source == 3544 || source == 1701) /* servers that answer from their port */
		port = source;
	for (unsigned i = 0; i < 8; i++)
		hit |= (uint16_t)(known[i] == port);
	return hit ? port : 0;
}

/*
 * extension.c: the extension headers of an IP packet. What comes before `stable` may be changed or removed on the way
 * (hop-by-hop, routing, and destination options in front of a routing header); what comes after is end to end.
 */
struct ow_extensions {
	uint32_t stable;      /* offset from the IP header of the first byte that stays */
	uint8_t stable_proto; /* the next-header value of that byte */
	uint32_t l4;          /* offset of what follows the last extension header */
	uint8_t proto;        /* and its next-header value */
	bool fragment, later; /* has a fragment header; with an offset other than 0 (then l4 is inside the payload) */
	uint32_t fragment_at; /* offset of the fragment header */
	bool routed;          /* a routing header has segments left */
	uint32_t final;       /* offset of the final destination in that header, 0 if it does not say */
};

static inline bool ow_is_extension(unsigned version, uint8_t proto)
{
	/* HBH 0, routing 43, fragment 44, AH 51, destination 60, mobility 135, HIP 139, shim6 140 */
	if (version == 4)
		return proto == 51;
	if (proto < 64)
		return UINT64_C(1) << proto &
		       (1 | UINT64_C(1) << 43 | UINT64_C(1) << 44 | UINT64_C(1) << 51 | UINT64_C(1) << 60);
	return proto == 135 || proto == 139 || proto == 140;
}

/*
 * Walks the chain that starts `offset` bytes into the IP packet at ip with next-header value proto; end is the end of
 * the captured bytes. False when the chain is cut, malformed or longer than OW_EXTENSIONS_MAX.
 */
bool ow_extensions_walk(const uint8_t *ip, const uint8_t *end, uint32_t offset, uint8_t proto,
                        struct ow_extensions *ret_ext);

#endif
