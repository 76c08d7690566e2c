/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CAPTURE_FILE_SOURCE_H
#define OW_CAPTURE_FILE_SOURCE_H

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A rewindable stream of bytes from a file, unpacked if it is gzip. What cannot seek (pipes, "-") is first spooled to
 * an unlinked temporary file in $TMPDIR or /tmp.
 */
struct ow_source;

int ow_source_open(const char *path, struct ow_source **ret_source, struct ow_error *err);
void ow_source_close(struct ow_source *source);

/*
 * Fills the buffer as far as the stream goes: ret_got is less than size only at its end, or where packed data is
 * damaged. A negative errno means that the system could not read.
 */
int ow_source_read(struct ow_source *source, void *buffer, size_t size, size_t *ret_got, struct ow_error *err);
/*
 * The rest of the stream in memory, as far as it goes now: what is read after it lies behind it, if the file grows. Not
 * of packed files, nor where the program has not allowed it (capture/file/mapping.h): false, and nothing is taken.
 */
bool ow_source_map(struct ow_source *source, const uint8_t **ret_bytes, size_t *ret_size);
/* Of the bytes in memory those in front of this place are done with. Fails if some were not to be had: the file was cut
 * meanwhile, and what was taken for them means nothing. */
int ow_source_pass(struct ow_source *source, const uint8_t *place, struct ow_error *err);
int ow_source_rewind(struct ow_source *source, struct ow_error *err);

const char *ow_source_name(const struct ow_source *source); /* for messages */
bool ow_source_compressed(const struct ow_source *source);
uint64_t ow_source_size(const struct ow_source *source);     /* bytes of the file */
uint64_t ow_source_position(const struct ow_source *source); /* bytes of the file consumed */
/* What is wrong with packed data, without the name of the file; NULL if nothing was found so far. */
const char *ow_source_damage(const struct ow_source *source);

#endif
