/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lab/wiretruth.h"
#include <oneway/error.h>

/* truth.json beside the lab's store, for `oneway web`: what the wire did so far, and in each of the newest intervals. */
#define OW_TRUTH_FILE_INTERVALS 3600

struct ow_truth_file;

/* folder: where the file is. */
int ow_truth_file_create(const char *folder, struct ow_truth_file **ret_file, struct ow_error *err);
void ow_truth_file_free(struct ow_truth_file *file);
/* Adds an interval, and replaces the file as a whole. A file that cannot be written is left as it was. */
void ow_truth_file_add(struct ow_truth_file *file, int direction, const struct ow_wiretruth_report *report);
