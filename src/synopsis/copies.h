/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_SYNOPSIS_COPIES_H
#define OW_SYNOPSIS_COPIES_H

#include "base/hash.h"
#include "synopsis/synopsis.h"

/*
 * Identical packets of an interval: keep-alives, polls, duplicates. Structures that compare sets would take an even
 * number of them for none. So the n-th occurrence of an id within the interval, counted at each point for itself, gets
 * an id of its own: the first keeps its id, each further one has the successor of the one before. (Not from a paper;
 * formulas.md 3.5 calls it mix(id, n).) Where one point saw more copies than the other, the delay of none of them is
 * known: following the successors finds them.
 */
static inline uint64_t ow_copy_next(uint64_t id)
{
	return ow_mix64(id + UINT64_C(0x9e3779b97f4a7c15));
}

/* In place, in the order of the list. 0 or -ENOMEM, then some may be renamed; needs up to 22 bytes a packet for the
 * time of the call, and 50 more for each copy. */
int ow_copies_rename(struct ow_sighting *stamps, size_t count);

/* A further copy of an identical packet. */
struct ow_copy {
	uint64_t id;      /* the name it goes by */
	uint64_t base_id; /* that of the packet itself */
	uint32_t nth;     /* 2, 3, ... */
};

/* The same for packets that come bit by bit: remembers the ids of the interval, in 8 bytes a slot. */
struct ow_copies {
	uint64_t *slot; /* the ids, by their top bits; 0 = free */
	unsigned bits;  /* of slots there are 2^bits */
	size_t used;
	struct ow_copy *copy; /* in the order in which they came */
	size_t copies, room;
	uint32_t *last; /* the latest copy of a base id: its place in `copy`, plus 1; by the base id's top bits */
	unsigned last_bits;
	size_t last_used;
};

/* Empty; takes no memory yet. */
void ow_copies_init(struct ow_copies *copies);
void ow_copies_done(struct ow_copies *copies);
/* Empty again, with the memory that it has. */
void ow_copies_reset(struct ow_copies *copies);
/* Room for so many more packets, whatever they are. 0 or -ENOMEM, and nothing has changed. */
int ow_copies_reserve(struct ow_copies *copies, size_t count);
/* About so many packets will come: spares the table from growing. Without memory, it grows later. */
void ow_copies_expect(struct ow_copies *copies, size_t count);
/* Renames in place; there must be room. */
void ow_copies_name(struct ow_copies *copies, struct ow_sighting *stamps, size_t count);
/* Forgets the packets that are not to be kept, and their copies. The copies that remain stay in order. */
typedef bool (*ow_copies_choice)(const void *arg, uint64_t base_id);
void ow_copies_keep(struct ow_copies *copies, ow_copies_choice keep, const void *arg);

/* A list of copies by the names they go by, and the one of this name or NULL. */
void ow_copies_sort(struct ow_copy *copy, size_t count);
const struct ow_copy *ow_copies_find(const struct ow_copy *copy, size_t count, uint64_t id);

#endif
