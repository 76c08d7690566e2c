/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A rewindable stream of bytes from a file, unpacked if it is compressed (capture/file/unpack.h). Input that cannot seek (pipes, "-") is first copied
 * to an unlinked temporary file in $TMPDIR or /tmp.
 */
struct ow_source;

int ow_source_open(const char *path, struct ow_source **ret_source, struct ow_error *err);
void ow_source_close(struct ow_source *source);

/*
 * Fills the buffer: ret_got is less than size only at the end of the stream, or where packed data is damaged. Returns a
 * negative errno if a system call fails.
 */
int ow_source_read(struct ow_source *source, void *buffer, size_t size, size_t *ret_got, struct ow_error *err);
/*
 * Maps the rest of the stream, as long as it is now. If the file grows, ow_source_read() continues behind it. Returns
 * false and consumes nothing for packed files, or if the program has not allowed mapping (capture/file/mapping.h).
 */
bool ow_source_map(struct ow_source *source, const uint8_t **ret_bytes, size_t *ret_size);
/* The caller needs the mapped bytes before this place no more. Fails if the file was truncated meanwhile: then the data
 * that was read from the mapping is invalid. */
int ow_source_pass(struct ow_source *source, const uint8_t *place, struct ow_error *err);
int ow_source_rewind(struct ow_source *source, struct ow_error *err);

const char *ow_source_name(const struct ow_source *source); /* for messages */
bool ow_source_compressed(const struct ow_source *source);
size_t ow_source_memory(const struct ow_source *source);     /* bytes that unpacking takes now */
uint64_t ow_source_size(const struct ow_source *source);     /* bytes of the file */
uint64_t ow_source_position(const struct ow_source *source); /* bytes of the file consumed */
/* What is wrong with the packed data, without the name of the file; NULL if nothing was found so far. */
const char *ow_source_damage(const struct ow_source *source);
