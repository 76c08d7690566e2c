/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/packet.h"
#include <oneway/error.h>
#include <pcap/pcap.h>
#include <stdbool.h>

/*
 * A filter of pcap-filter(7) that accepts the same packets at both points. Two points see one packet in different
 * frames: with or without a VLAN tag, the tag inside the frame or in its metadata, padded or not, on Ethernet or in a
 * tunnel. So the filter examines only the IP packet, wherever in the frame it is; `len` is its length in an untagged
 * Ethernet frame.
 *
 * A filter that mentions the link layer (`vlan 5 and udp`, `ether host ...`, `mpls`) examines the whole frame as it was
 * on the wire, as tcpdump does with a file. It accepts the same packets at both points only if they see the same
 * frames.
 */
struct ow_packet_filter {
	struct bpf_program program;
	uint16_t linktype; /* of the frames, if it examines frames */
	bool frames;       /* it examines frames, not IP packets */
	bool inner;        /* it examines the packet inside of tunnels; set by the caller */
};

/* linktype: LINKTYPE_ of the frames. name: of the interface or file, for messages. */
int ow_packet_filter_compile(const char *name, uint16_t linktype, const char *expression,
                             struct ow_packet_filter *ret_filter, struct ow_error *err);
/*
 * Copies a compiled filter: libpcap needs seconds to compile an expression of thousands of hosts. -ENOTSUP: it examines
 * frames of another link type, and has to be compiled; -ENOMEM.
 */
int ow_packet_filter_copy(const struct ow_packet_filter *filter, uint16_t linktype,
                          struct ow_packet_filter *ret_filter);
/* filter: compiled, or all zeros. */
void ow_packet_filter_done(struct ow_packet_filter *filter);

/* Whether it may examine bytes of TCP packets that ow_filter_cut_tcp() removes. filter: compiled, or all zeros. */
bool ow_packet_filter_needs_payload(const struct ow_packet_filter *filter);

/*
 * Whether it examines what routers change: TTL or hop limit, DSCP and ECN, the checksum of IPv4. Then it may accept a packet at
 * one point only. filter: compiled, or all zeros.
 */
bool ow_packet_filter_sees_changes(const struct ow_packet_filter *filter);

/* Whether it examines the length of packets, which superframes and fragments do not share with the packets of the wire. */
bool ow_packet_filter_sees_length(const struct ow_packet_filter *filter);

/* Why a filter may accept a packet at one of two live points only, as a sentence; NULL if it does not, or is wrong. */
const char *ow_packet_filter_caution(const char *expression);

/* For filters that examine IP packets. */
bool ow_packet_filter_takes_packet(const struct ow_packet_filter *filter, const struct ow_packet *packet);

/* If a frame has another link type than the filter was compiled for, only filters of IP packets can accept it. */
bool ow_packet_filter_takes(const struct ow_packet_filter *filter, const struct ow_frame *frame);
