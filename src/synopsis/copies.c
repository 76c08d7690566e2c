/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids seen so far are in a hash table with open addressing. Ids are uniform, so their top bits are the hash, and a
 * table grows by a linear copy. Nearly all packets are the first with their id: they touch one cache line, which is
 * prefetched. (base/id_map.h would touch a second one, that of the id.) Copies are in a list and a map.
 */
#include "synopsis/copies.h"

#include "base/array.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The table stores this value for the id 0, because 0 marks free slots. */
#define OW_COPIES_ZERO     UINT64_C(0xd6e8feb86659fd93)
#define OW_COPIES_BITS_MIN 4
#define OW_COPIES_BITS_MAX 40 /* of the largest table, which does not fit into memory */
#define OW_COPIES_AHEAD    16 /* packets whose cache lines are prefetched together */
#define OW_COPIES_STEP     4096
#define OW_COPIES_FEW      256 /* at most this many are sorted by comparison */

void ow_copies_init(struct ow_copies *copies)
{
	*copies = (struct ow_copies){0};
}

void ow_copies_done(struct ow_copies *copies)
{
	free(copies->slot);
	free(copies->copy);
	ow_id_map_done(&copies->last);
	ow_copies_init(copies);
}

void ow_copies_reset(struct ow_copies *copies)
{
	if (copies->slot)
		memset(copies->slot, 0, sizeof *copies->slot << copies->bits);
	ow_id_map_clear(&copies->last);
	copies->used = copies->copies = 0;
}

static uint64_t key_of(uint64_t id)
{
	return id ? id : OW_COPIES_ZERO;
}

/* The slot of the key, or the free slot for it. */
static size_t probe(const uint64_t *slot, unsigned bits, uint64_t key)
{
	size_t at = key >> (64 - bits);
	while (slot[at] && slot[at] != key)
		at = (at + 1) & (((size_t)1 << bits) - 1);
	return at;
}

/* Bits of a table that holds `count` ids with at most 3 of 4 slots used; at least `bits`. */
static unsigned bits_for(unsigned bits, size_t count)
{
	if (bits < OW_COPIES_BITS_MIN)
		bits = OW_COPIES_BITS_MIN;
	while (bits < OW_COPIES_BITS_MAX && ((size_t)1 << bits) / 4 * 3 < count)
		bits++;
	return bits;
}

static int grow_slots(struct ow_copies *copies, size_t count)
{
	unsigned bits = bits_for(copies->bits, count);
	if (copies->slot && bits == copies->bits)
		return 0;
	uint64_t *slot = calloc((size_t)1 << bits, sizeof *slot);
	if (!slot)
		return -ENOMEM;
	for (size_t i = 0; copies->slot && i < (size_t)1 << copies->bits; i++) {
		if (copies->slot[i])
			slot[probe(slot, bits, copies->slot[i])] = copies->slot[i];
	}
	free(copies->slot);
	copies->slot = slot;
	copies->bits = bits;
	return 0;
}

static uint32_t last_of(const struct ow_copies *copies, uint64_t base_id)
{
	return OW_ID_MAP_FIND(&copies->last, base_id, i, copies->copy[i].base_id == base_id);
}

/* The copy is the latest of its base id now; there is room. */
static void set_last(struct ow_copies *copies, uint32_t before, uint32_t copy)
{
	if (before == OW_ID_MAP_NONE)
		(void)ow_id_map_add(&copies->last, copies->copy[copy].base_id, copy);
	else
		ow_id_map_replace(&copies->last, copies->copy[copy].base_id, before, copy);
}

static int grow_copies(struct ow_copies *copies, size_t count)
{
	size_t want = copies->copies + count;
	if (want >= UINT32_MAX || (want && OW_GROW(copies->copy, copies->room, want) < 0))
		return -ENOMEM;
	return ow_id_map_reserve(&copies->last, copies->last.used + count);
}

int ow_copies_reserve(struct ow_copies *copies, size_t count)
{
	int r = grow_slots(copies, copies->used + count);
	return r < 0 ? r : grow_copies(copies, count);
}

void ow_copies_expect(struct ow_copies *copies, size_t count)
{
	(void)grow_slots(copies, count);
}

/* Returns the id of a further copy of a packet. */
static uint64_t name_copy(struct ow_copies *copies, uint64_t base_id)
{
	uint32_t last = last_of(copies, base_id);
	struct ow_copy copy = {ow_copy_next(base_id), base_id, 2};
	if (last != OW_ID_MAP_NONE) {
		copy.id = ow_copy_next(copies->copy[last].id);
		copy.nth = copies->copy[last].nth + 1;
	}
	assert(copies->copies < copies->room);
	copies->copy[copies->copies] = copy;
	set_last(copies, last, (uint32_t)copies->copies++);
	return copy.id;
}

void ow_copies_name(struct ow_copies *copies, struct ow_sighting *sightings, size_t count)
{
	uint64_t *slot = copies->slot;
	unsigned bits = copies->bits;
	size_t firsts = 0;
	for (size_t from = 0; from < count; from += OW_COPIES_AHEAD) {
		size_t to = count - from < OW_COPIES_AHEAD ? count : from + OW_COPIES_AHEAD;
		for (size_t i = from; i < to; i++)
			__builtin_prefetch(&slot[key_of(sightings[i].id) >> (64 - bits)], 1);
		for (size_t i = from; i < to; i++) {
			uint64_t key = key_of(sightings[i].id);
			size_t at = probe(slot, bits, key);
			if (!slot[at]) {
				slot[at] = key;
				firsts++;
			} else {
				sightings[i].id = name_copy(copies, sightings[i].id);
			}
		}
	}
	copies->used += firsts;
	assert(!copies->slot || copies->used < (size_t)1 << copies->bits);
}

/* Empties a slot and moves up the entries that collided with it. */
static void clear_slot(struct ow_copies *copies, size_t free_at)
{
	size_t mask = ((size_t)1 << copies->bits) - 1;
	for (size_t at = (free_at + 1) & mask; copies->slot[at]; at = (at + 1) & mask) {
		size_t home = copies->slot[at] >> (64 - copies->bits);
		if (((at - home) & mask) >= ((at - free_at) & mask)) {
			copies->slot[free_at] = copies->slot[at];
			free_at = at;
		}
	}
	copies->slot[free_at] = 0;
	copies->used--;
}

void ow_copies_keep(struct ow_copies *copies, ow_copies_choice keep, const void *arg)
{
	for (size_t i = 0; copies->slot && i < (size_t)1 << copies->bits; i++) {
		while (copies->slot[i] && !keep(arg, copies->slot[i] == OW_COPIES_ZERO ? 0 : copies->slot[i]))
			clear_slot(copies, i);
	}
	size_t kept = 0;
	for (size_t i = 0; i < copies->copies; i++) {
		if (keep(arg, copies->copy[i].base_id))
			copies->copy[kept++] = copies->copy[i];
	}
	copies->copies = kept;
	ow_id_map_clear(&copies->last);
	for (uint32_t i = 0; i < kept; i++) {
		uint32_t before = last_of(copies, copies->copy[i].base_id);
		if (before == OW_ID_MAP_NONE || copies->copy[before].nth <= copies->copy[i].nth)
			set_last(copies, before, i);
	}
}

static int by_name(const void *a, const void *b)
{
	const struct ow_copy *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

/* Sorts into `sorted` by the top bits, about one entry for each place. Then each is sorted among its neighbours. */
static void distribute(const struct ow_copy *copy, size_t count, unsigned bits, uint32_t *place, struct ow_copy *sorted)
{
	for (size_t i = 0; i < count; i++)
		place[copy[i].id >> (64 - bits)]++;
	for (size_t i = 0, sum = 0; i < (size_t)1 << bits; i++) {
		size_t here = place[i];
		place[i] = (uint32_t)sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		sorted[place[copy[i].id >> (64 - bits)]++] = copy[i];
	for (size_t i = 1; i < count; i++) {
		struct ow_copy moved = sorted[i];
		size_t to = i;
		for (; to > 0 && sorted[to - 1].id > moved.id; to--)
			sorted[to] = sorted[to - 1];
		sorted[to] = moved;
	}
}

void ow_copies_sort(struct ow_copy *copy, size_t count)
{
	unsigned bits = bits_for(0, count);
	uint32_t *place = count > OW_COPIES_FEW ? calloc((size_t)1 << bits, sizeof *place) : NULL;
	struct ow_copy *sorted = place ? malloc(count * sizeof *sorted) : NULL;
	if (sorted) {
		distribute(copy, count, bits, place, sorted);
		memcpy(copy, sorted, count * sizeof *sorted);
	} else if (count > 0) {
		qsort(copy, count, sizeof *copy, by_name);
	}
	free(place);
	free(sorted);
}

const struct ow_copy *ow_copies_find(const struct ow_copy *copy, size_t count, uint64_t id)
{
	const struct ow_copy key = {.id = id};
	return count ? bsearch(&key, copy, count, sizeof *copy, by_name) : NULL;
}

int ow_copies_rename(struct ow_sighting *sightings, size_t count)
{
	struct ow_copies copies;
	ow_copies_init(&copies);
	int r = grow_slots(&copies, count);
	for (size_t from = 0; r == 0 && from < count; from += OW_COPIES_STEP) {
		size_t step = count - from < OW_COPIES_STEP ? count - from : OW_COPIES_STEP;
		r = ow_copies_reserve(&copies, step);
		if (r == 0)
			ow_copies_name(&copies, sightings + from, step);
	}
	ow_copies_done(&copies);
	return r;
}
