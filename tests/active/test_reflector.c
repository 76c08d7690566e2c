/* SPDX-License-Identifier: Apache-2.0 */
/* What a reflector answers and what it does not: numbers, lengths, limits, keys, floods of clients. */
#include "active/reflector.h"

#include "base/bytes.h"
#include "base/random.h"
#include "base/time.h"
#include "exchange/client_table.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED 862
#define T_NS (INT64_C(1700000000) * OW_NS_PER_S)
#define ROOM 2000

static const uint8_t secret[16] = {7};
static const struct ow_stamp_key key = {secret, sizeof secret};

static struct ow_reflector *open_reflector(struct ow_reflector_options o)
{
	struct ow_reflector *f;
	struct ow_error err;
	o.listen = "127.0.0.1:0";
	o.seed = SEED;
	o.total_pps = o.total_pps ? o.total_pps : 1e6;
	o.source_pps = o.source_pps ? o.source_pps : 1e6;
	if (ow_reflector_create(&o, &f, &err) < 0)
		fail_msg("%s", err.text);
	return f;
}

/* A datagram of a host's port, as the socket hands it over. */
static struct ow_stamp_datagram from(uint32_t host, uint16_t port, size_t size)
{
	struct ow_stamp_datagram d = {.size = size, .ttl = 250, .received_ns = T_NS, .stamped = true};
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(0x0a000000 + host)};
	memcpy(&d.peer, &address, sizeof address);
	return d;
}

/* received = answered + reasons; here nothing is sent, so answers are counted by the caller. */
static void assert_balance(const struct ow_reflector *f, uint64_t answers)
{
	struct ow_reflector_counts n;
	ow_reflector_counts(f, &n);
	assert_true(n.received == answers + n.malformed + n.refused + n.small + n.replies + n.limited + n.crowded);
}

static void test_fields(void **state)
{
	(void)state;
	struct ow_reflector *f = open_reflector((struct ow_reflector_options){0});
	uint8_t request[OW_STAMP_BASE], reply[OW_STAMP_BASE];
	const struct ow_clock_state clock = {true, 50};
	ow_reflector_clock(f, &clock);
	/* Two sessions of one host, by port and by identifier; each has numbers of its own, whatever the probes'. */
	for (uint32_t i = 0; i < 30; i++) {
		struct ow_stamp_probe probe = {1000 + 3 * i, 77 + i, 0x8001, (uint16_t)(i % 3 == 2 ? 9 : 8)};
		struct ow_stamp_datagram d = from(1, (uint16_t)(5000 + (i % 3 == 1)), sizeof request);
		struct ow_stamp_reply back;
		ow_stamp_probe_write(&probe, NULL, request, sizeof request);
		assert_int_equal(ow_reflector_answer(f, &d, request, T_NS + i, T_NS + 500, reply), 1);
		assert_int_equal(ow_stamp_reply_read(reply, sizeof reply, NULL, &back), 0);
		assert_int_equal(back.sequence, i / 3);
		assert_int_equal(back.probe.sequence, probe.sequence);
		assert_true(back.probe.sent == probe.sent && back.probe.error == 0x8001);
		assert_int_equal(back.session, probe.session);
		assert_int_equal(back.probe_ttl, 250);
		assert_int_equal(back.error, 0x80d7);
		assert_true(back.received == ow_stamp_time_write(T_NS, false, 0));
		assert_true(back.sent == ow_stamp_time_write(T_NS + 500, false, 0));
	}
	assert_balance(f, 30);
	ow_reflector_free(f);
	/* Stateless: the probe's number. PTP: other times, and Z. */
	f = open_reflector((struct ow_reflector_options){.stateless = true, .ptp = true});
	struct ow_stamp_probe probe = {4711, 1, 1, 1};
	struct ow_stamp_reply back;
	struct ow_stamp_datagram d = from(1, 5, sizeof request);
	ow_stamp_probe_write(&probe, NULL, request, sizeof request);
	assert_int_equal(ow_reflector_answer(f, &d, request, T_NS, T_NS, reply), 1);
	assert_int_equal(ow_stamp_reply_read(reply, sizeof reply, NULL, &back), 0);
	assert_int_equal(back.sequence, 4711);
	assert_true(ow_stamp_error_ptp(back.error));
	assert_true(back.sent == ow_stamp_time_write(T_NS, true, ow_stamp_tai_s()));
	ow_reflector_free(f);
}

/* Any bytes of any length: an answer is as long as its question, never longer; all are accounted for. */
static void test_lengths(void **state)
{
	(void)state;
	struct ow_random random;
	uint8_t request[ROOM], reply[ROOM];
	ow_random_seed(&random, SEED);
	for (int keyed = 0; keyed < 2; keyed++) {
		struct ow_reflector *f = open_reflector((struct ow_reflector_options){.key = keyed ? &key : NULL});
		uint64_t answers = 0;
		for (size_t size = 0; size < 600; size++) {
			for (size_t i = 0; i < size; i++)
				request[i] = (uint8_t)ow_random_u64(&random);
			if (keyed && size >= OW_STAMP_BASE_KEYED && size % 2)
				ow_stamp_hmac(&key, request, 96, request + 96);
			struct ow_stamp_datagram d = from(1, 1, size);
			memset(reply, 0xa5, sizeof reply);
			int r = ow_reflector_answer(f, &d, request, T_NS, T_NS, reply);
			assert_int_equal(r,
			                 keyed ? size >= OW_STAMP_BASE_KEYED && size % 2 : size >= OW_STAMP_REPLY_MIN);
			for (size_t i = r ? size : 0; i < sizeof reply; i++)
				assert_int_equal(reply[i], 0xa5);
			answers += (uint64_t)r;
		}
		struct ow_stamp_datagram cut = from(1, 1, 100);
		cut.cut = true;
		assert_int_equal(ow_reflector_answer(f, &cut, request, T_NS, T_NS, reply), 0);
		assert_balance(f, answers);
		struct ow_reflector_counts n;
		ow_reflector_counts(f, &n);
		assert_true(keyed ? n.refused > 100 : n.small == OW_STAMP_REPLY_MIN - OW_STAMP_PROBE_MIN);
		ow_reflector_free(f);
	}
}

/* A source gets no more than its share, all together no more than theirs, and one's excess is not the other's. */
static void test_limits(void **state)
{
	(void)state;
	struct ow_reflector *f = open_reflector((struct ow_reflector_options){.source_pps = 10, .total_pps = 25});
	uint8_t request[OW_STAMP_BASE] = {0}, reply[OW_STAMP_BASE];
	uint64_t answers[6] = {0}, all = 0;
	int64_t t0 = ow_clock_steady_ns(), second = OW_NS_PER_S;
	/* Host 0 sends 1000 a second for ten seconds, host 1 five. */
	for (int i = 0; i < 10000; i++) {
		int64_t now_ns = t0 + i * (second / 1000);
		struct ow_stamp_datagram d = from(0, (uint16_t)i, sizeof request);
		answers[0] += (uint64_t)ow_reflector_answer(f, &d, request, now_ns, T_NS, reply);
		if (i % 200 == 100) {
			d = from(1, 1, sizeof request);
			answers[1] += (uint64_t)ow_reflector_answer(f, &d, request, now_ns, T_NS, reply);
		}
	}
	assert_int_equal(answers[1], 50);
	assert_true(answers[0] >= 100 && answers[0] <= 110);
	/* Five hosts at their limits are too many for the total. */
	for (int i = 0; i < 50000; i++) {
		int64_t now_ns = t0 + 20 * second + i * (second / 5000);
		struct ow_stamp_datagram d = from(10 + (uint32_t)i % 5, 1, sizeof request);
		all += (uint64_t)ow_reflector_answer(f, &d, request, now_ns, T_NS, reply);
	}
	assert_true(all >= 250 && all <= 276);
	assert_balance(f, answers[0] + answers[1] + all);
	ow_reflector_free(f);
}

/* A flood from many sources: memory stays constant, and existing clients keep their sessions. */
static void test_flood(void **state)
{
	(void)state;
	struct ow_reflector *f = open_reflector((struct ow_reflector_options){0});
	uint8_t request[OW_STAMP_BASE] = {0}, reply[OW_STAMP_BASE];
	struct ow_stamp_reply back;
	uint64_t answers = 0;
	uint32_t number = 0;
	for (uint32_t i = 0; i < 100000; i++) {
		int64_t now_ns = T_NS + i * INT64_C(1000);
		if (i % 1000 == 0) {
			struct ow_stamp_datagram d = from(1, 1, sizeof request);
			assert_int_equal(ow_reflector_answer(f, &d, request, now_ns, T_NS, reply), 1);
			assert_int_equal(ow_stamp_reply_read(reply, sizeof reply, NULL, &back), 0);
			assert_int_equal(back.sequence, number++);
			answers++;
		}
		struct ow_stamp_datagram d = from(1000 + i, (uint16_t)i, sizeof request);
		answers += (uint64_t)ow_reflector_answer(f, &d, request, now_ns, T_NS, reply);
	}
	struct ow_reflector_counts n;
	ow_reflector_counts(f, &n);
	assert_true(n.crowded > 80000);
	assert_balance(f, answers);
	/* When they are silent there is room again. */
	struct ow_stamp_datagram d = from(0x654321, 3, sizeof request);
	assert_int_equal(ow_reflector_answer(f, &d, request, T_NS + 100 * OW_NS_PER_S, T_NS, reply), 1);
	ow_reflector_free(f);
}

static void test_sources(void **state)
{
	(void)state;
	struct sockaddr_storage a = {0}, b = {0};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = 1};
	uint8_t one[20], other[20];
	inet_pton(AF_INET6, "2001:db8:1:2::1", &six.sin6_addr);
	memcpy(&a, &six, sizeof six);
	inet_pton(AF_INET6, "2001:db8:1:2:ffff::9", &six.sin6_addr);
	six.sin6_port = 2;
	memcpy(&b, &six, sizeof six);
	ow_client_source(&a, one);
	ow_client_source(&b, other);
	assert_memory_equal(one, other, sizeof one); /* the same /64 */
	ow_client_session(&a, 1, one);
	ow_client_session(&b, 1, other);
	assert_memory_not_equal(one, other, sizeof one);
}

/* A forged probe in the name of another reflector: that one gets the answer, and it ends there. */
static void test_no_loop(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 8; kind++) {
		const struct ow_stamp_key *k = kind & 1 ? &key : NULL;
		struct ow_reflector_options o = {.key = k, .ptp = kind & 2, .stateless = kind & 4};
		struct ow_reflector *a = open_reflector(o),
				    *b = open_reflector((struct ow_reflector_options){.key = k});
		uint8_t forged[ROOM], first[ROOM], second[ROOM];
		for (size_t size = k ? OW_STAMP_BASE_KEYED : OW_STAMP_REPLY_MIN; size < 400; size++) {
			struct ow_random random;
			ow_random_seed(&random, size);
			for (size_t i = 0; i < size; i++)
				forged[i] = (uint8_t)ow_random_u64(&random);
			if (k)
				ow_stamp_hmac(k, forged, 96, forged + 96);
			struct ow_stamp_datagram of_b = from(2, 862, size), of_a = from(1, 8620, size);
			assert_int_equal(ow_reflector_answer(a, &of_b, forged, T_NS, T_NS + 900, first), 1);
			assert_int_equal(ow_reflector_answer(b, &of_a, first, T_NS, T_NS + 999, second), 0);
			/* Nor does one answer what it has sent itself. */
			assert_int_equal(ow_reflector_answer(a, &of_a, first, T_NS, T_NS + 999, second), 0);
		}
		struct ow_reflector_counts n;
		ow_reflector_counts(b, &n);
		assert_true(n.received > 200 && n.replies == n.received);
		ow_reflector_free(a);
		ow_reflector_free(b);
	}
}

/* Probes whose padding is zeros are probes whatever their clock says, also that of a host that has none. */
static void test_probes_of_any_time(void **state)
{
	(void)state;
	struct ow_reflector *f = open_reflector((struct ow_reflector_options){0});
	uint8_t request[OW_STAMP_BASE], reply[OW_STAMP_BASE];
	for (uint64_t s = 0; s < 64; s++) {
		struct ow_stamp_probe probe = {.sequence = 1, .sent = s << 32 | s, .error = 1};
		struct ow_stamp_datagram d = from(1, 5, sizeof request);
		ow_stamp_probe_write(&probe, NULL, request, sizeof request);
		assert_int_equal(ow_reflector_answer(f, &d, request, T_NS, T_NS, reply), 1);
	}
	ow_reflector_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_no_loop),
		cmocka_unit_test(test_probes_of_any_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
