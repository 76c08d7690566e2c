/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder: loops over the layers of a frame and parses IP. Plain Ethernet with TCP or UDP, nearly all traffic,
 * takes a fast path within this file.
 *
 * Lengths: the length in the IP header is used, so that link padding and trailers are not part of the packet. A length
 * of 0, which a sending host has before segmentation offload, means the rest of the frame.
 */
#include "packet/packet.h"
#include "packet/decode_cursor.h"

#define IPV4_MIN     20u
#define DATAGRAM_MAX 65535u
#define IPV6_HEADER  40u

/* The length in a jumbogram's hop-by-hop option, or 0. */
static __attribute__((noinline)) uint32_t jumbo_length(const uint8_t *ip, const uint8_t *end)
{
	if (ip[6] != 0 || end - ip < 48)
		return 0;
	const uint8_t *p = ip + IPV6_HEADER + 2, *stop = ip + IPV6_HEADER + ((size_t)ip[IPV6_HEADER + 1] + 1) * 8;
	if (stop > end)
		stop = end;
	while (p < stop) {
		if (*p == 0) { /* Pad1 */
			p++;
			continue;
		}
		if (stop - p < 2 || stop - p < 2 + p[1])
			return 0;
		if (p[0] == 0xc2 && p[1] == 4)
			return ow_load_be32(p + 2);
		p += 2 + p[1];
	}
	return 0;
}

/*
 * Sets the extent of a packet whose header says `total` bytes. ip .. end are captured (perhaps with padding), and
 * `wire` bytes were on the wire.
 */
static inline void set_extent(struct ow_packet *packet, const uint8_t *ip, const uint8_t *end, uint32_t wire,
                              uint32_t total)
{
	packet->overlong = total > wire;
	packet->ip = ip;
	packet->ip_len = total;
	packet->truncated = (size_t)(end - ip) < total;
	packet->end = packet->truncated ? end : ip + total;
}

static inline void set_l4(struct ow_packet *packet, uint32_t offset, bool later)
{
	packet->l4_len = packet->ip_len - offset;
	packet->l4 = !later && (size_t)(packet->end - packet->ip) > offset ? packet->ip + offset : NULL;
}

/* Returns false if the extension headers are cut or go beyond the end of the packet. */
static __attribute__((noinline)) bool set_extensions(struct ow_packet *packet, uint32_t offset, uint8_t proto)
{
	struct ow_extensions ext;
	if (!ow_extensions_walk(packet->ip, packet->end, offset, proto, &ext))
		return false;
	packet->proto = ext.proto;
	packet->fragment |= ext.fragment;
	packet->routed_v6 = ext.routed;
	set_l4(packet, ext.l4, ext.later);
	return true;
}

static inline bool parse_ipv4(const uint8_t *ip, const uint8_t *end, uint32_t wire, struct ow_packet *packet)
{
	if (end - ip < IPV4_MIN)
		return false;
	uint32_t header = (ip[0] & 15u) * 4, total = ow_load_be16(ip + 2), frag = ow_load_be16(ip + 6) & 0x3fff;
	if (total == 0)
		total = wire;
	if (header < IPV4_MIN || total < header)
		return false;
	set_extent(packet, ip, end, wire, total);
	packet->version = 4;
	packet->proto = ip[9];
	packet->fragment = frag != 0;
	packet->routed_v6 = false;
	set_l4(packet, header, frag & 0x1fff);
	if (ip[9] == 51 && !(frag & 0x1fff))
		return set_extensions(packet, header, ip[9]);
	return true;
}

static inline bool parse_ipv6(const uint8_t *ip, const uint8_t *end, uint32_t wire, struct ow_packet *packet)
{
	if (end - ip < IPV6_HEADER)
		return false;
	uint32_t payload = ow_load_be16(ip + 4);
	if (payload == 0 && ip[6] != 59) {
		uint32_t jumbo = jumbo_length(ip, end);
		payload = jumbo ? jumbo : wire - IPV6_HEADER;
		if (payload > UINT32_MAX - IPV6_HEADER)
			return false;
	}
	set_extent(packet, ip, end, wire, IPV6_HEADER + payload);
	packet->version = 6;
	packet->proto = ip[6];
	packet->fragment = false;
	packet->routed_v6 = false;
	set_l4(packet, IPV6_HEADER, false);
	if (ow_is_extension(6, ip[6]))
		return set_extensions(packet, IPV6_HEADER, ip[6]);
	return true;
}

/* The wire had `wire` bytes from ip on. */
static inline bool parse_ip(const uint8_t *ip, const uint8_t *end, uint32_t wire, struct ow_packet *packet)
{
	if (ip == end)
		return false;
	unsigned version = ip[0] >> 4;
	return version == 4 ? parse_ipv4(ip, end, wire, packet) : version == 6 && parse_ipv6(ip, end, wire, packet);
}

/* After parse_ip: whether this is certainly not a tunnel. Of a tunnel packet that is fragmented, the first fragment has
 * the headers of the packet inside. The others count as packets. */
static inline bool ends_here(const struct ow_packet *packet)
{
	if (packet->proto == 6 || (packet->fragment && !packet->l4))
		return true;
	if (packet->proto != 17 || !packet->l4 || packet->end - packet->l4 < 4)
		return false;
	return !ow_decode_cursor_tunnel_port(packet->l4);
}

/* Looks for a tunnel in the packet just parsed. Returns the inner layer if it is to be entered. */
static enum ow_layer find_tunnel(struct ow_decode_cursor *w)
{
	struct ow_packet *packet = w->packet;
	w->p = packet->l4 ? packet->l4 : packet->end;
	w->end = packet->end;
	w->wire = packet->l4_len;
	/* What a fragment does not have is in others. */
	if (packet->fragment && w->wire < DATAGRAM_MAX)
		w->wire = DATAGRAM_MAX;
	enum ow_layer next = ow_decode_cursor_tunnel(w);
	if (next == OW_LAYER_NONE)
		return OW_LAYER_FOUND;
	if (next == OW_LAYER_SHORT)
		return w->inner ? OW_LAYER_SHORT : OW_LAYER_FOUND;
	packet->has_tunnel = true;
	if (!w->inner || packet->tunnels == OW_TUNNELS_MAX)
		return OW_LAYER_FOUND;
	packet->tunnels++;
	return next;
}

static enum ow_layer walk_ip(struct ow_decode_cursor *w)
{
	if (!parse_ip(w->p, w->end, w->wire, w->packet))
		return OW_LAYER_SHORT;
	return ends_here(w->packet) ? OW_LAYER_FOUND : find_tunnel(w);
}

static enum ow_layer step(struct ow_decode_cursor *w, enum ow_layer layer)
{
	switch (layer) {
	case OW_LAYER_ETHERNET:
		return ow_decode_cursor_ethernet(w);
	case OW_LAYER_TYPE:
		return ow_decode_cursor_type(w);
	case OW_LAYER_IP:
		return walk_ip(w);
	case OW_LAYER_LLC:
		return ow_decode_cursor_llc(w);
	case OW_LAYER_PPP:
		return ow_decode_cursor_ppp(w);
	case OW_LAYER_MPLS:
		return ow_decode_cursor_mpls(w);
	case OW_LAYER_NSH:
		return ow_decode_cursor_nsh(w);
	default:
		return layer;
	}
}

static enum ow_decode outcome(enum ow_layer layer)
{
	switch (layer) {
	case OW_LAYER_FOUND:
		return OW_DECODE_IP;
	case OW_LAYER_NOT_IP:
		return OW_DECODE_NOT_IP;
	case OW_LAYER_UNKNOWN_LINK:
		return OW_DECODE_LINK;
	default: /* cut, malformed, or more than OW_LAYERS_MAX layers */
		return OW_DECODE_SHORT;
	}
}

static __attribute__((noinline)) enum ow_decode walk(const struct ow_frame *frame, bool inner, struct ow_packet *packet)
{
	static const uint8_t nothing[1];
	const uint8_t *data = frame->caplen ? frame->data : nothing;
	struct ow_decode_cursor w = {
		.p = data,
		.end = data + frame->caplen,
		.wire = frame->len > frame->caplen ? frame->len : frame->caplen,
		.inner = inner,
		.packet = packet,
	};
	enum ow_layer layer = ow_decode_cursor_link(&w, frame->linktype);
	for (unsigned n = 0; n < OW_LAYERS_MAX && layer < OW_LAYER_FOUND; n++)
		layer = step(&w, layer);
	return outcome(layer);
}

enum ow_decode ow_packet_decode(const struct ow_frame *frame, bool inner, struct ow_packet *ret_packet)
{
	const uint8_t *data = frame->data;
	uint32_t caplen = frame->caplen;
	ret_packet->tunnels = 0;
	ret_packet->has_tunnel = false;
	if (frame->linktype == OW_LINKTYPE_ETHERNET && caplen > 14) {
		uint32_t wire = (frame->len > caplen ? frame->len : caplen) - 14;
		uint16_t type = ow_load_be16(data + 12);
		if ((type == 0x0800 || type == 0x86dd) && parse_ip(data + 14, data + caplen, wire, ret_packet) &&
		    ends_here(ret_packet))
			return OW_DECODE_IP;
	}
	return walk(frame, inner, ret_packet);
}
