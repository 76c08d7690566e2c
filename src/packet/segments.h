/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/iface.h"
#include "packet/flow.h"

/*
 * Returns the packets on the wire that a live frame stands for, each with its id. That is one packet, or for a
 * superframe of segmentation offload one for each gso_size bytes of its payload, with the headers that the interface
 * generates (lengths, IPv4 identification counting up, TCP sequence number, FIN and PSH only on the last and CWR only
 * on the first). So the ids are those that a capture on the wire gives.
 */
#define OW_SEGMENTS_MAX 1024 /* of one superframe: 64 KB in steps of 64 bytes; with more, the frame is one packet */

struct ow_segments {
	unsigned count;
	bool uncut; /* a superframe that stays one packet, with an id that no packet on the wire has (see segments.c) */
	uint8_t ttl;
	struct ow_flow_key flow; /* of all of them, for scope */
	uint64_t id[OW_SEGMENTS_MAX];
	uint32_t bytes[OW_SEGMENTS_MAX]; /* of the IP packet */
};

/*
 * identity: level ip or nat (not frame), without segments mode. Returns 0; -ENODATA if truncated below hash_limit;
 * -ENOMSG for a frame without IP packet.
 */
int ow_segments_of_frame(const struct ow_identity *identity, const struct ow_iface_frame *frame,
                         struct ow_segments *ret_segments);
