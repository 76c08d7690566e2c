/* SPDX-License-Identifier: Apache-2.0 */
/* Flow keys from text: what we write we read, and what is wrong is said. */
#include "packet/flow_parse.h"
#include "base/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED 6u

static const struct ow_flow_select five = {.by = OW_FLOW_BY_FIVE_TUPLE}, addresses = {.by = OW_FLOW_BY_ADDRESSES},
				   prefix = {.by = OW_FLOW_BY_PREFIX, .prefix4 = 24, .prefix6 = 48},
				   classes = {.by = OW_FLOW_BY_CLASS, .classes = 2, .class_name = {"voice", "rest"}};

static void round_trips(void **state)
{
	(void)state;
	static const struct ow_flow_select *const selects[] = {&five, &addresses, &prefix};
	static const uint8_t protos[] = {6, 17, 132, 1, 58, 50, 253};
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (int n = 0; n < 20000; n++) {
		const struct ow_flow_select *select = selects[n % 3];
		struct ow_flow_key packet = {.version = ow_random_below(&random, 2) ? 4 : 6}, key, back;
		packet.proto = protos[ow_random_below(&random, sizeof protos)];
		for (int i = 0; i < (packet.version == 4 ? 4 : 16); i++) {
			packet.src[i] = (uint8_t)ow_random_u64(&random);
			packet.dst[i] = (uint8_t)(ow_random_below(&random, 3) ? 0 : ow_random_u64(&random));
		}
		if (packet.proto == 6 || packet.proto == 17 || packet.proto == 132) {
			packet.sport = (uint16_t)ow_random_u64(&random);
			packet.dport = (uint16_t)ow_random_below(&random, 3);
		}
		char text[OW_FLOW_SELECTED_TEXT];
		struct ow_error err = {""};
		ow_flow_select_key(select, &packet, &key);
		ow_flow_select_key_text(select, &key, text);
		if (ow_flow_key_parse(text, select, &back, &err) < 0)
			fail_msg("%s: %s", text, err.text);
		assert_memory_equal(&key, &back, sizeof key);
	}
	struct ow_flow_key key, back;
	ow_flow_select_class_key(1, &key);
	assert_int_equal(ow_flow_key_parse("rest", &classes, &back, NULL), 0);
	assert_memory_equal(&key, &back, sizeof key);
}

static void people_write_it_otherwise(void **state)
{
	(void)state;
	struct ow_flow_key key, other;
	assert_int_equal(ow_flow_key_parse("10.0.0.1:80 > 10.0.0.2:1234 tcp", &five, &key, NULL), 0);
	assert_int_equal(key.sport, 80);
	assert_int_equal(key.dport, 1234);
	assert_int_equal(key.proto, 6);
	static const char *const same[] = {"10.0.0.1:80->10.0.0.2:1234 TCP", " 10.0.0.1:80  >10.0.0.2:1234  6 ",
	                                   "10.0.0.1:80 -> 10.0.0.2:1234 proto 6"};
	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		assert_int_equal(ow_flow_key_parse(same[i], &five, &other, NULL), 0);
		assert_memory_equal(&key, &other, sizeof key);
	}
	/* Any address of the networks. */
	assert_int_equal(ow_flow_key_parse("10.0.0.0/24 > 10.1.0.0/24", &prefix, &key, NULL), 0);
	assert_int_equal(ow_flow_key_parse("10.0.0.77 > 10.1.0.9", &prefix, &other, NULL), 0);
	assert_memory_equal(&key, &other, sizeof key);
}

static void mistakes_are_named(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const struct ow_flow_select *select;
		const char *says;
	} cases[] = {
		{"", &five, "not a flow such as"},
		{"10.0.0.1", &five, "not a flow such as"},
		{"> 10.0.0.2:1 tcp", &five, "not a flow such as"},
		{"10.0.0.1:1 > 10.0.0.2:1", &five, "not a flow such as"},
		{"10.0.0.1:80 > 10.0.0.300:1234 tcp", &five, "'10.0.0.300' is not an IP address"},
		{"10.0.0.1:80 > 10.0.0.3:70000 tcp", &five, "'70000' is not a port"},
		{"10.0.0.1:80 > 10.0.0.3: tcp", &five, "'' is not a port"},
		{"10.0.0.1:80 > 10.0.0.3 tcp", &five, "both ends have a port"},
		{"10.0.0.1:8 > 10.0.0.3:0 icmp", &five, "has no ports"},
		{"10.0.0.1:80 > 10.0.0.3:1 quic", &five, "'quic' is not a known protocol"},
		{"10.0.0.1:80 > 10.0.0.3:1 256", &five, "'256' is not a known protocol"},
		{"10.0.0.1 > 2001:db8::1 icmp", &five, "mixes IPv4 and IPv6"},
		{"[2001:db8::1]x > [2001:db8::1]:2 tcp", &five, "not an address and port"},
		{"10.0.0.0/24 > 10.0.1.0/24 tcp", &five, "not of networks"},
		{"10.0.0.1:80 > 10.0.0.2:1234 tcp", &addresses, "no ports and protocols here"},
		{"10.0.0.0/16 > 10.1.0.0/24", &prefix, "networks of /16, but flows are networks of /24"},
		{"10.0.0.0/33 > 10.1.0.0/24", &prefix, "is not a network"},
		{"video", &classes, "not a class of this recording"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_error err = {""};
		struct ow_flow_key key;
		assert_int_equal(ow_flow_key_parse(cases[i].text, cases[i].select, &key, &err), -22);
		if (!strstr(err.text, cases[i].says))
			fail_msg("'%s': %s", cases[i].text, err.text);
	}
	char text[400];
	memset(text, '>', sizeof text - 1);
	text[sizeof text - 1] = 0;
	struct ow_flow_key key;
	assert_int_equal(ow_flow_key_parse(text, &five, &key, NULL), -22);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips),
		cmocka_unit_test(people_write_it_otherwise),
		cmocka_unit_test(mistakes_are_named),
	};
	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
