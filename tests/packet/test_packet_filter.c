/* SPDX-License-Identifier: Apache-2.0 */
/* One packet in many frames: a filter matches it in all of them or in none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "build.h"
#include "capture/filter.h"
#include "packet/packet_filter.h"
#include <errno.h>
#include <string.h>

enum wrapping { PLAIN, TAGGED, PRIORITY, PROVIDER, LABELLED, PPPOE, PADDED, COOKED, RAW, WRAPPINGS };

/* A UDP packet of 48 (IPv4) or 68 (IPv6) bytes. */
static struct ow_frame wrap(struct build *b, enum wrapping wrapping, unsigned version)
{
	uint16_t type = version == 4 ? 0x0800 : 0x86dd, linktype = wrapping == RAW ? 101 : wrapping == COOKED ? 113 : 1;
	static const uint16_t first[WRAPPINGS] = {
		[TAGGED] = 0x8100, [PRIORITY] = 0x8100, [PROVIDER] = 0x88a8, [LABELLED] = 0x8847, [PPPOE] = 0x8864};
	b->len = 0;
	if (linktype == 113)
		PUT(b, 0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 2, 0, 0, (uint8_t)(type >> 8), (uint8_t)type);
	if (linktype == 1)
		ethernet(b, first[wrapping] ? first[wrapping] : type);
	if (wrapping == TAGGED || wrapping == PRIORITY || wrapping == PROVIDER)
		put16(b, wrapping == PRIORITY ? 0x6000 : 5);
	if (wrapping == PROVIDER) {
		put16(b, 0x8100);
		put16(b, 6);
	}
	if (wrapping == TAGGED || wrapping == PRIORITY || wrapping == PROVIDER)
		put16(b, type);
	if (wrapping == LABELLED)
		PUT(b, 0, 1, 0x01, 64);
	if (wrapping == PPPOE)
		PUT(b, 0x11, 0, 0, 1, 0, (uint8_t)(version == 4 ? 50 : 70), 0, (uint8_t)(version == 4 ? 0x21 : 0x57));
	plain_udp(b, version);
	if (wrapping == PADDED)
		payload(b, 10);
	return frame_of(b, linktype);
}

static bool takes(const char *expression, const struct ow_frame *frame)
{
	struct ow_packet_filter filter;
	struct ow_error err;
	if (ow_packet_filter_compile("test", frame->linktype, expression, &filter, &err) < 0)
		fail_msg("%s: %s", expression, err.text);
	bool taken = ow_packet_filter_takes(&filter, frame);
	ow_packet_filter_done(&filter);
	return taken;
}

static void packets_are_taken_in_any_frame(void **state)
{
	(void)state;
	static const struct {
		const char *expression;
		bool v4, v6;
	} cases[] = {
		{"", true, true},
		{"udp", true, true},
		{"not udp", false, false},
		{"tcp", false, false},
		{"ip", true, false},
		{"ip6 and udp port 4001", false, true},
		{"src host 10.1.2.3", true, false},
		{"not arp and not stp", true, true},
		{"arp or udp", true, true},
		/* In an untagged Ethernet frame without padding. */
		{"len = 62", true, false},
		{"less 62", true, false},
		{"greater 82", false, true},
		/* Behind the packet, where padding may be. */
		{"udp[27] >= 0", true, false},
		{"udp[28] >= 0", false, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (enum wrapping w = PLAIN; w < WRAPPINGS; w++) {
			struct build b;
			struct ow_frame frame = wrap(&b, w, 4);
			if (takes(cases[i].expression, &frame) != cases[i].v4)
				fail_msg("%s: IPv4, frame %d", cases[i].expression, w);
			frame = wrap(&b, w, 6);
			if (takes(cases[i].expression, &frame) != cases[i].v6)
				fail_msg("%s: IPv6, frame %d", cases[i].expression, w);
		}
	}
}

static void filters_of_the_link_layer_see_the_frame(void **state)
{
	(void)state;
	static const struct {
		const char *expression;
		enum wrapping wrapping;
		bool taken;
	} cases[] = {
		{"vlan 5 and udp", TAGGED, true},
		{"vlan 5 and udp", PLAIN, false},
		{"vlan 6 and udp", TAGGED, false},
		{"vlan 0 and udp", PRIORITY, true},
		{"vlan 5 and vlan 6 and udp", PROVIDER, true},
		{"not vlan", PLAIN, true},
		{"not vlan", TAGGED, false},
		{"udp or (vlan and udp)", PLAIN, true},
		{"udp or (vlan and udp)", TAGGED, true},
		{"mpls 16", LABELLED, true},
		{"mpls 16", PLAIN, false},
		{"ether[12:2] = 0x8100", TAGGED, true},
		{"ether host 02:00:00:00:00:01", TAGGED, true},
		{"ether host 02:00:00:00:00:03", TAGGED, false},
		{"broadcast", PLAIN, false},
		{"arp", PLAIN, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct build b;
		struct ow_frame frame = wrap(&b, cases[i].wrapping, 4);
		if (takes(cases[i].expression, &frame) != cases[i].taken)
			fail_msg("%s: frame %d", cases[i].expression, cases[i].wrapping);
	}
}

static void what_is_not_in_a_frame_is_refused(void **state)
{
	(void)state;
	static const char *const kernels[] = {"inbound", "outbound and udp", "ifindex 3"};
	struct ow_packet_filter filter;
	struct ow_error err;
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
		assert_int_equal(ow_packet_filter_compile("eth0", 1, kernels[i], &filter, &err), -ENOTSUP);
		assert_non_null(strstr(err.text, kernels[i]));
		assert_non_null(strstr(err.text, "direction"));
	}
	assert_int_equal(ow_packet_filter_compile("eth0", 1, "udp prot", &filter, &err), -EINVAL);
	assert_non_null(strstr(err.text, "udp prot"));
	assert_int_equal(ow_packet_filter_compile("any", 113, "vlan 5", &filter, &err), -EINVAL);
}

static void filters_tell_how_far_they_look(void **state)
{
	(void)state;
	static const struct {
		const char *expression;
		bool payload;
	} cases[] = {
		{"tcp", false},
		{"host 10.1.2.3 and tcp port 443", false},
		{"net 10.0.0.0/8 or ip6 net 2001:db8::/32", false},
		{"portrange 1000-2000 or icmp or ip6", false},
		{"tcp[13] & 2 != 0", false},
		{"tcp[20:4] = 1", false}, /* may be payload, but is kept */
		{"tcp[56:4] = 1", false},
		{"tcp[58:4] = 1", true},
		{"tcp[200] = 1", true},
		{"ip[116:4] = 1", false},
		{"ip[118:4] = 1", true},
		{"tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420", true},
		{"greater 1000", false},
		{"vlan 5 and tcp port 80", false},
		{"ether[140:4] = 1", false},
		{"ether[142:4] = 1", true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_packet_filter filter;
		struct ow_error err;
		if (ow_packet_filter_compile("test", 1, cases[i].expression, &filter, &err) < 0)
			fail_msg("%s", err.text);
		if (ow_packet_filter_needs_payload(&filter) != cases[i].payload)
			fail_msg("%s", cases[i].expression);
		ow_packet_filter_done(&filter);
	}
	assert_false(ow_packet_filter_needs_payload(&(struct ow_packet_filter){0}));
}

/* The bytes that the kernel keeps of a frame. */
static u_int kept_of(const struct build *b, uint16_t linktype, const char *expression)
{
	struct bpf_program program;
	struct ow_error err;
	assert_int_equal(ow_filter_compile_kernel("test", linktype, 4096, expression, &program, &err), 0);
	assert_int_equal(ow_filter_cut_tcp("test", linktype, 4096, &program, &err), 0);
	u_int kept = bpf_filter(program.bf_insns, b->data, b->len, b->len);
	pcap_freecode(&program);
	return kept;
}

/* A packet of `proto` with a few bytes changed, behind so many tags. */
static struct build packet_of(unsigned version, uint8_t proto, unsigned tags, uint32_t bytes)
{
	struct build b = {0};
	uint16_t type = version == 4 ? 0x0800 : 0x86dd;
	ethernet(&b, tags ? 0x88a8 : type);
	for (unsigned i = 0; i < tags; i++) {
		put16(&b, 5);
		put16(&b, i + 1 < tags ? 0x8100 : type);
	}
	uint32_t ip = version == 4 ? ipv4(&b, proto) : ipv6(&b, proto);
	tcp(&b, 0x10, 1);
	payload(&b, bytes);
	finish_ip(&b, ip);
	return b;
}

/* Filters of what changes between two points get a word of caution, all others none. */
static void caution(void **state)
{
	(void)state;
	static const char *const cautious[] = {"ip[8] > 62", "ip[1] & 0xfc = 0xb8", "ip6[7] = 64",  "greater 1200",
	                                       "less 100",   "len <= 60",           "ip[2:2] > 500"};
	static const char *const others[] = {"udp",
	                                     "tcp port 443",
	                                     "udp portrange 1-500 and net 10.1.0.0/16",
	                                     "icmp or icmp6",
	                                     "src host 192.0.2.1 and not port 53",
	                                     "ip6 and dst net 2001:db8::/32",
	                                     "ip multicast or ip6 multicast",
	                                     "tcp[tcpflags] & tcp-syn != 0",
	                                     "ip[6:2] & 0x1fff != 0",
	                                     "no such filter"};
	for (size_t i = 0; i < sizeof cautious / sizeof *cautious; i++)
		assert_non_null(ow_packet_filter_caution(cautious[i]));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		if (ow_packet_filter_caution(others[i]))
			fail_msg("%s: %s", others[i], ow_packet_filter_caution(others[i]));
	}
}

static void only_tcp_is_cut(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		for (unsigned tags = 0; tags <= 3; tags++) {
			struct build data = packet_of(version, 6, tags, 1000), udp = packet_of(version, 17, tags, 1000);
			uint32_t expected = tags < 3 ? OW_FILTER_TCP_BYTES : 4096;
			assert_int_equal(kept_of(&data, 1, NULL), expected);
			assert_int_equal(kept_of(&data, 1, "tcp or udp"), expected);
			assert_int_equal(kept_of(&data, 1, "udp"), tags ? expected : 0);
			assert_int_equal(kept_of(&data, 1, "greater 3000"), expected); /* is decided later */
			assert_int_equal(kept_of(&udp, 1, NULL), 4096);
		}
		struct build tiny = packet_of(version, 6, 0, 0), raw = packet_of(version, 6, 0, 1000);
		assert_int_equal(kept_of(&tiny, 1, NULL), 4096);
		tiny.len = 14; /* no packet in it */
		assert_int_equal(kept_of(&tiny, 1, NULL), 4096);
		raw.len -= 14;
		memmove(raw.data, raw.data + 14, raw.len);
		assert_int_equal(kept_of(&raw, 101, NULL), OW_FILTER_TCP_BYTES);
		raw.data[0] ^= 0x10; /* neither version */
		assert_int_equal(kept_of(&raw, 101, NULL), 4096);
	}
	for (uint8_t i = 6; i <= 7; i++) {
		struct build fragment = packet_of(4, 6, 0, 1000);
		fragment.data[14 + i] = 0x20;
		assert_int_equal(kept_of(&fragment, 1, NULL), 4096);
	}
	struct build unfragmented = packet_of(4, 6, 0, 1000);
	unfragmented.data[14 + 6] = 0x40;
	assert_int_equal(kept_of(&unfragmented, 1, NULL), OW_FILTER_TCP_BYTES);
}

/* A copy takes what the filter takes. One that examines frames is only good for frames of its link type. */
static void copies_take_the_same(void **state)
{
	(void)state;
	struct build b;
	for (enum wrapping wrapping = 0; wrapping < WRAPPINGS; wrapping++) {
		const struct ow_frame frame = wrap(&b, wrapping, 4);
		static const char *const expressions[] = {"udp", "tcp", "ether[12:2] = 0x8100"};
		for (size_t i = 0; i < 3; i++) {
			struct ow_packet_filter filter, copy = {0};
			struct ow_error err;
			assert_int_equal(ow_packet_filter_compile("test", 1, expressions[i], &filter, &err), 0);
			int r = ow_packet_filter_copy(&filter, frame.linktype, &copy);
			assert_int_equal(r, i == 2 && frame.linktype != 1 ? -ENOTSUP : 0);
			bool taken = ow_packet_filter_takes(&filter, &frame);
			ow_packet_filter_done(&filter);
			assert_true(r < 0 || ow_packet_filter_takes(&copy, &frame) == taken);
			ow_packet_filter_done(&copy);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_are_taken_in_any_frame),
		cmocka_unit_test(filters_of_the_link_layer_see_the_frame),
		cmocka_unit_test(what_is_not_in_a_frame_is_refused),
		cmocka_unit_test(filters_tell_how_far_they_look),
		cmocka_unit_test(caution),
		cmocka_unit_test(only_tcp_is_cut),
		cmocka_unit_test(copies_take_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
