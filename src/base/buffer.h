/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes that are added at the end and taken from the front. All zero is empty. */
struct ow_buffer {
	uint8_t *data;
	size_t start, end, capacity;
};

void ow_buffer_done(struct ow_buffer *buffer);

static inline size_t ow_buffer_size(const struct ow_buffer *buffer)
{
	return buffer->end - buffer->start;
}

/* Makes room for `bytes` more at data + end. The capacity at most doubles (from at least 16 KiB), unless `bytes` need
 * more. Returns 0 or -ENOMEM. */
int ow_buffer_reserve(struct ow_buffer *buffer, size_t bytes);
/* Removes bytes from the front. A buffer that becomes empty frees its memory if that is large. */
void ow_buffer_take(struct ow_buffer *buffer, size_t bytes);
