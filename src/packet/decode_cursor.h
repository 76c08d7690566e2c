/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"
#include "packet/packet.h"
#include <stddef.h>

/*
 * Private to src/packet: decodes a frame from its start to its IP packet. Each step parses one layer, moves the cursor
 * past it and returns the next layer, so that layers can follow each other in any order without recursion.
 */

/* Real traffic does not have more layers (tags, link headers, tunnels) than this. */
#define OW_LAYERS_MAX      40
#define OW_TUNNELS_MAX     8
#define OW_MPLS_LABELS_MAX 16
/* At most this many IPv6 extension headers and AH in one IP packet. */
#define OW_EXTENSIONS_MAX 16

enum ow_layer {
	OW_LAYER_ETHERNET,
	OW_LAYER_TYPE, /* determined by walk.type (an ethertype) */
	OW_LAYER_IP,   /* version in its first nibble */
	OW_LAYER_LLC,
	OW_LAYER_PPP, /* from the address field or, without it, the protocol field */
	OW_LAYER_MPLS,
	OW_LAYER_NSH,
	/* Final states: */
	OW_LAYER_FOUND, /* walk.packet is filled */
	OW_LAYER_NOT_IP,
	OW_LAYER_SHORT,
	OW_LAYER_UNKNOWN_LINK,
	OW_LAYER_NONE, /* tunnels only: no tunnel here */
};

/* The bytes from p to end are captured; the wire had `wire` bytes from p on, at least as many as are captured. */
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

/* Skips n bytes to the given layer, or ends decoding if they are not captured. */
static inline enum ow_layer ow_decode_cursor_over(struct ow_decode_cursor *w, uint32_t n, enum ow_layer next)
{
	if (!ow_decode_cursor_has(w, n))
		return OW_LAYER_SHORT;
	ow_decode_cursor_skip(w, n);
	return next;
}

/* link.c: the first layer of a frame of this LINKTYPE_. */
enum ow_layer ow_decode_cursor_link(struct ow_decode_cursor *w, uint32_t linktype);
/* wifi.c: 802.11, with or without a capture header in front. */
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
 * tunnel.c: the cursor is at the transport header of a packet of walk.packet->proto, or of its first fragment. Returns the
 * inner layer with the cursor at it, NONE if this is not a tunnel, SHORT if too little is captured to decide.
 */
enum ow_layer ow_decode_cursor_tunnel(struct ow_decode_cursor *w);

/* The tunnel port of the UDP header at p, or 0. Without branches, because every UDP packet passes here. */
static inline uint16_t ow_decode_cursor_tunnel_port(const uint8_t *p)
{
	/* 16, so that they are compared at once; 0 fills them up */
	static const uint16_t known[16] = {1701, 2152, 3544, 4789, 4790, 6080, 6081, 6635, 8472, 37008};
	uint16_t source = ow_load_be16(p), port = ow_load_be16(p + 2), hit = 0;
	if (source == 3544 || source == 1701) /* servers that answer from their port */
		port = source;
	for (unsigned i = 0; i < 16; i++)
		hit |= (uint16_t)(known[i] == port);
	return hit ? port : 0;
}

/*
 * extension.c: the extension headers of an IP packet. Routers may change or remove what comes before `stable`
 * (hop-by-hop, routing, and destination options in front of a routing header); the rest is end to end.
 */
struct ow_extensions {
	uint32_t stable;      /* offset from the IP header of the first byte that does not change */
	uint8_t stable_proto; /* next-header value of that byte */
	uint32_t l4;          /* offset of the first byte after the last extension header */
	uint8_t proto;        /* next-header value of that byte */
	bool fragment, later; /* has a fragment header; with an offset other than 0 (then l4 is inside the payload) */
	uint32_t fragment_at; /* offset of the fragment header */
	bool routed;          /* a routing header has segments left */
	uint32_t final;       /* offset of the final destination in that header; 0 if there is none */
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
 * Parses the chain that starts `offset` bytes after ip with next-header value proto; end is the end of the captured
 * bytes. Returns false if the chain is cut, malformed or longer than OW_EXTENSIONS_MAX.
 */
bool ow_extensions_walk(const uint8_t *ip, const uint8_t *end, uint32_t offset, uint8_t proto,
                        struct ow_extensions *ret_ext);
