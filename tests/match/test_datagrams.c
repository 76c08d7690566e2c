/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP segmentation offload: a host that sends QUIC shows one UDP packet where the wire has a batch of datagrams. The
 * batches here are made of known datagrams, of which the wire loses some.
 */
#include <oneway/match.h>

#include "base/bytes.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define START_S 1700000000u
#define US      INT64_C(1000)
#define MS      (1000 * US)
#define HEADERS 28u
#define BATCHES 400u
#define SEED    5

static char path[OW_SIDES][64];
static FILE *file[OW_SIDES];
static struct ow_match *match;
static struct ow_random random_bytes;

static int setup(void **state)
{
	(void)state;
	const uint32_t head[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 262144, 101 /* raw IP */};
	ow_random_seed(&random_bytes, SEED);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		(void)snprintf(path[side], sizeof path[side], "/tmp/oneway-datagrams-%ld-%c.pcap", (long)getpid(),
		               side ? 'b' : 'a');
		file[side] = fopen(path[side], "wb");
		if (!file[side] || fwrite(head, sizeof head, 1, file[side]) != 1)
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ow_match_free(match);
	match = NULL;
	unlink(path[OW_SIDE_A]);
	unlink(path[OW_SIDE_B]);
	return 0;
}

/* A way between two hosts, as one side sees it. */
struct way {
	uint8_t from, to;
	uint16_t sport, dport;
};
static const struct way forth = {1, 2, 4433, 50000}, back = {2, 1, 50000, 4433}, translated = {7, 2, 1024, 50000};

static void put(unsigned side, const struct way *way, int64_t time_ns, uint16_t id, const uint8_t *data, uint32_t len,
                uint32_t snaplen)
{
	uint8_t head[HEADERS] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, way->from, 10, 0, 0, way->to};
	ow_store_be16(head + 2, (uint16_t)(len + HEADERS));
	ow_store_be16(head + 4, id);
	ow_store_be16(head + 20, way->sport);
	ow_store_be16(head + 22, way->dport);
	ow_store_be16(head + 24, (uint16_t)(len + 8));
	uint32_t captured = len + HEADERS < snaplen ? len + HEADERS : snaplen;
	const uint32_t record[4] = {START_S + (uint32_t)(time_ns / (1000 * MS)), (uint32_t)(time_ns % (1000 * MS)),
	                            captured, len + HEADERS};
	assert_int_equal(fwrite(record, sizeof record, 1, file[side]), 1);
	assert_int_equal(fwrite(head, HEADERS, 1, file[side]), 1);
	assert_int_equal(fwrite(data, captured - HEADERS, 1, file[side]), 1);
}

#define WHOLE 262144u

static void fill(uint8_t *data, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		data[i] = (uint8_t)ow_random_u64(&random_bytes);
}

/* What the events add up to. */
static uint64_t told[OW_FATE_OUTSIDE + 1];

static int on_packet(void *arg, const struct ow_packet_event *event)
{
	(void)arg;
	told[event->fate] += event->packets;
	return 0;
}

static int run(void)
{
	struct ow_match_options options;
	struct ow_error err = {0};
	assert_int_equal(fclose(file[OW_SIDE_A]), 0);
	assert_int_equal(fclose(file[OW_SIDE_B]), 0);
	ow_match_defaults(&options);
	memset(told, 0, sizeof told);
	options.on_packet = on_packet;
	int r = ow_match_files(path[OW_SIDE_A], path[OW_SIDE_B], &options, &match, &err);
	if (r < 0)
		print_message("%s\n", err.text);
	return r;
}

/* What the wire carried. */
struct truth {
	uint64_t sent, lost;
};

/* The datagrams of a batch: of one size, which grows during the connection; the last is shorter, mostly. */
static uint32_t batch_size(uint32_t i)
{
	return i % 17 == 3 ? 300 : i < BATCHES / 8 ? 1200 : 1444;
}

static uint32_t batch_len(uint32_t i)
{
	uint32_t size = batch_size(i), n = size == 300 ? 3 : 2 + i % 40;
	return i % 3 ? size * n - (uint32_t)(ow_random_u64(&random_bytes) % (size - 1)) : size * n;
}

/* Batches at A, and at B what arrives of them; every 20th batch loses its first datagram, every 50th is lost. */
static struct truth send_batches(const struct way *at_b, bool answers)
{
	static uint8_t data[65536];
	struct truth truth = {0};
	uint16_t id = 1;
	for (uint32_t i = 0; i < BATCHES; i++) {
		int64_t t = i * MS;
		uint32_t len = batch_len(i), size = batch_size(i);
		fill(data, len);
		put(OW_SIDE_A, &forth, t, id, data, len, WHOLE);
		for (uint32_t at = 0; at < len; at += size, id++, truth.sent++) {
			uint32_t n = len - at < size ? len - at : size;
			if ((i % 20 == 7 && at == 0) || (i % 50 == 30 && size == 1444))
				truth.lost++;
			else
				put(OW_SIDE_B, at_b, t + 100 * US + at / size * US, id, data + at, n, WHOLE);
		}
		if (answers) {
			fill(data, 40);
			put(OW_SIDE_B, &back, t + 300 * US, (uint16_t)i, data, 40, WHOLE);
			put(OW_SIDE_A, &back, t + 400 * US, (uint16_t)i, data, 40, WHOLE);
		}
	}
	return truth;
}

static void check(const struct truth *truth)
{
	const struct ow_match_report *report = ow_match_report(match);
	const struct ow_result *r = &report->direction[OW_A_TO_B];
	assert_true(report->segments);
	assert_int_equal(r->sent, truth->sent);
	assert_int_equal(r->lost, truth->lost);
	assert_int_equal(r->extra, 0);
	assert_int_equal(r->ambiguous, 0);
	assert_int_equal(r->reordered, 0);
	assert_int_equal(r->delay.samples, truth->sent - truth->lost);
	assert_int_equal(r->delay.min_ns, 100 * US);
	assert_int_equal(told[OW_FATE_MATCHED], r->matched + report->direction[OW_B_TO_A].matched);
	assert_int_equal(told[OW_FATE_LOST], r->lost);
	for (unsigned side = 0; side < OW_SIDES; side++)
		assert_int_equal(report->unclassified[side] + report->outside_overlap[side], 0);
}

static void a_host_against_the_wire(void **state)
{
	(void)state;
	struct truth truth = send_batches(&forth, true);
	assert_int_equal(run(), 0);
	check(&truth);
	assert_int_equal(ow_match_report(match)->direction[OW_B_TO_A].matched, BATCHES);
}

/* Nothing but superframes: no packet is the same on both sides. */
static void nothing_but_superframes(void **state)
{
	(void)state;
	struct truth truth = send_batches(&forth, false);
	assert_int_equal(run(), 0);
	check(&truth);
	assert_int_equal(ow_match_report(match)->level, OW_LEVEL_IP);
}

static void superframes_behind_nat(void **state)
{
	(void)state;
	struct truth truth = send_batches(&translated, false);
	assert_int_equal(run(), 0);
	check(&truth);
	assert_int_equal(ow_match_report(match)->level, OW_LEVEL_NAT);
}

/* A sends batches of ten; B's card puts together up to four datagrams; now and then one is alone on both sides. */
static void superframes_on_both_sides(void **state)
{
	(void)state;
	static uint8_t data[10 * 1350];
	for (uint32_t i = 0; i < BATCHES; i++) {
		int64_t t = i * MS;
		uint32_t n = i % 5 ? 10 : 1;
		fill(data, n * 1350);
		put(OW_SIDE_A, &forth, t, (uint16_t)i, data, n * 1350, WHOLE);
		for (uint32_t at = 0; at < n; at += 4)
			put(OW_SIDE_B, &forth, t + 100 * US, (uint16_t)(i + 500), data + at * 1350ul,
			    (n - at < 4 ? n - at : 4) * 1350, WHOLE);
	}
	assert_int_equal(run(), 0);
	const struct truth truth = {BATCHES / 5 * 41, 0};
	check(&truth);
}

/* B's card joins the last two datagrams of a transfer: of a size that no other superframe has. */
static void superframes_of_any_size(void **state)
{
	(void)state;
	static uint8_t data[3 * 1350];
	uint64_t sent = 0;
	for (uint32_t i = 0; i < BATCHES; i++) {
		int64_t t = i * MS;
		uint32_t size = 800 + i, last = size - 1 - i % 100; /* 400 sizes, each once */
		for (uint32_t s = 0; s < 3; s++, sent++) {
			fill(data, 1350);
			put(OW_SIDE_A, &forth, t + s * US, (uint16_t)sent, data, 1350, WHOLE);
			put(OW_SIDE_B, &forth, t + 100 * US + s * US, (uint16_t)sent, data, 1350, WHOLE);
		}
		fill(data, size + last);
		put(OW_SIDE_A, &forth, t + 10 * US, (uint16_t)sent++, data, size, WHOLE);
		put(OW_SIDE_A, &forth, t + 10 * US, (uint16_t)sent++, data + size, last, WHOLE);
		put(OW_SIDE_B, &forth, t + 110 * US, (uint16_t)sent, data, size + last, WHOLE);
	}
	assert_int_equal(run(), 0);
	const struct truth truth = {sent, 0};
	check(&truth);
}

/* What is not there cannot be cut. */
static void truncated_superframes_stay(void **state)
{
	(void)state;
	static uint8_t data[10 * 1200];
	for (uint32_t i = 0; i < BATCHES; i++) {
		int64_t t = i * MS;
		fill(data, sizeof data);
		put(OW_SIDE_A, &forth, t, (uint16_t)i, data, sizeof data, 200);
		for (uint32_t s = 0; s < 10; s++)
			put(OW_SIDE_B, &forth, t + 100 * US, (uint16_t)(i + s), data + s * 1200ul, 1200, 200);
		put(OW_SIDE_A, &forth, t + 10 * US, (uint16_t)(i + 1000), data, 300, 200);
		put(OW_SIDE_B, &forth, t + 200 * US, (uint16_t)(i + 1000), data, 300, 200);
	}
	assert_int_equal(run(), 0);
	const struct ow_match_report *report = ow_match_report(match);
	assert_false(report->segments);
	assert_int_equal(report->direction[OW_A_TO_B].matched, BATCHES);
	bool warns = false;
	for (size_t i = 0; i < report->warnings; i++)
		warns |= strstr(report->warning[i], "UDP segmentation offload") != NULL;
	assert_true(warns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_host_against_the_wire, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_but_superframes, setup, teardown),
		cmocka_unit_test_setup_teardown(superframes_behind_nat, setup, teardown),
		cmocka_unit_test_setup_teardown(superframes_on_both_sides, setup, teardown),
		cmocka_unit_test_setup_teardown(superframes_of_any_size, setup, teardown),
		cmocka_unit_test_setup_teardown(truncated_superframes_stay, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
