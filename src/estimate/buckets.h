/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * A coarse histogram of delays with fixed bounds, three a decade from a microsecond to ten seconds, which can be summed
 * over intervals, lanes and points. Negative delays (clock errors) have their own bucket.
 */
#define OW_BUCKETS 23
/* Upper bounds, inclusive, ascending; bucket OW_BUCKETS holds larger delays. */
extern const int64_t ow_bucket_ns[OW_BUCKETS];

void ow_buckets_add(uint64_t bucket[OW_BUCKETS + 1], double delay_ns, uint64_t packets);
/* Adds `count` delays of a sample that stands for `packets`: all delays have the same weight, and the sum is exact. */
void ow_buckets_sample(uint64_t bucket[OW_BUCKETS + 1], const int64_t *delay_ns, size_t count, uint64_t packets);
