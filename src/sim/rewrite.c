/* SPDX-License-Identifier: Apache-2.0 */
/* Routers, markers and NAT. Checksums are updated by difference (RFC 1624), as hardware does. */
#include "sim/rewrite.h"
#include "base/bytes.h"
#include "sim/build.h"

#define PORT_SHIFT 20011
#define ICMP6      58

/* HC' = ~(~HC + ~m + m') */
static void update16(uint8_t *check, uint16_t before, uint16_t after)
{
	uint32_t sum = (uint32_t)(uint16_t)~ow_load_be16(check) + (uint16_t)~before + after;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ow_store_be16(check, (uint16_t)~sum);
}

/* Stores an even number of bytes and updates up to two checksums. */
static void replace(uint8_t *at, const uint8_t *bytes, size_t len, uint8_t *check1, uint8_t *check2)
{
	for (size_t i = 0; i < len; i += 2) {
		uint16_t before = ow_load_be16(at + i), after = ow_load_be16(bytes + i);
		if (check1)
			update16(check1, before, after);
		if (check2)
			update16(check2, before, after);
		ow_store_be16(at + i, after);
	}
}

static bool is_v4(const struct ow_rewrite *packet)
{
	return packet->ip[0] >> 4 == 4;
}

void ow_rewrite_hop(const struct ow_rewrite *packet)
{
	uint8_t *ip = packet->ip;
	if (is_v4(packet) && ip[8] > 1)
		replace(ip + 8, (uint8_t[]){(uint8_t)(ip[8] - 1), ip[9]}, 2, ip + 10, NULL);
	else if (!is_v4(packet) && ip[7] > 1)
		ip[7]--;
}

/* The traffic class: the second byte of IPv4, 8 bits across the first two of IPv6. */
static void set_class(const struct ow_rewrite *packet, uint8_t mask, uint8_t value)
{
	uint8_t *ip = packet->ip;
	if (is_v4(packet)) {
		replace(ip, (uint8_t[]){ip[0], (uint8_t)((ip[1] & ~mask) | value)}, 2, ip + 10, NULL);
		return;
	}
	uint16_t word = ow_load_be16(ip);
	uint8_t class = (uint8_t)((word >> 4 & 0xff & ~mask) | value);
	ow_store_be16(ip, (uint16_t)((word & 0xf00f) | class << 4));
}

void ow_rewrite_dscp(const struct ow_rewrite *packet, int dscp)
{
	set_class(packet, 0xfc, (uint8_t)(dscp << 2));
}

void ow_rewrite_ce(const struct ow_rewrite *packet)
{
	set_class(packet, 3, 3);
}

/* The position of the transport checksum, if it is present and covers the addresses; NULL otherwise. */
static uint8_t *l4_checksum(const struct ow_rewrite *packet)
{
	size_t at = packet->proto == OW_PROTO_TCP   ? 16
	            : packet->proto == OW_PROTO_UDP ? 6
	            : packet->proto == ICMP6        ? 2
	                                            : 0;
	if (!packet->l4 || !at || packet->l4 + at + 2 > packet->len)
		return NULL;
	uint8_t *check = packet->ip + packet->l4 + at;
	/* UDP over IPv4 without a checksum remains without one. */
	return packet->proto == OW_PROTO_UDP && ow_load_be16(check) == 0 ? NULL : check;
}

static void shift_port(const struct ow_rewrite *packet, bool source, uint16_t shift, uint8_t *check)
{
	bool ports = packet->proto == OW_PROTO_TCP || packet->proto == OW_PROTO_UDP;
	if (ports && packet->l4 && packet->l4 + 4 <= packet->len) {
		uint8_t *port = packet->ip + packet->l4 + (source ? 0 : 2), outside[2];
		ow_store_be16(outside, (uint16_t)(ow_load_be16(port) + shift));
		replace(port, outside, 2, check, NULL);
	}
	/* 0 would mean "no checksum". */
	if (check && packet->proto == OW_PROTO_UDP && ow_load_be16(check) == 0)
		ow_store_be16(check, 0xffff);
}

void ow_rewrite_endpoint(const struct ow_rewrite *packet, bool source, const uint8_t address[4], uint16_t shift)
{
	uint8_t *check = l4_checksum(packet);
	replace(packet->ip + (source ? 12 : 16), address, 4, packet->ip + 10, check);
	shift_port(packet, source, shift, check);
}

void ow_rewrite_nat(const struct ow_rewrite *packet, bool source)
{
	uint8_t *ip = packet->ip, *check = l4_checksum(packet);
	if (is_v4(packet)) {
		uint8_t *address = ip + (source ? 12 : 16), outside[4];
		ow_store_be32(outside, 0xc6120000 | (ow_load_be32(address) & 0x1ffff));
		replace(address, outside, 4, ip + 10, check);
	} else {
		static const uint8_t prefix[6] = {0x20, 0x01, 0x0d, 0xb8, 0xff, 0xff};
		replace(ip + (source ? 8 : 24), prefix, sizeof prefix, check, NULL);
	}
	shift_port(packet, source, PORT_SHIFT, check);
}
