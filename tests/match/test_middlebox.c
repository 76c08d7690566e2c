/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of captures as users take them: simulated ones, of which one is rewritten as a middlebox, a switch or the
 * capturing host would have done it. The result stays that of the original packets.
 */
#include "scenario.h"

#include "base/bytes.h"
#include "capture/file/reader.h"
#include "capture/file/writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define BATCH     64
#define ETHERNET  14u
#define FRAME_MAX 70000u
#define US        INT64_C(1000)

/* What becomes of one frame of a capture; bytes: a copy of its data, with room for more. */
typedef void (*rewrite_fn)(struct ow_writer *writer, struct ow_frame *frame, uint8_t *bytes);

static void put(struct ow_writer *writer, const struct ow_frame *frame)
{
	struct ow_error err;
	assert_int_equal(ow_writer_write(writer, frame, &err), 0);
}

/* A capture's frames through this function; the scenario goes on with the new file. */
static void rewrite(struct scenario *s, enum ow_side side, rewrite_fn fn)
{
	static char path[OW_SIDES][64];
	static uint8_t copy[FRAME_MAX];
	struct ow_reader *reader = NULL;
	struct ow_writer *writer = NULL;
	struct ow_frame frame[BATCH];
	(void)snprintf(path[side], sizeof path[side], "%s",
	               scenario_path(side == OW_SIDE_A ? "rewritten-a.pcap" : "rewritten-b.pcap"));
	assert_int_equal(ow_reader_open(s->sim.side[side].path, &reader, &s->err), 0);
	const struct ow_writer_options options = {.linktype = (uint16_t)ow_reader_info(reader)->linktype,
	                                          .nanoseconds = true};
	assert_int_equal(ow_writer_open(path[side], &options, &writer, &s->err), 0);
	for (int n; (n = ow_reader_read(reader, frame, BATCH, &s->err)) > 0;) {
		for (int i = 0; i < n; i++) {
			assert_true(frame[i].caplen + 100 <= sizeof copy);
			memcpy(copy, frame[i].data, frame[i].caplen);
			frame[i].data = copy;
			fn(writer, &frame[i], copy);
		}
	}
	ow_reader_close(reader);
	assert_int_equal(ow_writer_close(writer, &s->err), 0);
	s->sim.side[side].path = path[side];
}

static void match(struct scenario *s)
{
	if (scenario_match(s) < 0)
		fail_msg("%s: match: %s", s->name, s->err.text);
	scenario_conserved(s->report);
}

/* -- frames that are no IP packets -------------------------------------------------------------------------------- */

/* `count` broadcasts behind the frame, each of them unlike the others but the same in both captures. */
static void chatter(struct ow_writer *writer, const struct ow_frame *frame, unsigned count)
{
	uint8_t bytes[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 0x88, 0xb5};
	struct ow_frame broadcast = {
		.linktype = 1, .caplen = sizeof bytes, .len = sizeof bytes, .data = bytes, .time_ns = frame->time_ns};
	for (unsigned i = 0; i < count; i++) {
		/* As the packet is known at both points, so is what follows it. */
		memcpy(bytes + 14, frame->data + ETHERNET + 4, 2);
		memcpy(bytes + 16, frame->data + frame->caplen - 8, 8);
		bytes[24] = (uint8_t)i;
		put(writer, &broadcast);
	}
}

static void add_some_chatter(struct ow_writer *writer, struct ow_frame *frame, uint8_t *bytes)
{
	(void)bytes;
	put(writer, frame);
	if (frame->len < 100)
		chatter(writer, frame, 1);
}

static void add_much_chatter(struct ow_writer *writer, struct ow_frame *frame, uint8_t *bytes)
{
	(void)bytes;
	put(writer, frame);
	chatter(writer, frame, 3);
}

/* What the link says does not keep superframes from being cut, though byte by byte more frames are the same. */
static void chatter_beside_superframes(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "superframes and broadcasts");
	s.sim.side[OW_SIDE_A].superframes = true;
	s.sim.in_order = true;
	s.sim.reverse = 0.3;
	scenario_simulate(&s);
	rewrite(&s, OW_SIDE_A, add_some_chatter);
	rewrite(&s, OW_SIDE_B, add_some_chatter);
	match(&s);
	assert_int_equal(s.report->level, OW_LEVEL_IP);
	assert_true(s.report->segments);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		scenario_check_counts(&s.report->direction[d], &s.truth.direction[d], true);
		scenario_check_delays(&s.report->direction[d].delay, &s.truth.direction[d].delay);
	}
	scenario_done(&s);
}

/* Where most frames are no IP packets, they are what is to be measured. */
static void hardly_any_ip(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "hardly any IP");
	s.sim.packets = 2000;
	s.sim.loss.ratio = 0;
	scenario_simulate(&s);
	rewrite(&s, OW_SIDE_A, add_much_chatter);
	rewrite(&s, OW_SIDE_B, add_much_chatter);
	match(&s);
	assert_int_equal(s.report->level, OW_LEVEL_FRAME);
	assert_int_equal(s.report->direction[OW_A_TO_B].matched, 4 * s.truth.direction[OW_A_TO_B].matched);
	assert_int_equal(s.report->direction[OW_A_TO_B].lost, 0);
	scenario_done(&s);
}

/* -- TCP rewritten ------------------------------------------------------------------------------------------------ */

static uint8_t *tcp_of(uint8_t *bytes)
{
	uint8_t *ip = bytes + ETHERNET;
	bool v4 = ip[0] >> 4 == 4;
	if (ip[v4 ? 9 : 6] != 6)
		return NULL;
	return ip + (v4 ? (ip[0] & 15) * 4 : 40);
}

/* Other numbers, as a firewall that makes initial sequence numbers random. */
static void renumber(struct ow_writer *writer, struct ow_frame *frame, uint8_t *bytes)
{
	uint8_t *tcp = tcp_of(bytes);
	if (tcp) {
		ow_store_be32(tcp + 4, ow_load_be32(tcp + 4) + 123456789u);
		ow_store_be32(tcp + 8, ow_load_be32(tcp + 8) + 987654321u);
	}
	put(writer, frame);
}

/* No options: the payload moves up, the lengths shrink. */
static void strip_options(struct ow_writer *writer, struct ow_frame *frame, uint8_t *bytes)
{
	uint8_t *ip = bytes + ETHERNET, *tcp = tcp_of(bytes);
	uint32_t options = tcp ? (tcp[12] >> 4) * 4u - 20 : 0;
	if (options) {
		uint32_t behind = (uint32_t)(tcp - bytes) + 20 + options;
		memmove(tcp + 20, tcp + 20 + options, frame->caplen - behind);
		tcp[12] = 0x50;
		unsigned at = ip[0] >> 4 == 4 ? 2 : 4;
		ow_store_be16(ip + at, (uint16_t)(ow_load_be16(ip + at) - options));
		frame->caplen -= options;
		frame->len -= options;
	}
	put(writer, frame);
}

static void rewritten_tcp(const char *name, rewrite_fn fn, bool nat, double reverse, uint32_t snaplen)
{
	struct scenario s;
	scenario_init(&s, name);
	s.sim.nat = nat;
	s.sim.reverse = reverse;
	s.sim.side[OW_SIDE_A].snaplen = snaplen;
	scenario_simulate(&s);
	rewrite(&s, OW_SIDE_B, fn);
	match(&s);
	assert_int_equal(s.report->level, nat ? OW_LEVEL_NAT : OW_LEVEL_IP);
	assert_true(s.report->tcp_numbers == (fn == strip_options));
	assert_false(s.report->tcp_options);
	assert_true(s.report->ip_id);
	scenario_check(&s);
	scenario_done(&s);
}

static void tcp_is_rewritten(void **state)
{
	(void)state;
	rewritten_tcp("other sequence numbers", renumber, false, 0, 0);
	rewritten_tcp("other sequence numbers, both ways", renumber, false, 0.4, 0);
	rewritten_tcp("other sequence numbers behind NAT", renumber, true, 0.4, 0);
	rewritten_tcp("options stripped", strip_options, false, 0.4, 0);
	rewritten_tcp("options stripped, truncated capture", strip_options, false, 0.4, 96);
	rewritten_tcp("options stripped behind NAT", strip_options, true, 0.4, 0);
}

/* Without options superframes can be cut: their numbers are the same. */
static void superframes_without_options(void **state)
{
	(void)state;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		struct scenario s;
		scenario_init(&s, "options stripped, superframes");
		s.sim.side[side].superframes = true;
		s.sim.in_order = true;
		s.sim.reverse = 0.3;
		scenario_simulate(&s);
		rewrite(&s, OW_SIDE_B, strip_options);
		match(&s);
		assert_true(s.report->tcp_numbers && s.report->segments);
		assert_false(s.report->tcp_options);
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			scenario_check_counts(&s.report->direction[d], &s.truth.direction[d], true);
			scenario_check_delays(&s.report->direction[d].delay, &s.truth.direction[d].delay);
		}
		scenario_done(&s);
	}
}

/* Other numbers, and another identification. */
static void renumber_all(struct ow_writer *writer, struct ow_frame *frame, uint8_t *bytes)
{
	uint8_t *ip = bytes + ETHERNET;
	if (ip[0] >> 4 == 4)
		ow_store_be16(ip + 4, (uint16_t)(ow_load_be16(ip + 4) * 31u + 7u));
	renumber(writer, frame, bytes);
}

/* What is left are the data: all packets without any are alike, and it is said so. */
static void nothing_but_data(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "other identifications and sequence numbers");
	s.sim.reverse = 0.3;
	scenario_simulate(&s);
	rewrite(&s, OW_SIDE_B, renumber_all);
	match(&s);
	assert_false(s.report->ip_id || s.report->tcp_numbers);
	uint64_t matched = 0, sent = 0;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		matched += s.report->direction[d].matched;
		sent += s.truth.direction[d].matched;
		assert_true(s.report->direction[d].delay.samples <= s.report->direction[d].matched);
	}
	assert_true((double)matched > 0.95 * (double)sent);
	scenario_done(&s);
}

/* Superframes need the numbers: it is said why they are not cut. */
static void superframes_without_numbers(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "other sequence numbers, superframes");
	s.sim.side[OW_SIDE_A].superframes = true;
	scenario_simulate(&s);
	rewrite(&s, OW_SIDE_B, renumber);
	match(&s);
	assert_false(s.report->tcp_numbers);
	assert_false(s.report->segments);
	assert_true(scenario_warns(s.report, "superframes, which cannot be cut"));
	scenario_done(&s);
}

/* -- captures that show packets twice ----------------------------------------------------------------------------- */

/* In and out of a router, or both directions of a mirror port. */
static void show_twice(struct ow_writer *writer, struct ow_frame *frame, uint8_t *bytes)
{
	(void)bytes;
	put(writer, frame);
	frame->time_ns += 2 * US;
	put(writer, frame);
}

static void shown_twice(const char *name, enum ow_side side, double reverse, bool segments)
{
	struct scenario s;
	scenario_init(&s, name);
	s.sim.reverse = reverse;
	s.sim.in_order = true;
	s.sim.side[side].superframes = segments;
	s.match.segments = segments ? OW_ON : OW_AUTO; /* copies of superframes only */
	s.sim.tcp = segments ? 1 : s.sim.tcp;
	scenario_simulate(&s);
	rewrite(&s, side, show_twice);
	match(&s);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		scenario_check_counts(&s.report->direction[d], &s.truth.direction[d], false);
		scenario_check_delays(&s.report->direction[d].delay, &s.truth.direction[d].delay);
	}
	assert_true(s.report->skipped[side] > 0);
	assert_true(scenario_warns(s.report, "more than once"));
	assert_true(scenario_warns(s.report, "left out"));
	s.match.dedup_ns = -1;
	ow_match_free(s.result);
	s.result = NULL;
	match(&s);
	assert_int_equal(s.report->skipped[side], 0);
	scenario_done(&s);
}

/* What is sent twice and arrives once is the capture's doing, and what arrives twice there then as well. */
static void copies_are_left_out(void **state)
{
	(void)state;
	shown_twice("A shows packets twice", OW_SIDE_A, 0, false);
	shown_twice("B shows packets twice, both ways", OW_SIDE_B, 0.4, false);
	shown_twice("A shows superframes twice, both ways", OW_SIDE_A, 0.4, true);
	shown_twice("B shows superframes twice, both ways", OW_SIDE_B, 0.4, true);
}

/* -- fragments ---------------------------------------------------------------------------------------------------- */

static uint32_t mtu = 1400;
static uint64_t cuts; /* fragments beyond the first, of all packets */

/* A link with a smaller MTU; what arrives in fragments is cut again. */
static void fragment(struct ow_writer *writer, struct ow_frame *frame, uint8_t *bytes)
{
	static uint8_t part[ETHERNET + 1500];
	uint8_t *ip = bytes + ETHERNET;
	uint32_t total = ow_load_be16(ip + 2), data = total - 20u, room = (mtu - 20) & ~7u;
	uint16_t at = ow_load_be16(ip + 6) & 0x1fff, more = ow_load_be16(ip + 6) & 0x2000;
	if (ip[0] != 0x45 || total <= mtu) {
		put(writer, frame);
		return;
	}
	for (uint32_t from = 0; from < data; from += room) {
		uint32_t len = data - from < room ? data - from : room;
		memcpy(part, bytes, ETHERNET + 20);
		memcpy(part + ETHERNET + 20, ip + 20 + from, len);
		ow_store_be16(part + ETHERNET + 2, (uint16_t)(20 + len));
		ow_store_be16(part + ETHERNET + 6, (uint16_t)((from + len < data ? 0x2000 : more) | (at + from / 8)));
		frame->data = part;
		frame->len = frame->caplen = ETHERNET + 20 + len;
		put(writer, frame);
		cuts += from > 0;
	}
}

static void fragmented(const char *name, enum ow_side side, bool nat, double loss)
{
	struct scenario s;
	scenario_init(&s, name);
	s.sim.nat = nat;
	s.sim.ipv6 = 0.2;
	s.sim.in_order = true;
	s.sim.loss.ratio = loss;
	scenario_simulate(&s);
	cuts = 0;
	rewrite(&s, side, fragment);
	match(&s);
	const struct ow_result *r = &s.report->direction[OW_A_TO_B], *t = &s.truth.direction[OW_A_TO_B];
	assert_true(s.report->fragments);
	assert_true(cuts > 1000);
	assert_true(r->matched <= t->matched + cuts);
	assert_true(r->sent >= t->sent && r->lost >= t->lost && r->lost <= 2 * t->lost);
	assert_int_equal(r->extra, 0);
	assert_int_equal(r->ambiguous, 0);
	assert_int_equal(r->delay.min_ns, t->delay.min_ns);
	assert_int_equal(r->delay.max_ns, t->delay.max_ns);
	if (side == OW_SIDE_B)
		assert_int_equal(r->matched, t->matched + cuts);
	if (loss == 0)
		assert_int_equal(r->lost, 0);
	assert_true(scenario_warns(s.report, "packets are cut into fragments on the way"));
	scenario_done(&s);
}

static void packets_meet_their_fragments(void **state)
{
	(void)state;
	fragmented("fragments at B", OW_SIDE_B, false, 0);
	fragmented("fragments at B, losses", OW_SIDE_B, false, 0.05);
	fragmented("fragments at A", OW_SIDE_A, false, 0);
	fragmented("fragments at A, losses", OW_SIDE_A, false, 0.05);
	fragmented("fragments at B behind NAT", OW_SIDE_B, true, 0);
}

/* No packet is whole at both points: the fragments are all that they have in common. */
static void nothing_but_fragments(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "nothing but fragments");
	s.sim.size = (struct ow_sim_size){.kind = OW_SIM_SIZE_CONSTANT, .min = 1480, .max = 1480};
	s.sim.tcp = 0;
	s.sim.loss.ratio = 0.05;
	scenario_simulate(&s);
	cuts = 0;
	rewrite(&s, OW_SIDE_B, fragment);
	match(&s);
	const struct ow_result *r = &s.report->direction[OW_A_TO_B], *t = &s.truth.direction[OW_A_TO_B];
	assert_true(s.report->fragments);
	assert_int_equal(r->matched, 2 * t->matched);
	/* The last ones may be outside the time that B covers; ten in a row are lost with a probability of 0.05^10. */
	assert_true(r->lost <= 2 * t->lost && r->lost + 20 >= 2 * t->lost);
	assert_int_equal(r->sent, r->matched + r->lost);
	assert_int_equal(r->extra, 0);
	scenario_done(&s);
}

/*
 * Every length up to the MTU, which is up to 7 bytes more than that of full fragments, is one packet. Of the packets
 * that are lost, those that are longer than any that arrived whole are as many as they would have been cut into.
 */
static void only_what_is_cut_is_counted_in_parts(void **state)
{
	(void)state;
	for (mtu = 1397; mtu <= 1403; mtu += 3) {
		struct scenario s;
		scenario_init(&s, "packets as long as the MTU");
		s.sim.size = (struct ow_sim_size){.kind = OW_SIM_SIZE_UNIFORM, .min = 1380, .max = 1420};
		s.sim.tcp = 0;
		s.sim.loss.ratio = 0.02;
		scenario_simulate(&s);
		cuts = 0;
		rewrite(&s, OW_SIDE_B, fragment);
		match(&s);
		const struct ow_result *r = &s.report->direction[OW_A_TO_B], *t = &s.truth.direction[OW_A_TO_B];
		assert_int_equal(r->matched, t->matched + cuts);
		assert_int_equal(r->ambiguous, 0);
		assert_int_equal(r->extra, 0);
		/* Lengths are uniform: the share of the lost ones that would have been cut is that of all. */
		double cut = (double)cuts / (double)t->matched, lost = (double)t->lost;
		assert_true(fabs((double)r->lost - lost * (1 + cut)) < 4 * sqrt(lost * cut * (1 - cut)) + 2);
		scenario_done(&s);
	}
	mtu = 1400;
}

/* Both points show fragments, those of B smaller ones: as many packets as the parts that both have in common. */
static void fragments_are_cut_again(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "fragments are cut again");
	s.sim.size = (struct ow_sim_size){.kind = OW_SIM_SIZE_UNIFORM, .min = 1200, .max = 1480};
	s.sim.tcp = 0;
	scenario_simulate(&s);
	rewrite(&s, OW_SIDE_A, fragment);
	cuts = 0;
	rewrite(&s, OW_SIDE_B, fragment);
	uint64_t first = cuts;
	mtu = 800;
	char path[64];
	(void)snprintf(path, sizeof path, "%s", scenario_path("once.pcap"));
	assert_int_equal(rename(s.sim.side[OW_SIDE_B].path, path), 0);
	s.sim.side[OW_SIDE_B].path = path;
	cuts = 0;
	rewrite(&s, OW_SIDE_B, fragment);
	mtu = 1400;
	match(&s);
	const struct ow_result *r = &s.report->direction[OW_A_TO_B], *t = &s.truth.direction[OW_A_TO_B];
	assert_true(s.report->fragments && cuts > 0 && first > 0);
	assert_int_equal(r->matched, t->matched + first + cuts);
	assert_int_equal(r->extra, 0);
	assert_int_equal(r->ambiguous, 0);
	unlink(path);
	scenario_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(chatter_beside_superframes, scenario_say),
		cmocka_unit_test_teardown(hardly_any_ip, scenario_say),
		cmocka_unit_test_teardown(tcp_is_rewritten, scenario_say),
		cmocka_unit_test_teardown(nothing_but_data, scenario_say),
		cmocka_unit_test_teardown(superframes_without_options, scenario_say),
		cmocka_unit_test_teardown(superframes_without_numbers, scenario_say),
		cmocka_unit_test_teardown(copies_are_left_out, scenario_say),
		cmocka_unit_test_teardown(packets_meet_their_fragments, scenario_say),
		cmocka_unit_test_teardown(nothing_but_fragments, scenario_say),
		cmocka_unit_test_teardown(only_what_is_cut_is_counted_in_parts, scenario_say),
		cmocka_unit_test_teardown(fragments_are_cut_again, scenario_say),
	};
	return cmocka_run_group_tests(tests, scenario_setup, scenario_teardown);
}
