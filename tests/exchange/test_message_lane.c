/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of an interval: dependencies between fields, written and read in the same way; false lengths cost no
 * memory.
 */
#include "exchange/message_lane.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint8_t bytes[1024];
static struct ow_error err;

#define WRITER                                                                                          \
	{                                                                                               \
		.does = OW_CODER_WRITES, .to = bytes, .size = sizeof bytes, .message = "m", .err = &err \
	}
#define READER(length)                                                                               \
	{                                                                                            \
		.does = OW_CODER_READS, .from = bytes, .size = (length), .message = "m", .err = &err \
	}

static void refuse_ask(struct ow_message_ask m, const char *field)
{
	struct ow_coder c = WRITER;
	ow_code_ask(&c, &m);
	assert_int_equal(c.failed, -EINVAL);
	assert_non_null(strstr(err.text, field));
}

/* Each part has its own fields; those of others are 0. */
static void test_ask(void **state)
{
	(void)state;
	const struct ow_message_ask good[] = {
		{.part = OW_MESSAGE_AGAIN, .sample_shift = OW_MESSAGE_SHIFT_MAX},
		{.part = OW_MESSAGE_SECOND, .order = 255, .cells = 1},
		{.part = OW_MESSAGE_MINHASH, .cells = OW_MESSAGE_CELLS_MAX},
		{.part = OW_MESSAGE_TABLE, .banks = 8, .cells = 1},
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct ow_message_ask m = good[i], back = {0};
		struct ow_coder c = WRITER, r = READER(sizeof bytes);
		ow_code_ask(&c, &m);
		assert_int_equal(c.failed, 0);
		ow_code_ask(&r, &back);
		assert_int_equal(r.failed, 0);
		assert_int_equal(r.at, c.at);
		assert_true(back.part == m.part && back.sample_shift == m.sample_shift && back.order == m.order);
		assert_true(back.banks == m.banks && back.cells == m.cells);
	}
	refuse_ask((struct ow_message_ask){.part = OW_MESSAGE_PUSHED}, "part");
	refuse_ask((struct ow_message_ask){.part = OW_MESSAGE_PARTS}, "part");
	refuse_ask((struct ow_message_ask){.part = OW_MESSAGE_AGAIN, .cells = 1}, "cells");
	refuse_ask((struct ow_message_ask){.part = OW_MESSAGE_SECOND, .cells = 1}, "order");
	refuse_ask((struct ow_message_ask){.part = OW_MESSAGE_SECOND, .order = 1}, "cells");
	refuse_ask((struct ow_message_ask){.part = OW_MESSAGE_MINHASH, .sample_shift = 1, .cells = 1}, "shift");
	refuse_ask((struct ow_message_ask){.part = OW_MESSAGE_TABLE, .cells = 1}, "banks");
	refuse_ask((struct ow_message_ask){.part = OW_MESSAGE_TABLE, .banks = 9, .cells = 1}, "banks");
}

static void refuse_names(struct ow_message_names m, const char *field)
{
	struct ow_coder c = WRITER;
	ow_code_names(&c, &m);
	assert_int_equal(c.failed, -EINVAL);
	assert_non_null(strstr(err.text, field));
}

static void test_names(void **state)
{
	(void)state;
	const uint8_t *id = (const uint8_t *)"12345678";
	refuse_names((struct ow_message_names){.buckets = 1}, "buckets");
	refuse_names((struct ow_message_names){.sample = 1}, "sample");
	refuse_names((struct ow_message_names){.sums = OW_MESSAGE_CLEAN, .sample = 1}, "buckets");
	refuse_names((struct ow_message_names){.differences = -1}, "differences");
	refuse_names((struct ow_message_names){.differences = INFINITY}, "differences");
	refuse_names((struct ow_message_names){.differences = NAN}, "differences");
	refuse_names((struct ow_message_names){.sums = OW_MESSAGE_CLEAN, .buckets = 1, .sample = 1, .differences = NAN},
	             "differences");
	refuse_names((struct ow_message_names){.wide = true, .wanted = id, .wanted_size = 7}, "size of ids");
	struct ow_message_names m = {.wide = true, .wanted = id, .wanted_size = 8}, back = {0};
	struct ow_coder c = WRITER, r = READER(sizeof bytes);
	ow_code_names(&c, &m);
	assert_int_equal(c.failed, 0);
	ow_code_names(&r, &back);
	assert_int_equal(r.failed, 0);
	assert_true(r.at == c.at && back.wide && back.others_size == 0);
	assert_memory_equal(back.wanted, id, 8);
	/* A size beyond the frame. */
	struct ow_coder cut = READER(c.at - 1);
	ow_code_names(&cut, &back);
	assert_int_equal(cut.failed, -EPROTO);
}

static void test_synopsis(void **state)
{
	(void)state;
	struct ow_message_synopsis m = {.packets = 2, .total_packets = 1};
	struct ow_coder c = WRITER;
	ow_code_synopsis(&c, &m);
	assert_int_equal(c.failed, -EINVAL);
	assert_non_null(strstr(err.text, "more than their total"));
}

static void done(struct ow_message_times *m)
{
	free((void *)m->time_ns);
	free((void *)m->copy);
	free((void *)m->bucket);
}

static void test_times(void **state)
{
	(void)state;
	const int64_t time_ns[] = {INT64_MIN, 0, INT64_MAX};
	const struct ow_message_copy copy[] = {{0, 7}, {2, UINT64_MAX}}, twice[] = {{1, 7}, {1, 8}},
				     beyond[] = {{3, 7}};
	const struct ow_message_bucket bucket[] = {{1, 2, 3}};
	struct ow_message_times m = {.sums = OW_MESSAGE_CLEAN,
	                             .kept = 5,
	                             .time_ns = time_ns,
	                             .times = 3,
	                             .copy = copy,
	                             .copies = 2,
	                             .bucket = bucket,
	                             .buckets = 1};
	struct ow_message_times back = {0};
	struct ow_coder c = WRITER, r = READER(sizeof bytes);
	ow_code_times(&c, &m);
	assert_int_equal(c.failed, 0);
	ow_code_times(&r, &back);
	assert_int_equal(r.failed, 0);
	assert_true(r.at == c.at && back.times == 3 && back.copies == 2 && back.buckets == 1);
	assert_memory_equal(back.time_ns, time_ns, sizeof time_ns);
	assert_true(back.copy[1].index == 2 && back.copy[1].base == UINT64_MAX);
	assert_true(back.bucket[0].time == 1 && back.bucket[0].digest == 2 && back.bucket[0].packets == 3);
	done(&back);
	/* Sums have no digests, but a width, a check, and two checks of the sample. */
	m.sums = OW_MESSAGE_SUMS;
	m.bits = 1;
	m.width = 8;
	size_t before = c.at;
	c = (struct ow_coder)WRITER;
	ow_code_times(&c, &m);
	assert_int_equal(c.at, before - 12 + 1 + 8 + 16);
	/* Copies rise, each once, and are among the times. */
	m.copy = twice;
	c = (struct ow_coder)WRITER;
	ow_code_times(&c, &m);
	assert_int_equal(c.failed, -EINVAL);
	m.copy = beyond;
	m.copies = 1;
	c = (struct ow_coder)WRITER;
	ow_code_times(&c, &m);
	assert_int_equal(c.failed, -EINVAL);
	/* If a name is unknown, nothing follows. */
	m.unknown = 1;
	c = (struct ow_coder)WRITER;
	ow_code_times(&c, &m);
	assert_int_equal(c.failed, -EINVAL);
	assert_non_null(strstr(err.text, "times"));
}

/* Counts that the frame cannot hold are refused before memory is taken for them. */
static void test_lies(void **state)
{
	(void)state;
	const int64_t time_ns[] = {0, 0, 0, 0};
	struct ow_message_times m = {.time_ns = time_ns, .times = 4}, back = {0};
	struct ow_coder c = WRITER;
	ow_code_times(&c, &m);
	assert_int_equal(c.failed, 0);
	/* Four times in a frame that holds three: what follows them ends before. */
	struct ow_coder r = READER(c.at - 1);
	ow_code_times(&r, &back);
	assert_int_equal(r.failed, -EPROTO);
	assert_non_null(strstr(err.text, "times are beyond the end"));
	assert_null(back.time_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ask),   cmocka_unit_test(test_names), cmocka_unit_test(test_synopsis),
		cmocka_unit_test(test_times), cmocka_unit_test(test_lies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
