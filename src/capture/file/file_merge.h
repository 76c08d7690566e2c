/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/file/file_set.h"
#include "capture/file/reader.h"

/*
 * Reads the files of a set as one capture, in the order of time: rotated files in any order, files that overlap, files
 * of parallel links. A file is opened when its first frame is due, so memory depends on the files that cover the same
 * time, not on their number. Frames are numbered in the order in which they are returned, which is the same each time.
 * The functions are those of capture/file/reader.h.
 */
struct ow_file_merge;

/* Files of a set that may cover the same time. */
#define OW_FILE_MERGE_OPEN 128u
/* Memory that unpacking them may take. */
#define OW_FILE_MERGE_UNPACK_BYTES ((size_t)1 << 30)

/* The set is the caller's, and stays as it is until the merge is closed. */
int ow_file_merge_open(const char *name, const struct ow_file_set *set, struct ow_file_merge **ret_merge,
                       struct ow_error *err);
void ow_file_merge_close(struct ow_file_merge *merge);
const char *ow_file_merge_file(const struct ow_file_merge *merge, size_t i);
const char *ow_file_merge_last_file(const struct ow_file_merge *merge);
const struct ow_reader_info *ow_file_merge_info(const struct ow_file_merge *merge);
int ow_file_merge_read(struct ow_file_merge *merge, struct ow_frame *frames, size_t max, struct ow_error *err);
const char *ow_file_merge_damage(const struct ow_file_merge *merge);
/* What a user should know about the files, in a line; NULL if there is nothing. Complete at the end of a pass. */
const char *ow_file_merge_note(struct ow_file_merge *merge);
uint64_t ow_file_merge_position(const struct ow_file_merge *merge);
int ow_file_merge_rewind(struct ow_file_merge *merge, struct ow_error *err);
