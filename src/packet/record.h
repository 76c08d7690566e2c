/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How a packet relates to its IP datagram, which may be whole at one point and fragmented at the other. */
enum ow_datagram_part {
	OW_PART_NAMED = 1,    /* the id is that of the datagram; seq and len are the byte range */
	OW_PART_FRAGMENT = 2, /* a fragment */
	OW_PART_MAY_CUT = 4,  /* a router may fragment it: IPv4 without DF */
};

/* What reconciliation knows of a packet: identity, time and origin. */
struct ow_record {
	uint64_t id;
	int64_t time_ns;
	uint64_t number;   /* of the frame in its capture, from 1 */
	uint32_t flow;     /* number of its flow on this side */
	uint32_t seq, len; /* byte range in a TCP byte stream or a datagram; len 0 = an ordinary packet */
	uint32_t bytes;    /* length of the IP packet or frame */
	/* Time since the capture showed the same packet before; UINT32_MAX: never, long ago, or not checked. */
	uint32_t lag_ns;
	uint8_t part;      /* bits of enum ow_datagram_part */
	bool untimed;      /* the capture has no time for it (0): time_ns only keeps its position */
	bool again : 1;    /* a copy that the capture made, by the rule of its reader; it was not sent twice */
	bool flying : 1;   /* unmatched: it, or an identical one sent later, may arrive after the other capture's end */
	bool doubtful : 1; /* unmatched: perhaps an identical one is missing in its place */
	uint8_t classes;   /* bit i: it is of class i; or its DSCP */
};
_Static_assert(sizeof(struct ow_record) == 48, "a record of 48 bytes");
