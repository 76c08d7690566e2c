/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Adds zstd, lz4, xz and bzip2. Not part of liboneway: it needs their libraries. */
void ow_unpack_more(void);
