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
static enum ow_decode decode(const struct build *b, uint16_t linktype, uint32_t caplen, bool inner, struct ow_packet *ret)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_ethernet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
