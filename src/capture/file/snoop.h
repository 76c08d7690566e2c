/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/file/record_format.h"
#include <oneway/error.h>

/*
 * snoop (RFC 1761), all big-endian:
 *
 *     file:     "snoop" 0 0 0 | version 4 | link 4
 *     record:   length on the wire 4 | captured 4 | record 4 | drops so far 4 | seconds 4 | microseconds 4 | bytes, padding
 */
#define OW_SNOOP_HEADER 16U

extern const struct ow_record_format ow_snoop_format;

/* What the header of the file, of OW_SNOOP_HEADER bytes, says. name: of the file. -ENOTSUP: another version. */
int ow_snoop_begin(const uint8_t *head, const char *name, uint16_t *ret_linktype, struct ow_error *err);
