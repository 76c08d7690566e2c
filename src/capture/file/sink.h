/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A buffered output file, optionally compressed with gzip. "-" is standard output. */
struct ow_sink;

int ow_sink_open(const char *path, bool gzip, struct ow_sink **ret_sink, struct ow_error *err);

/* Returns room for `size` bytes, at most OW_SINK_ROOM_BYTES. The caller fills it and then calls ow_sink_add(). */
#define OW_SINK_ROOM_BYTES ((size_t)2 << 20)
int ow_sink_room(struct ow_sink *sink, size_t size, uint8_t **ret_room, struct ow_error *err);
void ow_sink_add(struct ow_sink *sink, size_t size);

/* Flushes and closes. Frees the sink, also on failure; a failure also removes a regular file. */
int ow_sink_close(struct ow_sink *sink, struct ow_error *err);
/* Closes and removes the file (only a regular file). sink may be NULL. */
void ow_sink_abort(struct ow_sink *sink);
