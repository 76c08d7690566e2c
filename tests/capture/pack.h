/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/file/unpack.h"
#include "craft.h"

/* The whole as one member, with every checksum that the method has; *ret_size bytes that the caller frees. */
uint8_t *pack(const struct craft *craft, enum ow_packing packing, size_t *ret_size);
