/* SPDX-License-Identifier: Apache-2.0 */
/* The codec: golden bytes of the documentation, round trips, and everything that must be refused. */
#include "base/coder.h"
#include "base/random.h"
#include "examples.h"
#include "../result/every_field.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint8_t *encode(const struct ow_message *m, size_t *ret_size)
{
	struct ow_error err = {""};
	uint8_t *frame = NULL;
	if (ow_message_encode(m, &frame, ret_size, &err) < 0)
		fail_msg("%s", err.text);
	return frame;
}

/* The bytes in the documentation after "Example N:", all hex digits of the indented lines that follow. */
static size_t documented(const char *text, unsigned number, uint8_t *bytes, size_t room)
{
	char heading[32];
	snprintf(heading, sizeof heading, "\nExample %u:", number);
	const char *at = strstr(text, heading);
	size_t count = 0;
	if (!at)
		return 0;
	at = strstr(at, "\n\n    ");
	for (at += 2; strncmp(at, "    ", 4) == 0; at = strchr(at, '\n') + 1) {
		char *end;
		for (const char *p = at; *p != '\n'; p = end) {
			unsigned long byte = strtoul(p, &end, 16);
			if (end == p || byte > 0xff)
				break;
			assert_true(count < room);
			bytes[count++] = (uint8_t)byte;
			end += *end == ' ';
		}
	}
	return count;
}

static void print_bytes(unsigned number, const uint8_t *frame, size_t size)
{
	printf("Example %u:\n", number);
	for (size_t i = 0; i < size; i++)
		printf("%s%02x%s", i % 16 ? " " : "    ", frame[i], i % 16 == 15 || i + 1 == size ? "\n" : "");
}

static void test_golden(void **state)
{
	(void)state;
	const char *path = getenv("OW_PROTOCOL");
	FILE *file = path ? fopen(path, "r") : NULL;
	assert_non_null(file);
	static char text[1 << 18];
	assert_true(fread(text, 1, sizeof text - 1, file) > 0);
	fclose(file);
	bool same = true;
	for (unsigned i = 0; i < EXAMPLES; i++) {
		uint8_t golden[2048];
		struct ow_message m = example(i);
		size_t size, expected = documented(text, i, golden, sizeof golden);
		uint8_t *frame = encode(&m, &size);
		if (size != expected || memcmp(frame, golden, size) != 0) {
			print_bytes(i, frame, size);
			same = false;
		}
		free(frame);
	}
	assert_true(same);
}

/* What is decoded encodes to the same bytes. */
static void test_round_trip(void **state)
{
	(void)state;
	for (unsigned i = 0; i < EXAMPLES; i++) {
		struct ow_message m = example(i), back;
		struct ow_error err = {""};
		size_t size, again_size;
		uint8_t *frame = encode(&m, &size);
		if (ow_message_decode(frame, size, &back, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(back.type, m.type);
		assert_int_equal(back.lane, m.lane);
		assert_int_equal(back.interval, m.interval);
		uint8_t *again = encode(&back, &again_size);
		assert_int_equal(size, again_size);
		assert_memory_equal(frame, again, size);
		enum ow_message_type type;
		uint32_t lane;
		assert_int_equal(ow_message_peek(frame, size, &type, &lane, &err), 0);
		assert_int_equal(type, m.type);
		assert_int_equal(lane, m.lane);
		ow_message_done(&back);
		free(frame);
		free(again);
	}
}

static void refuse(const uint8_t *frame, size_t size)
{
	struct ow_message back;
	struct ow_error err = {""};
	/* On the heap and of exactly this size: a read past the end is seen. */
	uint8_t *copy = malloc(size ? size : 1);
	memcpy(copy, frame, size);
	assert_int_equal(ow_message_decode(copy, size, &back, &err), -EPROTO);
	assert_true(err.text[0] != 0);
	free(copy);
}

/* Fields of a newer version are skipped. */
static void take_longer(const uint8_t *frame, size_t size, size_t most, const struct ow_message *m)
{
	struct ow_message back;
	struct ow_error err = {""};
	for (size_t more = 0; more <= most; more++) {
		assert_int_equal(ow_message_decode(frame, size + more, &back, &err), 0);
		assert_int_equal(back.told.result.final, m->told.result.final);
		assert_int_equal(back.told.present, m->told.present);
	}
}

static void test_cut_and_trailing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < EXAMPLES; i++) {
		struct ow_message m = example(i);
		size_t size;
		uint8_t *frame = encode(&m, &size), longer[4096] = {0};
		for (size_t cut = 0; cut < size; cut++)
			refuse(frame, cut);
		memcpy(longer, frame, size);
		if (m.type == OW_MESSAGE_RESULT)
			take_longer(longer, size, 19, &m);
		else
			refuse(longer, size + 1);
		free(frame);
	}
}

/* Random changes: refused, or decoded to something that encodes to the same bytes; of a result, where a reason may be
 * unknown and the end may be that of a newer version, to what decodes to the same result. */
static void test_changed(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 1);
	for (unsigned round = 0; round < 20000; round++) {
		struct ow_message m = example(round % EXAMPLES), back;
		struct ow_error err = {""};
		size_t size, again_size;
		uint8_t *frame = encode(&m, &size);
		for (uint64_t n = 1 + ow_random_below(&random, 3); n > 0; n--)
			frame[ow_random_below(&random, size)] ^= (uint8_t)(1u << ow_random_below(&random, 8));
		if (ow_message_decode(frame, size, &back, &err) == 0) {
			uint8_t *again = encode(&back, &again_size);
			if (back.type == OW_MESSAGE_RESULT) {
				assert_int_equal(ow_message_decode(again, again_size, &m, &err), 0);
				assert_memory_equal(&m.told.result, &back.told.result, sizeof m.told.result);
			} else {
				assert_int_equal(size, again_size);
				assert_memory_equal(frame, again, size);
			}
			ow_message_done(&back);
			free(again);
		} else {
			assert_true(err.text[0] != 0);
		}
		free(frame);
	}
}

/* Every field that has a place in the message comes back. */
static void test_every_field(void **state)
{
	(void)state;
	for (unsigned more = 0; more < 4; more++) {
		struct ow_message m = {.type = OW_MESSAGE_RESULT, .lane = 7, .interval = 3}, back;
		struct ow_error err = {""};
		size_t size;
		m.told.result = every_field(more);
		m.told.differences = 77;
		ow_message_choose(&m.told, NULL);
		uint8_t *frame = encode(&m, &size);
		if (ow_message_decode(frame, size, &back, &err) < 0)
			fail_msg("%s", err.text);
		for (size_t i = 0; i < ow_field_count; i++) {
			if (ow_fields[i].wire)
				every_same(&ow_fields[i], &m.told.result, &back.told.result);
		}
		assert_int_equal(back.told.differences, 77);
		free(frame);
	}
}

static void refuse_to_encode(const struct ow_message *m)
{
	struct ow_error err = {""};
	uint8_t *frame;
	size_t size;
	assert_int_equal(ow_message_encode(m, &frame, &size, &err), -EINVAL);
	assert_true(err.text[0] != 0);
}

/* The histogram of a result has all of its packets; of a minute, some intervals may have none. */
static void test_histogram_of_packets(void **state)
{
	(void)state;
	struct ow_message m = {.type = OW_MESSAGE_RESULT, .lane = 7, .interval = 3};
	size_t size;
	m.told.result = every_field(0);
	m.told.result.sample_shift = 0;
	ow_delay_histogram_sample((const int64_t[]){1}, 1, 1, &m.told.result.delays);
	m.told.result.intervals = m.told.result.intervals_partial + m.told.result.intervals_unknown + 60;
	ow_message_choose(&m.told, NULL);
	free(encode(&m, &size));
	m.told.result.intervals = m.told.result.intervals_partial = m.told.result.intervals_unknown = 0;
	ow_message_choose(&m.told, NULL);
	refuse_to_encode(&m);
}

static void test_ranges(void **state)
{
	(void)state;
	struct ow_message m = example(0);
	m.lane = 1;
	refuse_to_encode(&m);
	m = example(0);
	m.hello.point[0] = 0;
	refuse_to_encode(&m);
	m = example(0);
	m.hello.point[2] = '\n';
	refuse_to_encode(&m);
	m = example(0);
	m.hello.version_min = 3;
	refuse_to_encode(&m);
	m = example(1);
	m.open.length_ns = 999999;
	refuse_to_encode(&m);
	m = example(1);
	m.open.horizon = 0;
	refuse_to_encode(&m);
	m = example(4);
	m.synopsis.packets = 21;
	refuse_to_encode(&m);
	m = example(4);
	m.interval = -1;
	refuse_to_encode(&m);
	m = example(5);
	m.ask.sample_shift = 1;
	refuse_to_encode(&m);
	m = example(6);
	m.names.differences = NAN;
	refuse_to_encode(&m);
	m = example(9);
	m.told.result.lost++;
	refuse_to_encode(&m);
	m = example(9);
	m.told.result.mean_ns.value = INFINITY;
	refuse_to_encode(&m);
	m = example(9);
	m.told.result.coverage = 1.5;
	ow_message_choose(&m.told, NULL);
	refuse_to_encode(&m);
}

static void test_text(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool good;
	} texts[] = {
		{"caf\xc3\xa9", true},
		{"\xe2\x82\xac 5", true},
		{"\xf0\x9f\x98\x80", true},
		{"\xc3", false},
		{"\xc0\xaf", false},
		{"\xed\xa0\x80", false},
		{"\xf4\x90\x80\x80", false},
		{"\xc2\x9b"
	         "31m",
	         false},
		{"\x1b[31m", false},
		{"\xe2\x82", false},
		{"\xff", false},
		{"a\tb", false},
		{"\x7f", false},
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct ow_message m = {.type = OW_MESSAGE_BYE};
		snprintf(m.text.text, sizeof m.text.text, "%s", texts[i].text);
		if (texts[i].good) {
			size_t size;
			free(encode(&m, &size));
		} else {
			refuse_to_encode(&m);
		}
	}
}

static void test_cut_text(void **state)
{
	(void)state;
	static const char *const texts[][2] = {
		{"plain", "plain"}, {"caf\xc3", "caf"}, {"caf\xc3\xa9", "caf\xc3\xa9"}, {"a\nb", "a"}, {"", ""}};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		char text[16];
		snprintf(text, sizeof text, "%s", texts[i][0]);
		ow_coder_cut(text);
		assert_string_equal(text, texts[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),           cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_cut_and_trailing), cmocka_unit_test(test_changed),
		cmocka_unit_test(test_every_field),      cmocka_unit_test(test_histogram_of_packets),
		cmocka_unit_test(test_ranges),           cmocka_unit_test(test_text),
		cmocka_unit_test(test_cut_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
