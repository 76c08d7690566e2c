/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/synopsis.h"

/*
 * fast-AMS (Alon, Matias, Szegedy 1996; the fast version by Thorup and Zhang 2004) estimates how many packets only one
 * of two points saw. Each packet adds +1 or -1 to one of 1024 counters. Packets that both points saw cancel in the
 * difference of the counters, and the sum of its squares estimates the number of the others (formulas.md 3.6). This
 * replaces the MinHash of RDA (rda-ton2018), whose error is 1150 % at 10 differences among 1e6 packets.
 *
 * The estimate has no bias. Its standard deviation is at most sqrt(2 / counters) of it, 4.4 %, and approaches 0 if
 * there are fewer differences than counters.
 *
 * The encoding, after the common header (little-endian):
 *    0  counters (4), a power of two
 *    4  bits of a counter (1), 0 .. 32: the fewest that hold all; reserved (3, zero)
 *    8  counters as bits, zigzag (0, -1, 1, -2 are 0, 1, 2, 3), the lowest bit first; filled with 0 up to a byte
 * 1024 counters of 1e6 packets take 9 bits each: 1160 bytes.
 *
 * Example: 4 counters; A has packets with (counter, sign) (0,+) (1,-) (3,+), B the first two: z_A = 1 -1 0 1, z_B = 1
 * -1 0 0, sum of squares of the difference = 1.
 */
#define OW_AMS_COUNTERS     1024u
#define OW_AMS_COUNTERS_MIN 4u
#define OW_AMS_COUNTERS_MAX 65536u

struct ow_ams {
	struct ow_synopsis synopsis;
	uint32_t counters;
	uint64_t key_xor, key_mul;
	uint32_t *z; /* signed, modulo 2^32 */
};

extern const struct ow_synopsis_ops ow_ams_ops;

/* counters: a power of two within the limits above, else -EINVAL. */
int ow_ams_create(uint32_t counters, uint64_t seed, struct ow_synopsis **ret_synopsis);
/* Number of counters for which the estimate is within `error` (relative) in 95 % of cases, if there are many more
 * differences than counters. */
uint32_t ow_ams_size(double error);
/* Uses at most `memory` bytes and at most OW_AMS_COUNTERS counters. */
int ow_ams_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis **ret_synopsis);

/* Estimates the number of ids that only one of the two saw, and its standard deviation. -EINVAL if they are not
 * comparable. */
int ow_ams_difference(const struct ow_synopsis *a, const struct ow_synopsis *b, double *ret_differences,
                      double *ret_deviation);
