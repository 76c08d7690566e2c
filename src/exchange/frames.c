/* SPDX-License-Identifier: Apache-2.0 */
/* Converts bytes to frames; it knows neither sockets nor TLS. */
#include "exchange/frames.h"

#include "base/bytes.h"

#include <errno.h>

void ow_frames_done(struct ow_frames *frames)
{
	ow_buffer_done(&frames->buffer);
	frames->given = 0;
}

static void take(struct ow_frames *frames)
{
	if (frames->given)
		ow_buffer_take(&frames->buffer, frames->given);
	frames->given = 0;
}

int ow_frames_room(struct ow_frames *frames, uint8_t **ret_room, size_t *ret_size)
{
	take(frames);
	struct ow_buffer *buffer = &frames->buffer;
	int r = ow_buffer_reserve(buffer, 1);
	if (r < 0)
		return r;
	*ret_room = buffer->data + buffer->end;
	*ret_size = buffer->capacity - buffer->end;
	return 0;
}

void ow_frames_add(struct ow_frames *frames, size_t size)
{
	frames->buffer.end += size;
}

int ow_frames_check(const struct ow_frames *frames, struct ow_error *err)
{
	size_t size = ow_buffer_size(&frames->buffer) - frames->given;
	if (size < OW_FRAME_LENGTH)
		return 0;
	size_t length = ow_load_le32(frames->buffer.data + frames->buffer.start + frames->given);
	if (length == 0)
		return ow_error_set(err, EPROTO, "the peer sends an empty frame");
	if (length > frames->limit)
		return ow_error_set(err, EPROTO, "the peer announces a frame of %zu bytes, %zu are accepted", length,
		                    frames->limit);
	return size - OW_FRAME_LENGTH >= length;
}

bool ow_frames_partial(const struct ow_frames *frames)
{
	return ow_buffer_size(&frames->buffer) > frames->given && ow_frames_check(frames, NULL) == 0;
}

int ow_frames_next(struct ow_frames *frames, const uint8_t **ret_frame, size_t *ret_size, struct ow_error *err)
{
	take(frames);
	int r = ow_frames_check(frames, err);
	if (r <= 0)
		return r;
	const uint8_t *head = frames->buffer.data + frames->buffer.start;
	*ret_size = ow_load_le32(head);
	*ret_frame = head + OW_FRAME_LENGTH;
	frames->given = OW_FRAME_LENGTH + *ret_size;
	return 1;
}
