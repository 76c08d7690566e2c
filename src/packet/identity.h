/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/packet.h"
#include <stddef.h>

/*
 * Decides which packets at two points are the same (design: packet identity). The 64-bit id hashes the IP packet
 * without what routers change: TTL, DSCP and ECN, checksums, DF and IPv4 options, IPv6 flow label, hop-by-hop and
 * routing headers, the options of TCP SYNs (MSS clamping). Level nat also omits addresses and ports. Level frame uses
 * all bytes of the frame, with Ethernet padded to its minimum. identity.c lists every field.
 */

/* The part of a TCP header that enters the id. Firewalls and proxies strip options or change sequence numbers. */
enum ow_tcp_rule {
	OW_TCP_EXACT,       /* all but the checksum; in a SYN also not the options */
	OW_TCP_ANY_OPTIONS, /* no options; the length is that of the payload */
	OW_TCP_ANY_NUMBERS, /* also no sequence and acknowledgement number; not with segments */
};

struct ow_identity {
	enum ow_level level; /* IP, NAT or FRAME (not AUTO) */
	bool inner;          /* enter tunnels; the caller passes it to the decoder */
	bool segments;       /* TCP data: the id is that of the byte stream, with a byte range (see below) */
	bool any_ip_id;      /* omit the IPv4 identification, because a device on the path rewrites it */
	enum ow_tcp_rule tcp;
	bool tcp_headers;    /* no payload of TCP, see ow_identity_needs_payload */
	bool pieces;         /* a packet and its first fragment have the same id, see OW_IDENTITY_PIECE */
	const uint64_t *cut; /* Bloom filter of the datagrams that a point saw in fragments; NULL = none (see below) */
	bool cut_df;         /* these may include packets with DF, which some routers ignore */
	bool routed;         /* a router is between the points: see ow_record_reader_facts.not_routed */
	uint32_t hash_limit; /* bytes from the IP header (or frame start) on that enter the id; UINT32_MAX = all */
	uint8_t secret[192]; /* XXH3 secret, from ow_identity_seed */
	uint64_t key;        /* from ow_identity_seed */
};

/*
 * Whether the id of a TCP packet contains its payload. The payload of a byte stream follows from sequence number and
 * length, which are in the id, so with tcp_headers it is left out, and captures need no more than the headers. The
 * payload is needed if the sequence number is not in the id. Fragments always have theirs in the id.
 */
static inline bool ow_identity_needs_payload(const struct ow_identity *identity)
{
	return !identity->tcp_headers || identity->tcp == OW_TCP_ANY_NUMBERS;
}

/*
 * With `pieces`, of an IPv4 packet or fragment with at least this many bytes behind its header, these bytes and their
 * offset in the datagram enter the id, and neither its length nor whether more fragments follow. So it has the same id
 * as the first of the fragments that a router makes of it, if these have so many bytes: on links with an MTU of at least 576.
 * The same holds for a whole IPv6 packet, of which the first fragment of a tunnel packet may have no more.
 */
#define OW_IDENTITY_PIECE 512u

/* Fills secret and key from a seed. The same seed gives the same ids. */
void ow_identity_seed(struct ow_identity *identity, uint64_t seed);

/*
 * The identity of a packet. In segments mode a TCP segment with payload gets the id of its byte stream (addresses,
 * ports, acknowledgement number and options, which TSO and GRO keep equal in all segments of a superframe) and the byte
 * range seq .. seq+len in it. Any other packet has len = 0 and its own id. With `cut`, all packets of a datagram that
 * at least one point saw in fragments get the id of the datagram (addresses, protocol, identification) and the byte
 * range seq .. seq+len in it, whether they are fragments or the whole datagram.
 */
struct ow_packet_id {
	uint64_t id;
	uint32_t seq, len;
	bool datagram; /* the id is that of a datagram */
};

#define OW_IDENTITY_CUT_BITS (UINT64_C(1) << 23) /* of the filter: 1 MB; full at a million datagrams, see match.c */

/*
 * Returns 0, or -ENODATA if the capture has too few bytes of the packet for this identity (truncated below hash_limit).
 */
int ow_identity_of_packet(const struct ow_identity *identity, const struct ow_packet *packet,
                          struct ow_packet_id *ret_id);
/*
 * A plain packet: IPv4 without options or fragmentation in (tagged) Ethernet, TCP without SYN, or UDP without tunnel.
 */
struct ow_plain {
	uint64_t id;
	uint64_t addresses; /* source, destination as loaded from the header */
	uint32_t ports;     /* source, destination as loaded from the header */
	uint32_t ip_len;
	uint32_t captured; /* bytes from the IP header on; less than ip_len when truncated */
	uint8_t proto, ttl;
};

/*
 * Gives the same id as decoding and ow_identity_of_packet, in a third of the instructions, for level ip with IP id and
 * without segments. Nearly all packets are plain. Returns false for all others; the caller must decode them.
 */
bool ow_identity_of_plain(const struct ow_identity *identity, const struct ow_frame *frame, struct ow_plain *ret_plain);
/* The same for many frames, up to the first that is not plain. Returns the number of plain frames. ahead: 0, or the
 * distance in bytes to prefetch behind a frame. */
size_t ow_identity_of_plains(const struct ow_identity *identity, const struct ow_frame *frame, size_t count,
                             size_t ahead, struct ow_plain *ret_plain);
/*
 * A UDP datagram that may be a superframe: it is cut into parts, each with its own UDP and IP headers. The id of a part
 * contains addresses and ports (not at level nat), the payload, and the length of the part; no IP id.
 */
struct ow_datagram {
	const uint8_t *payload;
	uint32_t len;
	uint64_t ends; /* source and destination */
};

/* Returns false unless it is a UDP datagram that is not fragmented and is captured completely. */
bool ow_identity_datagram(const struct ow_identity *identity, const struct ow_packet *packet,
                          struct ow_datagram *ret_datagram);
uint64_t ow_identity_of_part(const struct ow_identity *identity, const struct ow_datagram *datagram, uint32_t from,
                             uint32_t len);
/* The id of the datagram of a fragment; false if the packet is not a fragment. */
bool ow_identity_of_fragment(const struct ow_identity *identity, const struct ow_packet *packet, uint64_t *ret_name);
/* For level frame. Return values as for packets. */
int ow_identity_of_frame(const struct ow_identity *identity, const struct ow_frame *frame, struct ow_packet_id *ret_id);

/* Bytes of the packet that can enter the id: the captured bytes if truncated, without those that may be added or
 * removed on the way; else UINT32_MAX. Used to choose hash_limit. */
uint32_t ow_identity_available(const struct ow_packet *packet, enum ow_tcp_rule tcp);
