/* SPDX-License-Identifier: Apache-2.0 */
/* Low bits of times: low_bits.h has the method. */
#include "estimate/low_bits.h"

#include "base/hash.h"

static uint64_t mask_of(unsigned bits)
{
	return (UINT64_C(1) << bits) - 1;
}

void ow_low_bits_pack(const int64_t *time_ns, size_t count, unsigned low, unsigned bits, uint8_t *to)
{
	uint64_t held = 0;
	unsigned helds = 0;
	for (size_t i = 0; i < count; i++) {
		held |= ((uint64_t)time_ns[i] >> low & mask_of(bits)) << helds;
		for (helds += bits; helds >= 8; helds -= 8) {
			*to++ = (uint8_t)held;
			held >>= 8;
		}
	}
	if (helds)
		*to = (uint8_t)held;
}

void ow_low_bits_unpack(const uint8_t *from, size_t count, unsigned low, unsigned bits, uint64_t *part)
{
	uint64_t held = 0;
	unsigned helds = 0;
	for (size_t i = 0; i < count; i++) {
		for (; helds < bits; helds += 8)
			held |= (uint64_t)*from++ << helds;
		part[i] |= (held & mask_of(bits)) << low;
		held >>= bits;
		helds -= bits;
	}
}

int64_t ow_low_bits_restore(uint64_t part, unsigned bits, int64_t least)
{
	return (int64_t)((uint64_t)least + ((part - (uint64_t)least) & mask_of(bits)));
}

uint64_t ow_low_bits_check(const int64_t *time_ns, size_t count, unsigned low)
{
	uint64_t check = 0;
	for (size_t i = 0; i < count; i++)
		check += ow_mix64(ow_mix64(i) + (uint64_t)(time_ns[i] >> low));
	return check;
}
