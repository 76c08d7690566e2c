/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/synopsis.h"

/*
 * Sums of times by bucket, of all packets. The standard deviation is computed from them when the points know which
 * packets they share (formulas: 3.1 and 3.7). It is not from a paper: it is an LDA of one bank without sampling and
 * without counters, because after reconciliation both points can count the shared packets of a bucket
 * (ow_moments_count). Remove the packets that the other point does not have, exchange, and estimate: 8 bytes a bucket.
 *
 * Bytes after the common header, little-endian:
 *    0  buckets (4), reserved (4, zero)
 *    8  packets (8)
 *   16  for each bucket: time sum (8)
 *
 * Worked example: packets x, y, z with delays 3, 5 and 10 ns, x and y in bucket 0, z in bucket 1. The sums differ by 8
 * and 10, the counts are 2 and 1: mean 18/3 = 6, variance ((8 - 12)^2/2 + (10 - 6)^2/1) / (2 - 1) = 24.
 */

/* 64 MB of sums. */
#define OW_MOMENTS_BUCKETS_MAX (OW_SYNOPSIS_BYTES_MAX / 8 - 64)

struct ow_moments {
	struct ow_synopsis base;
	uint64_t key;
	uint32_t buckets;
	uint64_t packets; /* modular */
	uint64_t *time;   /* sum of times of each bucket, ns, modular */
};

extern const struct ow_synopsis_ops ow_moments_ops;

/* -EINVAL for 0 or too many buckets, -ENOMEM. Free with ow_synopsis_free. */
int ow_moments_create(uint32_t buckets, uint64_t seed, struct ow_moments **ret_moments, struct ow_error *err);
/* Creates one for struct ow_sizing. */
int ow_moments_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                          struct ow_synopsis **ret_synopsis);

/* Adds each packet to the count of its bucket; ignores times. counts: one for each bucket. */
void ow_moments_count(const struct ow_moments *moments, const struct ow_sighting *sightings, size_t count,
                      uint32_t *counts);

/* The number of buckets for which the standard deviation is within `error` (relative) in 95 % of cases: 1.96 / sqrt(2
 * B) = error. */
uint32_t ow_moments_buckets(double error);
