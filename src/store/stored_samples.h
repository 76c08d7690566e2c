/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the samples of a store (store/sample_row.h). */
typedef int ow_stored_sample_handler(void *arg, const uint8_t *bytes, size_t size, struct ow_error *err);

/* Calls the handler for each sample of a store, in the order in which they were written, until it fails. -ENODATA: the
 * store has none. */
int ow_stored_samples_read(const char *path, ow_stored_sample_handler *handler, void *arg, struct ow_error *err);
