/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/frame.h"
#include <stddef.h>
#include <stdint.h>

/* A format in which every record begins with its length: snoop (capture/file/snoop.h) and ERF (capture/file/erf.h). */
struct ow_record_format {
	const char *name;
	size_t header, record; /* bytes of the headers of the file and of a record */
	/* Length of the record whose header is at p; 0 if it cannot be one. At most OW_RECORD_FORMAT_MAX. */
	size_t (*length)(const uint8_t *p);
	/* The frame of a whole record. Returns 1, 0 if there is no packet in it, or -1 if it is damaged. */
	int (*parse)(uint16_t linktype, const uint8_t *p, size_t length, struct ow_frame *ret_frame);
	/* Packets that the capture has dropped, with this record. */
	uint64_t (*dropped)(const uint8_t *p, uint64_t before);
};

#define OW_RECORD_FORMAT_MAX (OW_CAPTURE_CAPLEN_MAX + 4096U) /* with its header and padding */
#define OW_LINK_UNKNOWN      0xffffU                         /* a link type that is none */
