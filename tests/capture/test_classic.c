/* SPDX-License-Identifier: Apache-2.0 */
/* Classic pcap: what its fields may say, records of every size, damage at every place. */
#include "craft.h"

#include "base/time.h"
#include "capture/file/capture_format.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void test_fields(void **state)
{
	static const uint32_t magics[] = {0xa1b2c3d4, 0xa1b23c4d};

	for (int bits = 0; bits < 4; bits++) {
		struct craft *c = craft_new(bits & 1);
		int64_t tick_ns = bits & 2 ? 1 : 1000;
		craft_pcap(c, magics[bits >> 1], 96, 0xf400007f); /* an FCS length above the link type */
		craft_record(c, 1, 999999, 4, 9);
		craft_record(c, UINT32_MAX, UINT32_MAX, 4, 4); /* year 2106, sub-seconds of over a second */
		craft_record(c, 0, 0, 0, 0);
		craft_record(c, 2, 5, 8, 4);            /* more captured than there was */
		craft_record(c, 3, 5, 500, UINT32_MAX); /* over the snaplen */
		struct outcome o = read_craft(*state, c);
		assert_int_equal(o.opened, 0);
		assert_int_equal(o.result, 0);
		assert_false(o.damaged);
		assert_string_equal(o.format, "pcap");
		assert_int_equal(o.info.linktype, 127);
		assert_int_equal(o.info.snaplen, 96);
		assert_int_equal(o.info.resolution_ns, tick_ns);
		assert_int_equal(o.info.size_bytes, c->size);
		assert_int_equal(o.n, 5);
		assert_int_equal(o.frames[0].time_ns, OW_NS_PER_S + 999999 * tick_ns);
		assert_int_equal(o.frames[0].caplen, 4);
		assert_int_equal(o.frames[0].len, 9);
		assert_int_equal(o.frames[0].linktype, 127);
		assert_int_equal(o.first[0], 0x41);
		assert_int_equal(o.frames[1].time_ns, UINT32_MAX * OW_NS_PER_S + UINT32_MAX * tick_ns);
		assert_true(o.frames[1].time_ns < OW_CAPTURE_TIME_MAX_NS);
		assert_int_equal(o.frames[2].time_ns, 0);
		assert_int_equal(o.frames[2].len, 0);
		assert_int_equal(o.frames[3].caplen, 8);
		assert_int_equal(o.frames[3].len, 8);
		assert_int_equal(o.frames[4].caplen, 500);
		assert_int_equal(o.frames[4].len, UINT32_MAX);
		free(c);
	}
}

/* Every cut of a file gives the whole records before it, and says so unless it lies between records. */
static void test_cut_everywhere(void **state)
{
	static const uint32_t caplens[] = {0, 1, 16, 40, 3};
	struct craft *c = craft_new(false);
	size_t ends[6] = {24}, whole = 0;

	craft_pcap(c, 0xa1b2c3d4, 65535, 1);
	for (size_t i = 0; i < 5; i++) {
		craft_record(c, 1, 0, caplens[i], caplens[i]);
		ends[i + 1] = c->size;
	}
	for (size_t cut = 0; cut <= c->size; cut++) {
		struct outcome o = read_bytes(*state, c->bytes, cut);
		if (cut < 24) {
			assert_int_equal(o.opened, -EINVAL);
			continue;
		}
		if (whole < 5 && cut == ends[whole + 1])
			whole++;
		assert_int_equal(o.opened, 0);
		assert_int_equal(o.result, 0);
		assert_int_equal(o.n, whole);
		assert_int_equal(o.damaged, cut != ends[whole]);
	}
	free(c);
}

/* cat a.pcap b.pcap: the second file may have another byte order, resolution and link type. */
static void test_concatenated(void **state)
{
	static const uint32_t magics[] = {0xa1b2c3d4, 0xa1b23c4d};

	for (int bits = 0; bits < 16; bits++) {
		struct craft *c = craft_new(bits & 1);
		int64_t second_tick_ns = bits & 8 ? 1 : 1000;
		craft_pcap(c, magics[bits >> 2 & 1], 65535, 1);
		craft_record(c, 5, 7, 20, 20);
		craft_record(c, 6, 0x00040002, 20, 20); /* sub-seconds that look like a version */
		c->big_endian = bits & 2;
		craft_pcap(c, magics[bits >> 3], 96, 101);
		craft_record(c, 7, 9, 30, 40);
		craft_pcap(c, magics[bits >> 3], 96, 101); /* an empty file between two */
		craft_pcap(c, magics[bits >> 3], 96, 101);
		craft_record(c, 8, 0, 30, 40);
		struct outcome o = read_craft(*state, c);
		assert_int_equal(o.result, 0);
		assert_false(o.damaged);
		assert_int_equal(o.n, 4);
		assert_int_equal(o.info.linktype, 1);
		assert_int_equal(o.info.resolution_ns, (bits & 12) == 12 ? 1 : 1000);
		assert_int_equal(o.frames[0].linktype, 1);
		assert_int_equal(o.frames[2].linktype, 101);
		assert_int_equal(o.frames[2].time_ns, 7 * OW_NS_PER_S + 9 * second_tick_ns);
		assert_int_equal(o.frames[3].number, 4);
		/* The second header is cut. */
		o = read_bytes(*state, c->bytes, 24 + 2 * 36 + 20);
		assert_int_equal(o.n, 2);
		assert_true(o.damaged);
		assert_non_null(strstr(o.text, "in the header of another file at offset 96 (24 bytes, 20 present)"));
		free(c);
	}
}

/* In front of, and behind, a file of another format. */
static void test_mixed_formats(void **state)
{
	struct craft *c = craft_new(false);
	craft_pcap(c, 0xa1b2c3d4, 65535, 1);
	craft_record(c, 5, 7, 20, 20);
	size_t first = c->size;
	craft_section(c);
	craft_interface(c, 1, 65535, -1);
	craft_packet(c, 0, 9000000, 20, 20);
	size_t section = c->size;
	struct outcome o = read_craft(*state, c);
	assert_int_equal(o.result, -ENOTSUP);
	assert_non_null(strstr(o.text, "pcapng"));
	assert_non_null(strstr(o.text, "at offset 60"));
	craft_pcap(c, 0xa1b2c3d4, 65535, 1);
	craft_record(c, 5, 7, 20, 20);
	o = read_bytes(*state, c->bytes + first, c->size - first);
	char offset[40];
	snprintf(offset, sizeof offset, "at offset %zu", section - first);
	assert_int_equal(o.result, -ENOTSUP);
	assert_non_null(strstr(o.text, offset));
	free(c);
	/* Kuznetzov's: records with 8 bytes more. */
	c = craft_new(false);
	for (int i = 0; i < 2; i++) {
		craft_pcap(c, 0xa1b2cd34, 65535, 1);
		craft_32(c, 5);
		craft_32(c, 7);
		craft_32(c, 20);
		craft_32(c, 20);
		craft_fill(c, 0, 8 + 20);
	}
	o = read_craft(*state, c);
	assert_int_equal(o.result, -ENOTSUP);
	assert_non_null(strstr(o.text, "behind record 1"));
	free(c);
}

static void test_messages(void **state)
{
	struct craft *c = craft_new(true);
	char expected[1024];
	const char *path = scratch_path(*state, "crafted");
	struct outcome o;

	craft_pcap(c, 0xa1b23c4d, 65535, 1);
	craft_record(c, 1, 0, 10, 10);
	craft_record(c, 1, 0, 10, 10);
	o = read_bytes(*state, c->bytes, 24 + 26 + 20);
	snprintf(expected, sizeof expected, "%s: cut off in record 2 at offset 50 (a record of 26 bytes, 20 present)",
	         path);
	assert_string_equal(o.text, expected);
	o = read_bytes(*state, c->bytes, 24 + 26 + 3);
	snprintf(expected, sizeof expected,
	         "%s: cut off in record 2 at offset 50 (a record header of 16 bytes, 3 present)", path);
	assert_string_equal(o.text, expected);
	o = read_bytes(*state, c->bytes, 23);
	snprintf(expected, sizeof expected, "%s: cut off in the file header (23 of 24 bytes)", path);
	assert_string_equal(o.text, expected);
	memset(c->bytes + 24 + 26 + 8, 0xff, 4);
	o = read_craft(*state, c);
	assert_int_equal(o.n, 1);
	assert_int_equal(o.result, 0);
	snprintf(expected, sizeof expected,
	         "%s: damaged at record 2 at offset 50 (a record of 4294967295 bytes; at most 1048576 are possible)",
	         path);
	assert_string_equal(o.text, expected);
	free(c);
}

/* Records longer than a fill of the buffer, up to the cap, and one byte more. */
static void test_long_records(void **state)
{
	static const uint32_t caplens[] = {
		1, 262144, 262145, 7, OW_CAPTURE_CAPLEN_MAX, 100000, OW_CAPTURE_CAPLEN_MAX - 1};
	struct craft *c = craft_new(false);
	struct outcome o;

	craft_pcap(c, 0xa1b2c3d4, 65535, 1);
	for (uint32_t i = 0; i < 7; i++)
		craft_record(c, i, 0, caplens[i], caplens[i]);
	o = read_craft(*state, c);
	assert_false(o.damaged);
	assert_int_equal(o.n, 7);
	for (uint32_t i = 0; i < 7; i++) {
		assert_int_equal(o.frames[i].caplen, caplens[i]);
		assert_int_equal(o.first[i], 0x40 + i);
	}
	craft_32(c, 0);
	craft_32(c, 0);
	craft_32(c, OW_CAPTURE_CAPLEN_MAX + 1);
	craft_32(c, 0);
	o = read_craft(*state, c);
	assert_true(o.damaged);
	assert_int_equal(o.n, 7);
	free(c);
}

/* The buffer's end falls on every place of a record: 37 divides neither a fill nor its neighbours. */
static void test_many_small_records(void **state)
{
	struct craft *c = craft_new(false);
	size_t n = 0;
	struct outcome o;

	craft_pcap(c, 0xa1b2c3d4, 65535, 1);
	for (; c->size + 37 <= CRAFT_MAX; n++)
		craft_record(c, (uint32_t)n, 0, 21, 21);
	o = read_craft(*state, c);
	assert_false(o.damaged);
	assert_int_equal(o.n, n);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fields, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_cut_everywhere, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_concatenated, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_mixed_formats, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_messages, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_long_records, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_many_small_records, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
