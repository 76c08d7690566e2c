/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PACKET_SEGMENTS_H
#define OW_PACKET_SEGMENTS_H

#include "capture/iface/iface.h"
#include "packet/identity.h"

/*
 * The packets of the wire that a frame of a live capture stands for, each with its id: one, or, for a superframe of
 * segmentation offload, one for each gso_size bytes of its payload, with the headers that the interface gives them
 * (lengths, IPv4 identification counted on, TCP sequence number, FIN and PSH on the last and CWR on the first only). So
 * the ids are those that a capture of the wire gives.
 */
#define OW_SEGMENTS_MAX 1024 /* of one superframe: 64 KB in steps of 64 bytes; beyond, the frame is one packet */

struct ow_segments {
	unsigned count;
	bool uncut; /* a superframe that stays one packet, with an id that no packet of the wire has (see segments.c) */
	uint64_t id[OW_SEGMENTS_MAX];
	uint32_t bytes[OW_SEGMENTS_MAX]; /* of the IP packet */
};

/*
 * identity: level ip or nat (not frame), without segments mode. 0; -ENODATA for truncated below hash_limit; -ENOMSG for
 * a frame without IP packet.
 */
int ow_segments_of_frame(const struct ow_identity *identity, const struct ow_iface_frame *frame,
                         struct ow_segments *ret_segments);

#endif
