/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes that the path makes to an IP packet in place. A correct checksum stays correct, a wrong one stays wrong. */

/* ip .. ip+len are the available bytes; l4 = offset of the transport header, 0 = none. */
struct ow_rewrite {
	uint8_t *ip;
	size_t len;
	size_t l4;
	uint8_t proto;
};
void ow_rewrite_hop(const struct ow_rewrite *packet); /* TTL or hop limit minus one */
void ow_rewrite_dscp(const struct ow_rewrite *packet, int dscp);
void ow_rewrite_ce(const struct ow_rewrite *packet); /* congestion experienced */
/* A to B the source, B to A the destination: addresses to 198.18.0.0/15 or 2001:db8:ffff::/48, ports shifted. */
void ow_rewrite_nat(const struct ow_rewrite *packet, bool source);
/* Source or destination of an IPv4 packet: another address, the port (UDP, TCP) raised by shift modulo 2^16. */
void ow_rewrite_endpoint(const struct ow_rewrite *packet, bool source, const uint8_t address[4], uint16_t shift);
