/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/file/reader.h"

/* Reads one capture file. The functions are those of capture/file/reader.h, which reads one file or a set of files. */
struct ow_file_reader;

int ow_file_reader_open(const char *path, struct ow_file_reader **ret_reader, struct ow_error *err);
void ow_file_reader_close(struct ow_file_reader *reader);
const struct ow_reader_info *ow_file_reader_info(const struct ow_file_reader *reader);
int ow_file_reader_read(struct ow_file_reader *reader, struct ow_frame *frames, size_t max, struct ow_error *err);
const char *ow_file_reader_damage(const struct ow_file_reader *reader);
/* Bytes that unpacking takes now. */
size_t ow_file_reader_memory(const struct ow_file_reader *reader);
uint64_t ow_file_reader_position(const struct ow_file_reader *reader);
int ow_file_reader_rewind(struct ow_file_reader *reader, struct ow_error *err);
