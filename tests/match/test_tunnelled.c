/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Superframes in a tunnel: a host that sends TCP through a tunnel shows 9000 bytes in one frame, the wire carries six
 * packets in six tunnel headers. The outer headers match for short packets only, so it takes a look inside.
 * A tunnel that fragments its packets: those inside match by what the first fragment has of them.
 */
#include <oneway/match.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define START_S  1700000000u
#define US       INT64_C(1000)
#define MS       (1000 * US)
#define OUTER    20u
#define HEADERS  60u   /* two IPv4 headers and one of TCP */
#define SEGMENT  1400u /* data of a segment */
#define SEGMENTS 6u    /* in a superframe */
#define BURSTS   300u

static char path[OW_SIDES][64];

static void put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static void put_ipv4(uint8_t *p, uint32_t len, uint32_t id, uint8_t proto, uint8_t net)
{
	const uint8_t head[20] = {0x45, 0, 0, 0, 0, 0, 0, 0, 64, proto, 0, 0, 10, net, 0, 1, 10, net, 0, 2};
	memcpy(p, head, sizeof head);
	put16(p + 2, len);
	put16(p + 4, id);
}

static void put_record(FILE *file, int64_t time_ns, const uint8_t *packet, uint32_t len)
{
	const uint32_t head[4] = {START_S, (uint32_t)time_ns, len, len};
	assert_int_equal(fwrite(head, sizeof head, 1, file), 1);
	assert_int_equal(fwrite(packet, len, 1, file), 1);
}

/* TCP data in IP in IP. */
static uint32_t make(uint8_t packet[HEADERS + SEGMENTS * SEGMENT], uint32_t id, uint32_t seq, uint32_t data)
{
	uint32_t len = HEADERS + data;
	memset(packet, 0, len);
	put_ipv4(packet, len, id, 4, 1);
	put_ipv4(packet + OUTER, len - OUTER, id, 6, 2);
	uint8_t *tcp = packet + 2 * OUTER;
	put16(tcp, 1000);
	put16(tcp + 2, 2000);
	put16(tcp + 4, seq >> 16);
	put16(tcp + 6, seq & 0xffff);
	put16(tcp + 10, 1);
	put16(tcp + 12, 0x5010);
	for (uint32_t i = 0; i < data; i++)
		tcp[20 + i] = (uint8_t)((seq + i) * 2654435761u >> 24);
	return len;
}

static void put(FILE *file, int64_t time_ns, uint32_t id, uint32_t seq, uint32_t data)
{
	static uint8_t packet[HEADERS + SEGMENTS * SEGMENT];
	uint32_t len = make(packet, id, seq, data);
	put_record(file, time_ns, packet, len);
}

static FILE *open_capture(unsigned side)
{
	const uint32_t head[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 101 /* raw IP */};
	(void)snprintf(path[side], sizeof path[side], "/tmp/oneway-tunnelled-%ld-%c.pcap", (long)getpid(),
	               side ? 'b' : 'a');
	FILE *file = fopen(path[side], "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(head, sizeof head, 1, file), 1);
	return file;
}

static struct ow_match *match_captures(FILE *a, FILE *b)
{
	assert_int_equal(fclose(a), 0);
	assert_int_equal(fclose(b), 0);
	struct ow_match_options options;
	struct ow_match *match = NULL;
	struct ow_error err = {0};
	ow_match_defaults(&options);
	int r = ow_match_files(path[OW_SIDE_A], path[OW_SIDE_B], &options, &match, &err);
	unlink(path[OW_SIDE_A]);
	unlink(path[OW_SIDE_B]);
	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
	return match;
}

/* Bursts of one short packet and one superframe, of which the wire loses one segment in every tenth burst. */
static void a_host_in_a_tunnel_against_the_wire(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A), *b = open_capture(OW_SIDE_B);
	uint32_t seq = 1, id = 1;
	for (uint32_t i = 0; i < BURSTS; i++) {
		int64_t t = i * MS;
		put(a, t, id, seq, 100);
		put(b, t + 100 * US, id++, seq, 100);
		seq += 100;
		put(a, t + 50 * US, id, seq, SEGMENTS * SEGMENT);
		for (uint32_t s = 0; s < SEGMENTS; s++, seq += SEGMENT) {
			if (i % 10 != 5 || s != 3)
				put(b, t + (150 + 10 * s) * US, id + s, seq, SEGMENT);
		}
		id += SEGMENTS;
	}
	struct ow_match *match = match_captures(a, b);
	const struct ow_match_report *report = ow_match_report(match);
	const struct ow_result *to_b = &report->direction[OW_A_TO_B];
	assert_true(report->inner && report->segments);
	assert_int_equal(to_b->sent, BURSTS * (1 + SEGMENTS));
	assert_int_equal(to_b->lost, BURSTS / 10);
	assert_int_equal(to_b->extra, 0);
	assert_int_equal(to_b->delay.min_ns, 100 * US);
	assert_int_equal(to_b->delay.max_ns, 150 * US);
	ow_match_free(match);
}

/* The tunnel packet in fragments: with 1000 bytes behind the header, and the rest. */
static void put_fragments(FILE *file, int64_t time_ns, uint32_t id, uint32_t seq, uint32_t data)
{
	enum { FIRST = 1000 };
	static uint8_t packet[HEADERS + SEGMENTS * SEGMENT];
	uint32_t len = make(packet, id, seq, data);
	uint8_t later[OUTER + SEGMENT];
	memcpy(later, packet, OUTER);
	memcpy(later + OUTER, packet + OUTER + FIRST, len - OUTER - FIRST);
	put16(later + 2, len - FIRST);
	put16(later + 6, FIRST / 8);
	put16(packet + 2, OUTER + FIRST);
	put16(packet + 6, 0x2000);
	put_record(file, time_ns, packet, OUTER + FIRST);
	put_record(file, time_ns + US, later, len - FIRST);
}

/* At A the packets are outside of the tunnel. Long ones are fragmented at B, and one in 50 is lost. */
static void a_tunnel_in_fragments(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A), *b = open_capture(OW_SIDE_B);
	static uint8_t packet[HEADERS + SEGMENTS * SEGMENT];
	const uint32_t count = 1000;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t data = i % 2 ? SEGMENT : 100, seq = 1 + i * SEGMENT;
		int64_t t = i * MS;
		uint32_t len = make(packet, i + 1, seq, data);
		put_record(a, t, packet + OUTER, len - OUTER);
		if (i % 50 == 25)
			continue;
		if (i % 2)
			put_fragments(b, t + 100 * US, i + 1, seq, data);
		else
			put(b, t + 100 * US, i + 1, seq, data);
	}
	struct ow_match *match = match_captures(a, b);
	const struct ow_match_report *report = ow_match_report(match);
	const struct ow_result *to_b = &report->direction[OW_A_TO_B];
	assert_true(report->inner);
	assert_int_equal(to_b->sent, count);
	assert_int_equal(to_b->lost, count / 50);
	assert_int_equal(to_b->extra, 0);
	assert_int_equal(to_b->delay.min_ns, 100 * US);
	assert_int_equal(to_b->delay.max_ns, 100 * US);
	ow_match_free(match);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_host_in_a_tunnel_against_the_wire),
	                                   cmocka_unit_test(a_tunnel_in_fragments)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
