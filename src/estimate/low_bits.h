/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Times of packets at one point, for the other point, which has its own times of the same packets in the same order: a
 * delay is within a window that is much smaller than an interval, so the low bits of a time are enough. A check over
 * all whole times shows whether each was within the window; if not, the bits above are sent as well.
 */
#define OW_LOW_BITS_MAX 48

/* Bytes of `count` times with `bits` bits each. */
static inline size_t ow_low_bits_size(size_t count, unsigned bits)
{
	return (count * bits + 7) / 8;
}

/* Writes bits low .. low + bits - 1 of each time, the lowest bit of a byte first, filled with zeros. bits: 1 .. 48. */
void ow_low_bits_pack(const int64_t *time_ns, size_t count, unsigned low, unsigned bits, uint8_t *to);
/* Adds the bits to part[0 .. count - 1], at their places. */
void ow_low_bits_unpack(const uint8_t *from, size_t count, unsigned low, unsigned bits, uint64_t *part);
/* The time within [least, least + 2^bits) that has these low bits. */
int64_t ow_low_bits_restore(uint64_t part, unsigned bits, int64_t least);
/* Depends on each time, without its bits below `low`, and its place. */
uint64_t ow_low_bits_check(const int64_t *time_ns, size_t count, unsigned low);
