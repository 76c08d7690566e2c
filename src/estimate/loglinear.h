/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <stdlib.h>

/*
 * The slots of a log-linear histogram over all of int64_t, in the order of the values. A magnitude m < 2^(bits+1) has
 * its own slot; above, each octave has 2^bits slots. With s = floor(log2 m) - bits the distance from the slot of 0 is s
 * * 2^bits + (m >> s), which continues the exact part without a gap. A slot is 2^s wide and starts at 2^bits * 2^s or
 * later, so its middle differs by at most 2^-(bits+1) of the value. Negative values mirror the positive ones.
 */

/* The greatest magnitude is 2^63: s = 63 - bits, m >> s = 2^bits. */
#define OW_LOGLINEAR_ZERO(bits)  ((64 - (bits)) << (bits))
#define OW_LOGLINEAR_SLOTS(bits) (2 * OW_LOGLINEAR_ZERO(bits) + 1)

static inline int ow_loglinear_slot(int64_t value, int bits)
{
	uint64_t m = value < 0 ? -(uint64_t)value : (uint64_t)value;
	int shift = 63 - __builtin_clzll(m | UINT64_C(1) << bits) - bits;
	int distance = (shift << bits) + (int)(m >> shift);
	return value < 0 ? OW_LOGLINEAR_ZERO(bits) - distance : OW_LOGLINEAR_ZERO(bits) + distance;
}

/* The middle of a slot. */
static inline double ow_loglinear_value(int slot, int bits)
{
	int distance = abs(slot - OW_LOGLINEAR_ZERO(bits));
	int shift = distance < 2 << bits ? 0 : (distance >> bits) - 1;
	uint64_t low = (uint64_t)(distance - (shift << bits)) << shift;
	double middle = (double)low + (double)((UINT64_C(1) << shift) - 1) / 2;
	return slot < OW_LOGLINEAR_ZERO(bits) ? -middle : middle;
}
