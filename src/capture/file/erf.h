/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/frame.h"
#include <stddef.h>
#include <stdint.h>

/*
 * Records of ERF (Endace):
 *
 *     fraction of a second 4, seconds 4 (little-endian) | type 1 | flags 1 | record 2 | lost or colour 2 |
 *     length on the wire 2 | [extension headers 8 each, while the top bit of the type is set] | bytes
 *
 * A file has no header: it is recognised by records that follow each other (ow_file_is_erf). Padding and metadata are left
 * out. Bytes of Ethernet come behind two bytes of padding.
 */
#define OW_ERF_RECORD   16U     /* bytes of the header */
#define OW_LINK_UNKNOWN 0xffffU /* a link type that is none */

/* Length of the record whose header is at p; 0 if it cannot be one. */
size_t ow_erf_length(const uint8_t *p);
/* The frame of a whole record. Returns 1, 0 if there is no packet in it, or -1 if it is damaged. Needs no link type. */
int ow_erf_parse(uint16_t linktype, const uint8_t *p, size_t length, struct ow_frame *ret_frame);
/* LINKTYPE_ of the first packet in these bytes, or OW_LINK_UNKNOWN. */
uint16_t ow_erf_first_link(const uint8_t *bytes, size_t size);
/* Packets that the capture has dropped, with this record. */
uint64_t ow_erf_dropped(const uint8_t *p, uint64_t before);
