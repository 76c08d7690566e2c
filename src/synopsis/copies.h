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

/* In place, in the order of the list. 0 or -ENOMEM; needs about 48 bytes a packet for the time of the call. */
int ow_copies_rename(struct ow_stamp *stamps, size_t count);

#endif
