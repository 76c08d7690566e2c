/* SPDX-License-Identifier: Apache-2.0 */
/* snoop and ERF: every field, cuts and damage everywhere, and what must not be taken for ERF. */
#include "craft.h"

#include "capture/file/capture_format.h"
#include <errno.h>
#include <string.h>

static void test_snoop(void **state)
{
	struct craft *c = craft_new(true);
	struct outcome o;

	craft_snoop(c, 2, 4);
	craft_snoop_record(c, 1700000000, 5, 61, 1514, 0);
	craft_snoop_record(c, 1700000001, 999999, 60, 60, 7);
	craft_snoop_record(c, 1700000002, 0, 8, 4, 9);
	o = read_craft(*state, c);
	assert_int_equal(o.opened, 0);
	assert_false(o.damaged);
	assert_string_equal(o.format, "snoop");
	assert_int_equal(o.info.linktype, 1);
	assert_int_equal(o.info.resolution_ns, 1000);
	assert_int_equal(o.info.dropped, 9);
	assert_int_equal(o.n, 3);
	assert_int_equal(o.frames[0].time_ns, INT64_C(1700000000000005000));
	assert_int_equal(o.frames[0].caplen, 61);
	assert_int_equal(o.frames[0].len, 1514);
	assert_int_equal(o.frames[0].linktype, 1);
	assert_int_equal(o.first[1], 0x41);
	assert_int_equal(o.frames[2].len, 8);
	/* cut everywhere */
	for (size_t size = 9, whole = c->size; size < whole; size++) {
		o = read_bytes(*state, c->bytes, size);
		assert_true(size < 16 ? o.opened < 0 : o.n < 3);
		assert_true(o.opened < 0 || o.damaged || size == 16 || size == 16 + 24 + 64 ||
		            size == 16 + 2 * 24 + 64 + 60);
	}
	free(c);
}

static void test_snoop_refused(void **state)
{
	struct craft *c = craft_new(true);
	struct outcome o;

	craft_snoop(c, 3, 4);
	o = read_craft(*state, c);
	assert_int_equal(o.opened, -ENOTSUP);
	assert_non_null(strstr(o.text, "snoop version 3, but only version 2 can be read"));
	craft_snoop(c, 2, 4);
	craft_snoop_record(c, 1, 1, 60, 60, 0);
	for (int field = 1; field < 3; field++) { /* captured length, length of the record */
		struct craft *bad = craft_new(true);
		memcpy(bad, c, sizeof *c);
		memset(bad->bytes + 16 + 4 * field, 0xff, 4);
		o = read_craft(*state, bad);
		assert_int_equal(o.n, 0);
		assert_true(o.damaged);
		assert_non_null(strstr(o.text, "damaged or cut off in record 1 at offset 16"));
		free(bad);
	}
	free(c);
}

static struct craft *erf_sample(void)
{
	struct craft *c = craft_new(true);

	craft_erf_record(c, 1700000000, 0x80000000, 2, 0, 3, 2 + 60, 64);
	craft_erf_record(c, 1700000000, 0x80000005, 48, 0, 0, 32, 0); /* padding */
	craft_erf_record(c, 1700000001, 0xffffffff, 20, 2, 500, 2 + 60, 1518);
	craft_erf_record(c, 1700000001, 0xffffffff, 27, 1, 0, 40, 0); /* metadata */
	craft_erf_record(c, 1700000002, 4295, 22, 0, 1, 24, 20);
	return c;
}

static void test_erf(void **state)
{
	struct craft *c = erf_sample();
	struct outcome o = read_craft(*state, c);

	assert_int_equal(o.opened, 0);
	assert_false(o.damaged);
	assert_string_equal(o.format, "ERF");
	assert_int_equal(o.info.resolution_ns, 1);
	assert_int_equal(o.info.dropped, 4); /* a colour is no count */
	assert_int_equal(o.n, 3);
	assert_int_equal(o.frames[0].time_ns, INT64_C(1700000000500000000));
	assert_int_equal(o.frames[0].caplen, 60);
	assert_int_equal(o.frames[0].len, 64);
	assert_int_equal(o.frames[0].linktype, 1);
	assert_int_equal(o.frames[1].time_ns, INT64_C(1700000002000000000));
	assert_int_equal(o.frames[1].caplen, 60);
	assert_int_equal(o.frames[2].time_ns, INT64_C(1700000002000001000));
	assert_int_equal(o.frames[2].caplen, 20); /* the rest is padding */
	assert_int_equal(o.frames[2].linktype, 228);
	free(c);
}

/* The link type of the file is that of its first packet. */
static void test_erf_link(void **state)
{
	struct craft *c = craft_new(true);

	craft_erf_record(c, 1700000000, 0, 27, 1, 0, 40, 0);
	craft_erf_record(c, 1700000001, 0, 22, 0, 0, 24, 20);
	craft_erf_record(c, 1700000002, 0, 22, 0, 0, 24, 20);
	struct outcome o = read_craft(*state, c);
	assert_int_equal(o.n, 2);
	assert_int_equal(o.info.linktype, 228);
	free(c);
}

static void test_erf_cut(void **state)
{
	struct craft *c = erf_sample();

	for (size_t size = 1, whole = c->size; size < whole; size++) {
		struct outcome o = read_bytes(*state, c->bytes, size);
		bool at_end = size == 78 || size == 126 || size == 220 || size == 284;
		assert_true(o.opened < 0 || o.damaged || at_end);
		assert_true(o.n < 3);
	}
	free(c);
}

/* Damage of a record ends the file there. */
static void test_erf_damage(void **state)
{
	struct craft *c = craft_new(true);
	struct outcome o;

	for (uint32_t i = 0; i < 5000; i++)
		craft_erf_record(c, 1700000000, i << 16, 2, 0, 0, 2 + 60, 60);
	memset(c->bytes + 4000 * 78 + 10, 0, 2); /* a length of 0 */
	o = read_craft(*state, c);
	assert_int_equal(o.n, 4000);
	assert_true(o.damaged);
	assert_non_null(strstr(o.text, "damaged or cut off in record 4001 at offset 312000"));
	c->bytes[4000 * 78 + 11] = 78;
	c->bytes[4000 * 78 + 8] |= 0x80; /* extensions without end: 0x42 has no top bit, so the first ends them */
	memset(c->bytes + 4000 * 78 + 16, 0xff, 62);
	o = read_craft(*state, c);
	assert_int_equal(o.n, 4000);
	assert_true(o.damaged);
	free(c);
}

static void test_not_erf(void **state)
{
	struct craft *c = craft_new(true);
	struct outcome o;

	craft_erf_record(c, 600000000, 0, 2, 0, 0, 62, 60); /* 1989 */
	craft_erf_record(c, 600000000, 0, 2, 0, 0, 62, 60);
	assert_true(read_craft(*state, c).opened < 0);
	c->size = 0;
	craft_erf_record(c, 1700000000, 0, 2, 0, 0, 62, 60);
	craft_erf_record(c, 1800000000, 0, 2, 0, 0, 62, 60); /* years later */
	assert_true(read_craft(*state, c).opened < 0);
	c->size = 0;
	for (uint32_t i = 0; i < 100000; i++) { /* noise; the multiplier is that of MMIX */
		uint64_t x = (i + 1) * UINT64_C(6364136223846793005);
		craft_32(c, (uint32_t)(x >> 32));
	}
	o = read_craft(*state, c);
	assert_int_equal(o.opened, -EINVAL);
	assert_non_null(strstr(o.text, "not a capture file (starts with"));
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_snoop, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_snoop_refused, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_erf, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_erf_link, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_erf_cut, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_erf_damage, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_not_erf, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
