/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a stream of frames. The first byte selects the sizes of the parts in which they arrive, and the limit.
 * The frames must be those that a plain scan of all bytes finds, and the memory must be in proportion to what has
 * arrived.
 */
#include "base/bytes.h"
#include "exchange/frames.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* The result of the stream after this many bytes of complete frames: 0, or -EPROTO. */
static int walk(const uint8_t *data, size_t size, size_t limit, size_t *ret_bytes)
{
	size_t at = 0;
	int end = 0;
	while (size - at >= OW_FRAME_LENGTH) {
		size_t length = ow_load_le32(data + at);
		if (length == 0 || length > limit) {
			end = -EPROTO;
			break;
		}
		if (size - at - OW_FRAME_LENGTH < length)
			break;
		at += OW_FRAME_LENGTH + length;
	}
	*ret_bytes = at;
	return end;
}

/* Takes all available frames; returns the result of the last call. */
static int take(struct ow_frames *frames, const uint8_t *data, size_t *at)
{
	const uint8_t *frame = NULL;
	size_t size = 0;
	struct ow_error err = {""};
	int r;
	while ((r = ow_frames_next(frames, &frame, &size, &err)) == 1) {
		check(memcmp(frame, data + *at + OW_FRAME_LENGTH, size) == 0);
		*at += OW_FRAME_LENGTH + size;
	}
	check((r < 0) == (err.text[0] != '\0'));
	check(r == ow_frames_check(frames, NULL));
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	size_t piece = 1 + (data[0] & 0x1f), limit = (size_t)1 << (data[0] >> 4), got = 0, bytes = 0;
	bool lazy = data[0] & 0x20;
	data++;
	size--;
	struct ow_frames frames = {.limit = limit};
	int r = 0, end = walk(data, size, limit, &bytes);
	for (size_t at = 0; at < size && r == 0;) {
		uint8_t *room = NULL;
		size_t fits = 0, n = size - at < piece ? size - at : piece;
		check(ow_frames_room(&frames, &room, &fits) == 0 && fits > 0);
		n = n < fits ? n : fits;
		memcpy(room, data + at, n);
		ow_frames_add(&frames, n);
		at += n;
		check(frames.buffer.capacity <= 16384 + 2 * at);
		if (!lazy || at == size)
			r = take(&frames, data, &got);
	}
	check(r == end && got == bytes);
	check(end < 0 || ow_frames_partial(&frames) == (bytes < size));
	ow_frames_done(&frames);
	return 0;
}
