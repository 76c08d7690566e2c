/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Items of one size for the records of a capture, by their numbers. They are in a file without a name, and only the parts of it
 * that were used last in memory: what is known about a record may be known long after later ones.
 */
struct ow_record_file;

/* folder: where the file is, while it is used. */
int ow_record_file_create(const char *folder, size_t item_size, struct ow_record_file **ret_file, struct ow_error *err);
void ow_record_file_free(struct ow_record_file *file);
/* The item of a record, zeroed if it is new; valid until the next call. Changes are kept. */
int ow_record_file_change(struct ow_record_file *file, uint64_t number, void **ret_item, struct ow_error *err);
/* The same for reading. */
int ow_record_file_get(struct ow_record_file *file, uint64_t number, const void **ret_item, struct ow_error *err);
/* The largest number of which the item was changed. */
uint64_t ow_record_file_last(const struct ow_record_file *file);
