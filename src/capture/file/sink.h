/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CAPTURE_FILE_SINK_H
#define OW_CAPTURE_FILE_SINK_H

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A buffered file to write to, gzip-packed if asked for. "-" is standard output. */
struct ow_sink;

int ow_sink_open(const char *path, bool gzip, struct ow_sink **ret_sink, struct ow_error *err);

/* Room for size bytes, at most OW_SINK_ROOM_BYTES, to be filled and then counted by ow_sink_add(). */
#define OW_SINK_ROOM_BYTES ((size_t)2 << 20)
int ow_sink_room(struct ow_sink *sink, size_t size, uint8_t **ret_room, struct ow_error *err);
void ow_sink_add(struct ow_sink *sink, size_t size);

/* Flushes and closes; the sink is gone also on failure, and a regular file then, too. */
int ow_sink_close(struct ow_sink *sink, struct ow_error *err);
/* Closes and removes the file (a regular one only). NULL is fine. */
void ow_sink_abort(struct ow_sink *sink);

#endif
