/* SPDX-License-Identifier: Apache-2.0 */
/* The Lossy Difference Aggregator; see lda.h for the paper, the deviations and the layout. */
#include "synopsis/lda.h"
#include "base/bytes.h"
#include "base/hash.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Packets that are processed together: their hashes fit into the first-level cache. */
#define BATCH 64
/* Larger tables (in bytes) are prefetched: half of a common second-level cache. */
#define PREFETCH_BYTES (256u << 10)
/* Makes this structure's hash different from others with the same seed. */
#define KEY UINT64_C(0x4c44412d62616e6b)

static struct ow_lda *lda_of(struct ow_synopsis *s)
{
	return (struct ow_lda *)s;
}

static const struct ow_lda *lda_of_const(const struct ow_synopsis *s)
{
	return (const struct ow_lda *)s;
}

static uint32_t bucket_count(const struct ow_lda *lda)
{
	return lda->first[lda->params.banks];
}

static int check_params(const struct ow_lda_params *p, struct ow_error *err)
{
	if (!p->banks || p->banks > OW_LDA_BANKS_MAX)
		return ow_error_set(err, EINVAL, "lda: %u banks, not 1 to %u", p->banks, OW_LDA_BANKS_MAX);
	uint64_t buckets = 0;
	for (uint32_t i = 0; i < p->banks; i++) {
		if (!p->bank[i].buckets)
			return ow_error_set(err, EINVAL, "lda: bank %u has no buckets", i);
		if (i && p->bank[i].limit >= p->bank[i - 1].limit)
			return ow_error_set(err, EINVAL, "lda: bank %u takes all packets of bank %u", i, i - 1);
		buckets += p->bank[i].buckets;
	}
	if (buckets > OW_LDA_BUCKETS_MAX)
		return ow_error_set(err, EINVAL, "lda: %llu buckets, at most %u", (unsigned long long)buckets,
		                    OW_LDA_BUCKETS_MAX);
	return 0;
}

int ow_lda_create(const struct ow_lda_params *params, uint64_t seed, struct ow_lda **ret_lda, struct ow_error *err)
{
	int r = check_params(params, err);
	if (r < 0)
		return r;
	struct ow_lda *lda = calloc(1, sizeof *lda);
	if (!lda)
		return ow_error_set(err, ENOMEM, "lda: out of memory");
	lda->base = (struct ow_synopsis){.ops = &ow_lda_ops, .seed = seed};
	lda->key[0] = ow_mix64(seed ^ KEY);
	lda->key[1] = ow_mix64(lda->key[0] + 1) | 1;
	lda->params.banks = params->banks;
	for (uint32_t i = 0; i < params->banks; i++) {
		lda->params.bank[i] = params->bank[i];
		lda->first[i + 1] = lda->first[i] + params->bank[i].buckets;
	}
	lda->bucket = calloc(bucket_count(lda), sizeof *lda->bucket);
	if (!lda->bucket) {
		free(lda);
		return ow_error_set(err, ENOMEM, "lda: out of memory for %u buckets", params->bank[0].buckets);
	}
	*ret_lda = lda;
	return 0;
}

static void lda_free(struct ow_synopsis *s)
{
	free(lda_of(s)->bucket);
	free(s);
}

static void lda_reset(struct ow_synopsis *s)
{
	struct ow_lda *lda = lda_of(s);
	memset(lda->bucket, 0, bucket_count(lda) * sizeof *lda->bucket);
}

static size_t lda_memory(const struct ow_synopsis *s)
{
	return bucket_count(lda_of_const(s)) * sizeof(struct ow_lda_bucket);
}

/*
 * The upper half of the hash decides about sampling, the lower half selects the row, so they are independent. Ids are
 * already uniform, so one multiplication suffices. Packets that no bank takes are skipped without a branch, because at
 * p = 1/2 it would be mispredicted for every other packet.
 */
static inline size_t sample(const struct ow_lda *lda, const struct ow_sighting *sightings, size_t count,
                            uint64_t hash[BATCH + 1], uint8_t which[BATCH + 1])
{
	uint64_t key = lda->key[0], multiplier = lda->key[1];
	uint32_t limit = lda->params.bank[0].limit;
	size_t taken = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t h = ow_mum64(sightings[i].id ^ key, multiplier);
		hash[taken] = h;
		which[taken] = (uint8_t)i;
		taken += (uint32_t)(h >> 32) <= limit;
	}
	return taken;
}

/* The last bank that takes it. Limits fall, so its number is the count of further limits that are not exceeded. */
static inline uint32_t bucket_of(const struct ow_lda *lda, uint64_t hash)
{
	uint32_t bank = 0;
	for (uint32_t i = 1; i < lda->params.banks; i++)
		bank += (uint32_t)(hash >> 32) <= lda->params.bank[i].limit;
	return lda->first[bank] + (uint32_t)((uint64_t)(uint32_t)hash * lda->params.bank[bank].buckets >> 32);
}

static inline void update(struct ow_lda *lda, const struct ow_sighting *sightings, size_t count, uint64_t sign)
{
	uint64_t hash[BATCH + 1];
	uint8_t which[BATCH + 1];
	uint32_t index[BATCH];
	bool prefetch = lda_memory(&lda->base) > PREFETCH_BYTES;
	for (size_t batch; count; sightings += batch, count -= batch) {
		batch = count < BATCH ? count : BATCH;
		size_t taken = sample(lda, sightings, batch, hash, which);
		if (lda->params.banks == 1)
			for (size_t i = 0; i < taken; i++)
				index[i] = (uint32_t)((uint64_t)(uint32_t)hash[i] * lda->params.bank[0].buckets >> 32);
		else
			for (size_t i = 0; i < taken; i++)
				index[i] = bucket_of(lda, hash[i]);
		if (prefetch)
			for (size_t i = 0; i < taken; i++)
				__builtin_prefetch(&lda->bucket[index[i]], 1);
		for (size_t i = 0; i < taken; i++) {
			struct ow_lda_bucket *b = &lda->bucket[index[i]];
			b->time += sign * (uint64_t)sightings[which[i]].time_ns;
			b->packets += sign;
		}
	}
}

static void lda_add(struct ow_synopsis *s, const struct ow_sighting *sightings, size_t count)
{
	update(lda_of(s), sightings, count, 1);
}

static void lda_remove(struct ow_synopsis *s, const struct ow_sighting *sightings, size_t count)
{
	update(lda_of(s), sightings, count, UINT64_MAX);
}

static int combine(struct ow_lda *lda, const struct ow_lda *other, uint64_t sign)
{
	for (uint32_t i = 0; i < bucket_count(lda); i++) {
		lda->bucket[i].time += sign * other->bucket[i].time;
		lda->bucket[i].packets += sign * other->bucket[i].packets;
	}
	return 0;
}

static int lda_merge(struct ow_synopsis *s, const struct ow_synopsis *other)
{
	return combine(lda_of(s), lda_of_const(other), 1);
}

static int lda_subtract(struct ow_synopsis *s, const struct ow_synopsis *other)
{
	return combine(lda_of(s), lda_of_const(other), UINT64_MAX);
}

static bool lda_same_shape(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	const struct ow_lda_params *p = &lda_of_const(a)->params, *q = &lda_of_const(b)->params;
	if (p->banks != q->banks)
		return false;
	for (uint32_t i = 0; i < p->banks; i++)
		if (p->bank[i].buckets != q->bank[i].buckets || p->bank[i].limit != q->bank[i].limit)
			return false;
	return true;
}

static size_t encoded_size(uint64_t banks, uint64_t buckets)
{
	return 8 + 8 * banks + 16 * buckets;
}

static size_t lda_encoded_size(const struct ow_synopsis *s)
{
	const struct ow_lda *lda = lda_of_const(s);
	return encoded_size(lda->params.banks, bucket_count(lda));
}

static void lda_encode(const struct ow_synopsis *s, uint8_t *bytes)
{
	const struct ow_lda *lda = lda_of_const(s);
	memcpy(bytes, (uint32_t[]){lda->params.banks, 0}, 8);
	bytes += 8;
	for (uint32_t i = 0; i < lda->params.banks; i++, bytes += 8)
		memcpy(bytes, (uint32_t[]){lda->params.bank[i].buckets, lda->params.bank[i].limit}, 8);
	for (uint32_t i = 0; i < bucket_count(lda); i++, bytes += 16)
		memcpy(bytes, (uint64_t[]){lda->bucket[i].time, lda->bucket[i].packets}, 16);
}

static int lda_decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                      struct ow_error *err)
{
	if (size < 8)
		return ow_error_set(err, EINVAL, "lda: %zu bytes are too few for its parameters", size);
	struct ow_lda_params params = {.banks = ow_load_le32(bytes)};
	if (ow_load_le32(bytes + 4))
		return ow_error_set(err, EINVAL, "lda: reserved bytes are not zero");
	if (!params.banks || params.banks > OW_LDA_BANKS_MAX)
		return ow_error_set(err, EINVAL, "lda: %u banks, not 1 to %u", params.banks, OW_LDA_BANKS_MAX);
	if (size < encoded_size(params.banks, 0))
		return ow_error_set(err, EINVAL, "lda: %zu bytes are too few for %u banks", size, params.banks);
	uint64_t buckets = 0;
	for (uint32_t i = 0; i < params.banks; i++) {
		params.bank[i].buckets = ow_load_le32(bytes + 8 + 8 * i);
		params.bank[i].limit = ow_load_le32(bytes + 12 + 8 * i);
		buckets += params.bank[i].buckets;
	}
	if (size != encoded_size(params.banks, buckets))
		return ow_error_set(err, EINVAL, "lda: %zu bytes, but %llu buckets need %zu", size,
		                    (unsigned long long)buckets, encoded_size(params.banks, buckets));
	struct ow_lda *lda = NULL;
	int r = ow_lda_create(&params, seed, &lda, err);
	if (r < 0)
		return r;
	bytes += encoded_size(params.banks, 0);
	for (uint64_t i = 0; i < buckets; i++, bytes += 16)
		lda->bucket[i] = (struct ow_lda_bucket){ow_load_le64(bytes), ow_load_le64(bytes + 8)};
	*ret_synopsis = &lda->base;
	return 0;
}

static void lda_describe(const struct ow_synopsis *s, char *text, size_t size)
{
	const struct ow_lda *lda = lda_of_const(s);
	snprintf(text, size, "%u bank%s, %u buckets, p %.3g", lda->params.banks, lda->params.banks > 1 ? "s" : "",
	         bucket_count(lda), ((double)lda->params.bank[0].limit + 1) * 0x1p-32);
}

const struct ow_synopsis_ops ow_lda_ops = {
	.name = "lda",
	.kind = OW_SYNOPSIS_LDA,
	.free = lda_free,
	.reset = lda_reset,
	.memory = lda_memory,
	.add = lda_add,
	.remove = lda_remove,
	.merge = lda_merge,
	.subtract = lda_subtract,
	.encoded_size = lda_encoded_size,
	.encode = lda_encode,
	.decode = lda_decode,
	.same_shape = lda_same_shape,
	.describe = lda_describe,
};

uint32_t ow_lda_limit(double p)
{
	double limit = round(p * 0x1p32) - 1;
	return limit >= 0x1p32 - 1 ? UINT32_MAX : limit > 0 ? (uint32_t)limit : 0;
}

double ow_lda_share(const struct ow_lda_params *params, uint32_t bank)
{
	double p = (double)params->bank[bank].limit + 1;
	if (bank + 1 < params->banks)
		p -= (double)params->bank[bank + 1].limit + 1;
	return p * 0x1p-32;
}

double ow_lda_sampling(double buckets, double lost, double alpha)
{
	return fmin(1, alpha * buckets / (lost + 1));
}

uint32_t ow_lda_buckets(double packets, double loss, double cv, double error)
{
	double lost = loss * packets, received = packets - lost;
	/* 1.96 cv / sqrt(S) <= error, but at most the number of packets. */
	double samples = fmin(pow(1.96 * cv / error, 2), received);
	/* S = alpha e^-alpha m R / (L + 1) with alpha = 1; if all packets are sampled, S = R e^(-L/m). */
	double m = samples * (lost + 1) * exp(1) / received;
	if (m > lost + 1)
		m = samples < received ? lost / log(received / samples) : OW_LDA_BUCKETS_MAX;
	return (uint32_t)fmin(OW_LDA_BUCKETS_MAX, fmax(64, ceil(m)));
}

int ow_lda_tune(double packets, const uint32_t *buckets, const double *loss, uint32_t banks, double alpha,
                struct ow_lda_params *ret_params, struct ow_error *err)
{
	struct ow_lda_params params = {.banks = banks};
	if (banks > OW_LDA_BANKS_MAX)
		return ow_error_set(err, EINVAL, "lda: %u banks, at most %u", banks, OW_LDA_BANKS_MAX);
	for (uint32_t i = 0; i < banks; i++) {
		if (i && !(loss[i] > loss[i - 1]))
			return ow_error_set(err, EINVAL, "lda: the loss ratios of the banks do not rise");
		double p = ow_lda_sampling(buckets[i], loss[i] * packets, alpha);
		params.bank[i] = (struct ow_lda_bank){buckets[i], ow_lda_limit(p)};
		/* With few packets both banks would take all. Leave some for the earlier one. */
		if (i && params.bank[i].limit >= params.bank[i - 1].limit)
			params.bank[i].limit = params.bank[i - 1].limit / 2;
	}
	int r = check_params(&params, err);
	if (!r)
		*ret_params = params;
	return r;
}

int ow_lda_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis **ret_synopsis)
{
	size_t buckets = memory / sizeof(struct ow_lda_bucket);
	uint32_t m = buckets < OW_LDA_BUCKETS_MAX ? (uint32_t)buckets : OW_LDA_BUCKETS_MAX;
	double p = ow_lda_sampling(m, sizing->loss * sizing->packets, OW_LDA_ALPHA);
	struct ow_lda_params params = {1, {{m, ow_lda_limit(p)}}};
	struct ow_lda *lda = NULL;
	int r = ow_lda_create(&params, seed, &lda, NULL);
	if (!r)
		*ret_synopsis = &lda->base;
	return r;
}
