/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A Bloom filter of ids that are already hashes; each id sets two bits. It has no false negatives and few false
 * positives. `bits` is a power of two, at most 2^32; the filter has bits / 64 words.
 */
static inline uint64_t ow_bloom_bit(uint64_t id, unsigned i, uint64_t bits)
{
	return (i ? id >> 32 : id) & (bits - 1);
}

static inline void ow_bloom_add(uint64_t *filter, uint64_t bits, uint64_t id)
{
	for (unsigned i = 0; i < 2; i++)
		filter[ow_bloom_bit(id, i, bits) / 64] |= UINT64_C(1) << ow_bloom_bit(id, i, bits) % 64;
}

static inline bool ow_bloom_has(const uint64_t *filter, uint64_t bits, uint64_t id)
{
	uint64_t one = ow_bloom_bit(id, 0, bits), two = ow_bloom_bit(id, 1, bits);
	return filter[one / 64] >> one % 64 & filter[two / 64] >> two % 64 & 1;
}
