/* SPDX-License-Identifier: Apache-2.0 */
/* fast-AMS counters: ams.h has the method and the layout. */
#include "synopsis/ams.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARAMS_BYTES 8
#define KEY_TAG      UINT64_C(0x616d732d6b657973) /* makes the keys different from those of other synopses */

static struct ow_ams *ams_of(struct ow_synopsis *synopsis)
{
	return (struct ow_ams *)synopsis;
}

static const struct ow_ams *ams_at(const struct ow_synopsis *synopsis)
{
	return (const struct ow_ams *)synopsis;
}

static bool valid_counters(uint32_t counters)
{
	return counters >= OW_AMS_COUNTERS_MIN && counters <= OW_AMS_COUNTERS_MAX && (counters & (counters - 1)) == 0;
}

int ow_ams_create(uint32_t counters, uint64_t seed, struct ow_synopsis **ret_synopsis)
{
	struct ow_random random;
	if (!valid_counters(counters))
		return -EINVAL;
	struct ow_ams *ams = calloc(1, sizeof *ams);
	uint32_t *z = calloc(counters, sizeof *z);
	if (!ams || !z) {
		free(ams);
		free(z);
		return -ENOMEM;
	}
	ow_random_seed(&random, seed ^ KEY_TAG);
	*ams = (struct ow_ams){
		.synopsis = {.ops = &ow_ams_ops, .seed = seed},
		.counters = counters,
		.key_xor = ow_random_u64(&random),
		.key_mul = ow_random_u64(&random) | 1,
		.z = z,
	};
	*ret_synopsis = &ams->synopsis;
	return 0;
}

/* The standard deviation of a sum of m squared counters is sqrt(2 / m) of it: 1.96 sqrt(2 / m) = error; m is a power of
 * two. */
uint32_t ow_ams_size(double error)
{
	double least = error > 0 ? 2 * (1.96 / error) * (1.96 / error) : OW_AMS_COUNTERS_MAX;
	uint32_t counters = OW_AMS_COUNTERS_MIN;
	while (counters < least && counters < OW_AMS_COUNTERS_MAX)
		counters *= 2;
	return counters;
}

int ow_ams_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis **ret_synopsis)
{
	uint32_t counters = OW_AMS_COUNTERS;
	(void)sizing; /* the relative error does not depend on the traffic */
	while (counters * sizeof(uint32_t) > memory)
		counters /= 2;
	return ow_ams_create(counters, seed, ret_synopsis);
}

static void destroy(struct ow_synopsis *synopsis)
{
	free(ams_of(synopsis)->z);
	free(synopsis);
}

static void reset(struct ow_synopsis *synopsis)
{
	struct ow_ams *ams = ams_of(synopsis);
	memset(ams->z, 0, ams->counters * sizeof *ams->z);
}

static size_t memory(const struct ow_synopsis *synopsis)
{
	return ams_at(synopsis)->counters * sizeof(uint32_t);
}

/* sign: 1 adds, -1 removes. The low bits of the hash select the counter, the highest bit is the sign. */
static inline void update(struct ow_ams *ams, const struct ow_sighting *sightings, size_t count, uint32_t sign)
{
	const uint64_t key_xor = ams->key_xor, key_mul = ams->key_mul;
	const uint32_t mask = ams->counters - 1;
	uint32_t *z = ams->z;
	for (size_t i = 0; i < count; i++) {
		uint64_t hash = ow_mum64(sightings[i].id ^ key_xor, key_mul);
		uint32_t negative = (uint32_t)(hash >> 63);
		z[hash & mask] += (sign ^ -negative) + negative; /* a branch would be mispredicted half of the time */
	}
}

static void add(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	update(ams_of(synopsis), sightings, count, 1);
}

static void take_out(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	update(ams_of(synopsis), sightings, count, UINT32_MAX);
}

static bool same_shape(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	return ams_at(a)->counters == ams_at(b)->counters;
}

static int merge(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	for (uint32_t i = 0; i < ams_of(synopsis)->counters; i++)
		ams_of(synopsis)->z[i] += ams_at(other)->z[i];
	return 0;
}

static int subtract(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	for (uint32_t i = 0; i < ams_of(synopsis)->counters; i++)
		ams_of(synopsis)->z[i] -= ams_at(other)->z[i];
	return 0;
}

static uint32_t zigzag(uint32_t z)
{
	return z << 1 ^ (z >> 31 ? UINT32_MAX : 0);
}

static uint32_t unzigzag(uint32_t x)
{
	return x >> 1 ^ (x & 1 ? UINT32_MAX : 0);
}

static unsigned bits_needed(const struct ow_ams *ams)
{
	uint32_t all = 0;
	for (uint32_t i = 0; i < ams->counters; i++)
		all |= zigzag(ams->z[i]);
	return all ? 32 - (unsigned)__builtin_clz(all) : 0;
}

static size_t size_for(uint32_t counters, unsigned bits)
{
	return PARAMS_BYTES + ((size_t)counters * bits + 7) / 8;
}

static size_t encoded_size(const struct ow_synopsis *synopsis)
{
	return size_for(ams_at(synopsis)->counters, bits_needed(ams_at(synopsis)));
}

static void encode(const struct ow_synopsis *synopsis, uint8_t *bytes)
{
	const struct ow_ams *ams = ams_at(synopsis);
	unsigned bits = bits_needed(ams), held = 0;
	uint64_t hold = 0;
	memset(bytes, 0, PARAMS_BYTES);
	ow_store_le32(bytes, ams->counters);
	bytes[4] = (uint8_t)bits;
	bytes += PARAMS_BYTES;
	for (uint32_t i = 0; i < ams->counters; i++) {
		hold |= (uint64_t)zigzag(ams->z[i]) << held;
		for (held += bits; held >= 8; held -= 8, hold >>= 8)
			*bytes++ = (uint8_t)hold;
	}
	if (held)
		*bytes = (uint8_t)hold;
}

/* The size of the encoded counters, from their first 8 bytes; 0 if these are invalid. */
static size_t size_of(const uint8_t bytes[8])
{
	uint32_t counters = ow_load_le32(bytes);
	if (!valid_counters(counters) || bytes[4] > 32 || bytes[5] || bytes[6] || bytes[7])
		return 0;
	return size_for(counters, bytes[4]);
}

/* Reads the counters. Returns the unused bits at the end, which must be 0. */
static uint64_t unpack(struct ow_ams *ams, const uint8_t *bytes, unsigned bits)
{
	uint64_t hold = 0, mask = (UINT64_C(1) << bits) - 1;
	unsigned held = 0;
	for (uint32_t i = 0; i < ams->counters; i++) {
		for (; held < bits; held += 8)
			hold |= (uint64_t)*bytes++ << held;
		ams->z[i] = unzigzag((uint32_t)(hold & mask));
		hold >>= bits;
		held -= bits;
	}
	return hold;
}

static int decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                  struct ow_error *err)
{
	struct ow_synopsis *synopsis;
	if (size < PARAMS_BYTES)
		return ow_error_set(err, EINVAL, "ams: %zu bytes are less than its parameters", size);
	size_t needed = size_of(bytes);
	if (!needed)
		return ow_error_set(err, EINVAL, "ams: %u counters of %u bits, or reserved bytes that are not 0",
		                    ow_load_le32(bytes), bytes[4]);
	if (needed != size)
		return ow_error_set(err, EINVAL, "ams: %zu bytes, its parameters say %zu", size, needed);
	int r = ow_ams_create(ow_load_le32(bytes), seed, &synopsis);
	if (r < 0)
		return ow_error_set(err, -r, "ams: %s", strerror(-r));
	uint64_t left = unpack(ams_of(synopsis), bytes + PARAMS_BYTES, bytes[4]);
	if (left || bits_needed(ams_of(synopsis)) != bytes[4]) {
		ow_synopsis_free(synopsis);
		return ow_error_set(err, EINVAL, "ams: %s",
		                    left ? "bits after the last counter" : "more bits a counter than any needs");
	}
	*ret_synopsis = synopsis;
	return 0;
}

static void describe(const struct ow_synopsis *synopsis, char *text, size_t size)
{
	snprintf(text, size, "%u counters", ams_at(synopsis)->counters);
}

const struct ow_synopsis_ops ow_ams_ops = {
	.name = "ams",
	.kind = OW_SYNOPSIS_AMS,
	.free = destroy,
	.reset = reset,
	.memory = memory,
	.add = add,
	.remove = take_out,
	.merge = merge,
	.subtract = subtract,
	.encoded_size = encoded_size,
	.encode = encode,
	.decode = decode,
	.same_shape = same_shape,
	.describe = describe,
};

/*
 * d = sum of (z_A - z_B)^2. Two differences in one counter change d by +2 or -2, so the variance is at most 2 d (d - 1)
 * / counters.
 */
int ow_ams_difference(const struct ow_synopsis *a, const struct ow_synopsis *b, double *ret_differences,
                      double *ret_deviation)
{
	if (a->ops != &ow_ams_ops || b->ops != &ow_ams_ops || a->seed != b->seed || !same_shape(a, b))
		return -EINVAL;
	double sum = 0;
	for (uint32_t i = 0; i < ams_at(a)->counters; i++) {
		double z = (double)(int32_t)(ams_at(a)->z[i] - ams_at(b)->z[i]);
		sum += z * z;
	}
	*ret_differences = sum;
	*ret_deviation = sum > 1 ? sqrt(2 * sum * (sum - 1) / ams_at(a)->counters) : 0;
	return 0;
}
