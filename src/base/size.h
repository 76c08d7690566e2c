/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdint.h>

/* Parses sizes in bytes: 4096, 512K and 512KiB (of 1024), 64MiB, 1GB (of 1e9). */
int ow_size_parse(const char *text, uint64_t *ret_bytes, struct ow_error *err);
