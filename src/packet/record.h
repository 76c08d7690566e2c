/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PACKET_RECORD_H
#define OW_PACKET_RECORD_H

#include <stdbool.h>
#include <stdint.h>

/* What reconciliation knows of a packet: who it is, when it passed, where it came from. */
struct ow_record {
	uint64_t id;
	int64_t time_ns;
	uint64_t number;   /* of the frame in its capture, from 1 */
	uint32_t flow;     /* number of its flow on this side */
	uint32_t seq, len; /* the piece of a train that it carries (segments mode); len 0 = a packet of its own */
	uint32_t bytes;    /* length of the IP packet or frame */
	bool untimed;      /* the capture has no time for it (0): time_ns only keeps its place */
};

#endif
