/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of times by bucket; see moments.h. */
#include "synopsis/moments.h"
#include "base/bytes.h"
#include "base/hash.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH          64
#define PREFETCH_BYTES (256u << 10)
#define KEY            UINT64_C(0x6d6f6d656e742d73)

static struct ow_moments *moments_of(struct ow_synopsis *s)
{
	return (struct ow_moments *)s;
}

static const struct ow_moments *moments_of_const(const struct ow_synopsis *s)
{
	return (const struct ow_moments *)s;
}

int ow_moments_create(uint32_t buckets, uint64_t seed, struct ow_moments **ret_moments, struct ow_error *err)
{
	if (!buckets || buckets > OW_MOMENTS_BUCKETS_MAX)
		return ow_error_set(err, EINVAL, "moments: %u buckets, not 1 to %u", buckets, OW_MOMENTS_BUCKETS_MAX);
	struct ow_moments *m = calloc(1, sizeof *m);
	uint64_t *time = calloc(buckets, sizeof *time);
	if (!m || !time) {
		free(m);
		free(time);
		return ow_error_set(err, ENOMEM, "moments: out of memory for %u buckets", buckets);
	}
	*m = (struct ow_moments){{&ow_moments_ops, seed}, ow_mix64(seed ^ KEY), buckets, 0, NULL};
	m->time = time;
	*ret_moments = m;
	return 0;
}

int ow_moments_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                          struct ow_synopsis **ret_synopsis)
{
	(void)sizing; /* a sum can hold any number of packets */
	size_t buckets = memory / sizeof(uint64_t);
	struct ow_moments *m = NULL;
	int r = ow_moments_create(buckets < OW_MOMENTS_BUCKETS_MAX ? (uint32_t)buckets : OW_MOMENTS_BUCKETS_MAX, seed,
	                          &m, NULL);
	if (!r)
		*ret_synopsis = &m->base;
	return r;
}

static void moments_free(struct ow_synopsis *s)
{
	free(moments_of(s)->time);
	free(s);
}

static void moments_reset(struct ow_synopsis *s)
{
	struct ow_moments *m = moments_of(s);
	m->packets = 0;
	memset(m->time, 0, m->buckets * sizeof *m->time);
}

static size_t moments_memory(const struct ow_synopsis *s)
{
	return moments_of_const(s)->buckets * sizeof(uint64_t);
}

static inline uint32_t bucket_of(const struct ow_moments *m, uint64_t id)
{
	return (uint32_t)((ow_mix64(id ^ m->key) >> 32) * m->buckets >> 32);
}

static inline void update(struct ow_moments *m, const struct ow_sighting *sightings, size_t count, uint64_t sign)
{
	uint32_t index[BATCH];
	bool prefetch = moments_memory(&m->base) > PREFETCH_BYTES;
	m->packets += sign * count;
	for (size_t batch; count; sightings += batch, count -= batch) {
		batch = count < BATCH ? count : BATCH;
		for (size_t i = 0; i < batch; i++) {
			index[i] = bucket_of(m, sightings[i].id);
			if (prefetch)
				__builtin_prefetch(&m->time[index[i]], 1);
		}
		for (size_t i = 0; i < batch; i++)
			m->time[index[i]] += sign * (uint64_t)sightings[i].time_ns;
	}
}

static void moments_add(struct ow_synopsis *s, const struct ow_sighting *sightings, size_t count)
{
	update(moments_of(s), sightings, count, 1);
}

static void moments_remove(struct ow_synopsis *s, const struct ow_sighting *sightings, size_t count)
{
	update(moments_of(s), sightings, count, UINT64_MAX);
}

static int combine(struct ow_moments *m, const struct ow_moments *other, uint64_t sign)
{
	m->packets += sign * other->packets;
	for (uint32_t i = 0; i < m->buckets; i++)
		m->time[i] += sign * other->time[i];
	return 0;
}

static int moments_merge(struct ow_synopsis *s, const struct ow_synopsis *other)
{
	return combine(moments_of(s), moments_of_const(other), 1);
}

static int moments_subtract(struct ow_synopsis *s, const struct ow_synopsis *other)
{
	return combine(moments_of(s), moments_of_const(other), UINT64_MAX);
}

static bool moments_same_shape(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	return moments_of_const(a)->buckets == moments_of_const(b)->buckets;
}

static size_t moments_encoded_size(const struct ow_synopsis *s)
{
	return 16 + moments_memory(s);
}

static void moments_encode(const struct ow_synopsis *s, uint8_t *bytes)
{
	const struct ow_moments *m = moments_of_const(s);
	memcpy(bytes, (uint32_t[]){m->buckets, 0}, 8);
	memcpy(bytes + 8, &m->packets, 8);
	memcpy(bytes + 16, m->time, moments_memory(s));
}

static int moments_decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                          struct ow_error *err)
{
	if (size < 16)
		return ow_error_set(err, EINVAL, "moments: %zu bytes are too few for its parameters", size);
	uint32_t buckets = ow_load_le32(bytes);
	if (ow_load_le32(bytes + 4))
		return ow_error_set(err, EINVAL, "moments: reserved bytes are not zero");
	if (size != 16 + (uint64_t)buckets * 8)
		return ow_error_set(err, EINVAL, "moments: %zu bytes do not fit %u buckets", size, buckets);
	struct ow_moments *m = NULL;
	int r = ow_moments_create(buckets, seed, &m, err);
	if (r < 0)
		return r;
	m->packets = ow_load_le64(bytes + 8);
	memcpy(m->time, bytes + 16, size - 16);
	*ret_synopsis = &m->base;
	return 0;
}

static void moments_describe(const struct ow_synopsis *s, char *text, size_t size)
{
	snprintf(text, size, "%u buckets", moments_of_const(s)->buckets);
}

const struct ow_synopsis_ops ow_moments_ops = {
	.name = "moments",
	.kind = OW_SYNOPSIS_MOMENTS,
	.free = moments_free,
	.reset = moments_reset,
	.memory = moments_memory,
	.add = moments_add,
	.remove = moments_remove,
	.merge = moments_merge,
	.subtract = moments_subtract,
	.encoded_size = moments_encoded_size,
	.encode = moments_encode,
	.decode = moments_decode,
	.same_shape = moments_same_shape,
	.describe = moments_describe,
};

void ow_moments_count(const struct ow_moments *moments, const struct ow_sighting *sightings, size_t count,
                      uint32_t *counts)
{
	for (size_t i = 0; i < count; i++)
		counts[bucket_of(moments, sightings[i].id)]++;
}

uint32_t ow_moments_buckets(double error)
{
	/* The relative error of s is half that of s^2, sqrt(2/B). */
	return (uint32_t)fmin(OW_MOMENTS_BUCKETS_MAX, fmax(2, ceil(pow(1.96 / error, 2) / 2)));
}
