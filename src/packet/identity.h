/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PACKET_IDENTITY_H
#define OW_PACKET_IDENTITY_H

#include "packet/packet.h"
#include <stddef.h>

/*
 * What makes a packet the same packet at both points (design: packet identity). The 64-bit id hashes the IP packet
 * without what routers change: TTL, DSCP and ECN, checksums, DF and IPv4 options, IPv6 flow label, hop-by-hop and
 * routing headers, the options of TCP SYNs (MSS clamping). Level nat also leaves out addresses and ports. Level frame
 * takes the bytes as they are, Ethernet padded to its minimum. identity.c lists every field.
 */

/* What of a TCP header enters the id. Firewalls and proxies strip options, or number connections anew. */
enum ow_tcp_rule {
	OW_TCP_EXACT,       /* all but the checksum (SYN: nor the options) */
	OW_TCP_ANY_OPTIONS, /* no options, and of the lengths that of the payload */
	OW_TCP_ANY_NUMBERS, /* nor sequence and acknowledgement number; not with segments */
};

struct ow_identity {
	enum ow_level level; /* IP, NAT or FRAME (not AUTO) */
	bool inner;          /* the caller decodes with this */
	bool segments;       /* TCP data: the id names the train, sequence and length name the piece (see below) */
	bool any_ip_id;      /* the IPv4 identification stays out, where something on the way rewrites it */
	enum ow_tcp_rule tcp;
	const uint64_t
		*cut; /* a Bloom filter of the datagrams that a point shows in fragments; NULL = none (see below) */
	bool cut_df;  /* they may have been packets with DF, which some routers ignore */
	uint32_t hash_limit; /* bytes from the IP header (or frame start) on that enter the id; UINT32_MAX = all */
	uint8_t secret[192]; /* XXH3 secret, from ow_identity_seed */
	uint64_t key;        /* likewise */
};

/* Fills secret and key from a seed. The same seed gives the same ids. */
void ow_identity_seed(struct ow_identity *identity, uint64_t seed);

/*
 * The identity of a packet. In segments mode a TCP segment with payload gets the id of its train (addresses, ports,
 * acknowledgement number and options: what TSO and GRO keep equal over the segments of a superframe), and
 * bytes seq .. seq+len of it; any other packet has len = 0 and an id of its own. Likewise with `cut`: the packets
 * of a datagram of which at least one point shows fragments get the name of the datagram (addresses, protocol,
 * identification) as id, and bytes seq .. seq+len of it, whether they are fragments or all of it.
 */
struct ow_packet_id {
	uint64_t id;
	uint32_t seq, len;
	bool datagram; /* the id is the name of a datagram */
};

#define OW_IDENTITY_CUT_BITS (UINT64_C(1) << 23) /* of the filter: 1 MB; full at a million datagrams, see match.c */

/* Returns 0, or -ENODATA when the capture holds too little of the packet for this identity (truncated below
 * hash_limit). */
int ow_identity_of_packet(const struct ow_identity *identity, const struct ow_packet *packet,
                          struct ow_packet_id *ret_id);
/* A plain packet: IPv4 without options or fragmentation in (tagged) Ethernet, TCP but no SYN, or UDP but no tunnel. */
struct ow_plain {
	uint64_t id;
	uint64_t addresses; /* source, destination as loaded from the header */
	uint32_t ports;     /* likewise */
	uint32_t ip_len;
	uint32_t captured; /* bytes from the IP header on; less than ip_len when truncated */
	uint8_t proto;
};

/*
 * The same id as decoding and ow_identity_of_packet give, in a third of the instructions, for level ip with
 * IP id and without segments. Nearly all packets are plain; false for all others, which take the long way.
 */
bool ow_identity_of_plain(const struct ow_identity *identity, const struct ow_frame *frame, struct ow_plain *ret_plain);
/* The same for many frames up to the first that is not plain. Returns how many are. ahead: 0, or how far behind a frame
 * lie bytes that will soon be needed. */
size_t ow_identity_of_plains(const struct ow_identity *identity, const struct ow_frame *frame, size_t count,
                             size_t ahead, struct ow_plain *ret_plain);
/*
 * A UDP datagram as superframes hold them: cut into parts, each of which gets UDP and IP headers of its own. The id of
 * a part takes addresses and ports (not at level nat) and payload; no IP id, and of the lengths its own.
 */
struct ow_datagram {
	const uint8_t *payload;
	uint32_t len;
	uint64_t ends; /* who sends it to whom */
};

/* False for what is no UDP datagram in one piece, or not captured to its end. */
bool ow_identity_datagram(const struct ow_identity *identity, const struct ow_packet *packet,
                          struct ow_datagram *ret_datagram);
uint64_t ow_identity_of_part(const struct ow_identity *identity, const struct ow_datagram *datagram, uint32_t from,
                             uint32_t len);
/* The name of the datagram of which this packet is a fragment; false for what is no fragment. */
bool ow_identity_of_fragment(const struct ow_identity *identity, const struct ow_packet *packet, uint64_t *ret_name);
/* Level frame. Return values as for packets. */
int ow_identity_of_frame(const struct ow_identity *identity, const struct ow_frame *frame, struct ow_packet_id *ret_id);

/* Bytes that a packet can give to the id: the captured bytes if truncated, without those that may be added or removed
 * on the way; else UINT32_MAX. For choosing hash_limit. */
uint32_t ow_identity_available(const struct ow_packet *packet, enum ow_tcp_rule tcp);

#endif
