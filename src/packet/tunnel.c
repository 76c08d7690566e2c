/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects tunnels by the transport header. A port number alone is not sufficient, so the tunnel's own header must be
 * valid too; otherwise the packet is an ordinary one.
 */
#include "packet/decode_cursor.h"

#define GTP_EXTENSIONS_MAX 8
#define TZSP_TAGS_MAX      32

/* Too few bytes for a tunnel header: cut by the capture, or not a tunnel. */
static enum ow_layer too_few(const struct ow_decode_cursor *w)
{
	return w->packet->truncated ? OW_LAYER_SHORT : OW_LAYER_NONE;
}

/* Checks for an IP packet of this version (0: any) n bytes ahead. */
static enum ow_layer ip_after(struct ow_decode_cursor *w, uint32_t n, unsigned version)
{
	if (!ow_decode_cursor_has(w, n + 1))
		return too_few(w);
	unsigned nibble = w->p[n] >> 4;
	if ((nibble != 4 && nibble != 6) || (version && nibble != version))
		return OW_LAYER_NONE;
	ow_decode_cursor_skip(w, n);
	return OW_LAYER_IP;
}

/* Moves to another layer n bytes ahead. */
static enum ow_layer layer_after(struct ow_decode_cursor *w, uint32_t n, enum ow_layer next)
{
	if (!ow_decode_cursor_has(w, n))
		return too_few(w);
	ow_decode_cursor_skip(w, n);
	return next;
}

/* The payload of GRE, Geneve and similar, given by an ethertype. */
static enum ow_layer type_after(struct ow_decode_cursor *w, uint32_t n, uint16_t type)
{
	switch (type) {
	case 0x0800:
	case 0x86dd:
		return ip_after(w, n, 0);
	case 0x6558: /* transparent Ethernet bridging */
		return layer_after(w, n, OW_LAYER_ETHERNET);
	case 0x8847:
	case 0x8848:
		return layer_after(w, n, OW_LAYER_MPLS);
	case 0x880b:
		return layer_after(w, n, OW_LAYER_PPP);
	case 0x894f:
		return layer_after(w, n, OW_LAYER_NSH);
	default:
		return OW_LAYER_NONE;
	}
}

/* ERSPAN III: 12 bytes and, if the last bit is set, 8 of platform data. */
static enum ow_layer erspan3_after(struct ow_decode_cursor *w, uint32_t n)
{
	if (!ow_decode_cursor_has(w, n + 12))
		return too_few(w);
	return layer_after(w, n + (w->p[n + 11] & 1 ? 20 : 12), OW_LAYER_ETHERNET);
}

/* WCCP: a redirect header of 4 bytes in version 2, none in version 1. */
static enum ow_layer wccp_after(struct ow_decode_cursor *w, uint32_t n)
{
	enum ow_layer next = ip_after(w, n, 4);
	return next == OW_LAYER_NONE ? ip_after(w, n + 4, 4) : next;
}

/* flags 2, protocol 2, [checksum 4], [key 4], [sequence 4]; version 1 (PPTP): key always, [sequence 4], [ack 4] */
static enum ow_layer gre(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 4))
		return too_few(w);
	uint16_t flags = ow_load_be16(w->p), type = ow_load_be16(w->p + 2);
	bool sequence = flags & 0x1000;
	if ((flags & 7) == 1) {
		if (type != 0x880b || !sequence) /* without a sequence number there is no payload */
			return OW_LAYER_NONE;
		return layer_after(w, flags & 0x80 ? 16 : 12, OW_LAYER_PPP);
	}
	if ((flags & 7) != 0 || flags & 0x4000) /* source routing is obsolete */
		return OW_LAYER_NONE;
	uint32_t n = 4 + (flags & 0x8000 ? 4 : 0) + (flags & 0x2000 ? 4 : 0) + (sequence ? 4 : 0);
	switch (type) {
	case 0x88be: /* ERSPAN I has no header of its own and no sequence number, II has 8 bytes */
		return layer_after(w, n + (sequence ? 8 : 0), OW_LAYER_ETHERNET);
	case 0x22eb:
		return erspan3_after(w, n);
	case 0x883e:
		return wccp_after(w, n);
	default:
		return type_after(w, n, type);
	}
}

/* flags 1 (I = 8), 3, VNI 3, 0 */
static enum ow_layer vxlan(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 8))
		return too_few(w);
	if (!(w->p[0] & 8))
		return OW_LAYER_NONE;
	return layer_after(w, 8, OW_LAYER_ETHERNET);
}

/* VXLAN with the payload type in byte 3; some senders omit the flag (P = 4) for it. */
static enum ow_layer vxlan_gpe(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 8))
		return too_few(w);
	if (!(w->p[0] & 0x0c))
		return OW_LAYER_NONE;
	switch (w->p[3]) {
	case 0:
		return vxlan(w);
	case 1:
		return ip_after(w, 8, 4);
	case 2:
		return ip_after(w, 8, 6);
	case 3:
		return layer_after(w, 8, OW_LAYER_ETHERNET);
	case 4:
		return layer_after(w, 8, OW_LAYER_NSH);
	case 5:
		return layer_after(w, 8, OW_LAYER_MPLS);
	default:
		return OW_LAYER_NONE;
	}
}

/* version 2 bits, option words 6 bits, flags 1, protocol 2, VNI 3, 0, options */
static enum ow_layer geneve(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 8))
		return too_few(w);
	if (w->p[0] >> 6 != 0 || w->p[7] != 0)
		return OW_LAYER_NONE;
	return type_after(w, 8 + (w->p[0] & 63u) * 4, ow_load_be16(w->p + 2));
}

/* flags 1, type 1, length 2, TEID 4, [sequence 2, N-PDU 1, next extension 1]; only user data (type 255) is a tunnel */
static enum ow_layer gtp(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 8))
		return too_few(w);
	if ((w->p[0] & 0xf0) != 0x30 || w->p[1] != 255)
		return OW_LAYER_NONE;
	if (!(w->p[0] & 7))
		return ip_after(w, 8, 0);
	if (!ow_decode_cursor_has(w, 12))
		return too_few(w);
	uint32_t n = 12;
	uint8_t next = w->p[0] & 4 ? w->p[11] : 0;
	for (unsigned i = 0; next != 0; i++) {
		if (i == GTP_EXTENSIONS_MAX)
			return OW_LAYER_NONE;
		if (!ow_decode_cursor_has(w, n + 1))
			return too_few(w);
		uint32_t len = w->p[n] * 4u;
		if (len == 0)
			return OW_LAYER_NONE;
		if (!ow_decode_cursor_has(w, n + len))
			return too_few(w);
		n += len;
		next = w->p[n - 1];
	}
	return ip_after(w, n, 0);
}

/* Optional authentication (0001) and origin (0000) headers, then IPv6, whose length must fit. */
static enum ow_layer teredo(struct ow_decode_cursor *w)
{
	uint32_t n = 0;
	if (!ow_decode_cursor_has(w, 4))
		return too_few(w);
	if (ow_load_be16(w->p) == 1)
		n = 13u + w->p[2] + w->p[3];
	if (!ow_decode_cursor_has(w, n + 2))
		return too_few(w);
	if (ow_load_be16(w->p + n) == 0)
		n += 8;
	if (!ow_decode_cursor_has(w, n + 6))
		return too_few(w);
	if (w->p[n] >> 4 != 6 || 40u + ow_load_be16(w->p + n + 4) > w->wire - n)
		return OW_LAYER_NONE;
	return ip_after(w, n, 6);
}

/* L2TPv2 data: flags and version 2, [length 2], tunnel 2, session 2, [Ns 2, Nr 2], [offset 2, padding] */
static enum ow_layer l2tp(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 2))
		return too_few(w);
	uint16_t flags = ow_load_be16(w->p);
	if (flags & 0x8000 || (flags & 0x000f) != 2)
		return OW_LAYER_NONE;
	uint32_t n = 6 + (flags & 0x4000 ? 2 : 0) + (flags & 0x0800 ? 4 : 0);
	if (flags & 0x0200) {
		if (!ow_decode_cursor_has(w, n + 2))
			return too_few(w);
		n += 2 + ow_load_be16(w->p + n);
	}
	return layer_after(w, n, OW_LAYER_PPP);
}

/* TZSP (mirrors of MikroTik routers): version 1, type 1, protocol 2, tags {type 1, length 1, value} up to tag 1 */
static enum ow_layer tzsp(struct ow_decode_cursor *w)
{
	uint32_t n = 4;
	if (!ow_decode_cursor_has(w, 4))
		return too_few(w);
	uint16_t protocol = ow_load_be16(w->p + 2);
	if (w->p[0] != 1 || w->p[1] > 1 || (protocol != 1 && protocol != 0x12))
		return OW_LAYER_NONE;
	for (unsigned i = 0; i < TZSP_TAGS_MAX; i++) {
		if (!ow_decode_cursor_has(w, n + 2))
			return too_few(w);
		if (w->p[n] == 1) {
			enum ow_layer next = layer_after(w, n + 1, OW_LAYER_ETHERNET);
			return next == OW_LAYER_ETHERNET && protocol == 0x12 ? ow_decode_cursor_wifi(w) : next;
		}
		n += w->p[n] == 0 ? 1 : 2u + w->p[n + 1]; /* tag 0 is padding */
	}
	return OW_LAYER_NONE;
}

static enum ow_layer by_protocol(struct ow_decode_cursor *w, uint8_t protocol);

/* GUE: variant 2 bits, control 1 bit, words 5 bits, IP protocol 1, flags 2, optional fields; variant 1 is an IP packet */
static enum ow_layer gue(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 4))
		return too_few(w);
	if (w->p[0] >> 6 == 1)
		return ip_after(w, 0, 0);
	if (w->p[0] >> 5 != 0 || w->p[1] == 17)
		return OW_LAYER_NONE;
	uint32_t n = 4 + (w->p[0] & 31u) * 4;
	uint8_t protocol = w->p[1];
	if (!ow_decode_cursor_has(w, n))
		return too_few(w);
	ow_decode_cursor_skip(w, n);
	return by_protocol(w, protocol);
}

static enum ow_layer udp(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 4))
		return OW_LAYER_NONE;
	uint16_t port = ow_decode_cursor_tunnel_port(w->p);
	enum ow_layer (*parse)(struct ow_decode_cursor *);
	switch (port) {
	case 1701:
		parse = l2tp;
		break;
	case 2152:
		parse = gtp;
		break;
	case 3544:
		parse = teredo;
		break;
	case 4789: /* and the port that Linux used before one was assigned: */
	case 8472:
		parse = vxlan;
		break;
	case 4790:
		parse = vxlan_gpe;
		break;
	case 6080:
		parse = gue;
		break;
	case 37008:
		parse = tzsp;
		break;
	case 6081:
		parse = geneve;
		break;
	case 6635:
		return layer_after(w, 8, OW_LAYER_MPLS);
	default:
		return OW_LAYER_NONE;
	}
	if (!ow_decode_cursor_has(w, 8))
		return too_few(w);
	ow_decode_cursor_skip(w, 8);
	return parse(w);
}

static enum ow_layer by_protocol(struct ow_decode_cursor *w, uint8_t protocol)
{
	switch (protocol) {
	case 4:
		return ip_after(w, 0, 4);
	case 41:
		return ip_after(w, 0, 6);
	case 47:
		return gre(w);
	case 97: /* EtherIP: version 3 */
		if (!ow_decode_cursor_has(w, 2))
			return too_few(w);
		return w->p[0] >> 4 == 3 ? layer_after(w, 2, OW_LAYER_ETHERNET) : OW_LAYER_NONE;
	case 137:
		return layer_after(w, 0, OW_LAYER_MPLS);
	case 143:
		return layer_after(w, 0, OW_LAYER_ETHERNET);
	case 145:
		return layer_after(w, 0, OW_LAYER_NSH);
	default:
		return OW_LAYER_NONE;
	}
}

enum ow_layer ow_decode_cursor_tunnel(struct ow_decode_cursor *w)
{
	return w->packet->proto == 17 ? udp(w) : by_protocol(w, w->packet->proto);
}
