/* SPDX-License-Identifier: Apache-2.0 */
/* pcapng and odd pcap variants: all that libpcap reads, and what the follower adds to it. */
#include "craft.h"

#include "base/time.h"
#include "capture/file/follow.h"
#include "capture/file/capture_format.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Interfaces that differ in link type, snaplen and resolution. */
static void test_mixed_interfaces(void **state)
{
	for (int big = 0; big < 2; big++) {
		struct craft *c = craft_new(big);
		craft_section(c);
		craft_interface(c, 1, 96, -1);
		craft_interface(c, 101, 0, 9);
		craft_packet(c, 0, 1000001, 4, 4);
		craft_packet(c, 1, 1000001, 300, 400); /* over the first interface's snaplen */
		craft_interface(c, 113, 262144, 0x80 | 1);
		craft_packet(c, 2, 3, 4, 4);
		craft_packet(c, 0, 2000000, 8, 4); /* more captured than there was */
		craft_statistics(c, 0, 7, 0);
		craft_statistics(c, 1, 0, 8);
		struct outcome o = read_craft(*state, c);
		if (o.opened < 0 || o.result < 0 || o.damaged)
			fail_msg("%s", o.text);
		assert_string_equal(o.format, "pcapng");
		assert_int_equal(o.info.linktype, 1);
		assert_int_equal(o.info.snaplen, 96);
		assert_int_equal(o.info.dropped, 15);
		assert_int_equal(o.info.resolution_ns, OW_NS_PER_S / 2);
		assert_int_equal(o.n, 4);
		assert_int_equal(o.frames[0].time_ns, 1000001000);
		assert_int_equal(o.frames[0].linktype, 1);
		assert_int_equal(o.frames[1].time_ns, 1000001);
		assert_int_equal(o.frames[1].linktype, 101);
		assert_int_equal(o.frames[1].caplen, 300);
		assert_int_equal(o.frames[1].len, 400);
		assert_int_equal(o.first[1], 0x41);
		assert_int_equal(o.frames[2].time_ns, 1500000000);
		assert_int_equal(o.frames[2].linktype, 113);
		assert_int_equal(o.frames[3].linktype, 1);
		assert_int_equal(o.frames[3].len, 8);
		free(c);
	}
}

/* The old packet block, the simple one (no time, first interface), blocks that nobody knows, a second section. */
static void test_other_blocks(void **state)
{
	struct craft *c = craft_new(false);
	size_t begin;
	struct outcome o;

	craft_section(c);
	craft_interface(c, 101, 0, 6);
	craft_interface(c, 1, 0, 6);
	begin = craft_begin(c, 2);
	craft_16(c, 1);
	craft_16(c, 3); /* drops */
	craft_64(c, 0);
	craft_32(c, 6);
	craft_32(c, 6);
	craft_fill(c, 7, 6);
	craft_end(c, begin);
	begin = craft_begin(c, 0xbad);
	craft_fill(c, 0, 10000);
	craft_end(c, begin);
	begin = craft_begin(c, 3);
	craft_32(c, 5);
	craft_fill(c, 8, 5);
	craft_end(c, begin);
	craft_section(c);
	craft_interface(c, 229, 0, 6);
	craft_packet_after(c, 20, 0, 5, 4);
	o = read_craft(*state, c);
	if (o.opened < 0 || o.result < 0 || o.damaged)
		fail_msg("%s", o.text);
	assert_int_equal(o.n, 3);
	assert_int_equal(o.info.dropped, 23);
	assert_int_equal(o.frames[0].linktype, 1);
	assert_int_equal(o.first[0], 7);
	assert_int_equal(o.frames[1].linktype, 101);
	assert_int_equal(o.frames[1].caplen, 5);
	assert_int_equal(o.frames[1].time_ns, 0);
	assert_int_equal(o.frames[2].linktype, 229);
	free(c);
}

/* Sound files that libpcap cannot read are errors that name the remedy, early or late in the file. */
static void test_refusals(void **state)
{
	for (int late = 0; late < 2; late++) {
		for (int order = 0; order < 2; order++) {
			struct craft *c = craft_new(false);
			struct outcome o;
			craft_section(c);
			craft_interface(c, 1, 0, 6);
			for (int i = 0; i < (late ? 10 : 1); i++)
				craft_packet(c, 0, 5, 100000, 100000);
			if (order) {
				c->big_endian = true;
				craft_section(c);
				craft_interface(c, 1, 0, 6);
			} else {
				craft_interface(c, 1, 0, 0x80 | 35);
			}
			craft_packet(c, 0, 5, 4, 4);
			o = read_craft(*state, c);
			assert_int_equal(o.opened, late ? 0 : -ENOTSUP);
			assert_int_equal(o.result, late ? -ENOTSUP : 0);
			assert_int_equal(o.n, late ? 10 : 0);
			assert_false(o.damaged);
			assert_non_null(strstr(o.text, order ? "crafted: sections of different byte order"
			                                     : "finer than 2^-34 s"));
			assert_non_null(strstr(o.text, "tshark -r FILE"));
			free(c);
		}
	}
}

static void test_absurd_times(void **state)
{
	struct craft *c = craft_new(false);
	size_t begin;
	struct outcome o;

	craft_section(c);
	begin = craft_begin(c, 1);
	craft_16(c, 1);
	craft_16(c, 0);
	craft_32(c, 0);
	craft_16(c, 14); /* if_tsoffset: before all time */
	craft_16(c, 8);
	craft_64(c, (uint64_t)INT64_MIN);
	craft_32(c, 0);
	craft_end(c, begin);
	craft_interface(c, 1, 0, 0);
	craft_packet(c, 0, 0, 4, 4);
	craft_packet(c, 1, UINT64_MAX, 4, 4);
	craft_packet(c, 1, INT64_MAX, 4, 4);
	craft_packet(c, 1, 4611686018, 4, 4);
	o = read_craft(*state, c);
	assert_int_equal(o.n, 4);
	assert_int_equal(o.info.resolution_ns, OW_NS_PER_S);
	/* They have none, and no delays of 0 between them; whole seconds may be of before 1970. */
	for (size_t i = 0; i < o.n; i++)
		assert_int_equal(o.frames[i].time_ns, i == 1 ? -OW_NS_PER_S : 0);
	free(c);
}

static void test_cut_everywhere(void **state)
{
	struct craft *c = craft_new(true);
	size_t ends[16], n_ends = 0, first_packet, whole;

	craft_section(c);
	craft_interface(c, 101, 0, 9);
	ends[n_ends++] = first_packet = c->size;
	craft_packet(c, 0, 1, 3, 3);
	ends[n_ends++] = c->size;
	craft_packet(c, 0, 2, 0, 3);
	ends[n_ends++] = c->size;
	craft_packet(c, 0, 3, 20, 20);
	ends[n_ends++] = c->size;
	whole = 0;
	for (size_t cut = 0; cut <= c->size; cut++) {
		struct outcome o = read_bytes(*state, c->bytes, cut);
		if (cut < first_packet) {
			assert_int_equal(o.opened, -EINVAL);
			assert_non_null(strstr(o.text, "crafted: "));
			continue;
		}
		if (whole + 1 < n_ends && cut == ends[whole + 1])
			whole++;
		assert_int_equal(o.result, 0);
		assert_int_equal(o.n, whole);
		assert_int_equal(o.damaged, cut != ends[whole]);
		if (o.damaged) {
			char expected[128];
			snprintf(expected, sizeof expected, "crafted: damaged or cut off in record %zu at offset %zu (",
			         whole + 1, ends[whole]);
			assert_non_null(strstr(o.text, expected));
		}
	}
	free(c);
}

/* Each defect ends the file where it is; what came before stays. */
static void test_damage(void **state)
{
	static const struct {
		const char *name;
		size_t at; /* from the second packet's block */
		uint32_t value;
	} defects[] = {
		{"block-length-zero", 4, 0},          {"block-length-odd", 4, 37},
		{"block-length-huge", 4, 0xfffffffc}, {"block-length-past-end", 4, 400},
		{"trailing-length-differs", 32, 40},  {"no-such-interface", 8, 1},
		{"caplen-over-block", 20, 5},         {"caplen-huge", 20, 0xffffffff},
	};
	for (size_t i = 0; i < sizeof defects / sizeof *defects; i++) {
		struct craft *c = craft_new(false);
		craft_section(c);
		craft_interface(c, 1, 0, 6);
		craft_packet(c, 0, 1, 4, 4);
		size_t block = c->size;
		craft_packet(c, 0, 2, 4, 4);
		craft_packet(c, 0, 3, 4, 4);
		memcpy(c->bytes + block + defects[i].at, &defects[i].value, 4);
		struct outcome o = read_all(scratch_save(*state, defects[i].name, c->bytes, c->size));
		assert_int_equal(o.result, 0);
		assert_true(o.damaged);
		assert_int_equal(o.n, 1);
		free(c);
	}
}

/* Frames that fill the batch's memory several times, and one that is larger than it. */
static void test_long_frames(void **state)
{
	static const uint32_t caplens[] = {100000, 100000, 100000, 262144, 1, 262145, 2, 1000000, 262143, 2, 1};
	struct craft *c = craft_new(false);
	struct outcome o;

	craft_section(c);
	craft_interface(c, 189, 0, 6);
	for (size_t i = 0; i < sizeof caplens / sizeof *caplens; i++)
		craft_packet(c, 0, i, caplens[i], caplens[i]);
	o = read_craft(*state, c);
	if (o.opened < 0 || o.result < 0 || o.damaged)
		fail_msg("%s", o.text);
	assert_int_equal(o.n, sizeof caplens / sizeof *caplens);
	for (size_t i = 0; i < o.n; i++) {
		assert_int_equal(o.frames[i].caplen, caplens[i]);
		assert_int_equal(o.frames[i].time_ns, i * 1000);
		assert_int_equal(o.first[i], 0x40);
	}
	craft_packet(c, 0, 0, OW_CAPTURE_CAPLEN_MAX + 1, OW_CAPTURE_CAPLEN_MAX + 1);
	o = read_craft(*state, c);
	assert_true(o.damaged);
	assert_int_equal(o.n, sizeof caplens / sizeof *caplens);
	free(c);
}

/* Version 2.2 has the lengths the other way round; Kuznetzov's patch has longer record headers. */
static void test_odd_pcap(void **state)
{
	struct craft *c = craft_new(false);
	struct outcome o;

	craft_pcap(c, 0xa1b2c3d4, 65535, 101);
	c->bytes[6] = 2;
	craft_32(c, 7);
	craft_32(c, 1);
	craft_32(c, 60);
	craft_32(c, 4);
	craft_fill(c, 1, 4);
	o = read_craft(*state, c);
	if (o.opened < 0 || o.result < 0 || o.damaged)
		fail_msg("%s", o.text);
	assert_int_equal(o.n, 1);
	assert_int_equal(o.frames[0].caplen, 4);
	assert_int_equal(o.frames[0].len, 60);
	assert_int_equal(o.frames[0].time_ns, 7000001000);
	assert_int_equal(o.frames[0].linktype, 101);
	assert_int_equal(o.info.resolution_ns, 1000);
	assert_string_equal(o.format, "pcap (variant)");

	c->size = 0;
	craft_pcap(c, 0xa1b2cd34, 65535, 1);
	craft_32(c, 7);
	craft_32(c, 1);
	craft_32(c, 4);
	craft_32(c, 60);
	craft_64(c, 0); /* interface index, protocol, packet type */
	craft_fill(c, 9, 4);
	o = read_craft(*state, c);
	if (o.opened < 0 || o.result < 0 || o.damaged)
		fail_msg("%s", o.text);
	assert_int_equal(o.n, 1);
	assert_int_equal(o.first[0], 9);
	assert_int_equal(o.frames[0].linktype, 1);
	o = read_bytes(*state, c->bytes, c->size - 1);
	assert_true(o.damaged);
	assert_int_equal(o.n, 0);

	c->bytes[4] = 3; /* no such version */
	o = read_craft(*state, c);
	assert_int_equal(o.opened, -EINVAL);
	free(c);
}

/* The follower sees the same whatever pieces the stream comes in. */
static void test_follow_pieces(void **state)
{
	struct craft *c = craft_new(true);
	struct ow_follow *f = calloc(1, sizeof *f);

	(void)state;
	assert_non_null(f);
	craft_section(c);
	craft_interface(c, 105, 77, 3);
	craft_packet(c, 0, 1, 9, 9);
	craft_interface(c, 127, 78, 9);
	craft_packet(c, 1, 1, 90, 90);
	for (size_t piece = 1; piece <= c->size; piece++) {
		uint8_t bytes[1024];
		memcpy(bytes, c->bytes, c->size);
		for (size_t i = 0; i < c->size;)
			i += ow_follow_feed(f, bytes + i, c->size - i < piece ? c->size - i : piece);
		assert_false(f->lost);
		assert_int_equal(f->pos, 0);
		assert_int_equal(f->offset, c->size);
		assert_int_equal(f->block_offset, c->size - 124);
		assert_int_equal(f->interfaces, 2);
		assert_int_equal(f->linktype, 105);
		assert_int_equal(f->snaplen, 77);
		assert_int_equal(f->resolution_ns, 1000000);
		assert_int_equal(f->packet_linktype, 127);
		assert_int_equal(bytes[28 + 15], 0); /* the snaplen as libpcap sees it */
		assert_memory_equal(bytes + c->size - 100, c->bytes + c->size - 100, 100);
		ow_follow_reset(f);
	}
	free(f);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mixed_interfaces, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_other_blocks, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_refusals, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_absurd_times, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_cut_everywhere, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_damage, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_long_frames, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_odd_pcap, scratch_setup, scratch_teardown),
		cmocka_unit_test(test_follow_pieces),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
