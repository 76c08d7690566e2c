/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Inlined XXH3 is faster up to this many bytes. */
#define OW_HASH_SHORT 240

/* XXH3_64bits_withSecret, for longer inputs. */
uint64_t ow_hash_long(const void *bytes, size_t size, const void *secret, size_t secret_size);
