/* SPDX-License-Identifier: Apache-2.0 */
/* One packet in many frames: a filter takes it in all of them or in none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "build.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_are_taken_in_any_frame),
		cmocka_unit_test(filters_of_the_link_layer_see_the_frame),
		cmocka_unit_test(what_is_not_in_a_frame_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
