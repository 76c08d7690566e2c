/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to frames: any division of the stream gives the same frames, and memory depends on what has arrived. */
#include "exchange/frames.h"

#include "base/bytes.h"
#include "base/random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED  771
#define LIMIT 70000

static void put(struct ow_frames *frames, const uint8_t *bytes, size_t size)
{
	while (size > 0) {
		uint8_t *room = NULL;
		size_t fits = 0;
		assert_int_equal(ow_frames_room(frames, &room, &fits), 0);
		assert_true(fits > 0);
		size_t n = size < fits ? size : fits;
		memcpy(room, bytes, n);
		ow_frames_add(frames, n);
		bytes += n;
		size -= n;
	}
}

/* A stream of frames; frame i consists of bytes i. */
static uint8_t *make_stream(struct ow_random *random, unsigned count, size_t *ret_size)
{
	uint8_t *stream = malloc((size_t)count * (LIMIT + OW_FRAME_LENGTH));
	size_t size = 0;
	assert_non_null(stream);
	for (unsigned i = 0; i < count; i++) {
		size_t length = 1 + ow_random_below(random, i % 10 == 0 ? LIMIT : 300);
		ow_store_le32(stream + size, (uint32_t)length);
		memset(stream + size + OW_FRAME_LENGTH, (int)(i & 0xff), length);
		size += OW_FRAME_LENGTH + length;
	}
	*ret_size = size;
	return stream;
}

/* Takes what is there; returns how many. */
static unsigned take(struct ow_frames *frames, unsigned first, size_t *bytes)
{
	const uint8_t *frame = NULL;
	size_t size = 0;
	unsigned n = 0;
	while (ow_frames_next(frames, &frame, &size, NULL) == 1) {
		for (size_t i = 0; i < size; i++)
			assert_int_equal(frame[i], (first + n) & 0xff);
		*bytes += OW_FRAME_LENGTH + size;
		n++;
	}
	return n;
}

static void cuts_do_not_matter(void **state)
{
	(void)state;
	static const size_t steps[] = {1, 2, 3, 5, 100, 16384, 1000000};
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct ow_random random;
		ow_random_seed(&random, SEED + i);
		print_message("seed %d, %zu bytes at a time\n", (int)(SEED + i), steps[i]);
		struct ow_frames frames = {.limit = LIMIT};
		size_t size = 0, bytes = 0;
		unsigned count = 60, got = 0;
		uint8_t *stream = make_stream(&random, count, &size);
		for (size_t at = 0; at < size; at += steps[i]) {
			put(&frames, stream + at, size - at < steps[i] ? size - at : steps[i]);
			got += take(&frames, got, &bytes);
		}
		assert_int_equal(got, count);
		assert_int_equal(bytes, size);
		assert_false(ow_frames_partial(&frames));
		ow_frames_done(&frames);
		free(stream);
	}
}

static void lengths_are_limited(void **state)
{
	(void)state;
	static const struct {
		uint32_t length;
		int answer;
	} cases[] = {{0, -EPROTO},       {1, 0}, {LIMIT, 0}, {LIMIT + 1, -EPROTO}, {UINT32_MAX, -EPROTO},
	             {1u << 31, -EPROTO}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_frames frames = {.limit = LIMIT};
		struct ow_error err = {""};
		uint8_t length[OW_FRAME_LENGTH];
		const uint8_t *frame = NULL;
		size_t size = 0;
		ow_store_le32(length, cases[i].length);
		put(&frames, length, 3);
		assert_int_equal(ow_frames_check(&frames, &err), 0);
		put(&frames, length + 3, 1);
		assert_int_equal(ow_frames_check(&frames, &err), cases[i].answer);
		assert_int_equal(ow_frames_next(&frames, &frame, &size, &err), cases[i].answer);
		assert_true((err.text[0] != '\0') == (cases[i].answer < 0));
		assert_true(frames.buffer.capacity <= 16384);
		ow_frames_done(&frames);
	}
}

/* The frame behind the first one is judged when the first one has been taken, with the limit of that moment. */
static void a_limit_can_be_raised_in_time(void **state)
{
	(void)state;
	struct ow_frames frames = {.limit = 10};
	uint8_t bytes[OW_FRAME_LENGTH + 5 + OW_FRAME_LENGTH] = {0};
	const uint8_t *frame = NULL;
	size_t size = 0;
	ow_store_le32(bytes, 5);
	ow_store_le32(bytes + OW_FRAME_LENGTH + 5, 1000);
	put(&frames, bytes, sizeof bytes);
	assert_int_equal(ow_frames_check(&frames, NULL), 1);
	assert_int_equal(ow_frames_next(&frames, &frame, &size, NULL), 1);
	assert_int_equal(size, 5);
	assert_int_equal(ow_frames_check(&frames, NULL), -EPROTO);
	frames.limit = 1000;
	assert_int_equal(ow_frames_check(&frames, NULL), 0);
	assert_int_equal(ow_frames_next(&frames, &frame, &size, NULL), 0);
	assert_true(ow_frames_partial(&frames));
	ow_frames_done(&frames);
}

static void memory_follows_what_arrived(void **state)
{
	(void)state;
	struct ow_frames frames = {.limit = 64u << 20};
	uint8_t length[OW_FRAME_LENGTH], piece[1000] = {0};
	size_t arrived = sizeof length, size = 0;
	const uint8_t *frame = NULL;
	ow_store_le32(length, 64u << 20);
	put(&frames, length, sizeof length);
	for (unsigned i = 0; i < 5000; i++) {
		put(&frames, piece, sizeof piece);
		arrived += sizeof piece;
		assert_true(frames.buffer.capacity <= 16384 + 2 * arrived);
	}
	ow_frames_done(&frames);
	/* What was large is given back. */
	frames.limit = 64u << 20;
	ow_store_le32(length, 4u << 20);
	put(&frames, length, sizeof length);
	for (unsigned i = 0; i < 4u << 20; i += 512)
		put(&frames, piece, 512);
	assert_int_equal(ow_frames_next(&frames, &frame, &size, NULL), 1);
	assert_int_equal(size, 4u << 20);
	assert_int_equal(ow_frames_next(&frames, &frame, &size, NULL), 0);
	assert_int_equal(frames.buffer.capacity, 0);
	ow_frames_done(&frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_do_not_matter),
		cmocka_unit_test(lengths_are_limited),
		cmocka_unit_test(a_limit_can_be_raised_in_time),
		cmocka_unit_test(memory_follows_what_arrived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
