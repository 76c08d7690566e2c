/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stddef.h>
#include <stdio.h>

/* Small files that a program keeps its state in. Only their owner may read and write them. */

/* The whole file with a zero after it, to be freed. -EFBIG if it is larger than `most`. */
int ow_state_read(const char *path, size_t most, char **ret_bytes, size_t *ret_size, struct ow_error *err);
/* Opens a file for reading; NULL and errno if there is none, or EINVAL if it is something else: a pipe would wait for
 * ever. */
FILE *ow_state_open(const char *path);
/* Replaces the file: a reader, and the disk after a crash, has all of the old bytes or all of the new ones. */
int ow_state_write(const char *path, const void *bytes, size_t size, struct ow_error *err);
