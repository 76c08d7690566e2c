/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Inline mixers for the per-packet path. packet/identity hashes bytes with XXH3. */

/* A bijection of 64 bits in which every input bit affects every output bit (the murmur3 finaliser). */
static inline uint64_t ow_mix64(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ (x >> 33);
}

/* Xors the halves of the 128-bit product: one multiplication mixes two words well. If either word is 0, the result is
 * 0, so callers xor secrets in first. */
static inline uint64_t ow_mum64(uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)a * b;
	return (uint64_t)p ^ (uint64_t)(p >> 64);
}
