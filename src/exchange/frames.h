/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buffer.h"

#include <oneway/error.h>
#include <stdbool.h>

/*
 * Cuts a stream of bytes into frames: length of what follows (4 bytes, little-endian, 1 .. limit), then that many
 * bytes. Memory depends on what has arrived, never on a length in the stream. A struct that is zero except for the
 * limit is empty.
 */
#define OW_FRAME_LENGTH 4

struct ow_frames {
	struct ow_buffer buffer;
	size_t limit;
	size_t given; /* the frame that the caller uses; the next call removes it */
};

void ow_frames_done(struct ow_frames *frames);

/* Where the next bytes go, and how many fit (at least 1). -ENOMEM. */
int ow_frames_room(struct ow_frames *frames, uint8_t **ret_room, size_t *ret_size);
/* This many bytes were put there. */
void ow_frames_add(struct ow_frames *frames, size_t size);

/*
 * 1 and the next complete frame, valid until the next call of any function; 0 if it has not arrived; -EPROTO if its
 * length is invalid.
 */
int ow_frames_next(struct ow_frames *frames, const uint8_t **ret_frame, size_t *ret_size, struct ow_error *err);
/* The same without removing the last frame: -EPROTO as soon as a length is wrong, 1, or 0. */
int ow_frames_check(const struct ow_frames *frames, struct ow_error *err);
/* Whether a frame has begun and is not complete. */
bool ow_frames_partial(const struct ow_frames *frames);
