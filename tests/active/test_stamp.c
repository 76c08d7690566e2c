/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STAMP's packets compared with bytes composed by hand from RFC 8762 and RFC 8972 (HMACs by Python's hmac module), and
 * encoding and decoding of every packet.
 */
#include "active/stamp.h"

#include "base/bytes.h"
#include "base/random.h"
#include "base/time.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED 8762

static const uint8_t secret[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const struct ow_stamp_key key = {secret, sizeof secret};

/* 2023-11-14 22:13:20.5 UTC: NTP seconds 1700000000 + 2208988800 = 0xe8fe6f80, half a second is 0x80000000. */
#define T_NS  (INT64_C(1700000000500000000))
#define T_NTP UINT64_C(0xe8fe6f8080000000)
/* 50 ns are 214.7 / 2^32 s: 215. */
static const struct ow_clock_state good = {true, 50};
static const struct ow_stamp_probe probe = {7, T_NTP, 0x80d7, 0xbeef};
static const struct ow_stamp_reply reply = {.sequence = 9,
                                            .sent = T_NTP + 5,
                                            .received = T_NTP + 4,
                                            .error = 0x9234,
                                            .session = 0xbeef,
                                            .probe = {7, T_NTP, 0x80d7, 0xbeef},
                                            .probe_ttl = 254};

static void assert_probe(const struct ow_stamp_probe *a, const struct ow_stamp_probe *b)
{
	assert_true(a->sequence == b->sequence && a->sent == b->sent && a->error == b->error &&
	            a->session == b->session);
}

static void assert_reply(const struct ow_stamp_reply *a, const struct ow_stamp_reply *b)
{
	assert_true(a->sequence == b->sequence && a->sent == b->sent && a->received == b->received &&
	            a->error == b->error && a->session == b->session && a->probe_ttl == b->probe_ttl);
	assert_probe(&a->probe, &b->probe);
}

static void assert_hex(const uint8_t *bytes, size_t size, const char *hex)
{
	char text[4 * OW_STAMP_BASE_KEYED] = "";
	assert_true(2 * size < sizeof text);
	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	assert_string_equal(text, hex);
}

#define ZERO4  "00000000"
#define ZERO12 ZERO4 ZERO4 ZERO4
#define ZERO28 ZERO12 ZERO12 ZERO4
#define ZERO68 ZERO28 ZERO28 ZERO12
#define TIME   "e8fe6f8080000000"

static void test_probe_bytes(void **state)
{
	(void)state;
	uint8_t packet[OW_STAMP_BASE_KEYED + 6];
	struct ow_stamp_probe back;
	ow_stamp_probe_write(&probe, NULL, packet, OW_STAMP_BASE);
	assert_hex(packet, OW_STAMP_BASE, "00000007" TIME "80d7beef" ZERO28);
	assert_int_equal(ow_stamp_probe_read(packet, OW_STAMP_BASE, NULL, &back), 0);
	assert_probe(&back, &probe);
	ow_stamp_probe_write(&probe, &key, packet, OW_STAMP_BASE_KEYED);
	assert_hex(packet, OW_STAMP_BASE_KEYED,
	           "00000007" ZERO12 TIME "80d7beef" ZERO68 "16445b4c4d7c8d71770c4f76721368cd");
	assert_int_equal(ow_stamp_probe_read(packet, OW_STAMP_BASE_KEYED, &key, &back), 0);
	assert_probe(&back, &probe);
	/* Padding is a TLV, with U as every probe has it. */
	ow_stamp_probe_write(&probe, NULL, packet, OW_STAMP_BASE + 6);
	assert_hex(packet + OW_STAMP_BASE, 6,
	           "80010002"
	           "0000");
}

static void test_reply_bytes(void **state)
{
	(void)state;
	uint8_t request[OW_STAMP_BASE_KEYED], packet[OW_STAMP_BASE_KEYED];
	struct ow_stamp_reply back;
	ow_stamp_probe_write(&probe, NULL, request, OW_STAMP_BASE);
	assert_int_equal(ow_stamp_reply_write(request, OW_STAMP_BASE, &reply, NULL, packet), 0);
	assert_hex(packet, OW_STAMP_BASE,
	           "00000009"
	           "e8fe6f8080000005"
	           "9234beef"
	           "e8fe6f8080000004"
	           "00000007" TIME "80d70000"
	           "fe000000");
	assert_int_equal(ow_stamp_reply_read(packet, OW_STAMP_BASE, NULL, &back), 0);
	assert_reply(&back, &reply);
	ow_stamp_probe_write(&probe, &key, request, OW_STAMP_BASE_KEYED);
	assert_int_equal(ow_stamp_reply_write(request, OW_STAMP_BASE_KEYED, &reply, &key, packet), 0);
	assert_hex(packet, OW_STAMP_BASE_KEYED,
	           "00000009" ZERO12 "e8fe6f8080000005"
	           "9234beef" ZERO4 "e8fe6f8080000004" ZERO4 ZERO4 "00000007" ZERO12 TIME "80d70000" ZERO4
	           "fe000000" ZERO12 "f9fb8d6629068b7523f499a23ec49004");
	assert_int_equal(ow_stamp_reply_read(packet, OW_STAMP_BASE_KEYED, &key, &back), 0);
	assert_reply(&back, &reply);
}

/* Any changed bit of what is covered, or of the HMAC, and any other key is noticed. */
static void test_wrong_key(void **state)
{
	(void)state;
	uint8_t packet[OW_STAMP_BASE_KEYED];
	const uint8_t another[16] = {1};
	const struct ow_stamp_key other = {another, sizeof another};
	struct ow_stamp_probe back;
	struct ow_stamp_reply answer;
	ow_stamp_probe_write(&probe, &key, packet, sizeof packet);
	assert_int_equal(ow_stamp_probe_read(packet, sizeof packet, &other, &back), -EBADMSG);
	for (unsigned bit = 0; bit < 8 * sizeof packet; bit++) {
		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(ow_stamp_probe_read(packet, sizeof packet, &key, &back), -EBADMSG);
		assert_int_equal(ow_stamp_reply_read(packet, sizeof packet, &key, &answer), -EBADMSG);
		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(ow_stamp_probe_read(packet, sizeof packet, &key, &back), 0);
}

/* Too short is refused; TWAMP Light's lengths are taken, and answered as long as they came. */
static void test_lengths(void **state)
{
	(void)state;
	uint8_t request[OW_STAMP_BASE_KEYED] = {0}, packet[OW_STAMP_BASE_KEYED];
	struct ow_stamp_probe back;
	struct ow_stamp_reply answer;
	memset(request, 0xee, sizeof request);
	for (size_t size = 0; size <= OW_STAMP_BASE; size++) {
		int r = ow_stamp_probe_read(request, size, NULL, &back);
		assert_int_equal(r, size < OW_STAMP_PROBE_MIN ? -EMSGSIZE : 0);
		if (r == 0)
			assert_int_equal(back.session, size < OW_STAMP_BASE ? 0 : 0xeeee);
		memset(packet, 0xaa, sizeof packet);
		assert_int_equal(ow_stamp_reply_write(request, size, &reply, NULL, packet),
		                 size < OW_STAMP_REPLY_MIN ? -EMSGSIZE : 0);
		/* Not an octet more than came. */
		for (size_t i = size; i < sizeof packet; i++)
			assert_int_equal(packet[i], 0xaa);
		assert_int_equal(ow_stamp_reply_read(packet, size, NULL, &answer),
		                 size < OW_STAMP_REPLY_MIN ? -EMSGSIZE : 0);
		if (size >= OW_STAMP_REPLY_MIN)
			assert_reply(&answer, &reply);
	}
	for (size_t size = 0; size < OW_STAMP_BASE_KEYED; size++) {
		assert_int_equal(ow_stamp_probe_read(request, size, &key, &back), -EMSGSIZE);
		assert_int_equal(ow_stamp_reply_write(request, size, &reply, &key, packet), -EMSGSIZE);
		assert_int_equal(ow_stamp_reply_read(request, size, &key, &answer), -EMSGSIZE);
	}
	assert_int_equal(ow_stamp_probe_read(request, OW_STAMP_PACKET_MAX + 1, NULL, &back), -EMSGSIZE);
}

/* What a reflector makes of these TLVs. */
static void reflect(const struct ow_stamp_key *with, const char *tlvs, const char *expected)
{
	uint8_t request[512], packet[512];
	size_t base = with ? OW_STAMP_BASE_KEYED : OW_STAMP_BASE, size = base + strlen(tlvs) / 2;
	ow_stamp_probe_write(&probe, with, request, base);
	for (size_t i = 0; i < strlen(tlvs) / 2; i++) {
		char digits[3] = {tlvs[2 * i], tlvs[2 * i + 1], 0};
		request[base + i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	assert_int_equal(ow_stamp_reply_write(request, size, &reply, with, packet), 0);
	assert_hex(packet + base, size - base, expected);
}

static void test_tlvs(void **state)
{
	(void)state;
	/* Padding is known, 200 (private use) is not, flags of our own are not believed. */
	reflect(NULL, "80010002aabb", "00010002aabb");
	reflect(NULL, "80c80002aabb", "80c80002aabb");
	reflect(NULL,
	        "e0010001aa"
	        "9fc80000",
	        "00010001aa"
	        "9fc80000");
	/* Longer than what is left: malformed, and what follows is copied. */
	reflect(NULL, "80010003aabb", "40010003aabb");
	reflect(NULL,
	        "80c8ffff"
	        "80010000",
	        "c0c8ffff"
	        "80010000");
	/* Less than a TLV is none. */
	reflect(NULL,
	        "80010000"
	        "800100",
	        "00010000"
	        "800100");
	/* Padding of TWAMP Light. */
	reflect(NULL, "0000000000", "0000000000");
	reflect(NULL, "7fc8000212345678", "7fc8000212345678");
	/* An HMAC without a key is not known. */
	reflect(NULL,
	        "80080010"
	        "e617f5ffcebaa3a365c6821bba7f22f5",
	        "80080010"
	        "e617f5ffcebaa3a365c6821bba7f22f5");
}

#define UNKNOWN "80c80002aabb"
#define RIGHT      \
	"80080010" \
	"e617f5ffcebaa3a365c6821bba7f22f5"
#define WRONG      \
	"80080010" \
	"e617f5ffcebaa3a365c6821bba7f22f6"
#define ANSWER     \
	"00080010" \
	"894d86fb9631a468c5031c75093ab1aa" /* of sequence 9 and the unknown TLV */

static void test_tlv_hmac(void **state)
{
	(void)state;
	reflect(&key, UNKNOWN RIGHT, UNKNOWN ANSWER);
	reflect(&key, UNKNOWN RIGHT "80010001cc", UNKNOWN ANSWER "00010001cc");
	/* Wrong, absent, not the last, of a wrong length. */
	reflect(&key, UNKNOWN WRONG,
	        "a0c80002aabb"
	        "20080010"
	        "e617f5ffcebaa3a365c6821bba7f22f6");
	reflect(&key, UNKNOWN, "a0c80002aabb");
	reflect(&key, UNKNOWN RIGHT "80c80000",
	        "a0c80002aabb"
	        "20080010"
	        "e617f5ffcebaa3a365c6821bba7f22f5"
	        "a0c80000");
	reflect(&key, UNKNOWN "80080002aabb", UNKNOWN "40080002aabb");
	/* Padding alone needs none. */
	reflect(&key, "80010001cc", "00010001cc");
	/* A malformed TLV behind a right HMAC does not make that one wrong. */
	reflect(&key, UNKNOWN RIGHT "80010009cc", UNKNOWN ANSWER "40010009cc");
}

static void test_times(void **state)
{
	(void)state;
	int64_t ns;
	assert_true(ow_stamp_time_write(T_NS, false, 37) == T_NTP);
	assert_true(ow_stamp_time_write(T_NS, true, 37) == (UINT64_C(1700000037) << 32 | 500000000));
	/* 2036-02-07 06:28:16 UTC is second 0 of NTP's next era; 2106-02-07 06:28:15 + 1 of PTP's. */
	const int64_t era = INT64_C(2085978496) * OW_NS_PER_S;
	assert_true(ow_stamp_time_write(era, false, 0) == 0);
	assert_int_equal(ow_stamp_time_read(0, false, 0, T_NS, &ns), 0);
	assert_true(ns == era);
	assert_int_equal(ow_stamp_time_read(UINT64_C(0xffffffff) << 32, false, 0, era + OW_NS_PER_S, &ns), 0);
	assert_true(ns == era - OW_NS_PER_S);
	assert_int_equal(ow_stamp_time_read(UINT64_C(5) << 32, true, 37, (INT64_C(1) << 32) * OW_NS_PER_S, &ns), 0);
	assert_true(ns == ((INT64_C(1) << 32) + 5 - 37) * OW_NS_PER_S);
	/* No such nanosecond. */
	assert_int_equal(ow_stamp_time_read(1000000000, true, 0, T_NS, &ns), -ERANGE);
	assert_int_equal(ow_stamp_time_read(999999999, true, 0, T_NS, &ns), 0);
	/* At the ends of what is a time here. */
	(void)ow_stamp_time_read(0, false, 0, INT64_MAX, &ns);
	(void)ow_stamp_time_read(UINT64_MAX, false, 0, INT64_MIN, &ns);
}

static void test_times_property(void **state)
{
	(void)state;
	struct ow_random random;
	int64_t back;
	print_message("seed %d\n", SEED);
	ow_random_seed(&random, SEED);
	for (int i = 0; i < 200000; i++) {
		/* 1970 to 2174, several eras. */
		int64_t ns = (int64_t)ow_random_below(&random, UINT64_C(6442450944) * OW_NS_PER_S);
		int64_t near = ns - INT64_C(2000000000) * OW_NS_PER_S +
		               (int64_t)ow_random_below(&random, UINT64_C(4000000000) * OW_NS_PER_S);
		bool ptp = i & 1;
		assert_int_equal(ow_stamp_time_read(ow_stamp_time_write(ns, ptp, 37), ptp, 37, near, &back), 0);
		assert_true(back == ns);
	}
}

static void test_error_estimate(void **state)
{
	(void)state;
	struct ow_clock_state clock;
	assert_int_equal(ow_stamp_error_write(&good, false), 0x80d7);
	assert_int_equal(ow_stamp_error_write(&good, true), 0xc0d7);
	/* 1 ms = 4294967.3 / 2^32 s = 256 * 2^14 and more: 132 * 2^15, the smallest that is not less. */
	clock = (struct ow_clock_state){true, OW_NS_PER_MS};
	assert_int_equal(ow_stamp_error_write(&clock, false), 0x8f84);
	clock = (struct ow_clock_state){true, 0};
	assert_int_equal(ow_stamp_error_write(&clock, false), 0x8001);
	clock = (struct ow_clock_state){false, OW_CLOCK_UNKNOWN};
	assert_int_equal(ow_stamp_error_write(&clock, false), 0x3fff);
	/* What says nothing: no S, multiplier 0, centuries. */
	const uint16_t nothing[] = {0x0001, 0x8000, 0x9f00, 0xbfff, 0x3fff};
	for (unsigned i = 0; i < 5; i++) {
		ow_stamp_error_read(nothing[i], &clock);
		assert_false(clock.synchronised);
		assert_true(clock.error_ns == OW_CLOCK_UNKNOWN);
	}
	/* Never less than it is, and at most a 128th part and the rounding more. */
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (int i = 0; i < 100000; i++) {
		struct ow_clock_state in = {true,
		                            (int64_t)(ow_random_u64(&random) >> (2 + ow_random_below(&random, 61)))};
		ow_stamp_error_read(ow_stamp_error_write(&in, i & 1), &clock);
		assert_true(clock.synchronised && clock.error_ns >= in.error_ns);
		assert_true(clock.error_ns - in.error_ns <= in.error_ns / 64 + 2);
	}
}

/* Every packet there and back, both modes, any length, any TLVs: same length, same fields, base untouched by TLVs. */
static void test_round_trip(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (int i = 0; i < 20000; i++) {
		const struct ow_stamp_key *with = i & 1 ? &key : NULL;
		size_t base = with ? OW_STAMP_BASE_KEYED : OW_STAMP_BASE, more = ow_random_below(&random, 100);
		size_t size = more < OW_STAMP_TLV_HEAD ? base : base + more;
		uint8_t request[OW_STAMP_BASE_KEYED + 100], packet[OW_STAMP_BASE_KEYED + 100];
		struct ow_stamp_probe in = {(uint32_t)ow_random_u64(&random), ow_random_u64(&random),
		                            (uint16_t)ow_random_u64(&random), (uint16_t)ow_random_u64(&random)},
				      seen;
		struct ow_stamp_reply out = {.sequence = (uint32_t)ow_random_u64(&random),
		                             .sent = ow_random_u64(&random),
		                             .received = ow_random_u64(&random),
		                             .error = (uint16_t)ow_random_u64(&random),
		                             .session = in.session,
		                             .probe = in,
		                             .probe_ttl = (uint8_t)ow_random_u64(&random)},
				      back;
		ow_stamp_probe_write(&in, with, request, size);
		for (size_t k = base; k < size; k++)
			request[k] = (uint8_t)ow_random_u64(&random);
		assert_int_equal(ow_stamp_probe_read(request, size, with, &seen), 0);
		assert_probe(&seen, &in);
		assert_int_equal(ow_stamp_reply_write(request, size, &out, with, packet), 0);
		assert_int_equal(ow_stamp_reply_read(packet, size, with, &back), 0);
		assert_reply(&back, &out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe_bytes), cmocka_unit_test(test_reply_bytes),
		cmocka_unit_test(test_wrong_key),   cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_tlvs),        cmocka_unit_test(test_tlv_hmac),
		cmocka_unit_test(test_times),       cmocka_unit_test(test_times_property),
		cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_error_estimate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
