/* SPDX-License-Identifier: Apache-2.0 */
/* A message that is described once: measured, written and read in the same way, and refused if it is wrong. */
#include "base/coder.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

struct message {
	uint8_t small;
	uint32_t middle;
	uint64_t large;
	int64_t number, time_ns;
	bool flag;
	double real;
	char text[8];
	const uint8_t *bytes;
};

#define BYTES 3

static void describe(struct ow_coder *c, struct message *m)
{
	ow_coder_u8(c, "small", &m->small, 1, 9);
	ow_coder_zeros(c, 2);
	ow_coder_u32(c, "middle", &m->middle, 0, UINT32_MAX);
	ow_coder_uint(c, "large", 6, &m->large, 5, UINT64_C(1) << 40);
	ow_coder_int(c, "number", &m->number, -7, 7);
	ow_coder_bool(c, "flag", &m->flag);
	ow_coder_double(c, "real", &m->real);
	ow_coder_text(c, "text", m->text, sizeof m->text, false);
	ow_coder_bytes(c, "bytes", &m->bytes, BYTES);
	ow_coder_signed(c, "time", &m->time_ns, INT64_MIN, INT64_MAX);
}

static const struct message sample = {9,         0xdeadbeef,   UINT64_C(1) << 40,     -7, INT64_MIN, true,
                                      -INFINITY, "ab\xc3\xa9", (const uint8_t *)"xyz"};

static size_t measure(struct message m)
{
	struct ow_coder c = {.does = OW_CODER_MEASURES, .message = "sample"};
	describe(&c, &m);
	assert_int_equal(c.failed, 0);
	return c.at;
}

static size_t write_message(struct message m, uint8_t *to, size_t size)
{
	struct ow_coder c = {.does = OW_CODER_WRITES, .to = to, .size = size, .message = "sample"};
	describe(&c, &m);
	assert_int_equal(c.failed, 0);
	return c.at;
}

static int read_message(const uint8_t *from, size_t size, struct message *ret_message, struct ow_error *err)
{
	struct ow_coder c = {.does = OW_CODER_READS, .from = from, .size = size, .message = "sample", .err = err};
	describe(&c, ret_message);
	return c.failed;
}

static void test_both_ways(void **state)
{
	(void)state;
	uint8_t bytes[64];
	struct message back = {0};
	size_t size = measure(sample);
	/* 1 + 2 + 4 + 6 + 8 + 1 + 8, text 2 + 4, bytes 3, a time of 10 */
	assert_int_equal(size, 49);
	assert_int_equal(write_message(sample, bytes, size), size);
	assert_memory_equal(bytes, "\x09\0\0\xef\xbe\xad\xde\0\0\0\0\0\x01", 13);
	assert_int_equal(read_message(bytes, size, &back, NULL), 0);
	assert_true(back.small == 9 && back.middle == 0xdeadbeef && back.large == UINT64_C(1) << 40 &&
	            back.number == -7);
	assert_true(back.flag && back.real == -INFINITY && back.time_ns == INT64_MIN);
	assert_string_equal(back.text, "ab\xc3\xa9");
	assert_memory_equal(back.bytes, "xyz", BYTES);
	/* They point into the frame. */
	assert_true(back.bytes > bytes && back.bytes < bytes + size);
}

/* Cut anywhere: the field that is not there is named. What was read before stays as it was. */
static void test_cut(void **state)
{
	(void)state;
	uint8_t bytes[64];
	size_t size = write_message(sample, bytes, sizeof bytes);
	for (size_t cut = 0; cut < size; cut++) {
		struct message back = {.text = "old"};
		struct ow_error err = {""};
		assert_int_equal(read_message(bytes, cut, &back, &err), -EPROTO);
		assert_non_null(strstr(err.text, "message sample: "));
		assert_non_null(strstr(err.text, "beyond the end"));
		assert_true(strcmp(back.text, "old") == 0 || cut >= 36);
	}
	/* Nor is it written beyond its end. */
	for (size_t room = 0; room < size; room++) {
		struct message m = sample;
		struct ow_coder c = {.does = OW_CODER_WRITES, .to = bytes, .size = room, .message = "sample"};
		bytes[room] = 0x5a;
		describe(&c, &m);
		assert_int_equal(c.failed, -EINVAL);
		assert_int_equal(bytes[room], 0x5a);
	}
}

static void refuse(size_t at, uint8_t value, const char *text)
{
	uint8_t bytes[64];
	struct message back = {0};
	struct ow_error err = {""};
	size_t size = write_message(sample, bytes, sizeof bytes);
	bytes[at] = value;
	assert_int_equal(read_message(bytes, size, &back, &err), -EPROTO);
	if (!strstr(err.text, text))
		print_error("%s\n", err.text);
	assert_non_null(strstr(err.text, text));
}

static void test_ranges(void **state)
{
	(void)state;
	refuse(0, 0, "small is out of range: 0");
	refuse(0, 10, "small is out of range: 10");
	refuse(1, 1, "reserved bytes");
	refuse(12, 2, "large");
	refuse(13, 8, "number"); /* -7 becomes below -7 */
	refuse(20, 0, "number"); /* or far above 7 */
	refuse(21, 2, "flag");
	refuse(28, 0xf8, "real is not a number");
	refuse(30, 0, "text"); /* empty */
	refuse(30, 8, "text"); /* longer than its array */
	refuse(32, '\n', "not printable");
	refuse(35, 'x', "not printable"); /* half a character */
	refuse(48, 2, "too long");        /* a 65th bit */
	refuse(48, 0x81, "too long");
}

/* The same ranges hold when writing, and after the first fault nothing happens any more. */
static void test_write_refuses(void **state)
{
	(void)state;
	uint8_t bytes[64] = {0};
	struct message m = sample;
	struct ow_error err;
	struct ow_coder c = {
		.does = OW_CODER_WRITES, .to = bytes, .size = sizeof bytes, .message = "sample", .err = &err};
	m.large = 4;
	m.real = NAN;
	describe(&c, &m);
	assert_int_equal(c.failed, -EINVAL);
	assert_string_equal(err.text, "message sample: large is out of range: 4");
	for (size_t i = 7; i < sizeof bytes; i++)
		assert_int_equal(bytes[i], 0);
}

/* Times take as many bytes as they need, and only that form is read. */
static void test_times(void **state)
{
	(void)state;
	const struct {
		int64_t time_ns;
		size_t bytes;
	} times[] = {{0, 1}, {-1, 1}, {63, 1}, {-64, 1}, {64, 2}, {-65, 2}, {INT64_MAX, 10}, {INT64_MIN, 10}};
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		uint8_t bytes[10];
		int64_t value = times[i].time_ns, back = 1;
		struct ow_coder c = {.does = OW_CODER_WRITES, .to = bytes, .size = sizeof bytes};
		ow_coder_signed(&c, "time", &value, INT64_MIN, INT64_MAX);
		assert_int_equal(c.failed, 0);
		assert_int_equal(c.at, times[i].bytes);
		c = (struct ow_coder){.does = OW_CODER_READS, .from = bytes, .size = c.at};
		ow_coder_signed(&c, "time", &back, INT64_MIN, INT64_MAX);
		assert_int_equal(c.failed, 0);
		assert_true(back == value);
	}
	int64_t back = 1;
	struct ow_coder c = {.does = OW_CODER_READS, .from = (const uint8_t *)"\x80\x00", .size = 2, .message = "m"};
	ow_coder_signed(&c, "time", &back, INT64_MIN, INT64_MAX);
	assert_int_equal(c.failed, -EPROTO);
	assert_true(back == 1);
}

static void test_text_cut(void **state)
{
	(void)state;
	char half[] = "ab\xc3", control[] = "a\x01z", whole[] = "\xc3\xa9t\xc3\xa9";
	ow_coder_cut(half);
	assert_string_equal(half, "ab");
	ow_coder_cut(control);
	assert_string_equal(control, "a");
	ow_coder_cut(whole);
	assert_string_equal(whole, "\xc3\xa9t\xc3\xa9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways),     cmocka_unit_test(test_cut),   cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_write_refuses), cmocka_unit_test(test_times), cmocka_unit_test(test_text_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
