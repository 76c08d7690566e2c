/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of bytes in contiguous memory. */
#include "base/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST ((size_t)16 << 10)  /* one TLS record */
#define KEPT     ((size_t)256 << 10) /* an empty buffer keeps this much */

void ow_buffer_done(struct ow_buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct ow_buffer){0};
}

int ow_buffer_reserve(struct ow_buffer *buffer, size_t bytes)
{
	size_t used = ow_buffer_size(buffer);
	if (buffer->capacity - buffer->end >= bytes)
		return 0;
	/* Moves at most as many bytes as were taken since the last move. */
	if (buffer->start >= used && buffer->start > 0) {
		memmove(buffer->data, buffer->data + buffer->start, used);
		buffer->start = 0;
		buffer->end = used;
		if (buffer->capacity - used >= bytes)
			return 0;
	}
	size_t capacity = buffer->capacity < SMALLEST ? SMALLEST : buffer->capacity;
	while (capacity - buffer->end < bytes)
		capacity *= 2;
	uint8_t *data = realloc(buffer->data, capacity);
	if (!data)
		return -ENOMEM;
	buffer->data = data;
	buffer->capacity = capacity;
	return 0;
}

void ow_buffer_take(struct ow_buffer *buffer, size_t bytes)
{
	buffer->start += bytes;
	if (buffer->start < buffer->end)
		return;
	if (buffer->capacity > KEPT)
		ow_buffer_done(buffer);
	buffer->start = buffer->end = 0;
}
