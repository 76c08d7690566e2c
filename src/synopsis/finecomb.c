/* SPDX-License-Identifier: Apache-2.0 */
/* FineComb's buckets and stashes; see finecomb.h for the paper, the deviations and the layout. */
#include "synopsis/finecomb.h"

#include "base/bytes.h"
#include "base/hash.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH          64
#define PREFETCH_BYTES (256u << 10)
#define KEY            UINT64_C(0x66696e65636f6d62)
#define BUCKET_BYTES   24
#define ENTRY_BYTES    20

static struct ow_finecomb *finecomb_of(struct ow_synopsis *s)
{
	return (struct ow_finecomb *)s;
}

static const struct ow_finecomb *finecomb_of_const(const struct ow_synopsis *s)
{
	return (const struct ow_finecomb *)s;
}

static uint32_t bucket_count(const struct ow_finecomb *f)
{
	return f->first[f->params.banks];
}

/*
 * -- create and free ------------------------------------------------------------------------------------------------
 */

static int check_params(const struct ow_finecomb_params *p, struct ow_error *err)
{
	if (!p->banks || p->banks > OW_FINECOMB_BANKS_MAX)
		return ow_error_set(err, EINVAL, "finecomb: %u banks, not 1 to %u", p->banks, OW_FINECOMB_BANKS_MAX);
	uint64_t storage = 0;
	for (uint32_t i = 0; i < p->banks; i++) {
		if (!p->bank[i].buckets)
			return ow_error_set(err, EINVAL, "finecomb: bank %u has no buckets", i);
		if (i && p->bank[i].limit >= p->bank[i - 1].limit)
			return ow_error_set(err, EINVAL, "finecomb: bank %u takes all packets of bank %u", i, i - 1);
		storage += p->bank[i].buckets + UINT64_C(4) * p->bank[i].stash;
	}
	if (storage * BUCKET_BYTES > OW_SYNOPSIS_BYTES_MAX - 1024)
		return ow_error_set(err, EINVAL, "finecomb: %llu buckets and stash entries are too many",
		                    (unsigned long long)storage);
	return 0;
}

int ow_finecomb_create(const struct ow_finecomb_params *params, uint64_t seed, struct ow_finecomb **ret_finecomb,
                       struct ow_error *err)
{
	int r = check_params(params, err);
	if (r < 0)
		return r;
	struct ow_finecomb *f = calloc(1, sizeof *f);
	if (!f)
		return ow_error_set(err, ENOMEM, "finecomb: out of memory");
	f->base = (struct ow_synopsis){.ops = &ow_finecomb_ops, .seed = seed};
	f->key[0] = ow_mix64(seed ^ KEY);
	f->key[1] = ow_mix64(f->key[0] + 1) | 1;
	f->key[2] = ow_mix64(f->key[0] + 2);
	f->params.banks = params->banks;
	size_t entries = 0;
	for (uint32_t i = 0; i < params->banks; i++) {
		f->params.bank[i] = params->bank[i];
		f->first[i + 1] = f->first[i] + params->bank[i].buckets;
		entries += OW_STASHES * (size_t)params->bank[i].stash;
	}
	f->bucket = calloc(bucket_count(f), sizeof *f->bucket);
	f->entries = calloc(entries ? entries : 1, sizeof *f->entries);
	if (!f->bucket || !f->entries) {
		f->base.ops->free(&f->base);
		return ow_error_set(err, ENOMEM, "finecomb: out of memory");
	}
	struct ow_finecomb_entry *entry = f->entries;
	for (uint32_t i = 0; i < params->banks; i++)
		for (int side = 0; side < OW_STASHES; side++, entry += params->bank[i].stash)
			f->stash[i][side] = (struct ow_finecomb_stash){entry, params->bank[i].stash, 0, 0};
	*ret_finecomb = f;
	return 0;
}

static void finecomb_free(struct ow_synopsis *s)
{
	free(finecomb_of(s)->bucket);
	free(finecomb_of(s)->entries);
	free(s);
}

static void finecomb_reset(struct ow_synopsis *s)
{
	struct ow_finecomb *f = finecomb_of(s);
	memset(f->bucket, 0, bucket_count(f) * sizeof *f->bucket);
	for (uint32_t i = 0; i < f->params.banks; i++)
		for (int side = 0; side < OW_STASHES; side++)
			f->stash[i][side].head = f->stash[i][side].count = 0;
}

static size_t finecomb_memory(const struct ow_synopsis *s)
{
	const struct ow_finecomb *f = finecomb_of_const(s);
	size_t bytes = bucket_count(f) * sizeof *f->bucket;
	for (uint32_t i = 0; i < f->params.banks; i++)
		bytes += OW_STASHES * sizeof *f->entries * f->params.bank[i].stash;
	return bytes;
}

/*
 * -- packets --------------------------------------------------------------------------------------------------------
 */

struct picked {
	struct ow_finecomb_entry entry[BATCH + 1];
	uint8_t bank[BATCH + 1];
};

/* As in the LDA: the upper half of a hash decides about sampling, the lower half selects the row. Returns the number of
 * sampled packets. */
static inline size_t pick(const struct ow_finecomb *f, const struct ow_sighting *sightings, size_t count,
                          struct picked *p)
{
	uint64_t hash[BATCH + 1];
	uint8_t which[BATCH + 1];
	size_t taken = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t h = ow_mum64(sightings[i].id ^ f->key[0], f->key[1]);
		hash[taken] = h;
		which[taken] = (uint8_t)i;
		taken += (uint32_t)(h >> 32) <= f->params.bank[0].limit;
	}
	for (size_t i = 0; i < taken; i++) {
		uint32_t bank = 0;
		for (uint32_t k = 1; k < f->params.banks; k++)
			bank += (uint32_t)(hash[i] >> 32) <= f->params.bank[k].limit;
		const struct ow_sighting *s = &sightings[which[i]];
		uint32_t row = (uint32_t)((uint64_t)(uint32_t)hash[i] * f->params.bank[bank].buckets >> 32);
		p->entry[i] = (struct ow_finecomb_entry){(uint64_t)s->time_ns, ow_mix64(s->id ^ f->key[2]),
		                                         f->first[bank] + row};
		p->bank[i] = (uint8_t)bank;
	}
	return taken;
}

static void keep_first(struct ow_finecomb_stash *s, const struct ow_finecomb_entry *entry)
{
	if (s->count < s->room)
		s->entry[s->count++] = *entry;
}

static void keep_last(struct ow_finecomb_stash *s, const struct ow_finecomb_entry *entry)
{
	if (s->count < s->room) {
		uint32_t at = s->head + s->count++;
		s->entry[at < s->room ? at : at - s->room] = *entry;
	} else if (s->room) {
		s->entry[s->head] = *entry;
		s->head = s->head + 1 < s->room ? s->head + 1 : 0;
	}
}

static inline void update(struct ow_finecomb *f, const struct picked *p, size_t taken, uint64_t sign, bool prefetch)
{
	if (prefetch)
		for (size_t i = 0; i < taken; i++)
			__builtin_prefetch(&f->bucket[p->entry[i].bucket], 1);
	for (size_t i = 0; i < taken; i++) {
		struct ow_finecomb_bucket *b = &f->bucket[p->entry[i].bucket];
		b->time += sign * p->entry[i].time;
		b->packets += sign;
		b->digest ^= p->entry[i].digest;
	}
}

static void finecomb_add(struct ow_synopsis *s, const struct ow_sighting *sightings, size_t count)
{
	struct ow_finecomb *f = finecomb_of(s);
	struct picked p;
	bool prefetch = bucket_count(f) * sizeof *f->bucket > PREFETCH_BYTES;
	for (size_t batch; count; sightings += batch, count -= batch) {
		batch = count < BATCH ? count : BATCH;
		size_t taken = pick(f, sightings, batch, &p);
		update(f, &p, taken, 1, prefetch);
		for (size_t i = 0; i < taken; i++) {
			keep_first(&f->stash[p.bank[i]][OW_STASH_POST_START], &p.entry[i]);
			keep_last(&f->stash[p.bank[i]][OW_STASH_PRE_END], &p.entry[i]);
		}
	}
}

static bool same_entry(const struct ow_finecomb_entry *a, const struct ow_finecomb_entry *b)
{
	return a->time == b->time && a->digest == b->digest && a->bucket == b->bucket;
}

/* Removes the entry if it is there. An entry that was evicted before does not come back. */
static void forget(struct ow_finecomb_stash *s, const struct ow_finecomb_entry *entry)
{
	uint32_t kept = 0;
	bool found = false;
	for (uint32_t i = 0; i < s->count; i++) {
		struct ow_finecomb_entry e = *ow_finecomb_entry(s, i);
		if (!found && same_entry(&e, entry)) {
			found = true;
			continue;
		}
		uint32_t at = s->head + kept++;
		s->entry[at < s->room ? at : at - s->room] = e;
	}
	s->count = kept;
	if (!kept)
		s->head = 0;
}

static void finecomb_remove(struct ow_synopsis *s, const struct ow_sighting *sightings, size_t count)
{
	struct ow_finecomb *f = finecomb_of(s);
	struct picked p;
	for (size_t batch; count; sightings += batch, count -= batch) {
		batch = count < BATCH ? count : BATCH;
		size_t taken = pick(f, sightings, batch, &p);
		update(f, &p, taken, UINT64_MAX, false);
		for (size_t i = 0; i < taken; i++) {
			forget(&f->stash[p.bank[i]][OW_STASH_POST_START], &p.entry[i]);
			forget(&f->stash[p.bank[i]][OW_STASH_PRE_END], &p.entry[i]);
		}
	}
}

static void beside(struct ow_finecomb *f, const struct ow_sighting *sightings, size_t count, enum ow_finecomb_side side,
                   void (*keep)(struct ow_finecomb_stash *, const struct ow_finecomb_entry *))
{
	struct picked p;
	for (size_t batch; count; sightings += batch, count -= batch) {
		batch = count < BATCH ? count : BATCH;
		size_t taken = pick(f, sightings, batch, &p);
		for (size_t i = 0; i < taken; i++)
			keep(&f->stash[p.bank[i]][side], &p.entry[i]);
	}
}

void ow_finecomb_before(struct ow_finecomb *finecomb, const struct ow_sighting *sightings, size_t count)
{
	beside(finecomb, sightings, count, OW_STASH_PRE_START, keep_last);
}

void ow_finecomb_after(struct ow_finecomb *finecomb, const struct ow_sighting *sightings, size_t count)
{
	beside(finecomb, sightings, count, OW_STASH_POST_END, keep_first);
}

/*
 * -- merging --------------------------------------------------------------------------------------------------------
 */

static int by_time(const void *a, const void *b)
{
	const struct ow_finecomb_entry *x = a, *y = b;
	int64_t s = (int64_t)x->time, t = (int64_t)y->time;
	if (s != t)
		return s < t ? -1 : 1;
	if (x->digest != y->digest)
		return x->digest < y->digest ? -1 : 1;
	return (x->bucket > y->bucket) - (x->bucket < y->bucket);
}

/* Sorts both stashes by time; the first or the last entries of the sorted list stay. */
static void merge_stash(struct ow_finecomb_stash *s, const struct ow_finecomb_stash *other, bool last,
                        struct ow_finecomb_entry *room)
{
	uint32_t all = 0;
	for (uint32_t i = 0; i < s->count; i++)
		room[all++] = *ow_finecomb_entry(s, i);
	for (uint32_t i = 0; i < other->count; i++)
		room[all++] = *ow_finecomb_entry(other, i);
	qsort(room, all, sizeof *room, by_time);
	uint32_t count = all < s->room ? all : s->room;
	if (count)
		memcpy(s->entry, last ? room + all - count : room, count * sizeof *room);
	s->head = 0;
	s->count = count;
}

static void combine(struct ow_finecomb *f, const struct ow_finecomb *other, uint64_t sign)
{
	for (uint32_t i = 0; i < bucket_count(f); i++) {
		f->bucket[i].time += sign * other->bucket[i].time;
		f->bucket[i].packets += sign * other->bucket[i].packets;
		f->bucket[i].digest ^= other->bucket[i].digest;
	}
}

static int finecomb_merge(struct ow_synopsis *s, const struct ow_synopsis *o)
{
	struct ow_finecomb *f = finecomb_of(s);
	const struct ow_finecomb *other = finecomb_of_const(o);
	uint32_t most = 0;
	for (uint32_t i = 0; i < f->params.banks; i++)
		most = f->params.bank[i].stash > most ? f->params.bank[i].stash : most;
	struct ow_finecomb_entry *room = malloc((2 * (size_t)most + 1) * sizeof *room);
	if (!room)
		return -ENOMEM;
	combine(f, other, 1);
	for (uint32_t i = 0; i < f->params.banks; i++)
		for (int side = 0; side < OW_STASHES; side++)
			merge_stash(&f->stash[i][side], &other->stash[i][side],
			            side == OW_STASH_PRE_START || side == OW_STASH_PRE_END, room);
	free(room);
	return 0;
}

/* The stash is unchanged: it still shows which packets of the difference drifted. */
static int finecomb_subtract(struct ow_synopsis *s, const struct ow_synopsis *other)
{
	combine(finecomb_of(s), finecomb_of_const(other), UINT64_MAX);
	return 0;
}

static bool finecomb_same_shape(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	const struct ow_finecomb_params *p = &finecomb_of_const(a)->params, *q = &finecomb_of_const(b)->params;
	if (p->banks != q->banks)
		return false;
	for (uint32_t i = 0; i < p->banks; i++)
		if (p->bank[i].buckets != q->bank[i].buckets || p->bank[i].limit != q->bank[i].limit ||
		    p->bank[i].stash != q->bank[i].stash)
			return false;
	return true;
}

/*
 * -- encoding -------------------------------------------------------------------------------------------------------
 */

static uint64_t fixed_size(uint64_t banks, uint64_t buckets)
{
	return 8 + 16 * banks + BUCKET_BYTES * buckets + 16 * banks;
}

static size_t finecomb_encoded_size(const struct ow_synopsis *s)
{
	const struct ow_finecomb *f = finecomb_of_const(s);
	size_t entries = 0;
	for (uint32_t i = 0; i < f->params.banks; i++)
		for (int side = 0; side < OW_STASHES; side++)
			entries += f->stash[i][side].count;
	return fixed_size(f->params.banks, bucket_count(f)) + ENTRY_BYTES * entries;
}

static void finecomb_encode(const struct ow_synopsis *s, uint8_t *bytes)
{
	const struct ow_finecomb *f = finecomb_of_const(s);
	memcpy(bytes, (uint32_t[]){f->params.banks, 0}, 8);
	bytes += 8;
	for (uint32_t i = 0; i < f->params.banks; i++, bytes += 16) {
		const struct ow_finecomb_bank *b = &f->params.bank[i];
		memcpy(bytes, (uint32_t[]){b->buckets, b->limit, b->stash, 0}, 16);
	}
	for (uint32_t i = 0; i < bucket_count(f); i++, bytes += BUCKET_BYTES)
		memcpy(bytes, (uint64_t[]){f->bucket[i].time, f->bucket[i].packets, f->bucket[i].digest}, BUCKET_BYTES);
	for (uint32_t i = 0; i < f->params.banks; i++)
		for (int side = 0; side < OW_STASHES; side++, bytes += 4)
			ow_store_le32(bytes, f->stash[i][side].count);
	for (uint32_t i = 0; i < f->params.banks; i++)
		for (int side = 0; side < OW_STASHES; side++)
			for (uint32_t k = 0; k < f->stash[i][side].count; k++, bytes += ENTRY_BYTES) {
				const struct ow_finecomb_entry *e = ow_finecomb_entry(&f->stash[i][side], k);
				ow_store_le64(bytes, e->time);
				ow_store_le64(bytes + 8, e->digest);
				ow_store_le32(bytes + 16, e->bucket - f->first[i]);
			}
}

/* Reads the parameters and checks that they fit the size. */
static int decode_params(const uint8_t *bytes, size_t size, struct ow_finecomb_params *p, struct ow_error *err)
{
	if (size < 8)
		return ow_error_set(err, EINVAL, "finecomb: %zu bytes are too few for its parameters", size);
	p->banks = ow_load_le32(bytes);
	if (ow_load_le32(bytes + 4))
		return ow_error_set(err, EINVAL, "finecomb: reserved bytes are not zero");
	if (!p->banks || p->banks > OW_FINECOMB_BANKS_MAX)
		return ow_error_set(err, EINVAL, "finecomb: %u banks, not 1 to %u", p->banks, OW_FINECOMB_BANKS_MAX);
	if (size < fixed_size(p->banks, 0))
		return ow_error_set(err, EINVAL, "finecomb: %zu bytes are too few for %u banks", size, p->banks);
	uint64_t buckets = 0;
	for (uint32_t i = 0; i < p->banks; i++) {
		const uint8_t *b = bytes + 8 + 16 * (size_t)i;
		p->bank[i] = (struct ow_finecomb_bank){ow_load_le32(b), ow_load_le32(b + 4), ow_load_le32(b + 8)};
		if (ow_load_le32(b + 12))
			return ow_error_set(err, EINVAL, "finecomb: reserved bytes of bank %u are not zero", i);
		buckets += p->bank[i].buckets;
	}
	if (size < fixed_size(p->banks, buckets))
		return ow_error_set(err, EINVAL, "finecomb: %zu bytes are too few for %llu buckets", size,
		                    (unsigned long long)buckets);
	return 0;
}

static int decode_stashes(struct ow_finecomb *f, const uint8_t *counts, size_t size, struct ow_error *err)
{
	uint64_t entries = 0;
	for (uint32_t i = 0; i < f->params.banks; i++)
		for (uint32_t side = 0; side < OW_STASHES; side++) {
			uint32_t count = ow_load_le32(counts + 16 * (size_t)i + 4 * side);
			if (count > f->params.bank[i].stash)
				return ow_error_set(err, EINVAL, "finecomb: %u entries in a stash for %u", count,
				                    f->params.bank[i].stash);
			f->stash[i][side].count = count;
			entries += count;
		}
	const uint8_t *bytes = counts + 16 * (size_t)f->params.banks;
	if (size != 16 * (uint64_t)f->params.banks + ENTRY_BYTES * entries)
		return ow_error_set(err, EINVAL, "finecomb: the size does not fit %llu stash entries",
		                    (unsigned long long)entries);
	for (uint32_t i = 0; i < f->params.banks; i++)
		for (int side = 0; side < OW_STASHES; side++)
			for (uint32_t k = 0; k < f->stash[i][side].count; k++, bytes += ENTRY_BYTES) {
				uint32_t bucket = ow_load_le32(bytes + 16);
				if (bucket >= f->params.bank[i].buckets)
					return ow_error_set(err, EINVAL, "finecomb: a stash entry of bucket %u of %u",
					                    bucket, f->params.bank[i].buckets);
				f->stash[i][side].entry[k] = (struct ow_finecomb_entry){
					ow_load_le64(bytes), ow_load_le64(bytes + 8), f->first[i] + bucket};
			}
	return 0;
}

static int finecomb_decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                           struct ow_error *err)
{
	struct ow_finecomb_params params = {0};
	struct ow_finecomb *f = NULL;
	int r = decode_params(bytes, size, &params, err);
	if (!r)
		r = ow_finecomb_create(&params, seed, &f, err);
	if (r < 0 || !f)
		return r;
	const uint8_t *at = bytes + 8 + 16 * (size_t)params.banks;
	for (uint32_t i = 0; i < bucket_count(f); i++, at += BUCKET_BYTES)
		f->bucket[i] =
			(struct ow_finecomb_bucket){ow_load_le64(at), ow_load_le64(at + 8), ow_load_le64(at + 16)};
	r = decode_stashes(f, at, size - (size_t)(at - bytes), err);
	if (r < 0) {
		finecomb_free(&f->base);
		return r;
	}
	*ret_synopsis = &f->base;
	return 0;
}

static void finecomb_describe(const struct ow_synopsis *s, char *text, size_t size)
{
	const struct ow_finecomb *f = finecomb_of_const(s);
	size_t stash = 0;
	for (uint32_t i = 0; i < f->params.banks; i++)
		stash += OW_STASHES * (size_t)f->params.bank[i].stash;
	snprintf(text, size, "%u bank%s, %u buckets, stash %zu, p %.3g", f->params.banks,
	         f->params.banks > 1 ? "s" : "", bucket_count(f), stash,
	         ((double)f->params.bank[0].limit + 1) * 0x1p-32);
}

const struct ow_synopsis_ops ow_finecomb_ops = {
	.name = "finecomb",
	.kind = OW_SYNOPSIS_FINECOMB,
	.free = finecomb_free,
	.reset = finecomb_reset,
	.memory = finecomb_memory,
	.add = finecomb_add,
	.remove = finecomb_remove,
	.merge = finecomb_merge,
	.subtract = finecomb_subtract,
	.encoded_size = finecomb_encoded_size,
	.encode = finecomb_encode,
	.decode = finecomb_decode,
	.same_shape = finecomb_same_shape,
	.describe = finecomb_describe,
};
