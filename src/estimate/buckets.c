/* SPDX-License-Identifier: Apache-2.0 */
/* Counts delays in buckets with fixed bounds. */
#include "estimate/buckets.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define S  INT64_C(1000000000)

const int64_t ow_bucket_ns[OW_BUCKETS] = {
	0,        1 * US,   2500,     5 * US,    10 * US,   25 * US, 50 * US, 100 * US,
	250 * US, 500 * US, 1 * MS,   2500 * US, 5 * MS,    10 * MS, 25 * MS, 50 * MS,
	100 * MS, 250 * MS, 500 * MS, 1 * S,     2500 * MS, 5 * S,   10 * S,
};

static unsigned bucket_of(double delay_ns)
{
	unsigned low = 0, high = OW_BUCKETS;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (delay_ns <= (double)ow_bucket_ns[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void ow_buckets_add(uint64_t bucket[OW_BUCKETS + 1], double delay_ns, uint64_t packets)
{
	bucket[bucket_of(delay_ns)] += packets;
}

void ow_buckets_sample(uint64_t bucket[OW_BUCKETS + 1], const int64_t *delay_ns, size_t count, uint64_t packets)
{
	uint64_t samples[OW_BUCKETS + 1] = {0}, below = 0, given = 0;
	for (size_t i = 0; i < count; i++)
		samples[bucket_of((double)delay_ns[i])]++;
	/* Rounds the cumulative sum at each bound: errors do not add up, and the last sum is all packets. */
	for (unsigned b = 0; count && b <= OW_BUCKETS; b++) {
		below += samples[b];
		uint64_t upto = (uint64_t)((unsigned __int128)packets * below / count);
		bucket[b] += upto - given;
		given = upto;
	}
}
