/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PACKET_RECORD_H
#define OW_PACKET_RECORD_H

#include <stdbool.h>
#include <stdint.h>

/* How a packet stands to its IP datagram, which may be in one piece at one point and in fragments at the other. */
enum ow_datagram_part {
	OW_PART_NAMED = 1,    /* the id is that of the datagram; seq and len say which bytes of it */
	OW_PART_FRAGMENT = 2, /* a fragment */
	OW_PART_MAY_CUT = 4,  /* a router may cut it: IPv4 without DF */
};

/* What reconciliation knows of a packet: who it is, when it passed, where it came from. */
struct ow_record {
	uint64_t id;
	int64_t time_ns;
	uint64_t number;   /* of the frame in its capture, from 1 */
	uint32_t flow;     /* number of its flow on this side */
	uint32_t seq, len; /* the piece of a train, or of a datagram, that it carries; len 0 = a packet of its own */
	uint32_t bytes;    /* length of the IP packet or frame */
	/* Since its capture showed the same packet before; UINT32_MAX: not, long ago, or not looked at. */
	uint32_t lag_ns;
	uint8_t part; /* bits of enum ow_datagram_part */
	bool untimed; /* the capture has no time for it (0): time_ns only keeps its place */
	bool again;   /* a copy that its capture shows, by the rule of its reader: nothing was sent twice */
};

#endif
