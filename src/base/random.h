/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* xoshiro256** seeded by splitmix64: the same seed gives the same sequence on every machine. */
struct ow_random {
	uint64_t s[4];
};

void ow_random_seed(struct ow_random *random, uint64_t seed);

static inline uint64_t ow_random_u64(struct ow_random *r)
{
	uint64_t *s = r->s, x = s[1] * 5, result = (x << 7 | x >> 57) * 9, t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = s[3] << 45 | s[3] >> 19;
	return result;
}

/* Uniform in [0, 1). */
static inline double ow_random_unit(struct ow_random *r)
{
	return (double)(ow_random_u64(r) >> 11) * 0x1p-53;
}

/* Uniform in 0 .. n-1; n > 0. The bias is below n / 2^64. */
static inline uint64_t ow_random_below(struct ow_random *r, uint64_t n)
{
	return (uint64_t)((unsigned __int128)ow_random_u64(r) * n >> 64);
}

/* A number that nobody outside of this process knows, for places in hash tables. Without the kernel's random numbers the
 * address of `memory` has to be unknown enough. */
uint64_t ow_random_secret(const void *memory);
