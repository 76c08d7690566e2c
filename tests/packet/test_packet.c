/* SPDX-License-Identifier: Apache-2.0 */
#include "build.h"
#include "packet/packet.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* Decodes a copy of exactly caplen bytes on the heap, so that a sanitizer sees every byte read beyond. */
static enum ow_decode decode(const struct build *b, uint16_t linktype, uint32_t caplen, bool inner,
                             struct ow_packet *ret)
{
	uint8_t *copy = malloc(caplen ? caplen : 1);
	assert_non_null(copy);
	memcpy(copy, b->data, caplen);
	struct ow_frame frame = {.data = copy, .caplen = caplen, .len = b->len, .linktype = linktype};
	enum ow_decode result = ow_packet_decode(&frame, inner, ret);
	if (result == OW_DECODE_IP) { /* to offsets in the builder's buffer, which stays */
		ret->l4 = ret->l4 ? b->data + (ret->l4 - copy) : NULL;
		ret->end = b->data + (ret->end - copy);
		ret->ip = b->data + (ret->ip - copy);
	}
	free(copy);
	return result;
}

/* The frame holds one IP packet at offset ip; every truncation gives IP, too, or SHORT (never a wrong answer). */
static void expect_ip(const struct build *b, uint16_t linktype, uint32_t ip, bool inner)
{
	struct ow_packet p;
	assert_int_equal(decode(b, linktype, b->len, inner, &p), OW_DECODE_IP);
	assert_ptr_equal(p.ip, b->data + ip);
	assert_false(p.truncated);
	assert_non_null(p.l4);
	for (uint32_t caplen = 0; caplen < b->len; caplen++) {
		enum ow_decode result = decode(b, linktype, caplen, inner, &p);
		assert_true(result == OW_DECODE_IP || result == OW_DECODE_SHORT || result == OW_DECODE_NOT_IP);
		if (caplen >= ip + (b->data[ip] >> 4 == 4 ? 20 : 40) && result == OW_DECODE_IP)
			assert_ptr_equal(p.ip, b->data + ip);
	}
}

static void plain_ethernet(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		struct build b = {0};
		struct ow_packet p;
		ethernet(&b, version == 4 ? 0x0800 : 0x86dd);
		uint32_t ip = plain_udp(&b, version);
		expect_ip(&b, 1, ip, false);
		assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
		assert_int_equal(p.version, version);
		assert_int_equal(p.proto, 17);
		assert_int_equal(p.ip_len, b.len - 14);
		assert_int_equal(p.l4_len, 28);
		assert_ptr_equal(p.l4, b.data + b.len - 28);
		assert_ptr_equal(p.end, b.data + b.len);
		assert_false(p.fragment || p.has_tunnel || p.routed_v6);
	}
}

/* Bytes in front of an IP packet, as text: hex digits, spaces for reading, xN repeats the byte before N times. */
static void put_hex(struct build *b, const char *hex)
{
	while (*hex) {
		if (*hex == ' ') {
			hex++;
		} else if (*hex == 'x') {
			char *end;
			unsigned long n = strtoul(hex + 1, &end, 10);
			uint8_t last = b->data[b->len - 1];
			while (--n)
				PUT(b, last);
			hex = end;
		} else {
			char digits[3] = {hex[0], hex[1], 0};
			PUT(b, (uint8_t)strtoul(digits, NULL, 16));
			hex += 2;
		}
	}
}

#define MACS "02 00x4 01 02 00x4 02"

struct link_case {
	uint16_t linktype;
	unsigned version;
	const char *header;
};

static const struct link_case links[] = {
	{12, 4, ""},
	{14, 6, ""},
	{101, 4, ""},
	{101, 6, ""},
	{228, 4, ""},
	{229, 6, ""},
	{0, 4, "02 000000"},
	{0, 4, "000000 02"},
	{0, 6, "0a 000000"},
	{0, 6, "18 000000"},
	{0, 6, "1a 000000"},
	{0, 6, "1c 000000"},
	{0, 6, "1e 000000"},
	{0, 6, "000000 1e"},
	{108, 4, "000000 02"},
	{108, 6, "000000 18"},
	{113, 4, "0000 0001 0006 02 00x7 0800"},
	{113, 6, "0004 0001 0006 02 00x7 86dd"},
	{113, 4, "0000 0001 0006 02 00x7 8100 0005 0800"},
	{113, 4, "0000 0001 0006 02 00x7 0004 aaaa03 000000 0800"},
	{113, 4, "0000 0200 0000 00x8 0800"}, /* PPP device */
	{113, 4, "0000 0323 0000 00x8 0004 0000 0800 00000000 0802 0000 00x18 0000 aaaa03 000000 0800"}, /* radiotap */
	{276, 4, "0800 0000 00000002 0001 00 06 02 00x7"},
	{276, 6, "86dd 0000 00000002 0304 04 00 00x8"},
	{276, 6, "0004 0000 00000002 0001 00 06 02 00x7 aaaa03 000000 86dd"},
	{9, 4, "ff03 0021"},
	{9, 4, "0021"},
	{9, 4, "21"},
	{9, 6, "ff03 57"},
	{9, 4, "0281 00064140"},
	{50, 4, "ff03 0021"},
	{50, 6, "0f00 86dd"},
	{51, 4, "1100 0001 0032 0021"},
	{166, 4, "0103 0021"},
	{204, 6, "01 ff03 0057"},
	{104, 4, "0f00 0800"},
	{104, 6, "8f00 86dd"},
	{105, 4, "0802 0000 01x6 02x6 03x6 1000 aaaa03 000000 0800"},
	{105, 4, "0803 0000 01x6 02x6 03x6 1000 04x6 aaaa03 000000 0800"},                /* four addresses */
	{105, 6, "8801 0000 01x6 02x6 03x6 1000 0000 aaaa03 000000 86dd"},                /* QoS */
	{105, 6, "8881 0000 01x6 02x6 03x6 1000 0000 00x4 aaaa03 0000f8 86dd"},           /* QoS, HT control */
	{105, 4, "8803 0000 01x6 02x6 03x6 1000 04x6 0000 aaaa03 000000 0800"},           /* QoS, four addresses */
	{105, 4, "8801 0000 01x6 02x6 03x6 1000 8000 01x6 02x6 0040 aaaa03 000000 0800"}, /* first of an A-MSDU */
	{127, 4, "0000 0800 00000000 0802 0000 01x6 02x6 03x6 1000 aaaa03 000000 0800"},
	{127, 4, "0000 0900 02000000 20 8801 0000 01x6 02x6 03x6 1000 0000 0000 aaaa03 000000 0800"}, /* padded */
	{127, 4,
         "0000 1100 03000000 00x8 20 8801 0000 01x6 02x6 03x6 1000 0000 0000 aaaa03 000000 0800"}, /* with a time */
	{127, 4,
         "0000 1900 030000a0 00000020 00000000 00x8 20 8801 0000 01x6 02x6 03x6 1000 0000 0000 aaaa03 000000 0800"},
	{119, 4, "44000000 90000000 00x136 0802 0000 01x6 02x6 03x6 1000 aaaa03 000000 0800"},
	{119, 4, "80211001 00000040 00x56 0802 0000 01x6 02x6 03x6 1000 aaaa03 000000 0800"},
	{163, 4, "80211002 00000050 00x72 0802 0000 01x6 02x6 03x6 1000 aaaa03 000000 0800"},
	{192, 4, "0000 0800 69000000 0802 0000 01x6 02x6 03x6 1000 aaaa03 000000 0800"},
	{192, 4, "0000 2000 69000000 0200 1400 00x20 0802 0000 01x6 02x6 03x6 1000 aaaa03 000000 0800"},
	{192, 6, "0000 0800 01000000 " MACS "86dd"},
	{239, 4, "0200 0000 0800 0100 0800 00 00 0500 0a00 6100 0000 3400 0900"},
	{239, 6, "0a00 0000 0008 0001 86dd 00 00 0038 0009"}, /* big-endian host */
	{239, 4, "0700 0000 0800 0100 0800 00 00 3400 0900"}, /* bridge */
	{258, 4, "6c000000 01000000 01000000 00x96 " MACS "0800"},
	{149, 6, "6c000000 01000000 0c000000 00x96"},
	{10, 4, "50 01x6 02x6 aaaa03 000000 0800"},
	{6, 4, "1040 01x6 02x6 aaaa03 000000 0800"},
	{6, 4, "1040 01x6 82 02x5 0630 0012 0030 aaaa03 000000 0800"}, /* source-routed */
	{11, 4, "aaaa03 000000 0800"},
	{100, 4, "aaaa03 000000 0800"},
	{107, 4, "1841 03 cc"},
	{107, 6, "1841 03 00 8e"},
	{107, 4, "1841 03 00 80 000000 0800"},
	{242, 4, "00x40 0800 0000"},
	{109, 4, "02000000 00001234 00000000"},
	{117, 4, "3d 02 00x62"},
	{197, 4, "00x8 02 04 0060 0000 0040 0000 " MACS "0800"},
	{197, 4, "00x8 82 04 0060 0000 0040 81 00x7 01 00x7 0000 " MACS "0800"},
	{197, 6, "00x8 17 04 0060 0000 0040"},
	{219, 4, "00064140"},
	{226, 6, "01 1a 0000 00000044 00x16"},
	{240, 4, "00x4 " MACS "0800"},
	{281, 4, MACS "00000008 0800"},
	{282, 4, "00000008 " MACS "0800"},
	{284, 4, MACS "c0000000 0800"},
	{285, 6, MACS "dada 0000 c0000000 86dd"},
};

static void link_types(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		struct build b = {0};
		put_hex(&b, links[i].header);
		expect_ip(&b, links[i].linktype, plain_udp(&b, links[i].version), false);
	}
}

/* What stands between the MAC addresses and the IP packet. */
static const struct {
	unsigned version;
	const char *header;
} tags[] = {
	{4, "8100 0005 0800"},
	{6, "88a8 0005 8100 0006 86dd"},
	{4, "9100 0005 9200 0006 9300 0007 8100 0008 0800"},
	{4, "8847 00064140"},
	{6, "8848 00064040 00064040 00065140"},
	{4, "8847 00064140 " MACS "0800"},          /* Ethernet pseudowire */
	{4, "8847 00064140 00000000 " MACS "0800"}, /* with a control word */
	{4, "8847 00064140 40 00x5 02 00x5 0800"},  /* an address that looks like IPv4 */
	{4, "8847 00064140 60 00x5 02 00x5 8100 0001 0800"},
	{4, "8847 00064140 00 00x5 02 00x5 0800"}, /* an address that looks like a control word */
	{4, "8847 00064140 00000007 00 00x5 02 00x5 0800"},
	{4, "8864 1100 0001 0032 0021"},
	{6, "8864 1100 0001 0032 0057"},
	{4, "8100 0005 8864 1100 0001 0032 0021"},
	{4, "0038 aaaa03 000000 0800"},
	{4, "0033 060603"},
	{4, "8870 aaaa03 000000 0800"},
	{4, "88e7 00000001 " MACS "0800"},
	{4, "88a8 0001 88e7 00000001 " MACS "8100 0001 0800"},
	{4, "894f 0fc6 0101 00000100 00x16"},
	{6, "894f 0fc2 0202 00000100"},
	{4, "894f 0fc6 0103 00000100 00x16 " MACS "0800"},
	{4, "8926 00000000 0800"},
	{4, "893f 00x6 0800"},
	{4, "892f 0040 0001 0800"},
	{4, "8909 01 01 0001 0010 0800"},
	{4, "8909 01 01 0001 0010 8100 0005 0800"},
	/* Arista's time stamps: 64 and 48 bits, TAI and UTC, in front of a tag, too. */
	{4, "d28b 0001 0010 00x8 0800"},
	{6, "d28b 0001 0110 ffx8 86dd"},
	{4, "d28b 0001 0120 00x6 0800"},
	{4, "d28b 0001 0021 00x6 8100 0005 0800"},
	{4, "6558 " MACS "0800"},
	{4, "880b 0021"},
};

static void ethernet_tags(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
		struct build b = {0};
		put_hex(&b, MACS);
		put_hex(&b, tags[i].header);
		expect_ip(&b, 1, plain_udp(&b, tags[i].version), false);
	}
}

static void not_ip(void **state)
{
	(void)state;
	static const char *const headers[] = {
		"0806 00x46",
		"88e5 00x46",
		"88cc 00x46",
		"8863 1109 0000 0004 00x40",
		"0026 424203 00x43",
		"0026 aaaa03 00000c 2000 00x40",
		"8864 1100 0001 0004 c021 00x40",
		"8847 00064140 10 00x45",
		"8100 0005 0806 00x46",
		"894f 0fc2 0209 00000100 00x40",
		"ffff 00x46",
		"d28b 0002 0010 00x8 0800 00x40",
		"d28b 0001 0030 00x8 0800 00x40",
		"0000 00x46",
		"0600 00x46",
	};
	struct ow_packet p;
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		struct build b = {0};
		put_hex(&b, MACS);
		put_hex(&b, headers[i]);
		assert_int_equal(decode(&b, 1, b.len, true, &p), OW_DECODE_NOT_IP);
	}
	static const struct link_case other[] = {
		{0, 0, "07000000 45 00x40"},
		{105, 0, "8000 0000 01x6 02x6 03x6 1000 00x40"}, /* beacon */
		{105, 0, "4802 0000 01x6 02x6 03x6 1000 00x40"}, /* data without a body */
		{105, 0, "0842 0000 01x6 02x6 03x6 1000 00x40"}, /* encrypted */
		{105, 0, "0802 0000 01x6 02x6 03x6 1100 00x40"}, /* later fragment */
		{113, 0, "0004 0338 0000 00x8 0800 45 00x40"},   /* netlink */
		{113, 0, "0004 0001 0006 00x8 000c 00x40"},      /* CAN */
		{258, 0, "6c000000 02000000 01000000 00x96 45 00x40"},
		{10, 0, "41 00x60"},
		{6, 0, "1000 00x60"},
	};
	for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
		struct build b = {0};
		put_hex(&b, other[i].header);
		assert_int_equal(decode(&b, other[i].linktype, b.len, true, &p), OW_DECODE_NOT_IP);
	}
	struct build b = {0};
	put_hex(&b, "45 00x60");
	assert_int_equal(decode(&b, 147, b.len, true, &p), OW_DECODE_LINK);
	assert_int_equal(decode(&b, 65535, b.len, true, &p), OW_DECODE_LINK);
}

/* From the outer transport header to the inner IP packet; proto 17 adds a UDP header to the given port. */
struct tunnel_case {
	uint8_t proto;
	uint16_t port;
	unsigned version;
	const char *header;
};

static const struct tunnel_case tunnels[] = {
	{4, 0, 4, ""},
	{41, 0, 6, ""},
	{47, 0, 4, "0000 0800"},
	{47, 0, 6, "0000 86dd"},
	{47, 0, 4, "8000 0800 00x4"},
	{47, 0, 4, "2000 0800 00x4"},
	{47, 0, 4, "b000 0800 00x12"},
	{47, 0, 4, "2000 6558 00000005 " MACS "0800"},
	{47, 0, 4, "2000 6558 00000005 " MACS "8100 0005 0800"},
	{47, 0, 4, "0000 8847 00064140"},
	{47, 0, 4, "0000 88be " MACS "0800"}, /* ERSPAN I */
	{47, 0, 4, "1000 88be 00000001 1064 0001 00000000 " MACS "0800"},
	{47, 0, 4, "1000 22eb 00000001 2064 0001 00x4 0000 0000 " MACS "0800"},
	{47, 0, 4, "1000 22eb 00000001 2064 0001 00x4 0000 0001 00x8 " MACS "0800"},
	{47, 0, 4, "3001 880b 0032 0001 00000001 0021"}, /* PPTP */
	{47, 0, 4, "3081 880b 0032 0001 00000001 00000001 ff03 0021"},
	{47, 0, 4, "0000 883e 00000000"}, /* WCCP 2 */
	{47, 0, 4, "0000 883e"},
	{47, 0, 4, "0000 894f 0fc6 0101 00000100 00x16"},
	{97, 0, 4, "3000 " MACS "0800"},
	{137, 0, 4, "00064140"},
	{143, 0, 6, MACS "86dd"},
	{17, 4789, 4, "08000000 00000500 " MACS "0800"},
	{17, 8472, 6, "08000000 00000500 " MACS "8100 0005 86dd"},
	{17, 4790, 4, "0c000001 00000500"},
	{17, 4790, 4, "08000001 00000500"},
	{17, 4790, 6, "0c000002 00000500"},
	{17, 4790, 4, "0c000003 00000500 " MACS "0800"},
	{17, 4790, 4, "0c000004 00000500 0fc6 0101 00000100 00x16"},
	{17, 4790, 4, "08000000 00000500 " MACS "0800"},
	{17, 6081, 4, "0000 6558 00000500 " MACS "0800"},
	{17, 6081, 4, "0200 6558 00000500 0102 8001 00000001 " MACS "0800"},
	{17, 6081, 4, "0000 0800 00000500"},
	{17, 2152, 4, "30 ff 0030 00000001"},
	{17, 2152, 6, "32 ff 0044 00000001 0001 00 00"},
	{17, 2152, 4, "34 ff 0038 00000001 0000 00 85 01 10 09 00"},
	{17, 2152, 4, "34 ff 003c 00000001 0000 00 c0 01 0001 85 01 10 09 00"},
	{17, 3544, 6, ""},
	{17, 3544, 6, "0000 1234 01020304"},
	{17, 3544, 6, "0001 0000 00x9 0000 1234 01020304"},
	{17, 6635, 4, "00064140"},
	{17, 6080, 4, "0004 0000"}, /* GUE */
	{17, 6080, 6, "0229 8000 00x8"},
	{17, 6080, 4, "002f 0000 0000 6558 " MACS "0800"}, /* GRE in GUE */
	{17, 6080, 4, ""},
	{17, 6080, 6, ""},
	{17, 37008, 4, "01 00 0001 01 " MACS "0800"}, /* TZSP */
	{17, 37008, 6, "01 01 0001 00 00 0a 01 c0 28 04 00000001 01 " MACS "8100 0005 86dd"},
	{17, 37008, 4, "01 00 0012 0a 01 c0 01 0802 0000 01x6 02x6 03x6 1000 aaaa03 000000 0800"},
	{17, 1701, 4, "0002 0001 0001 ff03 0021"},
	{17, 1701, 4, "4802 0040 0001 0001 0001 0001 0021"},
	{17, 1701, 4, "4a02 0040 0001 0001 0001 0001 0002 0000 0021"},
};

static uint32_t build_tunnel(struct build *b, const struct tunnel_case *t, unsigned outer)
{
	ethernet(b, outer == 4 ? 0x0800 : 0x86dd);
	uint32_t ip = outer == 4 ? ipv4(b, t->proto) : ipv6(b, t->proto);
	if (t->proto == 17)
		udp(b, 50000, t->port);
	put_hex(b, t->header);
	uint32_t inside = plain_udp(b, t->version);
	finish_ip(b, ip);
	return inside;
}

static void tunnels_are_entered_if_asked(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof tunnels / sizeof *tunnels; i++) {
		for (unsigned outer = 4; outer <= 6; outer += 2) {
			struct build b = {0};
			struct ow_packet p;
			uint32_t inside = build_tunnel(&b, &tunnels[i], outer);
			assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
			assert_ptr_equal(p.ip, b.data + 14);
			assert_true(p.has_tunnel && p.tunnels == 0 && p.proto == tunnels[i].proto);
			assert_int_equal(decode(&b, 1, b.len, true, &p), OW_DECODE_IP);
			assert_ptr_equal(p.ip, b.data + inside);
			assert_true(p.has_tunnel && p.tunnels == 1 && p.version == tunnels[i].version);
			assert_int_equal(p.l4_len, 28);
			/* Cut before the inner header: never mistaken for something else. */
			for (uint32_t caplen = 14 + (outer == 4 ? 20 : 40); caplen < inside + 20; caplen++) {
				enum ow_decode result = decode(&b, 1, caplen, true, &p);
				if (result == OW_DECODE_IP) /* not even the ports are there */
					assert_true(p.proto == 17 && caplen < 14 + (outer == 4 ? 20 : 40) + 4);
				else
					assert_true(result == OW_DECODE_SHORT || result == OW_DECODE_NOT_IP);
				assert_int_equal(decode(&b, 1, caplen, false, &p), OW_DECODE_IP);
			}
		}
	}
}

static void tunnels_that_are_none(void **state)
{
	(void)state;
	static const struct tunnel_case ordinary[] = {
		{4, 0, 0, "55 00x40"},
		{41, 0, 0, "45 00x40"},
		{47, 0, 0, "0000 0000 00x20"},              /* keep-alive */
		{47, 0, 0, "0000 00fe 00x20"},              /* IS-IS */
		{47, 0, 0, "4000 0800 45 00x40"},           /* source route */
		{47, 0, 0, "2081 880b 0000 0001 00000001"}, /* acknowledgement without payload */
		{97, 0, 0, "2000 00x40"},
		{17, 4789, 0, "00000000 00000000 00x40"},
		{17, 6081, 0, "40000800 00000000 45 00x40"},
		{17, 2152, 0, "32 01 0004 00000000 0001 0000"},                   /* echo request */
		{17, 2152, 0, "34 ff 0038 00000001 0000 00 85 00 00x3 45 00x40"}, /* extension of length 0 */
		{17, 2152, 0, "30 ff 0030 00000001 ff 00x40"},
		{17, 3544, 0, "1234 5678 00x40"},
		{17, 3544, 0, "60000000 1000 3a ff 00x40"},           /* longer than its datagram */
		{17, 1701, 0, "c802 0014 0001 0000 0000 0000 00x20"}, /* control */
		{17, 1701, 0, "0003 0000 00000001 00x20"},            /* version 3 */
		{17, 6080, 0, "2004 0000 45 00x40"},                  /* control */
		{17, 6080, 0, "8004 0000 45 00x40"},                  /* variant 2 */
		{17, 6080, 0, "0011 0000 1234 5678 0010 0000 00x40"}, /* UDP in it */
		{17, 6080, 0, "0004 0000 55 00x40"},
		{17, 6080, 0, "1f04 0000 45 00x40"},                   /* options longer than the packet */
		{17, 37008, 0, "02 00 0001 01 " MACS "0800 45 00x40"}, /* version 2 */
		{17, 37008, 0, "01 05 0001 01 00x40"},                 /* keep-alive */
		{17, 37008, 0, "01 00 0077 01 00x40"},
		{17, 37008, 0, "01 00 0001 00x64"},      /* padding without end */
		{17, 37008, 0, "01 00 0001 0a ff 00x4"}, /* a tag longer than the packet */
		{17, 53, 0, "08000000 00000500 " MACS "0800 45 00x40"},
	};
	for (size_t i = 0; i < sizeof ordinary / sizeof *ordinary; i++) {
		struct build b = {0};
		struct ow_packet p;
		ethernet(&b, 0x0800);
		uint32_t ip = ipv4(&b, ordinary[i].proto);
		if (ordinary[i].proto == 17)
			udp(&b, 50000, ordinary[i].port);
		put_hex(&b, ordinary[i].header);
		finish_ip(&b, ip);
		assert_int_equal(decode(&b, 1, b.len, true, &p), OW_DECODE_IP);
		assert_true(!p.has_tunnel && p.tunnels == 0 && p.ip == b.data + 14);
	}
}

static void tunnel_in_tunnel(void **state)
{
	(void)state;
	for (unsigned depth = 1; depth < 14; depth++) {
		struct build b = {0};
		struct ow_packet p;
		uint32_t at[14];
		ethernet(&b, 0x0800);
		for (unsigned i = 0; i < depth; i++) {
			at[i] = ipv4(&b, 47);
			put_hex(&b, "0000 0800");
		}
		at[depth] = plain_udp(&b, 4);
		for (unsigned i = 0; i < depth; i++)
			finish_ip(&b, at[i]);
		assert_int_equal(decode(&b, 1, b.len, true, &p), OW_DECODE_IP);
		unsigned entered = depth < 8 ? depth : 8; /* the cap */
		assert_ptr_equal(p.ip, b.data + at[entered]);
		assert_int_equal(p.tunnels, entered);
	}
}

static void arp_in_vxlan_is_not_ip(void **state)
{
	(void)state;
	struct build b = {0};
	struct ow_packet p;
	ethernet(&b, 0x0800);
	uint32_t ip = ipv4(&b, 17);
	udp(&b, 50000, 4789);
	put_hex(&b, "08000000 00000500 " MACS "0806 00x28");
	finish_ip(&b, ip);
	assert_int_equal(decode(&b, 1, b.len, true, &p), OW_DECODE_NOT_IP);
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
	assert_true(p.has_tunnel);
}

static void endless_layers_end(void **state)
{
	(void)state;
	static const char *const layer[] = {"8100 0005 ", "894f 0fc2 0203 00000100 " MACS, "6558 " MACS};
	for (size_t k = 0; k < sizeof layer / sizeof *layer; k++) {
		struct build b = {0};
		struct ow_packet p;
		put_hex(&b, MACS);
		for (unsigned i = 0; i < 100; i++)
			put_hex(&b, layer[k]);
		put_hex(&b, "0800");
		plain_udp(&b, 4);
		assert_int_equal(decode(&b, 1, b.len, true, &p), OW_DECODE_SHORT);
	}
	struct build b = {0};
	struct ow_packet p;
	put_hex(&b, MACS "8847");
	for (unsigned i = 0; i < 17; i++)
		put_hex(&b, "00064040");
	put_hex(&b, "00064140");
	plain_udp(&b, 4);
	assert_int_equal(decode(&b, 1, b.len, true, &p), OW_DECODE_SHORT);
}

static void padding_is_left_out(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		struct build b = {0};
		struct ow_packet p;
		ethernet(&b, version == 4 ? 0x0800 : 0x86dd);
		plain_udp(&b, version);
		uint32_t len = b.len;
		put(&b, NULL, 9);
		assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
		assert_ptr_equal(p.end, b.data + len);
		assert_false(p.truncated);
		assert_int_equal(p.ip_len, len - 14);
	}
}

static void offload_writes_length_zero(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		struct build b = {0};
		struct ow_packet p;
		ethernet(&b, version == 4 ? 0x0800 : 0x86dd);
		uint32_t ip = version == 4 ? ipv4(&b, 6) : ipv6(&b, 6);
		tcp(&b, 0x10, 1);
		payload(&b, 3000);
		assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
		assert_int_equal(p.ip_len, b.len - ip);
		assert_false(p.truncated);
		assert_int_equal(p.l4_len, 3020);
		assert_int_equal(decode(&b, 1, 200, false, &p), OW_DECODE_IP);
		assert_int_equal(p.ip_len, b.len - ip);
		assert_true(p.truncated);
	}
}

static void jumbograms(void **state)
{
	(void)state;
	struct build b = {0};
	struct ow_packet p;
	ethernet(&b, 0x86dd);
	ipv6(&b, 0);
	uint32_t option = b.len;
	put_hex(&b, "06 00 c204 00000000");
	tcp(&b, 0x10, 1);
	payload(&b, 1000);
	/* As sent with BIG TCP: the option gives the length. A liar is a truncated packet. */
	ow_store_be32(b.data + option + 4, b.len - 54);
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
	assert_true(p.ip_len == b.len - 14 && p.l4_len == 1020 && p.proto == 6 && !p.truncated);
	ow_store_be32(b.data + option + 4, 100000);
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
	assert_true(p.ip_len == 100040 && p.truncated);
	ow_store_be32(b.data + option + 4, UINT32_MAX);
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_SHORT);
}

static void bad_ip_headers(void **state)
{
	(void)state;
	struct ow_packet p;
	struct build good = {0}, b;
	ethernet(&good, 0x0800);
	plain_udp(&good, 4);
	b = good;
	b.data[14] = 0x44; /* header of 16 bytes */
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_SHORT);
	b = good;
	b.data[14] = 0x55; /* version 5 */
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_SHORT);
	b = good;
	ow_store_be16(b.data + 16, 19); /* shorter than its header */
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_SHORT);
	b = good;
	ow_store_be16(b.data + 16, 1400); /* longer than the wire: as if cut */
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
	assert_true(p.truncated && p.overlong && p.ip_len == 1400 && p.end == b.data + b.len);
	b = good;
	assert_int_equal(decode(&b, 1, b.len - 5, false, &p), OW_DECODE_IP);
	assert_true(p.truncated && !p.overlong);
	b = good;
	b.data[14] = 0x4f; /* options over the end */
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_SHORT);
	ow_store_be16(b.data + 16, 100);
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
	assert_null(p.l4);
	assert_int_equal(p.l4_len, 40);
	struct build empty = {0};
	assert_int_equal(decode(&empty, 1, 0, false, &p), OW_DECODE_SHORT);
	struct ow_frame null = {.linktype = 1};
	assert_int_equal(ow_packet_decode(&null, true, &p), OW_DECODE_SHORT);
}

static void fragments(void **state)
{
	(void)state;
	struct ow_packet p;
	struct build b = {0};
	ethernet(&b, 0x0800);
	plain_udp(&b, 4);
	ow_store_be16(b.data + 20, 0x4000); /* DF alone is no fragment */
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
	assert_true(!p.fragment && p.l4);
	ow_store_be16(b.data + 20, 0x2000);
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
	assert_true(p.fragment && p.l4);
	ow_store_be16(b.data + 20, 0x0001);
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
	assert_true(p.fragment && !p.l4 && p.l4_len == 28);
	struct build v6 = {0};
	ethernet(&v6, 0x86dd);
	uint32_t ip = ipv6(&v6, 44), frag = v6.len;
	put_hex(&v6, "11 00 0001 12345678");
	udp(&v6, 1, 2);
	payload(&v6, 16);
	finish_ip(&v6, ip);
	assert_int_equal(decode(&v6, 1, v6.len, false, &p), OW_DECODE_IP);
	assert_true(p.fragment && p.l4 == v6.data + frag + 8 && p.proto == 17 && p.l4_len == 24);
	ow_store_be16(v6.data + frag + 2, 8);
	assert_int_equal(decode(&v6, 1, v6.len, false, &p), OW_DECODE_IP);
	assert_true(p.fragment && !p.l4 && p.proto == 17 && p.l4_len == 24);
}

/* The first fragment of a tunnel packet has the headers of the packet inside, the rest of which is in others. These are
 * packets of their own. */
static void first_fragments_of_tunnels_are_entered(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof tunnels / sizeof *tunnels; i++) {
		struct build b = {0}, first = {0};
		struct ow_packet p;
		uint32_t inside = build_tunnel(&b, &tunnels[i], 4);
		uint32_t header = tunnels[i].version == 4 ? 20 : 40;
		put(&first, b.data, inside + header + 16);
		finish_ip(&first, 14);
		ow_store_be16(first.data + 20, 0x2000);
		assert_int_equal(decode(&first, 1, first.len, false, &p), OW_DECODE_IP);
		assert_true(p.ip == first.data + 14 && p.has_tunnel && p.fragment && !p.truncated);
		assert_int_equal(decode(&first, 1, first.len, true, &p), OW_DECODE_IP);
		assert_true(p.ip == first.data + inside && p.tunnels == 1 && !p.fragment);
		assert_true(p.truncated && !p.overlong && p.ip_len == header + 28 && p.l4_len == 28);
		ow_store_be16(first.data + 20, 0x2001);
		assert_int_equal(decode(&first, 1, first.len, true, &p), OW_DECODE_IP);
		assert_true(p.ip == first.data + 14 && !p.has_tunnel && p.fragment && !p.l4);
	}
}

static void extension_headers(void **state)
{
	(void)state;
	static const struct {
		uint8_t first, proto;
		bool routed;
		const char *bytes;
	} chains[] = {
		{0, 17, false, "11 00 00x6"},
		{60, 17, false, "11 00 00x6"},
		{43, 17, false, "11 00 00x6"},
		{43, 17, true, "11 02 00 01 00x4 20 01 00x14"},
		{0, 17, true, "3c 00 00x6 2b 00 00x6 33 02 04 01 00x4 20 01 00x14 11 04 0000 00000001 00000002 00x12"},
		{135, 17, false, "11 01 00x14"},
		{139, 17, false, "11 00 00x6"},
		{140, 17, false, "11 00 00x6"},
		{0, 59, false, "3b 00 00x6"},
		{0, 50, false, "32 00 00x6"},
	};
	for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
		struct build b = {0};
		struct ow_packet p;
		ethernet(&b, 0x86dd);
		uint32_t ip = ipv6(&b, chains[i].first);
		put_hex(&b, chains[i].bytes);
		uint32_t l4 = b.len;
		udp(&b, 1, 2);
		finish_ip(&b, ip);
		assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
		assert_true(p.proto == chains[i].proto && p.routed_v6 == chains[i].routed);
		assert_ptr_equal(p.l4, b.data + l4);
		assert_int_equal(p.l4_len, 8);
		for (uint32_t caplen = ip + 40; caplen < l4; caplen++)
			assert_int_equal(decode(&b, 1, caplen, false, &p), OW_DECODE_SHORT);
	}
	/* AH in IPv4, and no more headers than the cap. */
	struct build b = {0};
	struct ow_packet p;
	ethernet(&b, 0x0800);
	uint32_t ip = ipv4(&b, 51);
	put_hex(&b, "11 04 0000 00000001 00000002 00x12");
	uint32_t l4 = b.len;
	udp(&b, 1, 2);
	finish_ip(&b, ip);
	assert_int_equal(decode(&b, 1, b.len, false, &p), OW_DECODE_IP);
	assert_true(p.proto == 17 && p.l4 == b.data + l4);
	for (unsigned n = 15; n <= 17; n++) {
		struct build many = {0};
		ethernet(&many, 0x86dd);
		ip = ipv6(&many, 60);
		for (unsigned i = 0; i < n; i++)
			put_hex(&many, i + 1 < n ? "3c 00 00x6" : "11 00 00x6");
		udp(&many, 1, 2);
		finish_ip(&many, ip);
		assert_int_equal(decode(&many, 1, many.len, false, &p), n <= 16 ? OW_DECODE_IP : OW_DECODE_SHORT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_ethernet),
		cmocka_unit_test(link_types),
		cmocka_unit_test(ethernet_tags),
		cmocka_unit_test(not_ip),
		cmocka_unit_test(tunnels_are_entered_if_asked),
		cmocka_unit_test(tunnels_that_are_none),
		cmocka_unit_test(tunnel_in_tunnel),
		cmocka_unit_test(arp_in_vxlan_is_not_ip),
		cmocka_unit_test(endless_layers_end),
		cmocka_unit_test(padding_is_left_out),
		cmocka_unit_test(offload_writes_length_zero),
		cmocka_unit_test(jumbograms),
		cmocka_unit_test(bad_ip_headers),
		cmocka_unit_test(fragments),
		cmocka_unit_test(first_fragments_of_tunnels_are_entered),
		cmocka_unit_test(extension_headers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
