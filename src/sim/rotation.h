/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/file/writer.h"

/*
 * A capture as one file, or as files that each hold the frames of a period: with a length of 10 s and the name a.pcap,
 * the files are a_00001.pcap, a_00002.pcap, ... Periods begin at multiples of the length after start_ns, by the times of
 * the frames. A period without frames has no file. A frame that is earlier than the period of the open file goes into it.
 */
struct ow_rotation;

/* length_ns 0: one file, which is made now. */
int ow_rotation_open(const char *path, const struct ow_writer_options *options, int64_t length_ns, int64_t start_ns,
                     struct ow_rotation **ret_rotation, struct ow_error *err);
int ow_rotation_write(struct ow_rotation *rotation, const struct ow_frame *frame, struct ow_error *err);
/* Files that were begun. */
uint32_t ow_rotation_files(const struct ow_rotation *rotation);
/* As ow_writer_close and ow_writer_abort, for the open file. */
int ow_rotation_close(struct ow_rotation *rotation, struct ow_error *err);
void ow_rotation_abort(struct ow_rotation *rotation);
