/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/wire.h"

/* Writes the headers of generated IP packets, with correct lengths and checksums. */

#define OW_PROTO_TCP 6
#define OW_PROTO_UDP 17

struct ow_ends {
	uint8_t src[16], dst[16]; /* IPv4 in the first four bytes */
	uint16_t sport, dport;
	bool v6;
};

/*
 * The content of a packet without its addresses and ports. Payload: a marker of 8 bytes if it is that long, then bytes
 * of the pool.
 */
struct ow_content {
	uint16_t ip_id;
	bool dont_fragment;
	bool extensions;   /* IPv6: a hop-by-hop and a destination options header */
	bool ect;          /* ECN-capable transport */
	uint32_t seq, ack; /* TCP */
	uint32_t tsval, tsecr;
	bool push;
	uint64_t marker;
	const uint8_t *pool; /* payload_len bytes, at an even distance from the pool's start */
	uint32_t payload_len;
};

uint32_t ow_build_tcp_headers(bool v6, bool extensions); /* bytes */
uint32_t ow_build_udp_headers(bool v6, bool extensions);
void ow_build_tcp(struct ow_wire *wire, const struct ow_ends *ends, const struct ow_content *content);
void ow_build_udp(struct ow_wire *wire, const struct ow_ends *ends, const struct ow_content *content);

/*
 * A UDP datagram in two fragments. The first has first_payload bytes (8 n) of the datagram's payload. The second has
 * the rest of content's payload, with the marker plus one.
 */
void ow_build_fragments(struct ow_wire *first, struct ow_wire *second, const struct ow_ends *ends,
                        const struct ow_content *content, uint32_t first_payload);

/* Sets the IPv4 header checksum. */
void ow_build_ipv4_checksum(uint8_t *ip);
/* The pseudo-header's part of a transport checksum, for an IP header at ip (no routing header). */
uint64_t ow_build_pseudo_sum(const uint8_t *ip, uint8_t proto, uint32_t l4_len);
