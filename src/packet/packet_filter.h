/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PACKET_PACKET_FILTER_H
#define OW_PACKET_PACKET_FILTER_H

#include "capture/frame.h"
#include <oneway/error.h>
#include <pcap/pcap.h>
#include <stdbool.h>

/*
 * A filter of pcap-filter(7) that takes the same packets at both points. Two points see one packet in different frames:
 * with a VLAN tag or without, the tag inside the frame or beside it, padded or not, on Ethernet or on a tunnel. So the
 * filter looks at the IP packet alone, wherever in the frame it is; `len` is its length in an untagged Ethernet frame.
 *
 * A filter that names the link layer (`vlan 5 and udp`, `ether host ...`, `mpls`) looks at the whole frame as it was on
 * the wire, as tcpdump does with a file. It takes the same packets at both points only if they see the same frames.
 */
struct ow_packet_filter {
	struct bpf_program program;
	uint16_t linktype; /* of the frames, if it looks at frames */
	bool frames;       /* it looks at frames, not at IP packets */
};

/* linktype: LINKTYPE_ of the frames to come. name: of the interface or file, for messages. */
int ow_packet_filter_compile(const char *name, uint16_t linktype, const char *expression,
                             struct ow_packet_filter *ret_filter, struct ow_error *err);
/* Of one that was compiled, or that is all zeros. */
void ow_packet_filter_done(struct ow_packet_filter *filter);

/* Frames of another link type than the one that it was compiled for are taken by filters of IP packets only. */
bool ow_packet_filter_takes(const struct ow_packet_filter *filter, const struct ow_frame *frame);

#endif
