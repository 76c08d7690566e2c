/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings: captures that show packets twice, clocks finer than their ticks, one file twice. */
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

#define START_S 1700000000u
#define US      INT64_C(1000)
#define MS      (1000 * US)

static char path[OW_SIDES][64];
static struct ow_match *match;

static int setup(void **state)
{
	(void)state;
	for (unsigned side = 0; side < OW_SIDES; side++)
		snprintf(path[side], sizeof path[side], "/tmp/oneway-warn-%ld-%c.pcap", (long)getpid(),
		         side ? 'b' : 'a');
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

static FILE *open_capture(unsigned side, bool microseconds)
{
	const uint32_t head[6] = {microseconds ? 0xa1b2c3d4 : 0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 101 /* raw IP */};
	FILE *file = fopen(path[side], "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(head, sizeof head, 1, file), 1);
	return file;
}

/* A UDP packet from host 1 to host 2; the IP id tells it from others of its flow. */
static void put_data(FILE *file, bool microseconds, int64_t time_ns, uint16_t id, uint8_t flow, uint8_t data)
{
	uint8_t ip[48] = {0x45,        0,    0,    48, (uint8_t)(id >> 8),
	                  (uint8_t)id, 0x40, 0,    64, 17,
	                  0,           0,    10,   0,  1,
	                  1,           10,   0,    2,  2,
	                  0x10,        flow, 0x20, 0,  0,
	                  28};
	ip[28] = data;
	uint32_t tick = microseconds ? 1000 : 1;
	const uint32_t head[4] = {START_S + (uint32_t)(time_ns / 1000000000), (uint32_t)(time_ns % 1000000000) / tick,
	                          sizeof ip, sizeof ip};
	assert_int_equal(fwrite(head, sizeof head, 1, file), 1);
	assert_int_equal(fwrite(ip, sizeof ip, 1, file), 1);
}

static void put_flow(FILE *file, bool microseconds, int64_t time_ns, uint16_t id, uint8_t flow)
{
	put_data(file, microseconds, time_ns, id, flow, 0);
}

static void put(FILE *file, bool microseconds, int64_t time_ns, uint16_t id)
{
	put_flow(file, microseconds, time_ns, id, 0);
}

/* The same packet, behind routers. */
static void put_ttl(FILE *file, int64_t time_ns, uint16_t id, uint8_t ttl)
{
	put(file, false, time_ns, id);
	assert_int_equal(fseek(file, 8 - 48, SEEK_CUR), 0);
	assert_int_equal(fputc(ttl, file), ttl);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
}

static const struct ow_match_report *report_of(const char *a, const char *b)
{
	struct ow_match_options options;
	struct ow_error err = {0};
	ow_match_defaults(&options);
	int r = ow_match_files(a, b, &options, &match, &err);
	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
	return ow_match_report(match);
}

static bool warns(const struct ow_match_report *report, const char *text)
{
	for (size_t i = 0; i < report->warnings; i++) {
		if (strstr(report->warning[i], text))
			return true;
	}
	return false;
}

/* From host `source` to host `target`; back: with the ports the other way round. */
static void put_ends(FILE *file, int64_t time_ns, uint16_t id, uint8_t source, uint8_t target, uint8_t port, bool back)
{
	const uint8_t ends[12] = {10, 0, 9, source, 10, 0, 9, target, 0x10, back ? 0 : port, 0x10, back ? port : 0};
	put(file, false, time_ns, id);
	assert_int_equal(fseek(file, 12 - 48, SEEK_CUR), 0);
	assert_int_equal(fwrite(ends, sizeof ends, 1, file), 1);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
}

/* A capture of all interfaces of a router shows each packet as it comes and as it goes. */
static void packets_shown_twice(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	for (uint16_t i = 0; i < 500; i++) {
		put(a, false, i * MS, i);
		put(a, false, i * MS + 2 * US, i);
		put(b, false, i * MS + 20 * US, i);
	}
	fclose(a);
	fclose(b);
	const struct ow_match_report *report = report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
	assert_int_equal(report->direction[OW_A_TO_B].sent, 500);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 0);
	assert_int_equal(report->direction[OW_A_TO_B].delay.min_ns, 20 * US);
	assert_int_equal(report->skipped[OW_SIDE_A], 500);
	assert_true(warns(report, "500 further copies within "));
}

static void put_untimed(FILE *file, uint16_t id)
{
	const uint32_t none[2] = {0, 0};
	put(file, false, 0, id);
	assert_int_equal(fseek(file, -16 - 48, SEEK_CUR), 0);
	assert_int_equal(fwrite(none, sizeof none, 1, file), 1);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
}

/* Packets without a time, also before the first that has one: matched, and neither lost nor evidence of wrong clocks. */
static void some_packets_have_no_time(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	for (uint16_t i = 0; i < 500; i++) {
		put(a, false, i * MS, i);
		if (i % 5)
			put(b, false, i * MS + 20 * US + i % 7 * US, i);
		else
			put_untimed(b, i);
	}
	fclose(a);
	fclose(b);
	const struct ow_match_report *report = report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
	assert_int_equal(report->direction[OW_A_TO_B].sent, 500);
	assert_int_equal(report->direction[OW_A_TO_B].matched, 500);
	assert_int_equal(report->direction[OW_A_TO_B].delay.samples, 400);
	assert_true(warns(report, "100 packets have no timestamp"));
	assert_false(warns(report, "long before they were sent"));
	assert_false(warns(report, "cannot be told apart"));
}

/* Keep-alives of three hosts, the same both ways, besides other traffic: a translator changes one end, or both. */
static const struct ow_match_report *translate_polls(uint8_t server)
{
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	for (uint16_t i = 0; i < 1000; i++) {
		int64_t now_ns = i * MS;
		put_ends(a, now_ns, i + 1, 1, 2, 9, false);
		put_ends(b, now_ns + 20 * US, i + 1, 11, server, 99, false);
		if (i % 25)
			continue;
		uint8_t host = i / 25 % 3;
		put_ends(a, now_ns + 500 * US, 0, 1 + 2 * host, 2, 1 + host, false);
		put_ends(b, now_ns + 520 * US, 0, 11, server, 21 + host, false);
		put_ends(b, now_ns + 600 * US, 0, server, 11, 21 + host, true);
		put_ends(a, now_ns + 620 * US, 0, 2, 1 + 2 * host, 1 + host, true);
	}
	fclose(a);
	fclose(b);
	return report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
}

static void flows_behind_a_translator(void **state)
{
	const struct ow_match_report *report = translate_polls(2);
	assert_int_equal(report->level, OW_LEVEL_NAT);
	assert_false(warns(report, "which of their flows is which"));
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		assert_int_equal(report->direction[d].delay.min_ns, 20 * US);
		assert_int_equal(report->direction[d].delay.max_ns, 20 * US);
	}
	teardown(state);
	assert_true(warns(translate_polls(12), "which of their flows is which"));
}

/* A capture that shows packets twice, at the receiver. */
static void packets_arrive_twice(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	for (uint16_t i = 0; i < 500; i++) {
		put(a, false, i * MS, i);
		put(b, false, i * MS + 20 * US, i);
		put(b, false, i * MS + 22 * US, i);
	}
	fclose(a);
	fclose(b);
	const struct ow_match_report *report = report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
	assert_int_equal(report->direction[OW_A_TO_B].duplicated, 500);
	assert_true(warns(report, "more than once"));
}

/* A drops every a-th packet, B every b-th (0: none). */
static const struct ow_match_report *drop(unsigned a_th, unsigned b_th)
{
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	for (uint16_t i = 0; i < 1000; i++) {
		if (!a_th || i % a_th != 1)
			put(a, false, i * MS, i);
		if (!b_th || i % b_th != 2)
			put(b, false, i * MS + 20 * US, i);
	}
	fclose(a);
	fclose(b);
	return report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
}

static void captures_that_drop_packets(void **state)
{
	(void)state;
	const struct ow_match_report *report = drop(10, 20);
	assert_int_equal(report->direction[OW_A_TO_B].extra, 100);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 50);
	assert_true(warns(report, "does not show, and 50 that it shows did not arrive"));
}

static void a_capture_that_drops_packets(void **state)
{
	(void)state;
	const struct ow_match_report *report = drop(10, 0);
	assert_int_equal(report->direction[OW_A_TO_B].extra, 100);
	assert_true(warns(report, "that capture dropped packets"));
}

static void a_network_that_drops_packets(void **state)
{
	(void)state;
	const struct ow_match_report *report = drop(0, 10);
	assert_int_equal(report->direction[OW_A_TO_B].lost, 100);
	assert_false(warns(report, "does not show"));
}

/* Polls that are all alike, closer together than they take, one in ten lost: not a mirror, and nothing is reordered. */
static void polls_are_no_mirror(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	for (uint16_t i = 0; i < 1000; i++) {
		put(a, false, i * MS, (uint16_t)(i % 2 ? i : 0));
		if (i % 10 != 4)
			put(b, false, i * MS + 5 * MS + (i * 7919 % 1000) * US, (uint16_t)(i % 2 ? i : 0));
	}
	fclose(a);
	fclose(b);
	const struct ow_match_report *report = report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
	const struct ow_result *r = &report->direction[OW_A_TO_B];
	assert_int_equal(r->matched, 900);
	/* Which is the last that was lost is not certain: the very last may be outside. */
	assert_in_range(r->lost, 99, 100);
	assert_true(r->ambiguous > 0);
	assert_int_equal(r->reordered, 0);
	assert_false(warns(report, "more than once"));
}

/* Microsecond files cut the time: a delay of 300 ns may show as -1 us plus a bit, and no clock is wrong. */
static void delays_below_the_resolution(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, true);
	for (uint16_t i = 0; i < 500; i++) {
		put(a, false, i * MS + 600, i);
		put(b, true, i * MS + 900 + i * 10, i);
	}
	fclose(a);
	fclose(b);
	const struct ow_match_report *report = report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
	assert_int_equal(report->direction[OW_A_TO_B].delay.min_ns, -600);
	assert_true(warns(report, "resolve"));
	assert_false(warns(report, "impossible"));
}

/* Traffic one way, and a clock that lags: the direction is a guess, and said to be one. */
static void everything_is_later_at_a(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	for (uint16_t i = 0; i < 50; i++) {
		put(a, false, (i + 5) * MS, i);
		put(b, false, i * MS + 20 * US, i);
	}
	fclose(a);
	fclose(b);
	const struct ow_match_report *report = report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
	assert_int_equal(report->direction[OW_B_TO_A].matched, 50);
	assert_true(warns(report, "every packet is later at A"));
}

/* Every second packet is cut in two on the way, and gets another identification: its parts cannot be told. */
static void fragmented_on_the_way(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	for (uint16_t i = 0; i < 100; i++) {
		put(a, false, i * MS, i);
		if (i % 2 == 0) {
			put(b, false, i * MS + 20 * US, i);
			continue;
		}
		for (unsigned half = 0; half < 2; half++) {
			uint8_t ip[40] = {0x45,
			                  0,
			                  0,
			                  half ? 28 : 40,
			                  1,
			                  (uint8_t)i,
			                  half ? 0 : 0x20,
			                  half ? 2 : 0,
			                  64,
			                  17,
			                  0,
			                  0,
			                  10,
			                  0,
			                  1,
			                  1,
			                  10,
			                  0,
			                  2,
			                  2,
			                  0x10,
			                  0,
			                  0x20,
			                  0,
			                  0,
			                  28};
			uint32_t len = half ? 28 : 40;
			const uint32_t head[4] = {START_S, (uint32_t)(i * MS + (20 + half) * US), len, len};
			assert_int_equal(fwrite(head, sizeof head, 1, b), 1);
			assert_int_equal(fwrite(ip, len, 1, b), 1);
		}
	}
	fclose(a);
	fclose(b);
	assert_true(warns(report_of(path[OW_SIDE_A], path[OW_SIDE_B]), "100 fragments"));
}

static void one_file_twice(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A, false);
	for (uint16_t i = 0; i < 50; i++)
		put(a, false, i * MS, i);
	fclose(a);
	assert_true(warns(report_of(path[OW_SIDE_A], path[OW_SIDE_A]), "every delay is 0"));
}

/* One flow arrives as sent, the packets of another with new IP ids: not traffic that takes another way. */
static void a_flow_is_rewritten(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	for (uint16_t i = 0; i < 500; i++) {
		put(a, false, i * MS, i);
		put_flow(a, false, i * MS + 10 * US, i, 7);
		put(b, false, i * MS + 20 * US, i);
		put_data(b, false, i * MS + 30 * US, i, 7, 1);
	}
	fclose(a);
	fclose(b);
	const struct ow_match_report *report = report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
	assert_int_equal(report->direction[OW_A_TO_B].matched, 500);
	assert_int_equal(report->unclassified[OW_SIDE_A] + report->outside_overlap[OW_SIDE_A], 500);
	assert_true(warns(report, "rewrites them"));
	assert_false(warns(report, "saw no packet"));
}

/* Hosts on both sides that have no address yet send as one flow. */
static void hosts_without_an_address(void **state)
{
	(void)state;
	FILE *file[OW_SIDES] = {open_capture(OW_SIDE_A, false), open_capture(OW_SIDE_B, false)};
	for (uint16_t i = 0; i < 100; i++) {
		put(file[OW_SIDE_A], false, i * MS, i);
		put(file[OW_SIDE_B], false, i * MS + 20 * US, i);
	}
	uint8_t ip[48] = {0x45, 0, 0, 48,  0,   0,   0x40, 0, 64, 17, 0,  0, 0,
	                  0,    0, 0, 255, 255, 255, 255,  0, 68, 0,  67, 0, 28};
	for (uint8_t i = 0; i < 10; i++) {
		for (unsigned side = 0; side < OW_SIDES; side++) {
			const uint32_t head[4] = {START_S, (uint32_t)((100 + i) * MS + side * 20 * US), sizeof ip,
			                          sizeof ip};
			ip[5] = ip[28] = i;
			/* Some are shown by one capture only. */
			if (i % 5 == 4 && side == i % 2)
				continue;
			assert_int_equal(fwrite(head, sizeof head, 1, file[side]), 1);
			assert_int_equal(fwrite(ip, sizeof ip, 1, file[side]), 1);
		}
	}
	for (unsigned side = 0; side < OW_SIDES; side++) {
		put(file[side], false, 200 * MS + side * 20 * US, 900);
		fclose(file[side]);
	}
	assert_true(warns(report_of(path[OW_SIDE_A], path[OW_SIDE_B]), "without a source address"));
}

/* An MLDv2 report of a host without an address: the same on every link. */
static void put_listener_report(FILE *file, int64_t time_ns)
{
	const uint8_t ip[76] = {0x60, 0, 0, 0,   0, 36, 0, 1, [24] = 0xff, 2, [39] = 0x16, 58, 0, 5, 2, 0,
	                        0,    1, 0, 143, 0, 0,  0, 0, 0,           0, 1,           4,  0, 0, 0, 0xff};
	const uint32_t head[4] = {START_S, (uint32_t)time_ns, sizeof ip, sizeof ip};
	assert_int_equal(fwrite(head, sizeof head, 1, file), 1);
	assert_int_equal(fwrite(ip, sizeof ip, 1, file), 1);
}

/* Hosts on both sides of a router send the same report; it does not pass the router, so no delay is taken from it. */
static void reports_on_both_sides_of_a_router(uint8_t hops, uint64_t matched, int64_t longest_ns)
{
	FILE *file[OW_SIDES] = {open_capture(OW_SIDE_A, false), open_capture(OW_SIDE_B, false)};
	for (uint16_t i = 0; i < 100; i++) {
		put(file[OW_SIDE_A], false, i * MS, i);
		put_ttl(file[OW_SIDE_B], i * MS + 20 * US, i, (uint8_t)(64 - hops));
		if (i == 10)
			put_listener_report(file[OW_SIDE_A], i * MS + 1);
		if (i == 40)
			put_listener_report(file[OW_SIDE_B], i * MS + 20 * US + 1);
	}
	fclose(file[OW_SIDE_A]);
	fclose(file[OW_SIDE_B]);
	const struct ow_match_report *report = report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
	const struct ow_result *result = &report->direction[OW_A_TO_B];
	assert_int_equal(result->matched, matched);
	assert_int_equal(result->lost + result->extra, 0);
	assert_int_equal(result->delay.max_ns, longest_ns);
	assert_int_equal(report->skipped[OW_SIDE_A], hops);
	assert_int_equal(report->skipped[OW_SIDE_B], hops);
	ow_match_free(match);
	match = NULL;
}

static void reports_of_hosts_without_an_address(void **state)
{
	(void)state;
	reports_on_both_sides_of_a_router(1, 100, 20 * US);
	reports_on_both_sides_of_a_router(0, 101, 30 * MS + 20 * US); /* a bridge passes them on */
}

/* Captured with a snaplen that leaves the IP header alone: no use to look for encryption or a proxy. */
static void packets_cut_before_their_identity(void **state)
{
	(void)state;
	const uint8_t ip[20] = {0x45, 0, 0, 48, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 1, 1, 10, 0, 2, 2};
	const uint32_t head[4] = {START_S, 0, sizeof ip, 48};
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	assert_int_equal(fwrite(head, sizeof head, 1, a), 1);
	assert_int_equal(fwrite(ip, sizeof ip, 1, a), 1);
	put(b, false, 10 * US, 1);
	fclose(a);
	fclose(b);
	struct ow_match_options options;
	struct ow_error err = {0};
	ow_match_defaults(&options);
	assert_true(ow_match_files(path[OW_SIDE_A], path[OW_SIDE_B], &options, &match, &err) < 0);
	assert_non_null(strstr(err.text, "cut off"));
}

/* A superframe of UDP segmentation offload, and its first segment. */
static void udp_superframes_alone(void **state)
{
	(void)state;
	static uint8_t ip[6028] = {0x45, 0, 6028 >> 8, 6028 & 0xff, 0, 1, 0x40, 0, 64, 17,
	                           0,    0, 10,        0,           1, 1, 10,   0, 2,  2};
	const uint32_t head[4] = {START_S, 0, sizeof ip, sizeof ip};
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	assert_int_equal(fwrite(head, sizeof head, 1, a), 1);
	assert_int_equal(fwrite(ip, sizeof ip, 1, a), 1);
	put(b, false, 10 * US, 1);
	fclose(a);
	fclose(b);
	struct ow_match_options options;
	struct ow_error err = {0};
	ow_match_defaults(&options);
	assert_true(ow_match_files(path[OW_SIDE_A], path[OW_SIDE_B], &options, &match, &err) < 0);
	assert_non_null(strstr(err.text, "segmentation offload"));
}

/* Two halves of a flood have no packet in common: each holds other copies of the same packets. */
static void halves_of_a_flood(void **state)
{
	(void)state;
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	for (unsigned i = 0; i < 4000; i++)
		put(i % 2 ? a : b, false, (int64_t)i * MS, (uint16_t)(i * 7919u % 4001 * 31 % 997));
	fclose(a);
	fclose(b);
	assert_true(warns(report_of(path[OW_SIDE_A], path[OW_SIDE_B]), "as if they met by chance"));
}

/* A flood of one packet, of which a tenth is lost: the delays stay open, but not how many were lost. */
static void a_flood_of_one_packet(void **state)
{
	(void)state;
	enum { PACKETS = 30000 };
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	uint64_t random = 1, arrived = 0;
	for (int64_t i = 0; i < PACKETS; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		put(a, false, 20 * US * i, 7);
		arrived += random >> 32 > UINT32_MAX / 10;
		if (random >> 32 > UINT32_MAX / 10)
			put(b, false, 20 * US * i + 500 * US, 7);
	}
	fclose(a);
	fclose(b);
	const struct ow_match_report *report = report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
	const struct ow_result *r = &report->direction[OW_A_TO_B];
	assert_true(warns(report, "among so many identical ones"));
	assert_int_equal(r->matched + r->lost, r->sent);
	/* But for those that may be on their way when the captures end. */
	assert_true(r->matched + r->lost + 100 >= PACKETS);
	assert_true(r->matched <= arrived && r->matched + 100 >= arrived);
	assert_true(r->delay.low.mean_ns <= 500.0 * (double)US && r->delay.high.mean_ns >= 500.0 * (double)US);
}

/* 200 identical packets, 2 ms apart, of which the 100th may be lost, and so many pairs of others that are 100 us apart. */
static const struct ow_match_report *identical_beside(unsigned pairs, bool lost)
{
	FILE *a = open_capture(OW_SIDE_A, false), *b = open_capture(OW_SIDE_B, false);
	unsigned next = 0;
	for (unsigned i = 0; i < 4000; i++) {
		int64_t t = i * 100 * US;
		if (i % 20 == 0 && (put_flow(a, false, t, 7, 1), !lost || i != 2000))
			put_flow(b, false, t + 500 * US, 7, 1);
		bool first = i * pairs / 3980 >= next && next < pairs && i % 20 < 18 && i % 20 > 0;
		for (unsigned k = 0; k < 2 && first; k++) {
			put(a, false, t + k * 50 * US + 10 * US, (uint16_t)(100 + 2 * next + k));
			put(b, false, t + k * 50 * US + 510 * US, (uint16_t)(100 + 2 * next + k));
		}
		next += first;
	}
	fclose(a);
	fclose(b);
	const struct ow_match_report *report = report_of(path[OW_SIDE_A], path[OW_SIDE_B]);
	assert_int_equal(report->direction[OW_A_TO_B].sent, 200 + 2 * next);
	assert_int_equal(report->direction[OW_A_TO_B].lost, lost);
	return report;
}

/* Few other packets show neither whether the path keeps the order of identical ones nor whether it duplicates some. */
static void identical_packets_beside_few_others(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < 2; lost++) {
		const struct ow_match_report *report = identical_beside(20, lost);
		assert_true(warns(report, "whether the path keeps the order"));
		assert_int_equal(warns(report, "whether packets are duplicated"), lost);
		ow_match_free(match);
		report = identical_beside(1500, lost);
		assert_false(warns(report, "whether the path keeps the order"));
		assert_false(warns(report, "whether packets are duplicated"));
		ow_match_free(match);
		match = NULL;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(identical_packets_beside_few_others, setup, teardown),
		cmocka_unit_test_setup_teardown(packets_shown_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(some_packets_have_no_time, setup, teardown),
		cmocka_unit_test_setup_teardown(flows_behind_a_translator, setup, teardown),
		cmocka_unit_test_setup_teardown(packets_arrive_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(captures_that_drop_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(a_capture_that_drops_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(a_network_that_drops_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(polls_are_no_mirror, setup, teardown),
		cmocka_unit_test_setup_teardown(delays_below_the_resolution, setup, teardown),
		cmocka_unit_test_setup_teardown(everything_is_later_at_a, setup, teardown),
		cmocka_unit_test_setup_teardown(fragmented_on_the_way, setup, teardown),
		cmocka_unit_test_setup_teardown(halves_of_a_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(a_flood_of_one_packet, setup, teardown),
		cmocka_unit_test_setup_teardown(one_file_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(a_flow_is_rewritten, setup, teardown),
		cmocka_unit_test_setup_teardown(udp_superframes_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(hosts_without_an_address, setup, teardown),
		cmocka_unit_test_setup_teardown(reports_of_hosts_without_an_address, setup, teardown),
		cmocka_unit_test_setup_teardown(packets_cut_before_their_identity, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
