/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of a flow: libpcap accepts it, and it accepts the packets of both directions and no others. */
#include "packet/flow_filter.h"

#include "build.h"
#include "packet/packet_filter.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static bool takes(const struct ow_flow_key *key, const struct build *b)
{
	char text[OW_FLOW_FILTER];
	struct ow_packet_filter filter;
	struct ow_error err;
	struct ow_frame frame = {.data = b->data, .caplen = b->len, .len = b->len, .linktype = 1};

	ow_flow_filter(key, text);
	if (ow_packet_filter_compile("test", 1, text, &filter, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	bool taken = ow_packet_filter_takes(&filter, &frame);
	ow_packet_filter_done(&filter);
	return taken;
}

/* A packet from 10.1.2.3 or 2001:db8::1 to 10.4.5.6 or 2001:db8::2. */
static struct build packet_of(unsigned version, uint8_t proto, uint16_t sport, uint16_t dport)
{
	struct build b = {0};
	ethernet(&b, version == 4 ? 0x0800 : 0x86dd);
	uint32_t ip = version == 4 ? ipv4(&b, proto) : ipv6(&b, proto);
	put16(&b, sport);
	put16(&b, dport);
	put(&b, NULL, 24);
	finish_ip(&b, ip);
	return b;
}

static struct ow_flow_key key_of(unsigned version, uint8_t proto, uint16_t sport, uint16_t dport)
{
	struct ow_flow_key key = {.version = (uint8_t)version, .proto = proto, .sport = sport, .dport = dport};
	memcpy(key.src,
	       version == 4 ? (const uint8_t[16]){10, 1, 2, 3} : (const uint8_t[16]){0x20, 1, 0xd, 0xb8, [15] = 1}, 16);
	memcpy(key.dst,
	       version == 4 ? (const uint8_t[16]){10, 4, 5, 6} : (const uint8_t[16]){0x20, 1, 0xd, 0xb8, [15] = 2}, 16);
	return key;
}

static void flows(void **state)
{
	static const uint8_t protos[] = {6, 17, 132, 1, 58, 50, 255};

	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		for (size_t i = 0; i < sizeof protos; i++) {
			uint8_t proto = protos[i];
			bool ports = proto == 6 || proto == 17 || proto == 132;
			struct ow_flow_key key = key_of(version, proto, ports ? 1234 : 0, ports ? 80 : 0), back = key;
			struct build b = packet_of(version, proto, 1234, 80), other = packet_of(version, 103, 1234, 80);
			memcpy(back.src, key.dst, 16);
			memcpy(back.dst, key.src, 16);
			back.sport = key.dport;
			back.dport = key.sport;
			assert_true(takes(&key, &b) && takes(&back, &b));
			assert_false(takes(&key, &other));
			struct build wrong = packet_of(version, proto, 80, 1234);
			assert_int_equal(takes(&key, &wrong), !ports);
			key.dst[3]++;
			assert_false(takes(&key, &b));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(flows)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
