/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4, IPv6, TCP and UDP headers of generated packets. */
#include "sim/build.h"
#include "base/bytes.h"

#include <string.h>

#define TTL            64
#define TCP_HEADER     32 /* with the timestamp option */
#define UDP_HEADER     8
#define EXTENSIONS     16 /* hop-by-hop and destination options, 8 bytes each */
#define FRAGMENT6      8
#define MARKER         8
#define ECT0           2
#define MORE_FRAGMENTS 0x2000
#define DONT_FRAGMENT  0x4000

static uint32_t ip_headers(bool v6, bool extensions)
{
	return v6 ? 40 + (extensions ? EXTENSIONS : 0) : 20;
}

uint32_t ow_build_tcp_headers(bool v6, bool extensions)
{
	return ip_headers(v6, extensions) + TCP_HEADER;
}

uint32_t ow_build_udp_headers(bool v6, bool extensions)
{
	return ip_headers(v6, extensions) + UDP_HEADER;
}

void ow_build_ipv4_checksum(uint8_t *ip)
{
	ow_store_be16(ip + 10, 0);
	ow_store_be16(ip + 10, ow_sum_fold(ow_sum_add(0, ip, (size_t)(ip[0] & 15) * 4)));
}

uint64_t ow_build_pseudo_sum(const uint8_t *ip, uint8_t proto, uint32_t l4_len)
{
	uint8_t tail[8] = {[7] = proto};
	ow_store_be32(tail, l4_len);
	uint64_t sum = ow_sum_add(0, tail, sizeof tail);
	return ip[0] >> 4 == 6 ? ow_sum_add(sum, ip + 8, 32) : ow_sum_add(sum, ip + 12, 8);
}

/* offset: of a fragment, 0x2000 = more follow; -1 = not a fragment. Returns the offset behind the headers. */
static uint16_t build_ip4(struct ow_wire *wire, const struct ow_ends *ends, const struct ow_content *content,
                          uint8_t proto, uint32_t l4_len, int fragment)
{
	uint8_t *ip = wire->head;
	ip[0] = 0x45;
	ip[1] = content->ect ? ECT0 : 0;
	ow_store_be16(ip + 2, (uint16_t)(20 + l4_len));
	ow_store_be16(ip + 4, content->ip_id);
	ow_store_be16(ip + 6, fragment >= 0 ? (uint16_t)fragment : content->dont_fragment ? DONT_FRAGMENT : 0);
	ip[8] = TTL;
	ip[9] = proto;
	memcpy(ip + 12, ends->src, 4);
	memcpy(ip + 16, ends->dst, 4);
	ow_build_ipv4_checksum(ip);
	return 20;
}

/* An options header of 8 bytes: next header, length 0, PadN of 4. */
static uint8_t *put_options(uint8_t *p, uint8_t next)
{
	static const uint8_t padding[6] = {1, 4};
	p[0] = next;
	p[1] = 0;
	memcpy(p + 2, padding, sizeof padding);
	return p + 8;
}

static uint16_t build_ip6(struct ow_wire *wire, const struct ow_ends *ends, const struct ow_content *content,
                          uint8_t proto, uint32_t l4_len, int fragment)
{
	uint8_t *ip = wire->head, *p = ip + 40;
	uint32_t extra = (content->extensions ? EXTENSIONS : 0) + (fragment >= 0 ? FRAGMENT6 : 0);
	ow_store_be32(ip, 0x60000000u | (content->ect ? ECT0 << 20 : 0));
	ow_store_be16(ip + 4, (uint16_t)(extra + l4_len));
	uint8_t next = fragment >= 0 ? 44 : proto;
	ip[6] = content->extensions ? 0 : next;
	ip[7] = TTL;
	memcpy(ip + 8, ends->src, 16);
	memcpy(ip + 24, ends->dst, 16);
	if (content->extensions) {
		p = put_options(p, 60);
		p = put_options(p, next);
	}
	if (fragment >= 0) {
		p[0] = proto;
		p[1] = 0;
		/* In units of 8 bytes as in IPv4, but shifted left by 3, with the flag in the lowest bit. */
		ow_store_be16(p + 2, (uint16_t)((fragment & 0x1fff) << 3 | (fragment & MORE_FRAGMENTS ? 1 : 0)));
		ow_store_be32(p + 4, content->ip_id);
		p += FRAGMENT6;
	}
	return (uint16_t)(p - ip);
}

static uint16_t build_ip(struct ow_wire *wire, const struct ow_ends *ends, const struct ow_content *content,
                         uint8_t proto, uint32_t l4_len, int fragment)
{
	wire->proto = proto;
	return ends->v6 ? build_ip6(wire, ends, content, proto, l4_len, fragment)
	                : build_ip4(wire, ends, content, proto, l4_len, fragment);
}

/* Writes the payload after the headers and returns its sum. */
static uint64_t put_payload(struct ow_wire *wire, uint64_t marker, const uint8_t *pool, uint32_t len)
{
	wire->head_len = wire->header_len;
	wire->body = pool;
	wire->body_len = len;
	uint64_t sum = 0;
	if (len >= MARKER) {
		uint8_t *at = wire->head + wire->header_len;
		ow_store_be32(at, (uint32_t)(marker >> 32));
		ow_store_be32(at + 4, (uint32_t)marker);
		sum = ow_sum_add(0, at, MARKER);
		wire->head_len += MARKER;
		wire->body = pool + MARKER;
		wire->body_len = len - MARKER;
	}
	return ow_sum_add(sum, wire->body, wire->body_len);
}

void ow_build_tcp(struct ow_wire *wire, const struct ow_ends *ends, const struct ow_content *content)
{
	uint32_t l4_len = TCP_HEADER + content->payload_len;
	wire->l4 = build_ip(wire, ends, content, OW_PROTO_TCP, l4_len, -1);
	wire->header_len = wire->l4 + TCP_HEADER;
	uint8_t *tcp = wire->head + wire->l4;
	ow_store_be16(tcp, ends->sport);
	ow_store_be16(tcp + 2, ends->dport);
	ow_store_be32(tcp + 4, content->seq);
	ow_store_be32(tcp + 8, content->ack);
	tcp[12] = TCP_HEADER / 4 << 4;
	tcp[13] = content->push ? 0x18 : 0x10;
	ow_store_be16(tcp + 14, 501);
	ow_store_be32(tcp + 16, 0); /* checksum, urgent */
	ow_store_be32(tcp + 20, 0x0101080a);
	ow_store_be32(tcp + 24, content->tsval);
	ow_store_be32(tcp + 28, content->tsecr);
	uint64_t sum = put_payload(wire, content->marker, content->pool, content->payload_len);
	sum += ow_build_pseudo_sum(wire->head, OW_PROTO_TCP, l4_len);
	ow_store_be16(tcp + 16, ow_sum_fold(ow_sum_add(sum, tcp, TCP_HEADER)));
}

static void finish_udp(struct ow_wire *wire, const struct ow_ends *ends, uint32_t l4_len, uint64_t payload_sum)
{
	uint8_t *udp = wire->head + wire->l4;
	ow_store_be16(udp, ends->sport);
	ow_store_be16(udp + 2, ends->dport);
	ow_store_be16(udp + 4, (uint16_t)l4_len);
	ow_store_be16(udp + 6, 0);
	uint64_t sum = payload_sum + ow_build_pseudo_sum(wire->head, OW_PROTO_UDP, l4_len);
	uint16_t check = ow_sum_fold(ow_sum_add(sum, udp, UDP_HEADER));
	ow_store_be16(udp + 6, check ? check : 0xffff);
}

void ow_build_udp(struct ow_wire *wire, const struct ow_ends *ends, const struct ow_content *content)
{
	uint32_t l4_len = UDP_HEADER + content->payload_len;
	wire->l4 = build_ip(wire, ends, content, OW_PROTO_UDP, l4_len, -1);
	wire->header_len = wire->l4 + UDP_HEADER;
	finish_udp(wire, ends, l4_len, put_payload(wire, content->marker, content->pool, content->payload_len));
}

void ow_build_fragments(struct ow_wire *first, struct ow_wire *second, const struct ow_ends *ends,
                        const struct ow_content *content, uint32_t first_payload)
{
	uint32_t cut = UDP_HEADER + first_payload, rest = content->payload_len - first_payload;
	first->l4 = build_ip(first, ends, content, OW_PROTO_UDP, cut, MORE_FRAGMENTS);
	first->header_len = first->l4 + UDP_HEADER;
	second->header_len = build_ip(second, ends, content, OW_PROTO_UDP, rest, (int)(cut / 8));
	uint64_t sum = put_payload(first, content->marker, content->pool, first_payload);
	sum += put_payload(second, content->marker + 1, content->pool + first_payload, rest);
	finish_udp(first, ends, UDP_HEADER + content->payload_len, sum);
}
