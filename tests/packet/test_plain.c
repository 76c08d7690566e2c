/* SPDX-License-Identifier: Apache-2.0 */
/* The fast path for plain packets must give the same result as the slow one, and leave other packets to it. */
#include "base/bytes.h"
#include "base/random.h"
#include "packet/flow.h"
#include "packet/identity.h"
#include "packet/packet.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define SEED   20261
#define FRAMES 200000
#define ROOM   1024

/* A frame that is nearly always plain, with single things wrong now and then. */
static void make_frame(struct ow_random *r, uint8_t bytes[ROOM], struct ow_frame *frame)
{
	for (int i = 0; i < ROOM; i += 8) {
		uint64_t word = ow_random_u64(r);
		memcpy(bytes + i, &word, 8);
	}
	bool tagged = ow_random_below(r, 4) == 0, tcp = ow_random_below(r, 2);
	uint32_t offset = tagged ? 18 : 14, header = tcp ? 40 : 28;
	uint32_t total = header + (uint32_t)ow_random_below(r, ROOM - 18 - 40);
	if (tagged)
		ow_store_be16(bytes + 12, 0x8100);
	ow_store_be16(bytes + offset - 2, 0x0800);
	uint8_t *ip = bytes + offset;
	ip[0] = 0x45;
	ow_store_be16(ip + 2, (uint16_t)total);
	ow_store_be16(ip + 6, ow_random_below(r, 2) ? 0x4000 : 0);
	ip[9] = tcp ? 6 : 17;
	/* Few flows, so that numbers repeat. */
	memset(ip + 12, 10, 8);
	ip[15] = (uint8_t)ow_random_below(r, 4);
	ip[20] = ip[22] = 8;
	ip[21] = (uint8_t)ow_random_below(r, 4);
	ip[23] = (uint8_t)ow_random_below(r, 256);
	uint32_t len = offset + total + (uint32_t)ow_random_below(r, 8); /* with padding */
	uint32_t caplen = ow_random_below(r, 4) ? len : (uint32_t)ow_random_below(r, len + 1);
	*frame = (struct ow_frame){.data = bytes, .caplen = caplen, .len = len, .linktype = 1};
	if (ow_random_below(r, 4) == 0) /* something odd in the headers */
		bytes[12 + ow_random_below(r, 40)] ^= (uint8_t)(1u << ow_random_below(r, 8));
	if (ow_random_below(r, 50) == 0)
		frame->linktype = 101;
}

static void short_way_equals_long_way(void **state)
{
	(void)state;
	static const uint32_t limits[] = {UINT32_MAX, 40, 60, 100};
	struct ow_random r;
	struct ow_flow_table *shorts, *longs;
	ow_random_seed(&r, SEED);
	assert_int_equal(ow_flow_table_create(1, &shorts), 0);
	assert_int_equal(ow_flow_table_create(1, &longs), 0);
	unsigned plains = 0;
	for (unsigned i = 0; i < FRAMES; i++) {
		uint8_t bytes[ROOM];
		struct ow_frame frame;
		struct ow_identity identity = {.level = OW_LEVEL_IP, .hash_limit = limits[i % 4]};
		struct ow_plain plain;
		struct ow_packet packet;
		struct ow_packet_id id;
		struct ow_flow_key key;
		ow_identity_seed(&identity, SEED);
		make_frame(&r, bytes, &frame);
		if (!ow_identity_of_plain(&identity, &frame, &plain))
			continue;
		plains++;
		for (int inner = 0; inner < 2; inner++) {
			assert_int_equal(ow_packet_decode(&frame, inner, &packet), OW_DECODE_IP);
			assert_int_equal(ow_identity_of_packet(&identity, &packet, &id), 0);
			assert_true(id.id == plain.id && id.len == 0);
			assert_false(packet.has_tunnel);
		}
		assert_int_equal(plain.ip_len, packet.ip_len);
		assert_int_equal(plain.captured, packet.end - packet.ip);
		assert_int_equal(plain.captured < plain.ip_len, packet.truncated);
		ow_flow_key_of_packet(&packet, &key);
		uint32_t number[2];
		const struct ow_plain twice[2] = {plain, plain}; /* the second one from the cache */
		ow_flow_table_number_plain(shorts, twice, 2, number);
		assert_int_equal(number[0], ow_flow_table_number(longs, &key));
		assert_int_equal(number[1], number[0]);
		assert_memory_equal(ow_flow_table_key(shorts, number[0]), &key, sizeof key);
	}
	print_message("seed %d: %u of %d frames were plain\n", SEED, plains, FRAMES);
	assert_true(plains > FRAMES / 3);
	ow_flow_table_free(shorts);
	ow_flow_table_free(longs);
}

static void many_at_once_end_at_the_first_that_is_not_plain(void **state)
{
	(void)state;
	static uint8_t bytes[64][ROOM];
	struct ow_random r;
	struct ow_identity identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	ow_random_seed(&r, SEED);
	ow_identity_seed(&identity, SEED);
	for (unsigned round = 0; round < 1000; round++) {
		struct ow_frame frame[64];
		struct ow_plain plain[64], one;
		for (unsigned i = 0; i < 64; i++)
			make_frame(&r, bytes[i], &frame[i]);
		size_t n = ow_identity_of_plains(&identity, frame, 64, 0, plain);
		for (size_t i = 0; i < n; i++) {
			assert_true(ow_identity_of_plain(&identity, &frame[i], &one));
			assert_true(one.id == plain[i].id && one.addresses == plain[i].addresses);
			assert_true(one.ports == plain[i].ports && one.ip_len == plain[i].ip_len);
		}
		assert_true(n == 64 || !ow_identity_of_plain(&identity, &frame[n], &one));
		assert_int_equal(ow_identity_of_plains(&identity, frame, n, 0, plain), n);
	}
}

/* Whatever way it is hashed: no byte of the payload is left out, and none stands for another. */
static void every_byte_of_every_length_counts(void **state)
{
	(void)state;
	enum { HEADERS = 14 + 20 + 8, LONGEST = 300 };
	uint8_t bytes[HEADERS + LONGEST] = {0};
	struct ow_identity identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	ow_identity_seed(&identity, SEED);
	memcpy(bytes + 12, (const uint8_t[]){0x08, 0, 0x45}, 3);
	bytes[23] = 17;
	for (uint32_t len = 0; len <= LONGEST; len++) {
		struct ow_frame frame = {.data = bytes, .caplen = HEADERS + len, .len = HEADERS + len, .linktype = 1};
		static uint64_t seen[LONGEST + 1];
		bytes[16] = (uint8_t)((28 + len) >> 8);
		bytes[17] = (uint8_t)(28 + len);
		for (uint32_t at = 0; at <= len; at++) { /* the last one: nothing changed */
			struct ow_plain plain;
			if (at < len)
				bytes[HEADERS + at] ^= 1;
			assert_true(ow_identity_of_plain(&identity, &frame, &plain));
			if (at < len)
				bytes[HEADERS + at] ^= 1;
			for (uint32_t i = 0; i < at; i++)
				assert_true(seen[i] != plain.id);
			seen[at] = plain.id;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_way_equals_long_way),
		cmocka_unit_test(many_at_once_end_at_the_first_that_is_not_plain),
		cmocka_unit_test(every_byte_of_every_length_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
