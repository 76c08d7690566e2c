/* SPDX-License-Identifier: Apache-2.0 */
/* MinHash: estimates how similar two sets of packets are. minhash.h has the paper, the deviation and the layout. */
#include "synopsis/minhash.h"

#include "base/bytes.h"
#include "base/hash.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER 8
#define EMPTY  UINT64_MAX

static void minhash_reset(struct ow_synopsis *synopsis)
{
	struct ow_minhash *minhash = (struct ow_minhash *)synopsis;
	for (uint32_t i = 0; i < minhash->slots; i++)
		minhash->slot[i] = EMPTY;
}

int ow_minhash_create(uint32_t slots, uint64_t seed, struct ow_synopsis **ret_synopsis)
{
	if (slots < 1 || slots > OW_MINHASH_SLOTS_MAX)
		return -EINVAL;
	struct ow_minhash *minhash = malloc(sizeof *minhash + slots * sizeof *minhash->slot);
	if (!minhash)
		return -ENOMEM;
	minhash->base = (struct ow_synopsis){.ops = &ow_minhash_ops, .seed = seed};
	minhash->key = ow_mix64(seed ^ UINT64_C(0x6d696e2d68617368));
	minhash->slots = slots;
	minhash_reset(&minhash->base);
	*ret_synopsis = &minhash->base;
	return 0;
}

int ow_minhash_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                          struct ow_synopsis **ret_synopsis)
{
	(void)sizing; /* more slots are better for any traffic */
	size_t slots = memory / sizeof(uint64_t);
	return ow_minhash_create(slots < OW_MINHASH_SLOTS_MAX ? (uint32_t)slots : OW_MINHASH_SLOTS_MAX, seed,
	                         ret_synopsis);
}

static void minhash_free(struct ow_synopsis *synopsis)
{
	free(synopsis);
}

static size_t minhash_memory(const struct ow_synopsis *synopsis)
{
	return ((const struct ow_minhash *)synopsis)->slots * sizeof(uint64_t);
}

static void minhash_add(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	struct ow_minhash *minhash = (struct ow_minhash *)synopsis;
	for (size_t i = 0; i < count; i++) {
		uint64_t hash = ow_mix64(sightings[i].id ^ minhash->key);
		uint64_t *slot = minhash->slot + ((hash >> 32) * minhash->slots >> 32);
		/*
		 * The bits that selected the slot go to the end: they are nearly the same for all packets of the slot.
		 */
		uint64_t value = hash << 32 | hash >> 32;
		*slot = value < *slot ? value : *slot;
	}
}

static bool minhash_same_shape(const struct ow_synopsis *a, const struct ow_synopsis *b)
{
	return ((const struct ow_minhash *)a)->slots == ((const struct ow_minhash *)b)->slots;
}

static int minhash_merge(struct ow_synopsis *synopsis, const struct ow_synopsis *other)
{
	struct ow_minhash *minhash = (struct ow_minhash *)synopsis;
	const struct ow_minhash *from = (const struct ow_minhash *)other;
	for (uint32_t i = 0; i < minhash->slots; i++)
		minhash->slot[i] = from->slot[i] < minhash->slot[i] ? from->slot[i] : minhash->slot[i];
	return 0;
}

void ow_minhash_compare(const struct ow_synopsis *a, const struct ow_synopsis *b, uint32_t *ret_used,
                        uint32_t *ret_same)
{
	const struct ow_minhash *p = (const struct ow_minhash *)a, *q = (const struct ow_minhash *)b;
	uint32_t used = 0, same = 0;
	for (uint32_t i = 0; i < p->slots; i++) {
		bool holds = p->slot[i] != EMPTY || q->slot[i] != EMPTY;
		used += holds;
		same += holds && p->slot[i] == q->slot[i];
	}
	*ret_used = used;
	*ret_same = same;
}

static size_t minhash_encoded_size(const struct ow_synopsis *synopsis)
{
	return HEADER + minhash_memory(synopsis);
}

static void minhash_encode(const struct ow_synopsis *synopsis, uint8_t *bytes)
{
	const struct ow_minhash *minhash = (const struct ow_minhash *)synopsis;
	ow_store_le32(bytes, minhash->slots);
	ow_store_le32(bytes + 4, 0);
	for (uint32_t i = 0; i < minhash->slots; i++)
		ow_store_le64(bytes + HEADER + (size_t)i * 8, minhash->slot[i]);
}

static int minhash_decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                          struct ow_error *err)
{
	if (size < HEADER)
		return ow_error_set(err, EINVAL, "minhash: %zu bytes are less than its parameters", size);
	uint32_t slots = ow_load_le32(bytes);
	if (ow_load_le32(bytes + 4))
		return ow_error_set(err, EINVAL, "minhash: reserved bytes are not 0");
	if (slots < 1 || slots > OW_MINHASH_SLOTS_MAX)
		return ow_error_set(err, EINVAL, "minhash: %u slots are none or too many", slots);
	if (size - HEADER != (size_t)slots * 8)
		return ow_error_set(err, EINVAL, "minhash: %zu bytes for %u slots of 8", size - HEADER, slots);
	struct ow_synopsis *synopsis;
	int r = ow_minhash_create(slots, seed, &synopsis);
	if (r < 0)
		return ow_error_set(err, -r, "minhash: %s", strerror(-r));
	for (uint32_t i = 0; i < slots; i++)
		((struct ow_minhash *)synopsis)->slot[i] = ow_load_le64(bytes + HEADER + (size_t)i * 8);
	*ret_synopsis = synopsis;
	return 0;
}

static void minhash_describe(const struct ow_synopsis *synopsis, char *text, size_t size)
{
	snprintf(text, size, "%u slots", ((const struct ow_minhash *)synopsis)->slots);
}

const struct ow_synopsis_ops ow_minhash_ops = {
	.name = "minhash",
	.kind = OW_SYNOPSIS_MINHASH,
	.free = minhash_free,
	.reset = minhash_reset,
	.memory = minhash_memory,
	.add = minhash_add,
	.merge = minhash_merge,
	.encoded_size = minhash_encoded_size,
	.encode = minhash_encode,
	.decode = minhash_decode,
	.same_shape = minhash_same_shape,
	.describe = minhash_describe,
};
