/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/file/record_format.h"

/*
 * Records of ERF (Endace):
 *
 *     fraction of a second 4, seconds 4 (little-endian) | type 1 | flags 1 | record 2 | lost or colour 2 |
 *     length on the wire 2 | [extension headers 8 each, while the top bit of the type is set] | bytes
 *
 * A file has no header: it is recognised by records that follow each other (ow_file_is_erf). Padding and metadata are left
 * out. Bytes of Ethernet come behind two bytes of padding.
 */
extern const struct ow_record_format ow_erf_format;

/* LINKTYPE_ of the first packet in these bytes, or OW_LINK_UNKNOWN. */
uint16_t ow_erf_first_link(const uint8_t *bytes, size_t size);
/*
 * Whether a stream that begins with these bytes is ERF: its first two records are. 1, 0 if more bytes are needed to know, -1 if
 * it is not.
 */
int ow_erf_begins(const uint8_t *bytes, size_t size);
