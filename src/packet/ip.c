/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPv4 and IPv6 headers. Lengths: the header's own length decides, so that link padding and trailers stay out; a length
 * of 0 is what a sending host shows before segmentation offload, and stands for the rest of the frame.
 */
#include "packet/walk.h"

#define IPV4_MIN 20u
#define IPV6_HEADER 40u

/* The final destination (the address that the packet ends at) named by a routing header with segments left, or 0. */
static uint32_t final_destination(const uint8_t *ip, uint32_t at, uint32_t len)
{
	uint8_t kind = ip[at + 2];
	if (len < 8 + 16)
		return 0;
	if (kind == 4) /* segment routing: the list is in reverse order */
		return at + 8;
	if (kind == 0 || kind == 2)
		return at + 8 + (len - 8) / 16 * 16 - 16;
	return 0;
}

bool ow_extensions_walk(const uint8_t *ip, const uint8_t *end, uint32_t offset, uint8_t proto,
                        struct ow_extensions *ret_ext)
{
	unsigned version = ip[0] >> 4;
	size_t captured = (size_t)(end - ip);
	*ret_ext = (struct ow_extensions){.stable = offset, .stable_proto = proto};
	for (unsigned n = 0; ow_is_extension(version, proto); n++) {
		if (n == OW_EXTENSIONS_MAX || captured < (size_t)offset + 8)
			return false;
		const uint8_t *header = ip + offset;
		uint32_t len = proto == 44 ? 8 : proto == 51 ? (header[1] + 2u) * 4 : (header[1] + 1u) * 8;
		if (captured < (size_t)offset + len)
			return false;
		if (proto == 43 && header[3] > 0) {
			ret_ext->routed = true;
			ret_ext->final = final_destination(ip, offset, len);
		}
		if (proto == 0 || proto == 43) {
			ret_ext->stable = offset + len;
			ret_ext->stable_proto = header[0];
		}
		if (proto == 44) {
			ret_ext->fragment = true;
			ret_ext->later = ow_load_be16(header + 2) >= 8;
		}
		proto = header[0];
		offset += len;
		if (ret_ext->later)
			break;
	}
	ret_ext->l4 = offset;
	ret_ext->proto = proto;
	return true;
}

/* The length that a jumbogram's hop-by-hop option gives, or 0. */
static uint32_t jumbo_length(const uint8_t *ip, const uint8_t *end)
{
	if (ip[6] != 0 || end - ip < 48)
		return 0;
	const uint8_t *p = ip + IPV6_HEADER + 2, *stop = ip + IPV6_HEADER + (ip[IPV6_HEADER + 1] + 1u) * 8;
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

/* Sets the extent of the packet from its length on the wire; the cursor is at its first byte. */
static void set_extent(struct ow_walk *w, uint32_t total)
{
	struct ow_packet *packet = w->packet;
	size_t captured = (size_t)(w->end - w->p);
	packet->ip = w->p;
	packet->ip_len = total;
	packet->truncated = captured < total;
	packet->end = packet->truncated ? w->end : w->p + total;
}

static void set_l4(struct ow_packet *packet, uint32_t offset, bool later)
{
	packet->l4_len = packet->ip_len - offset;
	packet->l4 = !later && (size_t)(packet->end - packet->ip) > offset ? packet->ip + offset : NULL;
}

/* False when the extension headers are cut or run over the end of the packet. */
static bool set_extensions(struct ow_packet *packet, uint32_t offset, uint8_t proto)
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

static bool parse_ipv4(struct ow_walk *w)
{
	struct ow_packet *packet = w->packet;
	const uint8_t *ip = w->p;
	if (!ow_walk_has(w, IPV4_MIN))
		return false;
	uint32_t header = (ip[0] & 15u) * 4, total = ow_load_be16(ip + 2), frag = ow_load_be16(ip + 6) & 0x3fff;
	if (total == 0)
		total = w->wire;
	if (header < IPV4_MIN || total < header)
		return false;
	set_extent(w, total);
	packet->version = 4;
	packet->proto = ip[9];
	packet->fragment = frag != 0;
	packet->routed_v6 = false;
	set_l4(packet, header, frag & 0x1fff);
	if (ip[9] == 51 && !(frag & 0x1fff))
		return set_extensions(packet, header, ip[9]);
	return true;
}

static bool parse_ipv6(struct ow_walk *w)
{
	struct ow_packet *packet = w->packet;
	const uint8_t *ip = w->p;
	if (!ow_walk_has(w, IPV6_HEADER))
		return false;
	uint32_t payload = ow_load_be16(ip + 4);
	if (payload == 0 && ip[6] != 59) {
		uint32_t jumbo = jumbo_length(ip, w->end);
		payload = jumbo ? jumbo : w->wire - IPV6_HEADER;
		if (payload > UINT32_MAX - IPV6_HEADER)
			return false;
	}
	set_extent(w, IPV6_HEADER + payload);
	packet->version = 6;
	packet->proto = ip[6];
	packet->fragment = false;
	packet->routed_v6 = false;
	set_l4(packet, IPV6_HEADER, false);
	if (ow_is_extension(6, ip[6]))
		return set_extensions(packet, IPV6_HEADER, ip[6]);
	return true;
}

enum ow_layer ow_walk_ip(struct ow_walk *w)
{
	struct ow_packet *packet = w->packet;
	if (!ow_walk_has(w, 1))
		return OW_LAYER_SHORT;
	unsigned version = w->p[0] >> 4;
	if (version == 4 ? !parse_ipv4(w) : version == 6 ? !parse_ipv6(w) : true)
		return OW_LAYER_SHORT;
	/* A fragmented tunnel packet is a packet of its own: what it carries is in pieces. */
	if (packet->proto == 6 || packet->fragment)
		return OW_LAYER_FOUND;
	w->p = packet->l4 ? packet->l4 : packet->end;
	w->end = packet->end;
	w->wire = packet->l4_len;
	enum ow_layer next = ow_walk_tunnel(w);
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
