/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/identity.h"
#include "synopsis/copies.h"

#include <stdlib.h>

/*
 * Packets of an attacker who knows the whole program, and the seed that he believes to be in use: he sends only packets
 * whose ids begin with the same bits, so that they collide in every table.
 */
#define FLOOD_BITS  10
#define FLOOD_BYTES 60 /* Ethernet, IPv4, UDP and 18 bytes of payload */

/* The number-th datagram: ports and payload say which. */
static inline void flood_frame(uint64_t number, uint8_t frame[FLOOD_BYTES])
{
	static const uint8_t head[42] = {0x02, 0, 0,  0,  0, 1, 0x02, 0,    0,    0,    0, 2,  0x08, 0,
	                                 0x45, 0, 0,  46, 0, 0, 0,    0,    64,   17,   0, 0,  10,   0,
	                                 0,    1, 10, 0,  0, 2, 0x1b, 0x58, 0x1b, 0x59, 0, 26, 0,    0};
	for (unsigned i = 0; i < FLOOD_BYTES; i++)
		frame[i] = i < sizeof head       ? head[i]
		           : i - sizeof head < 8 ? (uint8_t)(number >> 8 * (i - sizeof head))
		                                 : 7;
}

static inline uint64_t flood_id(const struct ow_identity *identity, uint64_t number)
{
	uint8_t bytes[FLOOD_BYTES];
	struct ow_packet packet;
	struct ow_packet_id id;
	flood_frame(number, bytes);
	struct ow_frame frame = {.data = bytes, .caplen = FLOOD_BYTES, .len = FLOOD_BYTES, .linktype = 1};
	if (ow_packet_decode(&frame, false, &packet) != OW_DECODE_IP ||
	    ow_identity_of_packet(identity, &packet, &id) < 0)
		abort();
	return id.id;
}

static inline struct ow_identity flood_identity(uint64_t seed)
{
	struct ow_identity identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	ow_identity_seed(&identity, seed);
	return identity;
}

/* Numbers of packets that meet under the seed that he knows. */
static inline void flood_choose(const struct ow_identity *known, uint64_t *number, size_t count)
{
	uint64_t next = 0;
	for (size_t i = 0; i < count; i++) {
		while (flood_id(known, next) >> (64 - FLOOD_BITS) != 0)
			next++;
		number[i] = next++;
	}
}

/* Slots that are looked at for all ids that are in the table. */
static inline uint64_t flood_probes(const struct ow_copies *copies)
{
	uint64_t probes = 0, mask = (UINT64_C(1) << copies->bits) - 1;
	for (uint64_t i = 0; i <= mask; i++) {
		if (copies->slot[i])
			probes += 1 + ((i - (copies->slot[i] >> (64 - copies->bits))) & mask);
	}
	return probes;
}
