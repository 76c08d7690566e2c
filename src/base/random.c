/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include "base/hash.h"
#include <sys/random.h>

/* Steele, Lea, Flood: "Fast splittable pseudorandom number generators" (2014); Blackman, Vigna: xoshiro256** (2018). */
void ow_random_seed(struct ow_random *random, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		seed += UINT64_C(0x9e3779b97f4a7c15);
		uint64_t z = seed;
		z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
		random->s[i] = z ^ (z >> 31);
	}
}

uint64_t ow_random_secret(const void *memory)
{
	uint64_t random;
	if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
		random = ow_mix64((uintptr_t)memory);
	return random;
}
