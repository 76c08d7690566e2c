/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/hash.h"
#include "base/id_map.h"
#include "synopsis/synopsis.h"

/*
 * Identical packets of an interval: keep-alives, polls, duplicates. In structures that compare sets, an even number of
 * identical packets would cancel. So the n-th occurrence of an id within the interval, counted at each point
 * separately, gets its own id: the first keeps its id, and each further one gets the successor of the one before. (Not
 * from a paper; formulas.md 3.5 calls it mix(id, n).) If one point saw more copies than the other, the delay of none of
 * them is known; following the successors finds them.
 */
static inline uint64_t ow_copy_next(uint64_t id)
{
	return ow_mix64(id + UINT64_C(0x9e3779b97f4a7c15));
}

/* Renames in place, in the order of the list. 0 or -ENOMEM; after an error some may be renamed. Temporarily needs up to
 * 22 bytes for each packet, and 80 more for each copy. */
int ow_copies_rename(struct ow_sighting *sightings, size_t count);

/* A further copy of an identical packet. */
struct ow_copy {
	uint64_t id;      /* its new id */
	uint64_t base_id; /* the original id of the packet */
	uint32_t nth;     /* 2, 3, ... */
};

/* The same for packets that arrive in batches: stores the ids of the interval, in 8 bytes a slot. */
struct ow_copies {
	uint64_t *slot; /* the ids, by their top bits; 0 = free */
	unsigned bits;  /* there are 2^bits slots */
	size_t used;
	struct ow_copy *copy; /* in order of arrival */
	size_t copies, room;
	struct ow_id_map last; /* the latest copy of each base id */
};

/* Makes it empty; allocates nothing yet. */
void ow_copies_init(struct ow_copies *copies);
void ow_copies_done(struct ow_copies *copies);
/* Empties it, but keeps the memory. */
void ow_copies_reset(struct ow_copies *copies);
/* Reserves room for `count` more packets of any kind. 0, or -ENOMEM and nothing has changed. */
int ow_copies_reserve(struct ow_copies *copies, size_t count);
/* Prepares for about `count` packets, so that the table need not grow later. If memory is short, it grows later. */
void ow_copies_expect(struct ow_copies *copies, size_t count);
/* Renames in place; the caller has reserved room. */
void ow_copies_name(struct ow_copies *copies, struct ow_sighting *sightings, size_t count);
/* Removes the packets that are not to be kept, and their copies. The remaining copies stay in order. */
typedef bool (*ow_copies_choice)(const void *arg, uint64_t base_id);
void ow_copies_keep(struct ow_copies *copies, ow_copies_choice keep, const void *arg);

/* Sorts a list of copies by their new ids; finds the one with an id, or NULL. */
void ow_copies_sort(struct ow_copy *copy, size_t count);
const struct ow_copy *ow_copies_find(const struct ow_copy *copy, size_t count, uint64_t id);
