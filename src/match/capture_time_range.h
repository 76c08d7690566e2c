/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/frame.h"
#include <oneway/error.h>
#include <stdint.h>

/* The time that a capture file covers: its earliest and latest timestamp. Frames without a time (0) are ignored. */
struct ow_capture_time_range {
	int64_t first_ns, last_ns;
	uint64_t untimed;
	int64_t gap_ns;      /* the longest time between two consecutive frames; negative if it goes back, */
	uint64_t gap_number; /* and the number of the second one */
};

/*
 * Reads the whole file, which must be in the order of time: -EINVAL if many frames are earlier than frames before them
 * by more than tolerance_ns (see below). -ENODATA if it has no frames with a time; a damaged file ends where it is
 * damaged.
 */
int ow_capture_time_range_of_file(const char *path, int64_t tolerance_ns, struct ow_capture_time_range *ret_span,
                                  struct ow_error *err);

/*
 * Checks whether frames are in the order of time. Captures are matched as streams: a packet that comes later in the
 * file than its time by more than the waiting time no longer finds its counterpart. Single frames with wrong times
 * cause the warning about times that go backwards; files that were joined in the wrong order, or a clock that was set
 * back, have to be sorted first. A frame is late if it is earlier than all frames of some earlier block of
 * OW_ORDER_BLOCK frames by more than the tolerance; OW_ORDER_BLOCK late frames are too many.
 */
#define OW_ORDER_BLOCK 64u
struct ow_order {
	int64_t tolerance_ns;
	unsigned in_block;
	int64_t block_ns, level_ns; /* the earliest time of the block, and the latest such time of the blocks before */
	uint64_t block_first, level_number; /* the first frames of these blocks */
	uint64_t late;
	int64_t late_ns; /* the first late frame */
	uint64_t late_number, late_level_number;
	int64_t late_level_ns;
};
void ow_order_init(struct ow_order *order, int64_t tolerance_ns);
void ow_order_add(struct ow_order *order, const struct ow_frame *frame);
/* 0, or -EINVAL with an error that names the frames. */
int ow_order_check(const struct ow_order *order, const char *path, struct ow_error *err);
