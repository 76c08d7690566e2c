/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinated bottom-k sample: bottomk.h has the method and the layout. */
#include "synopsis/bottomk.h"

#include "base/bytes.h"
#include "base/hash.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARAMS_BYTES 8
#define KEY_TAG      UINT64_C(0x626f74746f6d6b21) /* makes the key different from those of other synopses */
#define NUMBER_MAX   10                           /* bytes of an encoded 64-bit number */

static struct ow_bottomk *bottomk_of(struct ow_synopsis *synopsis)
{
	return (struct ow_bottomk *)synopsis;
}

static const struct ow_bottomk *bottomk_at(const struct ow_synopsis *synopsis)
{
	return (const struct ow_bottomk *)synopsis;
}

int ow_bottomk_create(uint32_t k, uint64_t seed, struct ow_synopsis **ret_synopsis)
{
	if (k < 1 || k > OW_BOTTOMK_MAX)
		return -EINVAL;
	struct ow_bottomk *bottomk = malloc(sizeof *bottomk);
	struct ow_bottomk_entry *entry = malloc(k * sizeof *entry);
	if (!bottomk || !entry) {
		free(bottomk);
		free(entry);
		return -ENOMEM;
	}
	*bottomk = (struct ow_bottomk){
		.synopsis = {.ops = &ow_bottomk_ops, .seed = seed},
		.k = k,
		.key = ow_mix64(seed ^ KEY_TAG),
		.sorted = true,
		.entry = entry,
	};
	*ret_synopsis = &bottomk->synopsis;
	return 0;
}

/* The rank of the quantile in a sample of k is binomial: 1.96 sqrt(q (1 - q) / k) = error. */
uint32_t ow_bottomk_size(double q, double error)
{
	double k = error > 0 ? ceil(1.96 * 1.96 * q * (1 - q) / (error * error)) : OW_BOTTOMK_MAX;
	return k < 1 ? 1 : k < OW_BOTTOMK_MAX ? (uint32_t)k : OW_BOTTOMK_MAX;
}

int ow_bottomk_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                          struct ow_synopsis **ret_synopsis)
{
	size_t k = memory / sizeof(struct ow_bottomk_entry);
	if (k > OW_BOTTOMK_MAX)
		k = OW_BOTTOMK_MAX;
	/* One more than the packets: a full sample may have left packets out, a sample with room has all. */
	if (sizing->packets >= 1 && (double)k > sizing->packets + 1)
		k = (size_t)sizing->packets + 1;
	return ow_bottomk_create((uint32_t)k, seed, ret_synopsis);
}

static void destroy(struct ow_synopsis *synopsis)
{
	free(bottomk_of(synopsis)->entry);
	free(synopsis);
}

static void reset(struct ow_synopsis *synopsis)
{
	bottomk_of(synopsis)->count = 0;
	bottomk_of(synopsis)->sorted = true;
}

static size_t memory(const struct ow_synopsis *synopsis)
{
	return bottomk_at(synopsis)->k * sizeof(struct ow_bottomk_entry);
}

/* Times break ties, so that the sample does not depend on the order of the packets. */
static inline bool above(const struct ow_bottomk_entry *x, const struct ow_bottomk_entry *y)
{
	return x->rank > y->rank || (x->rank == y->rank && x->time_ns > y->time_ns);
}

static void sift_up(struct ow_bottomk *bottomk, struct ow_bottomk_entry entry)
{
	uint32_t i = bottomk->count++;
	while (i > 0 && above(&entry, &bottomk->entry[(i - 1) / 2])) {
		bottomk->entry[i] = bottomk->entry[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	bottomk->entry[i] = entry;
}

/* Replaces the top of the heap. */
static void sift_down(struct ow_bottomk *bottomk, struct ow_bottomk_entry entry)
{
	struct ow_bottomk_entry *heap = bottomk->entry;
	uint32_t i = 0, count = bottomk->count;
	for (uint32_t child; (child = 2 * i + 1) < count; i = child) {
		if (child + 1 < count && above(&heap[child + 1], &heap[child]))
			child++;
		if (!above(&heap[child], &entry))
			break;
		heap[i] = heap[child];
	}
	heap[i] = entry;
}

static inline void add_entry(struct ow_bottomk *bottomk, struct ow_bottomk_entry entry)
{
	if (bottomk->count < bottomk->k)
		sift_up(bottomk, entry);
	else if (above(&bottomk->entry[0], &entry))
		sift_down(bottomk, entry);
	else
		return;
	bottomk->sorted = false;
}

static void add(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	struct ow_bottomk *bottomk = bottomk_of(synopsis);
	const uint64_t key = bottomk->key;
	for (size_t i = 0; i < count; i++) {
		uint64_t rank = ow_mix64(sightings[i].id ^ key);
		if (bottomk->count < bottomk->k || rank <= bottomk->entry[0].rank)
			add_entry(bottomk, (struct ow_bottomk_entry){rank, sightings[i].time_ns});
	}
}

static bool same_shape(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	return bottomk_at(a)->k == bottomk_at(b)->k;
}

static int merge(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	/* If both are the same synopsis, its entries move while they are read, so read the count only once. */
	const struct ow_bottomk *from = bottomk_at(other);
	if (synopsis == other)
		return -EINVAL;
	for (uint32_t i = 0; i < from->count; i++)
		add_entry(bottomk_of(synopsis), from->entry[i]);
	return 0;
}

static int descending(const void *a, const void *b)
{
	return (int)above(b, a) - (int)above(a, b);
}

const struct ow_bottomk_entry *ow_bottomk_entries(const struct ow_synopsis *synopsis, uint32_t *ret_count)
{
	/* Sorting does not change the sample, so casting away const is safe. */
	struct ow_bottomk *bottomk = (struct ow_bottomk *)synopsis;
	if (!bottomk->sorted) {
		qsort(bottomk->entry, bottomk->count, sizeof *bottomk->entry, descending);
		bottomk->sorted = true;
	}
	*ret_count = bottomk->count;
	return bottomk->entry;
}

static uint64_t zigzag(int64_t x)
{
	return (uint64_t)x << 1 ^ (x < 0 ? UINT64_MAX : 0);
}

static int64_t unzigzag(uint64_t x)
{
	return (int64_t)(x >> 1 ^ (x & 1 ? UINT64_MAX : 0));
}

static size_t number_size(uint64_t x)
{
	return x ? (70 - (size_t)__builtin_clzll(x)) / 7 : 1;
}

static uint8_t *put_number(uint8_t *bytes, uint64_t x)
{
	for (; x > 0x7f; x >>= 7)
		*bytes++ = (uint8_t)(x | 0x80);
	*bytes++ = (uint8_t)x;
	return bytes;
}

/* Returns the position after the number, or NULL if there is no number or its encoding is not the shortest. */
static const uint8_t *get_number(const uint8_t *bytes, const uint8_t *end, uint64_t *ret_number)
{
	uint64_t x = 0;
	for (unsigned i = 0; i < NUMBER_MAX && bytes < end; i++) {
		uint8_t byte = *bytes++;
		if (i == NUMBER_MAX - 1 && byte > 1)
			return NULL;
		x |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (byte & 0x80)
			continue;
		*ret_number = x;
		return byte == 0 && i > 0 ? NULL : bytes;
	}
	return NULL;
}

static size_t encoded_size(const struct ow_synopsis *synopsis)
{
	uint32_t count;
	const struct ow_bottomk_entry *entry = ow_bottomk_entries(synopsis, &count);
	size_t size = PARAMS_BYTES;
	uint64_t before = 0;
	while (count--) {
		size += number_size(entry[count].rank - before) + number_size(zigzag(entry[count].time_ns));
		before = entry[count].rank;
	}
	return size;
}

static void encode(const struct ow_synopsis *synopsis, uint8_t *bytes)
{
	uint32_t count;
	const struct ow_bottomk_entry *entry = ow_bottomk_entries(synopsis, &count);
	uint64_t before = 0;
	ow_store_le32(bytes, bottomk_at(synopsis)->k);
	ow_store_le32(bytes + 4, count);
	bytes += PARAMS_BYTES;
	while (count--) {
		bytes = put_number(bytes, entry[count].rank - before);
		bytes = put_number(bytes, zigzag(entry[count].time_ns));
		before = entry[count].rank;
	}
}

/* Fills the entries in ascending order, so from the last one on. Returns the end of the encoding, or NULL. */
static const uint8_t *get_entries(struct ow_bottomk *bottomk, const uint8_t *bytes, const uint8_t *end)
{
	uint64_t rank = 0, step, time;
	for (uint32_t i = bottomk->count; i-- > 0;) {
		struct ow_bottomk_entry *entry = &bottomk->entry[i];
		bytes = get_number(bytes, end, &step);
		if (bytes)
			bytes = get_number(bytes, end, &time);
		if (!bytes || rank + step < rank)
			return NULL;
		*entry = (struct ow_bottomk_entry){rank += step, unzigzag(time)};
		if (i + 1 < bottomk->count && above(entry + 1, entry))
			return NULL;
	}
	return bytes;
}

static int decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                  struct ow_error *err)
{
	struct ow_synopsis *synopsis;
	if (size < PARAMS_BYTES)
		return ow_error_set(err, EINVAL, "bottomk: %zu bytes are less than its parameters", size);
	uint32_t k = ow_load_le32(bytes), count = ow_load_le32(bytes + 4);
	if (k < 1 || k > OW_BOTTOMK_MAX || count > k || count > (size - PARAMS_BYTES) / 2)
		return ow_error_set(err, EINVAL, "bottomk: %u of at most %u packets in %zu bytes", count, k, size);
	int r = ow_bottomk_create(k, seed, &synopsis);
	if (r < 0)
		return ow_error_set(err, -r, "bottomk: %s", strerror(-r));
	bottomk_of(synopsis)->count = count;
	const uint8_t *end = get_entries(bottomk_of(synopsis), bytes + PARAMS_BYTES, bytes + size);
	if (end != bytes + size) {
		ow_synopsis_free(synopsis);
		return ow_error_set(err, EINVAL, "bottomk: %s",
		                    end ? "bytes after the packets" : "packets that cannot be read");
	}
	*ret_synopsis = synopsis;
	return 0;
}

static void describe(const struct ow_synopsis *synopsis, char *text, size_t size)
{
	snprintf(text, size, "k %u", bottomk_at(synopsis)->k);
}

const struct ow_synopsis_ops ow_bottomk_ops = {
	.name = "bottomk",
	.kind = OW_SYNOPSIS_BOTTOMK,
	.free = destroy,
	.reset = reset,
	.memory = memory,
	.add = add,
	.merge = merge,
	.encoded_size = encoded_size,
	.encode = encode,
	.decode = decode,
	.same_shape = same_shape,
	.describe = describe,
};
