/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Internal to the matcher: the waiting parts of one byte stream on one side, ordered by sequence number, so that a
 * search does not visit thousands that never match. It is a treap: each node knows the furthest end and the longest
 * waiting part below it. Node i is that of waiter i; the shape of the tree depends on the ids, which are keyed.
 */
struct ow_waiting;

struct ow_byte_range_node {
	uint64_t turn;  /* order of arrival; both halves of a cut part have the same */
	uint64_t reach; /* furthest end in this subtree: sequence number after the last byte, not wrapped */
	uint32_t left, right;
	uint32_t oldest; /* waited longest in this subtree */
	uint32_t rank;   /* the higher, the nearer to the root */
};

/* Bytes of a TCP stream; sequence numbers wrap. */
struct ow_byte_range {
	uint32_t seq, len;
};

struct ow_time_span {
	int64_t from_ns, to_ns;
};

/* The common bytes of two ranges; false if there are none. */
static inline bool ow_range_overlap(struct ow_byte_range a, struct ow_byte_range b, struct ow_byte_range *ret_common)
{
	int32_t shift = (int32_t)(b.seq - a.seq);
	int64_t from = shift > 0 ? shift : 0;
	int64_t to = (int64_t)shift + b.len < a.len ? (int64_t)shift + b.len : a.len;
	if (from >= to)
		return false;
	*ret_common = (struct ow_byte_range){a.seq + (uint32_t)from, (uint32_t)(to - from)};
	return true;
}

/* Makes room for the nodes of all waiters. Returns 0 or -ENOMEM. */
int ow_byte_range_index_room(struct ow_waiting *waiting, uint32_t entries);
/*
 * Adds waiter i, which has a queue and a turn, to the tree of its queue and side; and removes it, before its bytes
 * change.
 */
void ow_byte_range_index_add(struct ow_waiting *waiting, uint32_t i);
void ow_byte_range_index_remove(struct ow_waiting *waiting, uint32_t i);

/* Which one arrived first; of two halves of a part, the front one. */
bool ow_byte_range_index_older(const struct ow_waiting *waiting, uint32_t i, uint32_t j);
/* Of those below this root that have some of these bytes, the one that waited longest, or OW_NOBODY. */
uint32_t ow_byte_range_index_oldest(struct ow_waiting *waiting, uint32_t root, struct ow_byte_range range);
/* The same for those with a time in this range. If there are very many copies it may be a younger one, or OW_NOBODY. */
uint32_t ow_byte_range_index_oldest_within(struct ow_waiting *waiting, uint32_t root, struct ow_byte_range range,
                                           const struct ow_time_span *within);
/* Whether more bytes wait than this range has, counting each as often as it waits. */
bool ow_byte_range_index_crowded(struct ow_waiting *waiting, uint32_t root, struct ow_byte_range range);
/* The earliest and the latest time of those that have some of these bytes. False: there are too many to check all. */
bool ow_byte_range_index_span(struct ow_waiting *waiting, uint32_t root, struct ow_byte_range range,
                              struct ow_time_span *ret_span);
