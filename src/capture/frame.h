/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Two LINKTYPE_ values of https://www.tcpdump.org/linktypes.html that more than one file knows. */
#define OW_LINKTYPE_ETHERNET 1
#define OW_LINKTYPE_RAW      101

/* One captured frame. The bytes belong to the source and stay valid until its next call. */
struct ow_frame {
	int64_t time_ns; /* since the Unix epoch; within +-2^62, so that differences do not overflow */
	const uint8_t *data;
	uint32_t caplen;   /* bytes at data; never more than len */
	uint32_t len;      /* bytes on the wire (or in the superframe) */
	uint64_t number;   /* 1-based number of the record in its source */
	uint16_t linktype; /* LINKTYPE_ value */
	uint32_t after_ms; /* if time_ns is 0: about so long after the last frame with a time, as far as is known */
};

#define OW_FRAME_HEADER 16 /* bytes between two frames of a file, at least */

/*
 * Prefetches the memory `ahead` bytes behind the frame and its header. Frames of a file in memory are contiguous, so
 * prefetching the next ones while this one is processed hides memory latency. Invalid addresses are harmless.
 */
static inline void ow_frame_load_ahead(const struct ow_frame *frame, size_t ahead)
{
	uintptr_t from = (uintptr_t)frame->data + ahead, line = 64;
	for (uintptr_t p = from; p < from + frame->caplen + OW_FRAME_HEADER; p += line)
		__builtin_prefetch((const void *)p); // NOLINT(performance-no-int-to-ptr)
}
