/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * How much later the receiver of a lane cuts its intervals than the sender, so that a packet falls into the interval
 * with the same number at both points. With delay d and shift s a packet is in another interval if it was sent within
 * |d - s| of a boundary: rate * mean |d - s| packets a boundary. That is the cost of s, and the median has the least.
 *
 * Packets with d > s are late, which costs as much as those with d < s, which are early; but few early ones are better
 * than many, so a lower quantile is taken unless a higher one costs clearly less. Where delays jump between two levels,
 * the median would jump with them.
 *
 * Delays are raw: by the clocks of both points, the difference of the clocks included.
 */

/* No delay was ever known. */
#define OW_INTERVAL_SHIFT_FIRST INT64_MAX

/*
 * The shift of the next boundary, from that of the last one and a sample of the delays of the last interval (any order;
 * the array is sorted). It changes only if that saves a fifth of the cost: earlier by at most a quarter of the
 * interval's length, later by at most half of it or an eighth of the way, whichever is more; at first by any time.
 *
 * Late packets are found for as long as points wait, but early ones for a few intervals only. A shift that followed the
 * delays of a stall by intervals would leave nothing to match when delays are short again, and so no delays to follow.
 *
 * least_ns: the least delay so far. count 0, because nothing matched: back towards it.
 */
int64_t ow_interval_shift(int64_t current_ns, int64_t length_ns, int64_t least_ns, int64_t *delay_ns, size_t count);
