/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packet identity. What enters the 64-bit id, besides version and protocol:
 *
 *   IPv4   identification, MF, fragment offset, addresses, length. Not: DF (edge routers clear it), TOS, TTL,
 *          checksum, options.
 *   IPv6   addresses, and everything after the last hop-by-hop or routing header: length, fragment header,
 *          destination options, AH. While a routing header has segments left, the destination is the final one in
 *          that header, so that the id is the same before and after each waypoint.
 *   TCP    all but the checksum. SYN: not the options (middleboxes clamp the MSS and strip unknown options),
 *          nor the data offset; the length is that of the payload.
 *   PTP over UDP: not the correction field, which transparent clocks change. Not at level nat.
 *   UDP, UDP-Lite, DCCP, ICMP, ICMPv6, SCTP: all but the checksum. Everything else: all.
 *   any_ip_id: no IPv4 identification, except in fragments, which need it.
 *   tcp: without options, or also without sequence and acknowledgement number (enum ow_tcp_rule), except in fragments.
 *   tcp_headers: no payload of TCP (but its length), except in fragments and with rule OW_TCP_ANY_NUMBERS.
 *   pieces: IPv4 without MF; of long packets the first OW_IDENTITY_PIECE bytes and no length (of TCP with tcp_headers: the
 *          headers). A first fragment is treated like a whole packet.
 *   Level nat: no addresses (but of multicast and what stays on a link), no ports, no ICMP query identifier; of ICMP
 *          errors only what a translator does not change.
 *
 * hash_limit: bytes from this offset on (counted from the IP header) count as zero, while lengths are those of the
 * whole packet. So a truncated and a complete capture of a packet give the same id if both contain the bytes before the
 * limit. Bytes that may be added on the way (IPv4 options, IPv6 hop-by-hop and routing headers) or removed (TCP
 * options, by that rule) do not count toward the limit.
 */
#include "packet/identity.h"
#include "base/bloom.h"
#include "base/hash.h"
#include "base/random.h"
#include "packet/hash_long.h"
#include "packet/decode_cursor.h"
#include <errno.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ETHERNET_MIN 60 /* without FCS; shorter frames are padded by the network card, after the sender's capture */

#define PTP_EVENT   319 /* ports */
#define PTP_GENERAL 320

#define TCP_TO_FLAGS 14u /* bytes of the header */
#define TCP_SYN      0x02
#define TCP_RST      0x04

/* Masks over bytes loaded little-endian: byte i of the header is bits 8i .. 8i+7. */
#define KEEP_NO_PORTS    UINT64_C(0xffffffff00000000)
#define KEEP_PORTS       UINT64_C(0x00000000ffffffff)
#define KEEP_NO_ACK      UINT64_C(0xffffffff00000000) /* for the bytes from 8 on */
#define KEEP_NO_HEADER   UINT64_C(0xffffff0fffffffff) /* the same, without the length of the TCP header */
#define KEEP_NO_SUM_AT_6 UINT64_C(0x0000ffffffffffff)
#define KEEP_NO_SUM_AT_2 UINT64_C(0xffffffff0000ffff)
#define KEEP_NO_ID_AT_4  UINT64_C(0xffff0000ffffffff)

/* Masks for the second word of an IPv4 header: identification, MF and offset without DF; and without identification. */
#define KEEP_NO_DF    UINT32_C(0xffbfffff)
#define KEEP_NO_IP_ID UINT32_C(0xffbf0000)
#define KEEP_NO_MF    UINT32_C(0xffdfffff)

/* The transport part of an id: two words of the header, one word of other fields, and where the hashed rest begins. */
struct transport {
	uint64_t head, head2, facts;
	uint32_t rest;   /* offset from the transport header */
	uint32_t length; /* the length that enters the id */
};

/* The part of a packet that is hashed: the first `limit` bytes from the IP header on. */
struct extent {
	uint32_t limit;
	uint32_t l4;               /* offset of the transport header (or of a later fragment's payload) */
	uint64_t address, between; /* addresses; fragment header, AH and similar headers */
	uint32_t length;           /* bytes on the wire after what may change */
	uint8_t proto;             /* of the first of these bytes */
	uint32_t fragment_at;      /* offset of an IPv6 fragment header, or 0 */
	bool piece;                /* a router may cut it behind the limit, and has perhaps done so */
};

void ow_identity_seed(struct ow_identity *identity, uint64_t seed)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (size_t i = 0; i < sizeof identity->secret; i += 8) {
		uint64_t word = ow_random_u64(&random);
		memcpy(identity->secret + i, &word, sizeof word);
	}
	identity->key = ow_random_u64(&random);
}

static inline uint64_t secret(const struct ow_identity *identity, size_t i)
{
	return ow_load_le64(identity->secret + 8 * i);
}

static inline uint64_t hash_pair(const struct ow_identity *identity, const uint8_t *p, size_t i)
{
	return ow_mum64(ow_load_le64(p) ^ secret(identity, i), ow_load_le64(p + 8) ^ secret(identity, i + 1));
}

static __attribute__((noinline)) uint64_t hash_others(const struct ow_identity *identity, const uint8_t *p,
                                                      uint32_t len)
{
	if (len > OW_HASH_SHORT)
		return ow_hash_long(p, len, identity->secret, sizeof identity->secret);
	return XXH3_64bits_withSecret(p, len, identity->secret, sizeof identity->secret);
}

/*
 * XXH3, except for 16 to 64 bytes, the size of most packets. XXH3 would branch on every length class, and lengths are
 * unpredictable. Instead, four overlapping lanes cover all bytes, each with its own secret as in XXH3; the id mixes
 * them.
 */
static inline uint64_t hash_bytes(const struct ow_identity *identity, const uint8_t *p, uint32_t len)
{
	if (len < 16 || len > 64)
		return hash_others(identity, p, len);
	uint32_t last = len - 16, second = last < 16 ? last : 16, third = last < 16 ? 0 : last - 16;
	return hash_pair(identity, p, 12) + hash_pair(identity, p + second, 14) + hash_pair(identity, p + third, 16) +
	       hash_pair(identity, p + last, 18);
}

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* How many of the `len` bytes at `offset` are before the limit. */
static inline uint32_t within(const struct extent *e, uint32_t offset, uint32_t len)
{
	return e->limit > offset ? min_u32(e->limit - offset, len) : 0;
}

/* How many bytes from the IP header on are hashed, if the packet has `added` bytes that may be added on the way. */
static inline uint32_t limit_of(const struct ow_identity *identity, const struct ow_packet *packet, uint32_t added)
{
	return min_u32(identity->hash_limit, packet->ip_len - added) + added;
}

/* Captured bytes of IPv4 options: the capture may have cut the packet within them. */
static inline uint32_t options_of(const struct ow_packet *packet)
{
	return min_u32((packet->ip[0] & 15u) * 4, (uint32_t)(packet->end - packet->ip)) - 20;
}

/* Captured bytes of TCP options. */
static inline uint32_t tcp_options_of(const struct ow_packet *packet)
{
	const uint8_t *l4 = packet->l4;
	if (packet->proto != 6 || !l4 || packet->fragment || packet->end - l4 < 20)
		return 0;
	uint32_t header = (l4[12] >> 4) * 4u;
	return header < 20 || header > packet->l4_len ? 0 : min_u32(header, (uint32_t)(packet->end - l4)) - 20;
}

/* The bytes of a TCP header of which `there` are captured. A length that cannot be right counts as the least. */
static inline uint32_t tcp_header_of(const uint8_t *l4, size_t there)
{
	uint32_t header = there > 12 ? (l4[12] >> 4) * 4u : 0;
	return header < 20 ? 20 : header;
}

/* Ends the hashed part behind the TCP header, if the payload is not to be in the id. */
static inline void leave_payload_out(const struct ow_identity *identity, const struct ow_packet *packet,
                                     struct extent *e)
{
	if (ow_identity_needs_payload(identity) || packet->proto != 6 || !packet->l4 || (packet->fragment && !e->piece))
		return;
	e->limit = min_u32(e->limit, e->l4 + tcp_header_of(packet->l4, (size_t)(packet->end - packet->l4)));
}

/* Ends the hashed part where a router may cut the packet, or a tunnel around it. IPv6 fragments are never cut. */
static inline void leave_rest_out(const struct ow_identity *identity, const struct ow_packet *packet, struct extent *e)
{
	uint32_t data = packet->version == 4 ? (packet->ip[0] & 15u) * 4 : e->l4;
	if (!identity->pieces || e->fragment_at || packet->ip_len < data + OW_IDENTITY_PIECE)
		return;
	e->piece = true;
	e->limit = min_u32(e->limit, data + OW_IDENTITY_PIECE);
	e->length = 0;
}

/* The TCP options that do not count toward the limit. If the limit is before them, they are not used at all. l4: the
 * offset of the TCP header without bytes that may be added on the way. */
static inline uint32_t options_left_out(const struct ow_identity *identity, const struct ow_packet *packet, uint32_t l4)
{
	return identity->tcp && identity->hash_limit >= l4 + 20 ? tcp_options_of(packet) : 0;
}

/* To multicast, broadcast and link-local addresses: no translator changes these. Hosts of different links send the same. */
static inline bool is_local(const uint8_t *ip, bool v4)
{
	return v4 ? ip[16] >= 224 : ip[24] == 0xff || (ip[24] == 0xfe && (ip[25] & 0xc0) == 0x80);
}

/* The hashed part of a packet without extension headers. */
static inline struct extent extent_plain(const struct ow_identity *identity, const struct ow_packet *packet)
{
	const uint8_t *ip = packet->ip;
	bool v4 = packet->version == 4;
	uint32_t header = v4 ? (ip[0] & 15u) * 4 : 40;
	uint32_t left_out = options_left_out(identity, packet, v4 ? 20 : 40);
	struct extent e = {
		.limit = limit_of(identity, packet, left_out + (v4 ? options_of(packet) : 0)),
		.l4 = header,
		.proto = v4 ? ip[9] : ip[6],
	};
	e.length = packet->ip_len - e.l4;
	if (identity->level == OW_LEVEL_NAT && !is_local(ip, v4))
		return e;
	e.address = v4 ? ow_load_le64(ip + 12) : hash_pair(identity, ip + 8, 6) ^ hash_pair(identity, ip + 24, 8);
	return e;
}

/* The hashed part of a packet with IPv6 extension headers or AH in IPv4. The decoder has checked that the chain is
 * complete. */
static void extent_behind(const struct ow_identity *identity, const struct ow_packet *packet, struct extent *e)
{
	const uint8_t *ip = packet->ip;
	struct ow_extensions ext;
	if (!ow_extensions_walk(ip, packet->end, e->l4, e->proto, &ext))
		return;
	if (packet->version == 6)
		e->limit = limit_of(identity, packet,
		                    ext.stable - 40 + options_left_out(identity, packet, ext.l4 - (ext.stable - 40)));
	e->l4 = ext.l4;
	e->fragment_at = ext.fragment_at;
	e->length = packet->ip_len - ext.stable;
	e->proto = ext.stable_proto;
	if (ext.l4 > ext.stable) /* no header left is the same as none at all */
		e->between = hash_bytes(identity, ip + ext.stable, within(e, ext.stable, ext.l4 - ext.stable));
	if (!ext.routed || identity->level == OW_LEVEL_NAT)
		return;
	e->address = hash_pair(identity, ip + 8, 6);
	if (ext.final && within(e, ext.final, 16) == 16)
		e->address ^= hash_pair(identity, ip + ext.final, 8);
}

/* ICMP errors behind a translator: type, code, MTU or pointer; and id, protocol and sequence number of the quoted
 * packet. */
static void icmp_error(const uint8_t *l4, uint32_t have, unsigned version, struct transport *t)
{
	const uint8_t *quoted = l4 + 8;
	uint32_t header = version == 4 ? 20 : 40;
	t->rest = UINT32_MAX;
	if (have < 8 + header)
		return;
	uint8_t proto = version == 4 ? quoted[9] : quoted[6];
	uint64_t ident = version == 4 ? ow_load_be16(quoted + 4) : 0;
	if (version == 4)
		header = (quoted[0] & 15u) * 4;
	uint32_t word = 0;
	if (header >= 20 && have >= 8 + header + 8)
		word = ow_load_be32(quoted + header + 4);
	if (proto == 17) /* length, not the checksum */
		word &= 0xffff0000u;
	else if (proto == 1 || proto == 58) /* sequence, not the identifier */
		word &= 0x0000ffffu;
	t->head2 = (uint64_t)word << 32 | ident << 8 | proto;
}

static void icmp(const uint8_t *l4, uint32_t have, unsigned version, bool nat, struct transport *t)
{
	uint8_t type = l4[0];
	t->head &= KEEP_NO_SUM_AT_2;
	t->rest = 8;
	if (!nat)
		return;
	bool error = version == 4 ? type == 3 || type == 4 || type == 5 || type == 11 || type == 12 : type < 128;
	bool query = version == 4 ? type == 0 || type == 8 || (type >= 13 && type <= 18) : type == 128 || type == 129;
	if (error)
		icmp_error(l4, have, version, t);
	else if (query)
		t->head &= KEEP_NO_ID_AT_4;
}

static inline struct transport tcp(const uint8_t *l4, const struct ow_packet *packet, uint64_t keep, uint32_t length)
{
	struct transport t = {
		.head = ow_load_le64(l4) & keep,
		.head2 = ow_load_le64(l4 + 8),
		.facts = (uint64_t)l4[18] << 16 | (uint64_t)l4[19] << 24,
		.rest = 20,
		.length = length,
	};
	uint32_t header = (l4[12] >> 4) * 4u;
	if (l4[13] & TCP_SYN && !packet->fragment && header >= 20 && header <= packet->l4_len) {
		t.head2 &= ~(UINT64_C(0xf0) << 32);
		t.rest = header;
		t.length = packet->l4_len - header;
	}
	return t;
}

static __attribute__((noinline)) struct transport other(const uint8_t *l4, uint32_t have,
                                                        const struct ow_packet *packet, bool nat, uint32_t length)
{
	struct transport t = {.head = ow_load_le64(l4), .length = length};
	switch (packet->proto) {
	case 33:  /* DCCP */
	case 136: /* UDP-Lite */
		t.head &= (nat ? KEEP_NO_PORTS : UINT64_MAX) & KEEP_NO_SUM_AT_6;
		t.rest = 8;
		break;
	case 132: /* SCTP */
		t.head &= nat ? KEEP_NO_PORTS : UINT64_MAX;
		t.rest = 12;
		break;
	case 1:
	case 58:
		if ((packet->proto == 1) == (packet->version == 4)) {
			icmp(l4, have, packet->version, nat, &t);
			break;
		}
		/* fall through */
	default:
		t.head = 0;
		break;
	}
	return t;
}

/* The header words of the transport protocol at l4. `have` bytes are used, and at least 20 can be read. */
static inline struct transport transport_of(const uint8_t *l4, uint32_t have, const struct ow_packet *packet, bool nat,
                                            uint32_t length)
{
	uint64_t keep = nat ? KEEP_NO_PORTS : UINT64_MAX;
	if (packet->proto == 6)
		return tcp(l4, packet, keep, length);
	if (packet->proto == 17)
		return (struct transport){
			.head = ow_load_le64(l4) & keep & KEEP_NO_SUM_AT_6, .rest = 8, .length = length};
	return other(l4, have, packet, nat, length);
}

/* The same if fewer than 20 bytes are used: the others count as zero. */
static __attribute__((noinline)) struct transport
transport_of_few(const uint8_t *l4, uint32_t have, const struct ow_packet *packet, bool nat, uint32_t length)
{
	uint8_t copy[20] = {0};
	memcpy(copy, l4, have);
	return transport_of(copy, have, packet, nat, length);
}

/* Whether this is a TCP segment with payload, and enough of its header is captured: all up to the flags. */
static inline bool is_data(const struct ow_packet *packet, const struct extent *e)
{
	const uint8_t *l4 = packet->l4;
	if (packet->proto != 6 || !l4 || packet->fragment || within(e, e->l4, TCP_TO_FLAGS) < TCP_TO_FLAGS ||
	    packet->end - l4 < TCP_TO_FLAGS)
		return false;
	uint32_t header = (l4[12] >> 4) * 4u;
	if (l4[13] & (TCP_SYN | TCP_RST) || header < 20 || header >= packet->l4_len)
		return false;
	uint32_t options = within(e, e->l4 + 20, header - 20);
	return !options || packet->end - l4 >= 20 + options;
}

/* The id of its byte stream, and its byte range. */
static inline struct ow_packet_id stream_of(const struct ow_identity *identity, const struct ow_packet *packet,
                                            const struct extent *e)
{
	const uint8_t *l4 = packet->l4;
	uint32_t header = (l4[12] >> 4) * 4u, options = identity->tcp ? 0 : within(e, e->l4 + 20, header - 20);
	uint64_t ports = identity->level == OW_LEVEL_NAT ? 0 : ow_load_le32(l4);
	uint64_t h =
		ow_mum64(e->address ^ secret(identity, 0), (ow_load_le32(l4 + 8) | ports << 32) ^ secret(identity, 1));
	uint64_t rest = options ? hash_bytes(identity, l4 + 20, options) : 0;
	uint64_t facts = packet->version | (identity->tcp ? 0 : header << 8);
	return (struct ow_packet_id){
		.id = ow_mum64(h ^ secret(identity, 4), (rest + facts) ^ identity->key),
		.seq = ow_load_be32(l4 + 4),
		.len = packet->l4_len - header,
	};
}

/* The id of the packet's datagram, and the byte range of the packet in it. In IPv6 only fragments have an
 * identification. */
static bool datagram_of(const struct ow_identity *identity, const struct ow_packet *packet, const struct extent *e,
                        struct ow_packet_id *ret_id)
{
	const uint8_t *header = packet->version == 4 ? packet->ip : packet->ip + e->fragment_at;
	uint64_t name, at, data;
	if (packet->version == 4) {
		name = (uint64_t)header[9] << 32 | ow_load_be16(header + 4);
		at = (ow_load_be16(header + 6) & 0x1fffu) * 8;
		data = (header[0] & 15u) * 4;
	} else if (e->fragment_at) {
		name = UINT64_C(1) << 40 | (uint64_t)header[0] << 32 | ow_load_be32(header + 4);
		at = ow_load_be16(header + 2) & 0xfff8u;
		data = e->fragment_at + 8;
	} else {
		return false;
	}
	*ret_id = (struct ow_packet_id){
		.id = ow_mum64(e->address ^ secret(identity, 7), name ^ identity->key),
		.seq = (uint32_t)at,
		.len = packet->ip_len - (uint32_t)data,
		.datagram = true,
	};
	return true;
}

/* Routers hardly ever fragment a packet with DF. Without identification the datagram has no id. */
static inline bool may_be_cut(const struct ow_identity *identity, const struct ow_packet *packet)
{
	return packet->fragment || packet->version != 4 || !(packet->ip[6] & 0x40) ||
	       (identity->cut_df && ow_load_be16(packet->ip + 4));
}

/* Whether the packet belongs to a datagram that at least one point saw in fragments. */
static inline bool is_cut(const struct ow_identity *identity, const struct ow_packet *packet, const struct extent *e,
                          struct ow_packet_id *ret_id)
{
	return identity->cut && may_be_cut(identity, packet) && datagram_of(identity, packet, e, ret_id) &&
	       ow_bloom_has(identity->cut, OW_IDENTITY_CUT_BITS, ret_id->id);
}

/* Computes the id from its parts: the words of the transport header and the bytes after them. `have` bytes from the
 * transport header on are used. keep: mask for the second word of an IPv4 header. */
static inline uint64_t id_from(const struct ow_identity *identity, const struct ow_packet *packet,
                               const struct extent *e, const struct transport *t, uint32_t have, uint32_t keep)
{
	const uint8_t *ip = packet->ip, *l4 = ip + e->l4;
	uint64_t rest = have > t->rest ? hash_bytes(identity, l4 + t->rest, have - t->rest) : 0;
	uint64_t where = t->length, facts = t->facts | (uint64_t)e->proto << 8 | packet->version;
	if (packet->version == 4)
		where |= (uint64_t)(ow_load_le32(ip + 4) & keep) << 32;
	uint64_t h = ow_mum64(e->address ^ e->between ^ secret(identity, 0), where ^ secret(identity, 1));
	h ^= ow_mum64(t->head ^ secret(identity, 2), t->head2 ^ secret(identity, 3));
	return ow_mum64(h ^ identity->key, (rest + facts) ^ secret(identity, 5));
}

/* Removes the fields that a firewall may change when it rewrites TCP. */
static void loosen_tcp(const uint8_t *l4, const struct ow_packet *packet, enum ow_tcp_rule rule, struct transport *t)
{
	uint32_t header = (l4[12] >> 4) * 4u;
	if (header < 20 || header > packet->l4_len)
		return;
	t->head2 &= KEEP_NO_HEADER;
	t->rest = header;
	t->length = packet->l4_len - header;
	if (rule == OW_TCP_ANY_NUMBERS) {
		t->head &= KEEP_PORTS;
		t->head2 &= KEEP_NO_ACK;
	}
}

static inline bool is_ptp(const uint8_t *l4)
{
	uint16_t port = ow_load_be16(l4 + 2);
	return port == PTP_EVENT || port == PTP_GENERAL;
}

/* Uses the words before the correction field and the bytes after it. */
static void loosen_ptp(const uint8_t *l4, struct transport *t)
{
	t->head2 = ow_load_le64(l4 + 8);
	t->rest = 8 + 16;
}

static inline uint64_t id_of(const struct ow_identity *identity, const struct ow_packet *packet, const struct extent *e)
{
	bool nat = identity->level == OW_LEVEL_NAT;
	const uint8_t *l4 = packet->ip + e->l4;
	uint32_t have = e->limit > e->l4 ? e->limit - e->l4 : 0;
	struct transport t = {.length = e->length}; /* later fragments: payload only */
	if (packet->l4 && have >= 20)
		t = transport_of(l4, have, packet, nat, e->length);
	else if (packet->l4 && have > 0)
		t = transport_of_few(l4, have, packet, nat, e->length);
	if (identity->tcp && packet->proto == 6 && packet->l4 && !packet->fragment && have > 12)
		loosen_tcp(l4, packet, identity->tcp, &t);
	if (packet->proto == 17 && packet->l4 && !nat && have >= 20 && is_ptp(l4))
		loosen_ptp(l4, &t);
	bool first = packet->l4 && identity->pieces;
	uint32_t keep = identity->any_ip_id && (!packet->fragment || first) ? KEEP_NO_IP_ID : KEEP_NO_DF;
	return id_from(identity, packet, e, &t, have, identity->pieces ? keep & KEEP_NO_MF : keep);
}

static inline int identify(const struct ow_identity *identity, const struct ow_packet *packet, struct extent *e,
                           struct ow_packet_id *ret_id)
{
	if (is_cut(identity, packet, e, ret_id))
		return 0;
	if (identity->segments && is_data(packet, e)) {
		*ret_id = stream_of(identity, packet, e);
		return 0;
	}
	leave_rest_out(identity, packet, e);
	leave_payload_out(identity, packet, e);
	if ((size_t)(packet->end - packet->ip) < e->limit)
		return -ENODATA;
	*ret_id = (struct ow_packet_id){.id = id_of(identity, packet, e)};
	return 0;
}

static __attribute__((noinline)) int identify_behind(const struct ow_identity *identity, const struct ow_packet *packet,
                                                     struct ow_packet_id *ret_id)
{
	struct extent e = extent_plain(identity, packet);
	extent_behind(identity, packet, &e);
	return identify(identity, packet, &e, ret_id);
}

static inline bool has_extensions(const struct ow_packet *packet)
{
	const uint8_t *ip = packet->ip;
	if (packet->version == 6)
		return ow_is_extension(6, ip[6]);
	return ip[9] == 51 && !(ow_load_be16(ip + 6) & 0x1fff); /* a later fragment of AH has no AH */
}

int ow_identity_of_packet(const struct ow_identity *identity, const struct ow_packet *packet,
                          struct ow_packet_id *ret_id)
{
	if (has_extensions(packet))
		return identify_behind(identity, packet, ret_id);
	struct extent e = extent_plain(identity, packet);
	return identify(identity, packet, &e, ret_id);
}

bool ow_identity_of_fragment(const struct ow_identity *identity, const struct ow_packet *packet, uint64_t *ret_name)
{
	struct ow_packet_id id;
	struct extent e = extent_plain(identity, packet);
	if (has_extensions(packet))
		extent_behind(identity, packet, &e);
	if (!packet->fragment || !datagram_of(identity, packet, &e, &id))
		return false;
	*ret_name = id.id;
	return true;
}

bool ow_identity_datagram(const struct ow_identity *identity, const struct ow_packet *packet,
                          struct ow_datagram *ret_datagram)
{
	const uint8_t *l4 = packet->l4;
	if (packet->proto != 17 || !l4 || packet->fragment || packet->l4_len < 8 ||
	    (size_t)(packet->end - l4) < packet->l4_len)
		return false;
	struct extent e = extent_plain(identity, packet);
	if (has_extensions(packet))
		extent_behind(identity, packet, &e);
	uint64_t ports = identity->level == OW_LEVEL_NAT ? 0 : ow_load_le32(l4);
	uint64_t facts = (uint64_t)packet->version << 32 | ports;
	*ret_datagram = (struct ow_datagram){
		.payload = l4 + 8,
		.len = packet->l4_len - 8,
		.ends = ow_mum64(e.address ^ secret(identity, 0), facts ^ secret(identity, 1)),
	};
	return true;
}

uint64_t ow_identity_of_part(const struct ow_identity *identity, const struct ow_datagram *datagram, uint32_t from,
                             uint32_t len)
{
	uint64_t rest = len ? hash_bytes(identity, datagram->payload + from, len) : 0;
	return ow_mum64(datagram->ends ^ identity->key, (rest + len) ^ secret(identity, 5));
}

#define ETHERNET_HEADER 14u
#define VLAN_TAG        4u
#define IPV4_HEADER     20u

/* Where the IP header of a frame starts if it is IPv4 in Ethernet with at most one tag, else 0. */
static inline uint32_t plain_offset(const struct ow_frame *frame)
{
	const uint8_t *p = frame->data;
	if (frame->linktype != OW_LINKTYPE_ETHERNET || frame->caplen < ETHERNET_HEADER + VLAN_TAG + IPV4_HEADER)
		return 0;
	if (p[12] == 0x08 && p[13] == 0x00)
		return ETHERNET_HEADER;
	return p[12] == 0x81 && p[13] == 0x00 && p[16] == 0x08 && p[17] == 0x00 ? ETHERNET_HEADER + VLAN_TAG : 0;
}

/*
 * Whether this UDP header may be of a tunnel or of PTP. Tests the low bytes of the ports; false for nearly all packets.
 */
static inline bool is_special(const uint8_t *l4)
{
	static const uint64_t low_bytes[4] = {
		UINT64_C(1) << 0x18 | UINT64_C(1) << 0x3f,
		UINT64_C(1) << (0x40 - 64) | UINT64_C(1) << (0x68 - 64),
		UINT64_C(1) << (0xa5 - 128) | UINT64_C(1) << (0xb5 - 128) | UINT64_C(1) << (0xb6 - 128),
		UINT64_C(1) << (0xc1 - 192) | UINT64_C(1) << (0xd8 - 192) | UINT64_C(1) << (0xeb - 192),
	};
	uint64_t hit = low_bytes[l4[3] >> 6] >> (l4[3] & 63) | low_bytes[l4[1] >> 6] >> (l4[1] & 63);
	return hit & 1 && (ow_decode_cursor_tunnel_port(l4) || is_ptp(l4));
}

static inline bool identify_plain(const struct ow_identity *identity, const struct ow_frame *frame,
                                  struct ow_plain *ret_plain)
{
	uint32_t offset = plain_offset(frame);
	const uint8_t *ip = frame->data + offset, *l4 = ip + IPV4_HEADER;
	if (!offset || ip[0] != 0x45 || (ow_load_be16(ip + 6) & 0x3fff))
		return false;
	bool tcp = ip[9] == 6;
	uint32_t total = ow_load_be16(ip + 2), header = IPV4_HEADER + (tcp ? 20 : 8), captured = frame->caplen - offset;
	uint32_t limit = min_u32(identity->hash_limit, total);
	if (tcp && identity->tcp_headers && captured >= header)
		limit = min_u32(limit, IPV4_HEADER + tcp_header_of(l4, captured - IPV4_HEADER));
	struct extent e = {
		.limit = limit,
		.l4 = IPV4_HEADER,
		.address = ow_load_le64(ip + 12),
		.length = total - IPV4_HEADER,
		.proto = tcp ? 6 : 17,
	};
	if (identity->pieces && total >= IPV4_HEADER + OW_IDENTITY_PIECE) {
		e.limit = min_u32(limit, IPV4_HEADER + OW_IDENTITY_PIECE);
		e.length = 0;
	}
	if (e.limit < header || captured < e.limit || total > frame->len - offset)
		return false;
	if (tcp ? l4[13] & TCP_SYN : ip[9] != 17 || is_special(l4))
		return false;
	struct ow_packet packet = {.ip = ip, .l4 = l4, .version = 4, .proto = e.proto};
	uint32_t have = e.limit - IPV4_HEADER;
	struct transport t = transport_of(l4, have, &packet, false, e.length);
	*ret_plain = (struct ow_plain){
		.id = id_from(identity, &packet, &e, &t, have, KEEP_NO_DF),
		.addresses = e.address,
		.ports = ow_load_le32(l4),
		.ip_len = total,
		.captured = min_u32(captured, total),
		.proto = e.proto,
		.ttl = ip[8],
	};
	return true;
}

bool ow_identity_of_plain(const struct ow_identity *identity, const struct ow_frame *frame, struct ow_plain *ret_plain)
{
	return identify_plain(identity, frame, ret_plain);
}

size_t ow_identity_of_plains(const struct ow_identity *identity, const struct ow_frame *frame, size_t count,
                             size_t ahead, struct ow_plain *ret_plain)
{
	size_t n = 0;
	for (; n < count && identify_plain(identity, &frame[n], &ret_plain[n]); n++) {
		if (ahead)
			ow_frame_load_ahead(&frame[n], ahead);
	}
	return n;
}

int ow_identity_of_frame(const struct ow_identity *identity, const struct ow_frame *frame, struct ow_packet_id *ret_id)
{
	uint32_t len = frame->len, limit = min_u32(len, identity->hash_limit);
	const uint8_t *data = frame->data;
	uint8_t padded[ETHERNET_MIN] = {0};
	if (frame->caplen < limit)
		return -ENODATA;
	if (frame->linktype == OW_LINKTYPE_ETHERNET && len < ETHERNET_MIN) {
		if (limit > 0)
			memcpy(padded, data, limit);
		data = padded;
		len = ETHERNET_MIN;
		limit = min_u32(len, identity->hash_limit);
	}
	uint64_t rest = limit ? hash_bytes(identity, data, limit) : 0;
	*ret_id = (struct ow_packet_id){.id = ow_mum64(rest ^ identity->key, len ^ secret(identity, 1))};
	return 0;
}

uint32_t ow_identity_available(const struct ow_packet *packet, enum ow_tcp_rule tcp)
{
	const uint8_t *ip = packet->ip;
	struct ow_extensions ext;
	uint32_t captured = (uint32_t)(packet->end - ip), added = packet->version == 4 ? options_of(packet) : 0;
	if (!packet->truncated)
		return UINT32_MAX;
	if (packet->version == 6 && has_extensions(packet) && ow_extensions_walk(ip, packet->end, 40, ip[6], &ext))
		added = ext.stable - 40;
	return captured - added - (tcp ? tcp_options_of(packet) : 0);
}
