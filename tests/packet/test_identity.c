/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bloom.h"
#include "base/random.h"
#include "build.h"
#include "packet/identity.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED 11

static struct ow_identity identity_at(enum ow_level level, bool segments, uint32_t limit)
{
	struct ow_identity identity = {.level = level, .segments = segments, .hash_limit = limit};
	ow_identity_seed(&identity, SEED);
	return identity;
}

/* The id of a frame of which caplen bytes are captured; -EBADMSG when it holds no IP packet. */
static int id_of(const struct ow_identity *identity, const struct build *b, uint16_t linktype, uint32_t caplen,
                 struct ow_packet_id *ret)
{
	uint8_t *copy = malloc(caplen ? caplen : 1);
	assert_non_null(copy);
	memcpy(copy, b->data, caplen);
	struct ow_frame frame = {.data = copy, .caplen = caplen, .len = b->len, .linktype = linktype};
	struct ow_packet packet;
	*ret = (struct ow_packet_id){0};
	int r = -EBADMSG;
	if (ow_packet_decode(&frame, identity->inner, &packet) == OW_DECODE_IP)
		r = ow_identity_of_packet(identity, &packet, ret);
	free(copy);
	return r;
}

static uint64_t id_at(enum ow_level level, const struct build *b)
{
	struct ow_identity identity = identity_at(level, false, UINT32_MAX);
	struct ow_packet_id id;
	assert_int_equal(id_of(&identity, b, 1, b->len, &id), 0);
	assert_true(id.seq == 0 && id.len == 0);
	return id.id;
}

static uint64_t ip_id(const struct build *b)
{
	return id_at(OW_LEVEL_IP, b);
}

#define IP 14 /* offset of the IP header in all frames here */

/* Kinds of packet for the properties that hold for all. Each fills a frame and names the transport header's offset. */
static uint32_t make_tcp4(struct build *b)
{
	ethernet(b, 0x0800);
	uint32_t ip = ipv4(b, 6), l4 = tcp(b, 0x18, 0x11223344);
	payload(b, 13);
	finish_ip(b, ip);
	return l4;
}

static uint32_t make_tcp6(struct build *b)
{
	ethernet(b, 0x86dd);
	uint32_t ip = ipv6(b, 6), l4 = tcp(b, 0x18, 0x11223344);
	payload(b, 13);
	finish_ip(b, ip);
	return l4;
}

/* A SYN with MSS and window scale. */
static uint32_t make_syn(struct build *b)
{
	ethernet(b, 0x0800);
	uint32_t ip = ipv4(b, 6), l4 = tcp(b, 0x02, 0x11223344);
	b->data[l4 + 12] = 0x70;
	PUT(b, 2, 4, 0x05, 0xb4, 1, 3, 3, 7);
	finish_ip(b, ip);
	return l4;
}

static uint32_t make_udp4(struct build *b)
{
	ethernet(b, 0x0800);
	plain_udp(b, 4);
	return IP + 20;
}

static uint32_t make_echo(struct build *b)
{
	ethernet(b, 0x0800);
	uint32_t ip = ipv4(b, 1), l4 = b->len;
	PUT(b, 8, 0, 0xbe, 0xef, 0x12, 0x34, 0, 9);
	payload(b, 9);
	finish_ip(b, ip);
	return l4;
}

static uint32_t make_echo6(struct build *b)
{
	ethernet(b, 0x86dd);
	uint32_t ip = ipv6(b, 58), l4 = b->len;
	PUT(b, 128, 0, 0xbe, 0xef, 0x12, 0x34, 0, 9);
	payload(b, 9);
	finish_ip(b, ip);
	return l4;
}

static uint32_t make_sctp(struct build *b)
{
	ethernet(b, 0x0800);
	uint32_t ip = ipv4(b, 132), l4 = b->len;
	PUT(b, 0, 1, 0, 2, 1, 2, 3, 4, 0xbe, 0xef, 0xbe, 0xef, 0, 3, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
	finish_ip(b, ip);
	return l4;
}

static uint32_t make_esp(struct build *b)
{
	ethernet(b, 0x0800);
	uint32_t ip = ipv4(b, 50), l4 = b->len;
	payload(b, 33);
	finish_ip(b, ip);
	return l4;
}

/* A later fragment of UDP, whose bytes are all payload. */
static uint32_t make_fragment(struct build *b)
{
	ethernet(b, 0x0800);
	plain_udp(b, 4);
	ow_store_be16(b->data + IP + 6, 0x2010);
	return IP + 20;
}

/* PTP Sync; the correction field is at 8 of it. */
static uint32_t make_ptp(struct build *b)
{
	ethernet(b, 0x0800);
	uint32_t ip = ipv4(b, 17), l4 = udp(b, 319, 319);
	PUT(b, 0, 2, 0, 44, 0, 0, 2, 0, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 0, 0, 0);
	payload(b, 24);
	finish_ip(b, ip);
	return l4;
}

static uint32_t make_ah(struct build *b)
{
	ethernet(b, 0x0800);
	uint32_t ip = ipv4(b, 51);
	PUT(b, 17, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2);
	uint32_t l4 = udp(b, 9, 10);
	payload(b, 7);
	finish_ip(b, ip);
	return l4;
}

/* Hop-by-hop and destination options in front of UDP. */
static uint32_t make_ext6(struct build *b)
{
	ethernet(b, 0x86dd);
	uint32_t ip = ipv6(b, 0);
	PUT(b, 60, 0, 5, 2, 0, 0, 1, 0);
	PUT(b, 17, 0, 1, 4, 1, 2, 3, 4);
	uint32_t l4 = udp(b, 9, 10);
	payload(b, 7);
	finish_ip(b, ip);
	return l4;
}

/* Fragmentation needed, quoting TCP. What level nat takes of it has a test of its own. */
static uint32_t make_error(struct build *b)
{
	ethernet(b, 0x0800);
	uint32_t ip = ipv4(b, 1), l4 = b->len;
	PUT(b, 3, 4, 0xbe, 0xef, 0, 0, 5, 0xdc);
	uint32_t quoted = ipv4(b, 6);
	PUT(b, 1, 2, 3, 4, 5, 6, 7, 8);
	finish_ip(b, quoted);
	finish_ip(b, ip);
	return l4;
}

struct kind {
	const char *name;
	uint32_t (*make)(struct build *b);
	uint32_t sum, sum_bytes;   /* checksum: offset from the transport header */
	uint32_t free, free_bytes; /* other bytes that do not count */
	uint32_t nat, nat_bytes;   /* what level nat leaves out besides, at the transport header */
};

static const struct kind kinds[] = {
	{"tcp4", make_tcp4, 16, 2, 0, 0, 0, 4},
	{"tcp6", make_tcp6, 16, 2, 0, 0, 0, 4},
	{"syn", make_syn, 16, 2, 20, 8, 0, 4},
	{"udp4", make_udp4, 6, 2, 0, 0, 0, 4},
	{"echo", make_echo, 2, 2, 0, 0, 4, 2},
	{"echo6", make_echo6, 2, 2, 0, 0, 4, 2},
	{"sctp", make_sctp, 8, 4, 0, 0, 0, 4},
	{"esp", make_esp, 0, 0, 0, 0, 0, 0},
	{"fragment", make_fragment, 0, 0, 0, 0, 0, 0},
	{"ptp", make_ptp, 6, 2, 16, 8, 0, UINT32_MAX},
	{"ah", make_ah, 6, 2, 0, 0, 0, 4},
	{"ext6", make_ext6, 6, 2, -(uint32_t)14, 6, 0, 4}, /* the option of the hop-by-hop header */
	{"error", make_error, 2, 2, 0, 0, 0, UINT32_MAX},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static bool in(uint32_t at, uint32_t from, uint32_t bytes)
{
	return at >= from && at < from + bytes;
}

/* Whether a bit of the frame may change without changing the id. */
static bool is_free(const struct kind *kind, uint32_t l4, unsigned version, bool nat, uint32_t at, unsigned bit)
{
	if (at < 12) /* MAC addresses */
		return true;
	if (version == 4) {
		if (at == IP + 1 || at == IP + 8 || in(at, IP + 10, 2)) /* TOS, TTL, checksum */
			return true;
		if (at == IP + 6 && bit == 6) /* DF */
			return true;
		if (nat && in(at, IP + 12, 8))
			return true;
	} else {
		if ((at == IP && bit < 4) || in(at, IP + 1, 3) || at == IP + 7) /* class, flow label, hop limit */
			return true;
		if (nat && in(at, IP + 8, 32))
			return true;
	}
	return in(at, l4 + kind->sum, kind->sum_bytes) || in(at, l4 + kind->free, kind->free_bytes) ||
	       (nat && in(at, l4 + kind->nat, kind->nat_bytes));
}

/* Every single bit of the frame: those on the list leave the id alone, all others change it (or the packet is bad). */
static void exactly_the_free_bits_are_free(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS * 2; k++) {
		const struct kind *kind = &kinds[k / 2];
		bool nat = k & 1;
		if (nat && kind->nat_bytes == UINT32_MAX)
			continue;
		struct ow_identity identity = identity_at(nat ? OW_LEVEL_NAT : OW_LEVEL_IP, false, UINT32_MAX);
		struct build b = {0};
		uint32_t l4 = kind->make(&b);
		unsigned version = b.data[IP] >> 4;
		uint64_t id = id_at(identity.level, &b);
		for (uint32_t i = 0; i < b.len * 8; i++) {
			struct ow_packet_id flipped;
			b.data[i / 8] ^= (uint8_t)(1u << i % 8);
			int r = id_of(&identity, &b, 1, b.len, &flipped);
			b.data[i / 8] ^= (uint8_t)(1u << i % 8);
			bool same = r == 0 && flipped.id == id;
			if (same != is_free(kind, l4, version, nat, i / 8, i % 8))
				fail_msg("%s, nat %d: byte %u bit %u", kind->name, nat, i / 8, i % 8);
		}
	}
}

/* Without the IPv4 identification: its bits are free, but in fragments. */
static void identification_does_not_matter(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS * 2; k++) {
		struct ow_identity identity = identity_at(k & 1 ? OW_LEVEL_NAT : OW_LEVEL_IP, false, UINT32_MAX);
		struct ow_packet_id id, other;
		struct build b = {0};
		identity.any_ip_id = true;
		kinds[k / 2].make(&b);
		if (b.data[IP] >> 4 != 4)
			continue;
		assert_int_equal(id_of(&identity, &b, 1, b.len, &id), 0);
		ow_store_be16(b.data + IP + 4, (uint16_t)~ow_load_be16(b.data + IP + 4));
		assert_int_equal(id_of(&identity, &b, 1, b.len, &other), 0);
		bool fragment = ow_load_be16(b.data + IP + 6) & 0x3fff;
		assert_int_equal(id.id == other.id, !fragment);
	}
}

/* Without TCP's numbers and options: these are free, ports, flags, window and payload are not. */
static void tcp_numbers_do_not_matter(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS * 2; k++) {
		struct ow_identity identity = identity_at(k & 1 ? OW_LEVEL_NAT : OW_LEVEL_IP, false, UINT32_MAX);
		struct ow_packet_id id, other;
		struct build b = {0};
		identity.tcp = OW_TCP_ANY_NUMBERS;
		kinds[k / 2].make(&b);
		bool v4 = b.data[IP] >> 4 == 4;
		uint32_t l4 = IP + (v4 ? (b.data[IP] & 15u) * 4 : 40);
		bool fragment = v4 && ow_load_be16(b.data + IP + 6) & 0x3fff;
		if (b.data[IP + (v4 ? 9 : 6)] != 6 || fragment || b.len < l4 + 20)
			continue;
		uint32_t header = (b.data[l4 + 12] >> 4) * 4u;
		assert_int_equal(id_of(&identity, &b, 1, b.len, &id), 0);
		for (uint32_t i = l4; i < b.len; i++) {
			if (i == l4 + 12) /* the header's length */
				continue;
			b.data[i] ^= 1;
			assert_int_equal(id_of(&identity, &b, 1, b.len, &other), 0);
			b.data[i] ^= 1;
			bool ports = i < l4 + 4, numbers = i >= l4 + 4 && i < l4 + 12,
			     sum = i >= l4 + 16 && i < l4 + 18;
			bool options = i >= l4 + 20 && i < l4 + header;
			assert_int_equal(id.id == other.id, numbers || sum || options || (ports && k & 1));
		}
	}
}

/* The fragments of a datagram, and all of it, are named by it, whatever they hold, once it is known to be cut. */
static void pieces_of_a_datagram(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		struct ow_identity identity = identity_at(OW_LEVEL_IP, false, UINT32_MAX);
		static uint64_t cut[OW_IDENTITY_CUT_BITS / 64];
		struct ow_packet_id whole, part;
		struct ow_packet packet;
		struct build b = {0};
		uint64_t name;
		memset(cut, 0, sizeof cut);
		kinds[k].make(&b);
		uint8_t *ip = b.data + IP;
		if (ip[0] != 0x45 || ow_load_be16(ip + 6) & 0x3fff)
			continue;
		uint32_t len = ow_load_be16(ip + 2);
		struct ow_frame frame = {.data = b.data, .caplen = b.len, .len = b.len, .linktype = 1};
		assert_int_equal(ow_packet_decode(&frame, false, &packet), OW_DECODE_IP);
		assert_false(ow_identity_of_fragment(&identity, &packet, &name));
		identity.cut = cut;
		assert_int_equal(id_of(&identity, &b, 1, b.len, &whole), 0);
		assert_true(whole.len == 0 && !whole.datagram); /* nobody cut it */
		ow_store_be16(ip + 6, 3);
		assert_int_equal(ow_packet_decode(&frame, false, &packet), OW_DECODE_IP);
		assert_true(ow_identity_of_fragment(&identity, &packet, &name));
		ow_bloom_add(cut, OW_IDENTITY_CUT_BITS, name);
		b.data[b.len - 1] ^= 1;
		assert_int_equal(id_of(&identity, &b, 1, b.len, &part), 0);
		assert_true(part.datagram && part.id == name && part.seq == 24 && part.len == len - 20);
		for (unsigned df = 0; df < 3; df++) { /* some routers ignore it */
			ow_store_be16(ip + 6, df ? 0x4000 : 0);
			identity.cut_df = df == 2;
			assert_int_equal(id_of(&identity, &b, 1, b.len, &whole), 0);
			assert_true((whole.id == name) == (df != 1));
			assert_true(whole.seq == 0 && whole.len == (df == 1 ? 0 : len - 20));
		}
		ow_store_be16(ip + 6, 0);
		ow_store_be16(ip + 4, (uint16_t)(ow_load_be16(ip + 4) + 1));
		assert_int_equal(id_of(&identity, &b, 1, b.len, &part), 0);
		assert_true(part.id != name && part.len == 0);
	}
}

/* IPv6: what a host sends in fragments may be cut otherwise behind a firewall that put it together. */
static void pieces_of_a_datagram_v6(void **state)
{
	(void)state;
	struct ow_identity identity = identity_at(OW_LEVEL_IP, false, UINT32_MAX);
	static uint64_t cut[OW_IDENTITY_CUT_BITS / 64];
	uint8_t bytes[40 + 8 + 64] = {0x60, [6] = 44, [7] = 64, [8] = 0x20, [24] = 0x20, [40] = 17};
	struct ow_frame frame = {.data = bytes, .caplen = sizeof bytes, .len = sizeof bytes, .linktype = 101};
	struct ow_packet packet;
	struct ow_packet_id id;
	uint64_t name, other;
	ow_store_be16(bytes + 4, sizeof bytes - 40);
	ow_store_be16(bytes + 42, 1232 | 1);
	bytes[47] = 7;
	assert_int_equal(ow_packet_decode(&frame, false, &packet), OW_DECODE_IP);
	assert_true(ow_identity_of_fragment(&identity, &packet, &name));
	ow_bloom_add(cut, OW_IDENTITY_CUT_BITS, name);
	identity.cut = cut;
	assert_int_equal(ow_identity_of_packet(&identity, &packet, &id), 0);
	assert_true(id.datagram && id.id == name && id.seq == 1232 && id.len == 64);
	bytes[47] = 8;
	assert_true(ow_identity_of_fragment(&identity, &packet, &other));
	assert_true(other != name);
}

/* The fragment that a router makes of the bytes from `from` on of a packet or fragment, on a link of this MTU. */
static struct build fragment_of(const struct build *b, uint32_t from, uint32_t mtu)
{
	struct build piece = {0};
	const uint8_t *ip = b->data + IP;
	uint32_t header = (ip[0] & 15u) * 4, total = ow_load_be16(ip + 2), room = (mtu - header) / 8 * 8;
	uint32_t left = total - header - from, flags = ow_load_be16(ip + 6);
	bool last = left <= mtu - header;
	put(&piece, b->data, IP + header);
	put(&piece, ip + header + from, last ? left : room);
	finish_ip(&piece, IP);
	ow_store_be16(piece.data + IP + 6, (uint16_t)((flags + from / 8) | (last ? 0 : 0x2000)));
	return piece;
}

static void make_long(uint8_t proto, uint32_t options, uint32_t len, struct build *b)
{
	*b = (struct build){0};
	ethernet(b, 0x0800);
	ipv4(b, proto);
	put(b, NULL, options);
	b->data[IP] = (uint8_t)(0x45 + options / 4);
	if (proto == 6)
		tcp(b, 0x10, 7);
	payload(b, len);
	finish_ip(b, IP);
}

static uint64_t piece_id(const struct ow_identity *identity, const struct build *b)
{
	struct ow_packet_id id;
	assert_int_equal(id_of(identity, b, 1, b->len, &id), 0);
	return id.id;
}

/* A packet, or a fragment, and the first of the fragments that a router makes of it have the same id; others do not. */
static void pieces_begin_alike(void **state)
{
	(void)state;
	static const uint8_t proto[] = {1, 6, 17, 50};
	for (unsigned i = 0; i < 4 * 2 * 2 * 2 * 3; i++) {
		struct ow_identity identity = identity_at(i & 4 ? OW_LEVEL_NAT : OW_LEVEL_IP, false, UINT32_MAX);
		uint32_t options = i & 8 ? 12 : 0, mtu = i >= 64 ? 576 : i >= 32 ? 1000 : 1400;
		struct build whole, other;
		identity.pieces = true;
		identity.tcp_headers = identity.any_ip_id = i & 16;
		make_long(proto[i % 4], options, 2800, &whole);
		for (uint32_t from = 0; from < 2700; from += 1400) {
			struct build piece = fragment_of(&whole, from, 1400 + 20 + options);
			struct build first = fragment_of(&piece, 0, mtu), second = fragment_of(&first, 0, 576);
			uint64_t id = piece_id(&identity, &piece);
			assert_true(from || id == piece_id(&identity, &whole));
			assert_true(id == piece_id(&identity, &first) && id == piece_id(&identity, &second));
			struct build later = fragment_of(&piece, 552, 1400);
			assert_true(id != piece_id(&identity, &later));
		}
		other = whole;
		other.data[IP + 20 + options + 4] ^= 1; /* a sequence number, a length, an identifier */
		assert_true(piece_id(&identity, &other) != piece_id(&identity, &whole) ||
		            (proto[i % 4] == 1 && identity.level == OW_LEVEL_NAT));
	}
}

/* A long packet, and the first fragment of a tunnel packet around it, have the same id, though the fragment has a part
 * of the packet only. Short packets must be in it as a whole. */
static void pieces_inside_a_tunnel(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * 2 * 2 * 3; i++) {
		struct ow_identity identity = identity_at(i & 1 ? OW_LEVEL_NAT : OW_LEVEL_IP, false, UINT32_MAX);
		uint32_t mtu = i >= 16 ? 640 : i >= 8 ? 1000 : 1480;
		uint8_t proto = i & 2 ? 6 : 17;
		bool v4 = i & 4;
		struct build bare = {0}, tunnel = {0};
		identity.pieces = identity.inner = true;
		ethernet(&bare, v4 ? 0x0800 : 0x86dd);
		v4 ? ipv4(&bare, proto) : ipv6(&bare, proto);
		proto == 6 ? tcp(&bare, 0x10, 7) : udp(&bare, 1, 2);
		payload(&bare, 1450);
		finish_ip(&bare, IP);
		ethernet(&tunnel, 0x0800);
		ipv4(&tunnel, 47);
		PUT(&tunnel, 0, 0, v4 ? 0x08 : 0x86, v4 ? 0 : 0xdd);
		put(&tunnel, bare.data + IP, bare.len - IP);
		finish_ip(&tunnel, IP);
		struct build first = fragment_of(&tunnel, 0, mtu);
		uint64_t id = piece_id(&identity, &bare);
		assert_true(id == piece_id(&identity, &tunnel) && id == piece_id(&identity, &first));
		bare.data[IP + (v4 ? 20 : 40) + OW_IDENTITY_PIECE - 1] ^= 1;
		assert_true(id != piece_id(&identity, &bare));
		struct ow_packet_id none;
		first = fragment_of(&tunnel, 0, 500);
		assert_int_equal(id_of(&identity, &first, 1, first.len, &none), -ENODATA);
	}
}

/* Packets that are too short to be cut have all their bytes and their length in the id. */
static void short_pieces_are_whole(void **state)
{
	(void)state;
	struct ow_identity identity = identity_at(OW_LEVEL_IP, false, UINT32_MAX), pieces = identity;
	struct build b;
	pieces.pieces = true;
	for (uint32_t len = 9; len < OW_IDENTITY_PIECE + 8; len++) {
		make_long(17, 0, len, &b);
		assert_int_equal(piece_id(&pieces, &b) == piece_id(&identity, &b), len < OW_IDENTITY_PIECE);
		uint64_t id = piece_id(&pieces, &b);
		b.data[b.len - 1] ^= 1;
		assert_int_equal(piece_id(&pieces, &b) == id, len > OW_IDENTITY_PIECE);
	}
}

static void padding_and_link_do_not_matter(void **state)
{
	(void)state;
	struct ow_identity identity = identity_at(OW_LEVEL_IP, false, UINT32_MAX);
	for (size_t k = 0; k < KINDS; k++) {
		struct build b = {0}, raw = {0}, vlan = {0};
		struct ow_packet_id id;
		kinds[k].make(&b);
		uint64_t expected = ip_id(&b);
		put(&raw, b.data + IP, b.len - IP);
		assert_int_equal(id_of(&identity, &raw, 101, raw.len, &id), 0);
		assert_true(id.id == expected);
		put(&vlan, b.data, 12);
		PUT(&vlan, 0x81, 0, 0, 5);
		put(&vlan, b.data + 12, b.len - 12);
		assert_true(ip_id(&vlan) == expected);
		PUT(&b, 1, 2, 3, 4, 5, 6);
		assert_true(ip_id(&b) == expected);
	}
}

static void offload_length_does_not_matter(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		struct build b = {0};
		ethernet(&b, version == 4 ? 0x0800 : 0x86dd);
		uint32_t ip = version == 4 ? ipv4(&b, 6) : ipv6(&b, 6);
		tcp(&b, 0x10, 5);
		payload(&b, 2000);
		uint64_t id = ip_id(&b);
		finish_ip(&b, ip);
		assert_true(ip_id(&b) == id);
	}
}

static void syn_without_its_options(void **state)
{
	(void)state;
	struct build b = {0}, stripped = {0};
	uint32_t l4 = make_syn(&b);
	put(&stripped, b.data, b.len - 8);
	stripped.data[l4 + 12] = 0x50;
	finish_ip(&stripped, IP);
	assert_true(ip_id(&b) == ip_id(&stripped));
	/* With payload (fast open), which counts. */
	payload(&b, 5);
	payload(&stripped, 5);
	finish_ip(&b, IP);
	finish_ip(&stripped, IP);
	assert_true(ip_id(&b) == ip_id(&stripped));
	uint64_t id = ip_id(&b);
	b.data[b.len - 1] ^= 1;
	assert_true(ip_id(&b) != id);
}

/* A packet, and the same with bytes that were added on the way: also where little of both is looked at, or captured. */
static void expect_same_at_limits(const struct build *b, const struct build *with, uint32_t added)
{
	for (uint32_t limit = 48; limit < 90; limit++) {
		struct ow_identity identity = identity_at(OW_LEVEL_IP, false, limit);
		uint32_t caplen = IP + limit + added < with->len ? IP + limit + added : with->len;
		struct ow_packet_id whole, cut;
		assert_int_equal(id_of(&identity, b, 1, b->len, &whole), 0);
		assert_int_equal(id_of(&identity, with, 1, caplen, &cut), 0);
		assert_true(whole.id == cut.id);
		struct ow_frame frame = {.data = with->data, .caplen = caplen, .len = with->len, .linktype = 1};
		struct ow_packet packet;
		assert_int_equal(ow_packet_decode(&frame, false, &packet), OW_DECODE_IP);
		assert_int_equal(ow_identity_available(&packet, OW_TCP_EXACT), caplen < with->len ? limit : UINT32_MAX);
	}
}

static void ipv4_options_do_not_matter(void **state)
{
	(void)state;
	struct build b = {0}, with = {0};
	make_udp4(&b);
	put(&with, b.data, IP + 20);
	with.data[IP] = 0x46;
	PUT(&with, 0x94, 4, 0, 0);
	put(&with, b.data + IP + 20, b.len - IP - 20);
	finish_ip(&with, IP);
	assert_true(ip_id(&b) == ip_id(&with));
	expect_same_at_limits(&b, &with, 4);
	/* Cut within its options it still has the id of what is left: its fixed header. */
	for (uint32_t caplen = IP + 20; caplen < IP + 24; caplen++) {
		struct ow_identity identity = identity_at(OW_LEVEL_IP, false, 20);
		struct ow_packet_id whole, cut;
		assert_int_equal(id_of(&identity, &b, 1, b.len, &whole), 0);
		assert_int_equal(id_of(&identity, &with, 1, caplen, &cut), 0);
		assert_true(whole.id == cut.id);
		struct ow_frame frame = {.data = with.data, .caplen = caplen, .len = with.len, .linktype = 1};
		struct ow_packet packet;
		assert_int_equal(ow_packet_decode(&frame, false, &packet), OW_DECODE_IP);
		assert_int_equal(ow_identity_available(&packet, OW_TCP_EXACT), 20);
	}
}

/* An IPv6 packet with these extension headers, the first of type `first`, in front of UDP. */
static struct build with_extensions(uint8_t first, const uint8_t *bytes, uint32_t len)
{
	struct build b = {0};
	ethernet(&b, 0x86dd);
	uint32_t ip = ipv6(&b, first);
	put(&b, bytes, len);
	udp(&b, 1, 2);
	payload(&b, 10);
	finish_ip(&b, ip);
	return b;
}

static void hop_by_hop_does_not_matter(void **state)
{
	(void)state;
	struct build plain = with_extensions(17, NULL, 0);
	struct build hop = with_extensions(0, (const uint8_t[]){17, 0, 5, 2, 0, 0, 1, 0}, 8);
	struct build options = with_extensions(60, (const uint8_t[]){17, 0, 1, 4, 0, 0, 0, 0}, 8);
	assert_true(ip_id(&plain) == ip_id(&hop));
	expect_same_at_limits(&plain, &hop, 8);
	/* Destination options are end to end. */
	assert_true(ip_id(&plain) != ip_id(&options));
	uint64_t id = ip_id(&options);
	options.data[IP + 45]++;
	assert_true(ip_id(&options) != id);
}

/* Segment routing: before the waypoint, after it, and after the header has been taken off. */
static void waypoints_do_not_matter(void **state)
{
	(void)state;
	uint8_t header[40] = {17, 4, 4, 1, 1};
	memset(header + 8, 0xf1, 16); /* the list is in reverse: this is the last */
	memset(header + 24, 0xf2, 16);
	struct build before = with_extensions(43, header, sizeof header);
	memset(before.data + IP + 24, 0xf2, 16);
	header[3] = 0;
	struct build after = with_extensions(43, header, sizeof header);
	memset(after.data + IP + 24, 0xf1, 16);
	struct build off = with_extensions(17, NULL, 0);
	memset(off.data + IP + 24, 0xf1, 16);
	assert_true(ip_id(&before) == ip_id(&after));
	assert_true(ip_id(&before) == ip_id(&off));
	off.data[IP + 24]++;
	assert_true(ip_id(&before) != ip_id(&off));
}

static void fragments_have_ids_of_their_own(void **state)
{
	(void)state;
	uint64_t seen[4];
	for (unsigned i = 0; i < 4; i++) {
		const uint8_t header[] = {17, 0, 0, (uint8_t)(i * 8 | 1), 1, 2, 3, 4};
		struct build b = with_extensions(44, header, sizeof header);
		seen[i] = ip_id(&b);
		for (unsigned k = 0; k < i; k++)
			assert_true(seen[i] != seen[k]);
		b.data[IP + 44] ^= 1; /* another identification */
		assert_true(ip_id(&b) != seen[i]);
	}
}

/* Limits and captured lengths, all of them: the same id from the whole packet as from what a capture holds of it. */
static void truncated_packets_agree(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS * 4; k++) {
		struct build b = {0};
		kinds[k / 4].make(&b);
		uint32_t ip_len = b.len - IP, header = b.data[IP] >> 4 == 4 ? 20 : 40, added = 0;
		if (header == 40 && b.data[IP + 6] == 0) /* hop-by-hop options do not count */
			added = (b.data[IP + 41] + 1u) * 8;
		for (uint32_t limit = 0; limit < ip_len + 3; limit++) {
			struct ow_identity identity = identity_at(k & 1 ? OW_LEVEL_NAT : OW_LEVEL_IP, k & 2, limit);
			struct ow_packet_id whole, cut;
			assert_int_equal(id_of(&identity, &b, 1, b.len, &whole), 0);
			for (uint32_t captured = header; captured < ip_len; captured++) {
				int r = id_of(&identity, &b, 1, IP + captured, &cut);
				if (r == -EBADMSG) /* inside AH, which decoding needs */
					continue;
				bool enough = captured >= (limit + added < ip_len ? limit + added : ip_len);
				if (!enough && (k & 2) &&
				    r == 0) /* a train needs the TCP header up to the flags only */
					assert_true(cut.len > 0 && captured >= header + 14);
				else
					assert_int_equal(r, enough ? 0 : -ENODATA);
				if (r == 0)
					assert_true(cut.id == whole.id && cut.seq == whole.seq && cut.len == whole.len);
			}
		}
	}
}

/* TCP data with a timestamp option; identification, window, flags and length as given. */
static struct build segment(uint32_t seq, uint32_t len, uint16_t ident, uint8_t flags)
{
	struct build b = {0};
	ethernet(&b, 0x0800);
	uint32_t ip = ipv4(&b, 6), l4 = tcp(&b, flags, seq);
	ow_store_be16(b.data + ip + 4, ident);
	b.data[l4 + 12] = 0x80;
	b.data[l4 + 15] = (uint8_t)ident; /* window */
	PUT(&b, 1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8);
	payload(&b, len);
	finish_ip(&b, ip);
	return b;
}

/* With tcp_headers: bytes of the headers and the length decide, whatever is captured of the payload. */
static void expect_headers_decide(struct build *b, uint32_t l4, enum ow_level level)
{
	struct ow_identity identity = identity_at(level, false, UINT32_MAX);
	struct ow_packet_id whole, other;
	uint32_t header = b->data[l4 + 12] >> 4 < 5 ? 20 : (b->data[l4 + 12] >> 4) * 4u;
	identity.tcp_headers = true;
	assert_int_equal(id_of(&identity, b, 1, b->len, &whole), 0);
	for (uint32_t at = l4; at < b->len; at++) {
		int r = id_of(&identity, b, 1, at, &other);
		assert_int_equal(r, at < l4 + header ? -ENODATA : 0);
		assert_true(r < 0 || other.id == whole.id);
		bool sum = at == l4 + 16 || at == l4 + 17, ports = level == OW_LEVEL_NAT && at < l4 + 4;
		b->data[at] ^= 1;
		assert_int_equal(id_of(&identity, b, 1, b->len, &other), 0);
		b->data[at] ^= 1;
		assert_true((other.id == whole.id) == (at >= l4 + header || sum || ports));
	}
	/* The sequence number is not in the id: what is sent must be. */
	identity.tcp = OW_TCP_ANY_NUMBERS;
	assert_true(ow_identity_needs_payload(&identity));
	assert_int_equal(id_of(&identity, b, 1, b->len - 1, &other), -ENODATA);
}

static void headers_identify_tcp(void **state)
{
	(void)state;
	for (enum ow_level level = OW_LEVEL_IP; level <= OW_LEVEL_NAT; level++) {
		struct build b = {0}, longer = segment(7, 100, 1, 0x10), shorter = segment(7, 99, 1, 0x10);
		expect_headers_decide(&b, make_tcp4(&b), level);
		b.len = 0;
		expect_headers_decide(&b, make_tcp6(&b), level);
		expect_headers_decide(&longer, IP + 20, level);
		longer.data[IP + 20 + 12] = 0x30; /* a header of 12 bytes: there is none */
		expect_headers_decide(&longer, IP + 20, level);
		longer = segment(7, 100, 1, 0x10);
		struct ow_identity identity = identity_at(level, false, UINT32_MAX);
		struct ow_packet_id one, other;
		identity.tcp_headers = true;
		assert_int_equal(id_of(&identity, &longer, 1, longer.len, &one), 0);
		assert_int_equal(id_of(&identity, &shorter, 1, shorter.len, &other), 0);
		assert_true(one.id != other.id);
	}
}

/* What is not an unfragmented TCP packet has the same id with tcp_headers as without. */
static void headers_identify_nothing_else(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		struct build b = {0};
		struct ow_identity identity = identity_at(OW_LEVEL_IP, false, UINT32_MAX);
		struct ow_packet packet;
		struct ow_packet_id before, after;
		kinds[k].make(&b);
		struct ow_frame frame = frame_of(&b, 1);
		assert_int_equal(ow_packet_decode(&frame, false, &packet), OW_DECODE_IP);
		assert_int_equal(id_of(&identity, &b, 1, b.len, &before), 0);
		identity.tcp_headers = true;
		assert_int_equal(id_of(&identity, &b, 1, b.len, &after), 0);
		if (packet.proto != 6 || packet.fragment)
			assert_true(before.id == after.id);
	}
}

static void limit_counts_bytes(void **state)
{
	(void)state;
	struct build b = {0};
	make_udp4(&b);
	for (uint32_t limit = 28; limit < b.len - IP; limit++) {
		struct ow_identity identity = identity_at(OW_LEVEL_IP, false, limit);
		struct ow_packet_id before, inside, outside;
		assert_int_equal(id_of(&identity, &b, 1, b.len, &before), 0);
		b.data[IP + limit] ^= 1;
		assert_int_equal(id_of(&identity, &b, 1, b.len, &outside), 0);
		b.data[IP + limit - 1] ^= 1;
		assert_int_equal(id_of(&identity, &b, 1, b.len, &inside), 0);
		b.data[IP + limit] ^= 1;
		b.data[IP + limit - 1] ^= 1;
		assert_true(before.id == outside.id);
		assert_true(limit == 28 || before.id != inside.id); /* byte 27 is checksum */
	}
}

static void available_is_what_was_captured(void **state)
{
	(void)state;
	struct build b = {0};
	struct ow_packet packet;
	make_udp4(&b);
	struct ow_frame frame = frame_of(&b, 1);
	assert_int_equal(ow_packet_decode(&frame, false, &packet), OW_DECODE_IP);
	assert_true(ow_identity_available(&packet, OW_TCP_EXACT) == UINT32_MAX);
	frame.caplen = IP + 33;
	assert_int_equal(ow_packet_decode(&frame, false, &packet), OW_DECODE_IP);
	assert_int_equal(ow_identity_available(&packet, OW_TCP_EXACT), 33);
}

static struct ow_packet_id segment_id(enum ow_level level, const struct build *b, uint32_t caplen)
{
	struct ow_identity identity = identity_at(level, true, UINT32_MAX);
	struct ow_packet_id id;
	assert_int_equal(id_of(&identity, b, 1, caplen, &id), 0);
	return id;
}

static void segments_tile_their_superframe(void **state)
{
	(void)state;
	for (enum ow_level level = OW_LEVEL_IP; level <= OW_LEVEL_NAT; level++) {
		const uint32_t seq = 0xfffffe00; /* wraps */
		struct build super = segment(seq, 3500, 100, 0x19);
		struct ow_packet_id train = segment_id(level, &super, super.len), piece;
		assert_true(train.seq == seq && train.len == 3500);
		uint32_t at = seq;
		for (unsigned i = 0; i < 4; i++) {
			uint32_t len = i < 3 ? 1000 : 500;
			struct build b = segment(at, len, (uint16_t)(100 + i), i < 3 ? 0x10 : 0x19);
			piece = segment_id(level, &b, b.len);
			assert_true(piece.id == train.id && piece.seq == at && piece.len == len);
			piece = segment_id(level, &b, IP + 52); /* the header suffices */
			assert_true(piece.id == train.id && piece.seq == at && piece.len == len);
			at += len;
		}
		assert_true(at == seq + 3500);
	}
}

/* Captures that end within the TCP header: it suffices up to the flags. */
static void segments_of_truncated_headers(void **state)
{
	(void)state;
	struct ow_identity identity = identity_at(OW_LEVEL_IP, true, 20 + 14);
	struct build super = segment(5, 3500, 100, 0x19), piece = segment(1005, 1000, 101, 0x10);
	struct ow_packet_id train, part;
	assert_int_equal(id_of(&identity, &super, 1, IP + 34, &train), 0);
	assert_int_equal(id_of(&identity, &piece, 1, piece.len, &part), 0);
	assert_true(train.id == part.id && train.seq == 5 && train.len == 3500 && part.seq == 1005 && part.len == 1000);
	identity.hash_limit = 20 + 13;
	assert_int_equal(id_of(&identity, &super, 1, IP + 33, &train), 0);
	assert_int_equal(train.len, 0);
}

static void trains_differ(void **state)
{
	(void)state;
	struct build b = segment(1, 100, 1, 0x10);
	const uint32_t l4 = IP + 20;
	uint64_t ip = segment_id(OW_LEVEL_IP, &b, b.len).id, nat = segment_id(OW_LEVEL_NAT, &b, b.len).id;
	const uint32_t named[] = {IP + 12, IP + 19, l4, l4 + 3, l4 + 8, l4 + 11, l4 + 20, l4 + 31};
	for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
		b.data[named[i]] ^= 1;
		assert_true(segment_id(OW_LEVEL_IP, &b, b.len).id != ip);
		assert_true((segment_id(OW_LEVEL_NAT, &b, b.len).id == nat) == (named[i] <= l4 + 3));
		b.data[named[i]] ^= 1;
	}
	const uint32_t unnamed[] = {IP + 4, IP + 8, l4 + 4, l4 + 14, l4 + 16, l4 + 32, b.len - 1};
	for (size_t i = 0; i < sizeof unnamed / sizeof *unnamed; i++) {
		b.data[unnamed[i]] ^= 1;
		assert_true(segment_id(OW_LEVEL_IP, &b, b.len).id == ip);
		b.data[unnamed[i]] ^= 1;
	}
}

static void only_data_is_in_trains(void **state)
{
	(void)state;
	const uint8_t flags[] = {0x02, 0x12, 0x04, 0x14};
	for (size_t i = 0; i < sizeof flags; i++) {
		struct build b = segment(1, 100, 1, flags[i]);
		struct ow_packet_id id = segment_id(OW_LEVEL_IP, &b, b.len);
		assert_true(id.len == 0 && id.seq == 0 && id.id == ip_id(&b));
	}
	struct build ack = segment(1, 0, 1, 0x11), u = {0};
	assert_true(segment_id(OW_LEVEL_IP, &ack, ack.len).len == 0);
	assert_true(segment_id(OW_LEVEL_IP, &ack, ack.len).id == ip_id(&ack));
	make_udp4(&u);
	assert_true(segment_id(OW_LEVEL_IP, &u, u.len).id == ip_id(&u));
}

/* The id of part of a datagram of which caplen bytes are captured; false when it cannot be cut. */
static bool part_id(enum ow_level level, const struct build *b, uint32_t caplen, uint32_t from, uint32_t len,
                    uint64_t *ret_id)
{
	struct ow_identity identity = identity_at(level, false, UINT32_MAX);
	struct ow_frame frame = frame_of(b, 1);
	struct ow_packet packet;
	struct ow_datagram datagram;
	frame.caplen = caplen;
	assert_int_equal(ow_packet_decode(&frame, false, &packet), OW_DECODE_IP);
	if (!ow_identity_datagram(&identity, &packet, &datagram))
		return false;
	assert_true(from + len <= datagram.len);
	*ret_id = ow_identity_of_part(&identity, &datagram, from, len);
	return true;
}

/* A part of a superframe is the datagram of the wire, whatever its IP id; one byte, one port or its length make another
 * one. */
static void parts_are_datagrams_of_the_wire(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		struct build super = {0}, wire = {0};
		uint64_t part, id;
		ethernet(&super, version == 4 ? 0x0800 : 0x86dd);
		uint32_t ip = plain_udp(&super, version), data = super.len - 20;
		put(&wire, super.data, data);
		put(&wire, super.data + data + 8, 8);
		finish_ip(&wire, ip);
		assert_true(part_id(OW_LEVEL_IP, &super, super.len, 8, 8, &part));
		if (version == 4)
			ow_store_be16(wire.data + ip + 4, 0x7777);
		assert_true(part_id(OW_LEVEL_IP, &wire, wire.len, 0, 8, &id));
		assert_true(id == part);
		assert_true(part_id(OW_LEVEL_IP, &super, super.len, 8, 7, &id) && id != part);
		assert_true(part_id(OW_LEVEL_IP, &super, super.len, 0, 8, &id) && id != part);
		wire.data[data - 8] ^= 1;
		assert_true(part_id(OW_LEVEL_IP, &wire, wire.len, 0, 8, &id) && id != part);
		assert_true(part_id(OW_LEVEL_NAT, &super, super.len, 8, 8, &part));
		assert_true(part_id(OW_LEVEL_NAT, &wire, wire.len, 0, 8, &id) && id == part);
		assert_false(part_id(OW_LEVEL_IP, &super, super.len - 1, 0, 8, &id));
	}
	struct build b = {0};
	uint64_t id;
	make_fragment(&b);
	assert_false(part_id(OW_LEVEL_IP, &b, b.len, 0, 1, &id));
	b.len = 0;
	make_tcp4(&b);
	assert_false(part_id(OW_LEVEL_IP, &b, b.len, 0, 1, &id));
}

/* mDNS of hosts on two links: a translator does not forward these, so their addresses count. */
static void multicast_is_not_translated(void **state)
{
	(void)state;
	static const uint8_t to[][4] = {{10, 0, 0, 9}, {224, 0, 0, 251}, {239, 255, 255, 250}, {255, 255, 255, 255}};
	for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
		struct build b = {0};
		ethernet(&b, 0x0800);
		uint32_t ip = ipv4(&b, 17);
		PUT(&b, 0x14, 0xe9, 0x14, 0xe9, 0, 12, 0, 0, 1, 2, 3, 4);
		finish_ip(&b, ip);
		memcpy(b.data + ip + 16, to[i], 4);
		uint64_t id = id_at(OW_LEVEL_NAT, &b);
		b.data[ip + 15] ^= 3; /* another host */
		assert_true((id_at(OW_LEVEL_NAT, &b) == id) == (i == 0));
	}
}

/* What a translator does to an ICMP error: addresses outside and inside, ports and checksums. */
static void icmp_errors_through_nat(void **state)
{
	(void)state;
	const uint8_t protos[] = {6, 17, 1};
	for (size_t i = 0; i < sizeof protos; i++) {
		struct build b = {0};
		ethernet(&b, 0x0800);
		uint32_t ip = ipv4(&b, 1);
		PUT(&b, 3, 4, 0xbe, 0xef, 0, 0, 5, 0xdc);
		uint32_t quoted = ipv4(&b, protos[i]);
		PUT(&b, 1, 2, 3, 4, 5, 6, 7, 8);
		finish_ip(&b, ip);
		uint64_t id = id_at(OW_LEVEL_NAT, &b);
		struct build n = b;
		memset(n.data + ip + 12, 77, 8);
		n.data[ip + 22] ^= 9;
		n.data[quoted + 10] ^= 9;
		memset(n.data + quoted + 12, 77, 8);
		if (protos[i] != 1)
			memset(n.data + quoted + 20, 77, 4);
		if (protos[i] == 17)
			memset(n.data + quoted + 26, 77, 2);
		if (protos[i] == 1)
			memset(n.data + quoted + 24, 77, 2);
		assert_true(id_at(OW_LEVEL_NAT, &n) == id);
		assert_true(ip_id(&n) != ip_id(&b));
		n.data[quoted + 5] ^= 1; /* the error for another packet */
		assert_true(id_at(OW_LEVEL_NAT, &n) != id);
	}
}

static void frames_as_they_are(void **state)
{
	(void)state;
	struct ow_identity identity = identity_at(OW_LEVEL_FRAME, false, UINT32_MAX);
	struct ow_packet_id id, other;
	struct build b = {0};
	ethernet(&b, 0x0806);
	payload(&b, 80);
	struct ow_frame frame = frame_of(&b, 1);
	assert_int_equal(ow_identity_of_frame(&identity, &frame, &id), 0);
	for (uint32_t i = 0; i < b.len * 8; i++) {
		b.data[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_int_equal(ow_identity_of_frame(&identity, &frame, &other), 0);
		b.data[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_true(other.id != id.id);
	}
	frame.caplen = 60;
	assert_int_equal(ow_identity_of_frame(&identity, &frame, &other), -ENODATA);
	identity.hash_limit = 60;
	assert_int_equal(ow_identity_of_frame(&identity, &frame, &other), 0);
	frame.caplen = b.len;
	assert_int_equal(ow_identity_of_frame(&identity, &frame, &id), 0);
	assert_true(id.id == other.id);
}

/* The sender's capture shows a short frame before the card pads it. */
static void short_frames_are_padded(void **state)
{
	(void)state;
	for (uint32_t limit = 0; limit < 70; limit++) {
		struct ow_identity identity = identity_at(OW_LEVEL_FRAME, false, limit);
		struct ow_packet_id id, padded;
		struct build b = {0};
		ethernet(&b, 0x0806);
		payload(&b, 28);
		struct ow_frame frame = frame_of(&b, 1);
		assert_int_equal(ow_identity_of_frame(&identity, &frame, &id), 0);
		put(&b, NULL, 18);
		frame = frame_of(&b, 1);
		assert_int_equal(ow_identity_of_frame(&identity, &frame, &padded), 0);
		assert_true(id.id == padded.id);
	}
}

static void seed_decides(void **state)
{
	(void)state;
	struct build b = {0};
	struct ow_packet_id x, y;
	make_tcp4(&b);
	struct ow_identity a = identity_at(OW_LEVEL_IP, false, UINT32_MAX), c = a;
	ow_identity_seed(&c, SEED + 1);
	assert_int_equal(id_of(&a, &b, 1, b.len, &x), 0);
	assert_int_equal(id_of(&c, &b, 1, b.len, &y), 0);
	assert_true(x.id != y.id);
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x, y;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return x < y ? -1 : x > y;
}

/*
 * A million packets that differ in counters only (the worst case for a weak mix) or in random bytes: no two ids are
 * equal (expected pairs: 1e12 / 2^65 = 3e-8), and their low 10 bits are uniform (chi-square, 1023 degrees: mean 1023,
 * deviation 45; 6 deviations are 1293 and 753).
 */
static void no_collisions(void **state)
{
	(void)state;
	enum { N = 1000000, CELLS = 1024 };
	uint64_t *ids = malloc(N * sizeof *ids);
	unsigned *cell = calloc(CELLS, sizeof *cell);
	assert_true(ids && cell);
	struct ow_identity identity = identity_at(OW_LEVEL_IP, false, UINT32_MAX);
	struct ow_random random;
	ow_random_seed(&random, SEED);
	struct build b = {0};
	uint32_t l4 = make_tcp4(&b);
	struct ow_frame frame = frame_of(&b, 1);
	for (uint32_t i = 0; i < N; i++) {
		struct ow_packet packet;
		struct ow_packet_id id;
		ow_store_be16(b.data + IP + 4, (uint16_t)(i % 100));
		ow_store_be32(b.data + l4 + 4, i / 100 % 100 * 1448);
		ow_store_be32(b.data + l4 + 8, i / 10000 % 10);
		ow_store_be16(b.data + l4, (uint16_t)(i / 100000));
		if (i % 2)
			ow_store_be32(b.data + l4 + 24, (uint32_t)ow_random_u64(&random));
		assert_int_equal(ow_packet_decode(&frame, false, &packet), OW_DECODE_IP);
		assert_int_equal(ow_identity_of_packet(&identity, &packet, &id), 0);
		ids[i] = id.id;
		cell[id.id % CELLS]++;
	}
	double chi = 0, expected = (double)N / CELLS;
	for (unsigned i = 0; i < CELLS; i++)
		chi += (cell[i] - expected) * (cell[i] - expected) / expected;
	assert_true(chi > 753 && chi < 1293);
	qsort(ids, N, sizeof *ids, compare_ids);
	for (uint32_t i = 1; i < N; i++)
		assert_true(ids[i] != ids[i - 1]);
	free(ids);
	free(cell);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exactly_the_free_bits_are_free),
		cmocka_unit_test(identification_does_not_matter),
		cmocka_unit_test(tcp_numbers_do_not_matter),
		cmocka_unit_test(pieces_of_a_datagram),
		cmocka_unit_test(pieces_of_a_datagram_v6),
		cmocka_unit_test(pieces_begin_alike),
		cmocka_unit_test(pieces_inside_a_tunnel),
		cmocka_unit_test(short_pieces_are_whole),
		cmocka_unit_test(padding_and_link_do_not_matter),
		cmocka_unit_test(offload_length_does_not_matter),
		cmocka_unit_test(syn_without_its_options),
		cmocka_unit_test(ipv4_options_do_not_matter),
		cmocka_unit_test(hop_by_hop_does_not_matter),
		cmocka_unit_test(waypoints_do_not_matter),
		cmocka_unit_test(fragments_have_ids_of_their_own),
		cmocka_unit_test(truncated_packets_agree),
		cmocka_unit_test(headers_identify_tcp),
		cmocka_unit_test(headers_identify_nothing_else),
		cmocka_unit_test(limit_counts_bytes),
		cmocka_unit_test(available_is_what_was_captured),
		cmocka_unit_test(segments_tile_their_superframe),
		cmocka_unit_test(segments_of_truncated_headers),
		cmocka_unit_test(trains_differ),
		cmocka_unit_test(only_data_is_in_trains),
		cmocka_unit_test(parts_are_datagrams_of_the_wire),
		cmocka_unit_test(icmp_errors_through_nat),
		cmocka_unit_test(multicast_is_not_translated),
		cmocka_unit_test(frames_as_they_are),
		cmocka_unit_test(short_frames_are_padded),
		cmocka_unit_test(seed_decides),
		cmocka_unit_test(no_collisions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
