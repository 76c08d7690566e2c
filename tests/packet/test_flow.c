/* SPDX-License-Identifier: Apache-2.0 */
#include "build.h"
#include "packet/flow.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static struct ow_flow_key key_of(const struct build *b)
{
	struct ow_frame frame = frame_of(b, 1);
	struct ow_packet packet;
	struct ow_flow_key key;
	memset(&key, 0xff, sizeof key);
	assert_int_equal(ow_packet_decode(&frame, false, &packet), OW_DECODE_IP);
	ow_flow_key_of_packet(&packet, &key);
	return key;
}

static void expect_text(const struct ow_flow_key *key, const char *expected)
{
	char text[OW_FLOW_TEXT];
	ow_flow_key_text(key, text);
	assert_string_equal(text, expected);
}

static void keys_of_packets(void **state)
{
	(void)state;
	struct build b = {0};
	ethernet(&b, 0x0800);
	plain_udp(&b, 4);
	struct ow_flow_key key = key_of(&b);
	static const uint8_t src[16] = {10, 1, 2, 3}, dst[16] = {10, 4, 5, 6};
	assert_memory_equal(key.src, src, 16);
	assert_memory_equal(key.dst, dst, 16);
	assert_true(key.sport == 4000 && key.dport == 4001 && key.proto == 17 && key.version == 4 &&
	            key.ethertype == 0);
	expect_text(&key, "10.1.2.3:4000 > 10.4.5.6:4001 udp");
	ow_store_be16(b.data + 20, 0x2000); /* the first fragment has ports, a later one has not */
	key = key_of(&b);
	assert_true(key.sport == 4000 && key.dport == 4001);
	ow_store_be16(b.data + 20, 0x0010);
	key = key_of(&b);
	assert_true(key.sport == 0 && key.dport == 0 && key.proto == 17);
	expect_text(&key, "10.1.2.3 > 10.4.5.6 udp");
	struct build v6 = {0};
	ethernet(&v6, 0x86dd);
	plain_udp(&v6, 6);
	key = key_of(&v6);
	expect_text(&key, "[2001:db8::1]:4000 > [2001:db8::2]:4001 udp");
	v6.data[14 + 6] = 50;
	key = key_of(&v6);
	expect_text(&key, "2001:db8::1 > 2001:db8::2 esp");
	v6.data[14 + 6] = 200;
	key = key_of(&v6);
	expect_text(&key, "2001:db8::1 > 2001:db8::2 proto 200");
}

static void keys_of_frames(void **state)
{
	(void)state;
	struct build b = {0};
	struct ow_flow_key key;
	ethernet(&b, 0x0806);
	struct ow_frame frame = frame_of(&b, 1);
	ow_flow_key_of_frame(&frame, &key);
	expect_text(&key, "02:00:00:00:00:02 > 02:00:00:00:00:01 0x0806");
	assert_true(key.version == 0 && key.ethertype == 0x0806);
	frame.caplen = 13;
	ow_flow_key_of_frame(&frame, &key);
	expect_text(&key, "00:00:00:00:00:00 > 00:00:00:00:00:00 0x0000");
	struct build cooked = {0};
	PUT(&cooked, 0, 0, 0, 1, 0, 6, 2, 1, 1, 1, 1, 1, 0, 0, 0x08, 0x06);
	frame = frame_of(&cooked, 113);
	ow_flow_key_of_frame(&frame, &key);
	expect_text(&key, "02:01:01:01:01:01 > 00:00:00:00:00:00 0x0806");
	struct build cooked2 = {0};
	PUT(&cooked2, 0x08, 0x06, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 1, 1, 1, 1, 1, 0, 0);
	frame = frame_of(&cooked2, 276);
	ow_flow_key_of_frame(&frame, &key);
	expect_text(&key, "02:01:01:01:01:01 > 00:00:00:00:00:00 0x0806");
}

/* The longest text there is fits. */
static void longest_text(void **state)
{
	(void)state;
	struct ow_flow_key key;
	char text[OW_FLOW_TEXT];
	memset(&key, 0xff, sizeof key);
	key.version = 6;
	ow_flow_key_text(&key, text);
	assert_int_equal(text[strlen(text) - 1], '5');
}

static struct ow_flow_key key_number(uint32_t n)
{
	struct ow_flow_key key = {.version = 4, .proto = 6, .sport = (uint16_t)n, .dport = 80};
	ow_store_be32(key.src, n / 1000);
	return key;
}

static void numbers_in_order_of_appearance(void **state)
{
	(void)state;
	struct ow_flow_table *table;
	assert_int_equal(ow_flow_table_create(3, &table), 0);
	struct ow_flow_key key = key_number(7);
	assert_int_equal(ow_flow_table_find(table, &key), UINT32_MAX);
	assert_int_equal(ow_flow_table_count(table), 0);
	assert_int_equal(ow_flow_table_number(table, &key), 0);
	const struct ow_flow_key *first = ow_flow_table_key(table, 0);
	for (uint32_t i = 0; i < 100000; i++) {
		key = key_number(i + 100);
		assert_int_equal(ow_flow_table_number(table, &key), i + 1);
	}
	assert_ptr_equal(ow_flow_table_key(table, 0), first); /* growth moves no key */
	for (uint32_t i = 0; i < 100000; i++) {
		key = key_number(i + 100);
		assert_int_equal(ow_flow_table_number(table, &key), i + 1);
		assert_int_equal(ow_flow_table_find(table, &key), i + 1);
		assert_memory_equal(ow_flow_table_key(table, i + 1), &key, sizeof key);
	}
	assert_int_equal(ow_flow_table_count(table), 100001);
	ow_flow_table_reset(table);
	assert_int_equal(ow_flow_table_count(table), 0);
	assert_int_equal(ow_flow_table_find(table, &key), UINT32_MAX);
	assert_int_equal(ow_flow_table_number(table, &key), 0);
	ow_flow_table_free(table);
	ow_flow_table_free(NULL);
}

/* Over the cap flows are told apart by their networks, and when these are too many, not at all. */
/* Plain packets are numbered by the fields of their headers, others by their keys: with the same result. */
static void plain_packets_have_the_numbers_of_their_keys(void **state)
{
	(void)state;
	enum { FLOWS = 20000, BATCH = 50 };
	struct ow_flow_table *table;
	assert_int_equal(ow_flow_table_create(7, &table), 0);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned first = 0; first < FLOWS; first += BATCH) {
			struct ow_plain plain[BATCH];
			struct ow_flow_key key[BATCH];
			uint32_t number[BATCH];
			for (unsigned i = 0; i < BATCH; i++) {
				unsigned flow = first + i;
				struct build b = {0};
				ethernet(&b, 0x0800);
				uint32_t ip = plain_udp(&b, 4);
				ow_store_be16(b.data + ip + 12, (uint16_t)(flow / 7));
				ow_store_be16(b.data + ip + 20, (uint16_t)flow);
				plain[i] = (struct ow_plain){.addresses = ow_load_le64(b.data + ip + 12),
				                             .ports = ow_load_le32(b.data + ip + 20),
				                             .proto = 17};
				key[i] = key_of(&b);
				/* Some flows are known by their keys before. */
				if (flow % 3 == 0)
					assert_true(ow_flow_table_number(table, &key[i]) < FLOWS);
			}
			ow_flow_table_number_plain(table, plain, BATCH, number);
			for (unsigned i = 0; i < BATCH; i++) {
				assert_int_equal(number[i], ow_flow_table_find(table, &key[i]));
				assert_memory_equal(ow_flow_table_key(table, number[i]), &key[i], sizeof key[i]);
			}
		}
		assert_int_equal(ow_flow_table_count(table), FLOWS);
	}
	ow_flow_table_free(table);
}

static void networks_share_a_number_over_the_cap(void **state)
{
	(void)state;
	struct ow_flow_table *table;
	struct ow_flow_key key;
	const uint32_t fine = OW_FLOWS_MAX - OW_FLOWS_COARSE;
	assert_int_equal(ow_flow_table_create(3, &table), 0);
	for (uint32_t i = 0; i < fine; i++) {
		key = key_number(i);
		assert_int_equal(ow_flow_table_number(table, &key), i);
	}
	assert_int_equal(ow_flow_table_count(table), fine);
	assert_false(ow_flow_table_is_coarse(table));
	for (uint32_t i = 0; i < OW_FLOWS_COARSE + 10; i++) {
		uint32_t number = i < OW_FLOWS_COARSE - 1 ? fine + i : OW_FLOWS_MAX - 1;
		for (uint32_t host = 1; host < 4; host++) {
			key = (struct ow_flow_key){.version = 4, .proto = 6, .sport = (uint16_t)host, .dport = 80};
			ow_store_be32(key.src, 10u << 24 | host);
			ow_store_be32(key.dst, (i + 1) << 16 | host);
			if (i >= OW_FLOWS_COARSE - 1)
				key.src[1] = (uint8_t)(i - OW_FLOWS_COARSE + 2); /* 2^16 networks are not enough */
			assert_int_equal(ow_flow_table_number(table, &key), number);
		}
	}
	assert_true(ow_flow_table_is_coarse(table));
	assert_int_equal(ow_flow_table_count(table), OW_FLOWS_MAX);
	key = key_number(5);
	assert_int_equal(ow_flow_table_number(table, &key), 5);
	assert_int_equal(ow_flow_table_key(table, fine)->src[0], 10);
	assert_int_equal(ow_flow_table_key(table, fine)->dport, 0);
	const struct ow_flow_key none = {0};
	assert_memory_equal(ow_flow_table_key(table, OW_FLOWS_MAX - 1), &none, sizeof none);
	ow_flow_table_reset(table);
	assert_false(ow_flow_table_is_coarse(table));
	ow_flow_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_packets),
		cmocka_unit_test(keys_of_frames),
		cmocka_unit_test(longest_text),
		cmocka_unit_test(numbers_in_order_of_appearance),
		cmocka_unit_test(plain_packets_have_the_numbers_of_their_keys),
		cmocka_unit_test(networks_share_a_number_over_the_cap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
