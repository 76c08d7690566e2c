/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts superframes as Linux does (tcp_gso_segment, __udp_gso_segment, inet_gso_segment). Each segment is built in a
 * buffer, with its own headers in front of its payload, and identified like any packet. Checksums are not computed,
 * because no identity contains them.
 *
 * A tunnel packet is cut if the identity is that of the inner packet. The identity of the outer packet would contain
 * the inner checksums, which are not computed yet, so such a superframe stays one packet.
 *
 * In UDP superframes the IPv4 identification always counts up, as Linux does when it cuts them. If a receiver has
 * joined packets that all had the same identification, this cannot be detected.
 */
#include "packet/segments.h"

#include "base/bytes.h"
#include <errno.h>

#define TCP_FIN 0x01
#define TCP_PSH 0x08
#define TCP_CWR 0x80

#define IPV6_HEADER 40u
#define JUMBO_BYTES 8u /* the hop-by-hop header of superframes above 64 KB */

/* Bytes of the headers that are copied to each segment: IPv4 with options or IPv6 with a few extension headers, and
 * TCP. */
#define HEADERS_MAX 512u

struct cut {
	struct ow_packet packet;  /* the segment; its bytes are in `bytes` */
	const uint8_t *payload;   /* of the superframe */
	uint32_t captured, total; /* bytes of the payload: captured, and on the wire */
	uint32_t headers, l4;     /* of a segment: bytes of the headers, and offset of the transport header */
	uint16_t ip_id;
	uint32_t sequence;
	uint8_t flags;
	uint8_t bytes[HEADERS_MAX + UINT16_MAX];
};

static int one(const struct ow_identity *identity, const struct ow_packet *packet, struct ow_segments *ret_segments)
{
	struct ow_packet_id id;
	int r = ow_identity_of_packet(identity, packet, &id);
	if (r < 0)
		return r;
	ret_segments->count = 1;
	ret_segments->id[0] = id.id;
	ret_segments->bytes[0] = packet->ip_len;
	return 0;
}

/* Whether the offload type matches this packet's transport protocol, not that of an inner or outer packet. */
static bool fits(enum ow_gso gso, const struct ow_packet *packet)
{
	if (!packet->l4 || packet->fragment || (packet->has_tunnel && packet->tunnels == 0))
		return false;
	switch (gso) {
	case OW_GSO_TCP4:
		return packet->proto == 6 && packet->version == 4;
	case OW_GSO_TCP6:
		return packet->proto == 6 && packet->version == 6;
	case OW_GSO_UDP:
		return packet->proto == 17;
	default:
		return false;
	}
}

/*
 * A hop-by-hop header with only the jumbo length: Linux adds it to long superframes and removes it when it cuts them.
 */
static bool has_jumbo(const struct ow_packet *packet)
{
	const uint8_t *ip = packet->ip;
	return packet->version == 6 && ip[6] == 0 && packet->end - ip >= IPV6_HEADER + JUMBO_BYTES &&
	       ow_load_be16(ip + 4) == 0 && ip[IPV6_HEADER + 1] == 0 && ip[IPV6_HEADER + 2] == 0xc2;
}

/* Splits the packet into headers, which are copied, and payload. Returns false if that is not possible. */
static bool prepare(const struct ow_packet *packet, struct cut *cut)
{
	const uint8_t *ip = packet->ip, *l4 = packet->l4;
	size_t there = (size_t)(packet->end - l4);
	uint32_t transport = 8, skip = has_jumbo(packet) ? JUMBO_BYTES : 0;
	if (packet->proto == 6)
		transport = there >= 20 ? (l4[12] >> 4) * 4u : 0;
	if (transport < 8 || there < transport || packet->l4_len <= transport)
		return false;
	cut->l4 = (uint32_t)(l4 - ip) - skip;
	cut->headers = cut->l4 + transport;
	if (cut->headers > HEADERS_MAX)
		return false;
	memcpy(cut->bytes, ip, skip ? IPV6_HEADER : cut->headers);
	if (skip) {
		memcpy(cut->bytes + IPV6_HEADER, ip + IPV6_HEADER + skip, cut->headers - IPV6_HEADER);
		cut->bytes[6] = ip[IPV6_HEADER];
	}
	cut->payload = l4 + transport;
	cut->captured = (uint32_t)(there - transport);
	cut->total = packet->l4_len - transport;
	cut->ip_id = ow_load_be16(ip + 4);
	cut->sequence = ow_load_be32(l4 + 4);
	cut->flags = packet->proto == 6 ? l4[13] : 0;
	cut->packet = *packet;
	cut->packet.ip = cut->bytes;
	cut->packet.l4 = cut->bytes + cut->l4;
	return true;
}

/* Adapts the headers for segment number i, with `len` bytes from `from` on. */
static void patch(const struct ow_iface_frame *frame, struct cut *cut, uint32_t i, uint32_t from, uint32_t len)
{
	uint8_t *ip = cut->bytes, *l4 = ip + cut->l4, flags = cut->flags;
	uint32_t ip_len = cut->headers + len;
	if (cut->packet.version == 4) {
		ow_store_be16(ip + 2, (uint16_t)ip_len);
		ow_store_be16(ip + 4, (uint16_t)(cut->ip_id + (frame->fixed_ip_id ? 0 : i)));
	} else {
		ow_store_be16(ip + 4, (uint16_t)(ip_len - IPV6_HEADER));
	}
	cut->packet.ip_len = ip_len;
	cut->packet.l4_len = ip_len - cut->l4;
	if (cut->packet.proto == 17) {
		ow_store_be16(l4 + 4, (uint16_t)cut->packet.l4_len);
		return;
	}
	if (i > 0 && !frame->cwr_on_all)
		flags &= (uint8_t)~TCP_CWR;
	if (from + len < cut->total)
		flags &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	l4[13] = flags;
	ow_store_be32(l4 + 4, cut->sequence + from);
}

/* Copies the part of the payload that enters the id. */
static void put_payload(const struct ow_identity *identity, struct cut *cut, uint32_t from, uint32_t len)
{
	uint32_t there = cut->captured > from ? cut->captured - from : 0;
	if (there > len)
		there = len;
	if (there > identity->hash_limit)
		there = identity->hash_limit;
	if (cut->packet.proto == 6 && !ow_identity_needs_payload(identity))
		there = 0;
	memcpy(cut->bytes + cut->headers, cut->payload + from, there);
	cut->packet.end = cut->bytes + cut->headers + there;
	cut->packet.truncated = there < len;
}

static int cut_up(const struct ow_identity *identity, const struct ow_iface_frame *frame, struct cut *cut,
                  struct ow_segments *ret_segments)
{
	uint32_t step = frame->gso_size, count = (cut->total + step - 1) / step;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t from = i * step, len = cut->total - from < step ? cut->total - from : step;
		struct ow_packet_id id;
		patch(frame, cut, i, from, len);
		put_payload(identity, cut, from, len);
		int r = ow_identity_of_packet(identity, &cut->packet, &id);
		if (r < 0)
			return r;
		ret_segments->id[i] = id.id;
		ret_segments->bytes[i] = cut->packet.ip_len;
	}
	ret_segments->count = count;
	return 0;
}

static __attribute__((noinline)) int of_superframe(const struct ow_identity *identity,
                                                   const struct ow_iface_frame *frame, const struct ow_packet *packet,
                                                   struct ow_segments *ret_segments)
{
	struct cut cut;
	uint32_t step = frame->gso_size;
	if (step == 0 || !fits(frame->gso, packet) || !prepare(packet, &cut) ||
	    (cut.total - 1) / step >= OW_SEGMENTS_MAX) {
		ret_segments->uncut = true;
		return one(identity, packet, ret_segments);
	}
	if (cut.total <= step)
		return one(identity, packet, ret_segments);
	return cut_up(identity, frame, &cut, ret_segments);
}

static __attribute__((noinline)) int of_any(const struct ow_identity *identity, const struct ow_iface_frame *frame,
                                            struct ow_segments *ret_segments)
{
	struct ow_packet packet;
	switch (ow_packet_decode(&frame->frame, identity->inner, &packet)) {
	case OW_DECODE_IP:
		break;
	case OW_DECODE_SHORT:
		return -ENODATA;
	default:
		return -ENOMSG;
	}
	ret_segments->ttl = packet.version == 4 ? packet.ip[8] : packet.ip[7];
	ow_flow_key_of_packet(&packet, &ret_segments->flow);
	if (packet.fragment && !packet.l4)
		ret_segments->flow.ethertype = OW_FLOW_LATER_FRAGMENTS;
	if (frame->gso != OW_GSO_NONE)
		return of_superframe(identity, frame, &packet, ret_segments);
	return one(identity, &packet, ret_segments);
}

int ow_segments_of_frame(const struct ow_identity *identity, const struct ow_iface_frame *frame,
                         struct ow_segments *ret_segments)
{
	struct ow_plain plain;
	ret_segments->uncut = false;
	if (frame->gso != OW_GSO_NONE || identity->level != OW_LEVEL_IP || identity->any_ip_id ||
	    identity->tcp != OW_TCP_EXACT || !ow_identity_of_plain(identity, &frame->frame, &plain))
		return of_any(identity, frame, ret_segments);
	ret_segments->ttl = plain.ttl;
	ow_flow_key_of_plain(&plain, &ret_segments->flow);
	ret_segments->count = 1;
	ret_segments->id[0] = plain.id;
	ret_segments->bytes[0] = plain.ip_len;
	return 0;
}
