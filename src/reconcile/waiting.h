/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECONCILE_WAITING_H
#define OW_RECONCILE_WAITING_H

#include "packet/record.h"
#include <oneway/match.h>

/*
 * Internal to the matcher: the records that wait for their counterpart. Each is in two lists at once: the queue of its
 * id and side, and the waiting list of its side, oldest first in both. Queues hang in a hash table by id. Everything is
 * an index into growing arrays, so that a million waiting packets cost 120 MB and none cost nothing. In line: this is
 * the hot path.
 */
#define OW_NOBODY UINT32_MAX
/* Hash buckets for each id that waits: lost packets wait long, and nobody should have to walk past them. */
#define OW_WAITING_SPREAD 4

struct ow_waiter {
	struct ow_record record;
	uint32_t queue;
	uint32_t next;         /* in the queue (or pending list, or free list) */
	uint32_t newer, older; /* in the waiting list of its side */
	uint8_t side;
	bool copy;
};

struct ow_waiting_queue {
	uint64_t id;
	uint32_t hash_next;
	uint32_t head[OW_SIDES], tail[OW_SIDES];  /* waiting, oldest first */
	uint32_t pending, pending_tail, pendings; /* unsettled pairs: waiters of A and B by turns */
	bool repeats;                             /* identical packets are about: check plausibility */
	bool differs;                             /* the copy counts differ */
	bool met;                                 /* one of them matched: those that stay behind are copies of it */
	bool doubtful;                            /* a unique packet whose delay was implausible */
};

struct ow_waiting {
	struct ow_waiter *entry;
	struct ow_waiting_queue *queue;
	uint32_t *head; /* hash buckets */
	uint32_t heads, entries, queues, free_entry, free_queue;
	uint32_t queues_used;
	uint32_t oldest[OW_SIDES], newest[OW_SIDES];
	int64_t oldest_ns[OW_SIDES]; /* time of the oldest, INT64_MAX when none waits */
	uint64_t count, peak;
};

int ow_waiting_init(struct ow_waiting *waiting);
void ow_waiting_done(struct ow_waiting *waiting);
/* Make room: -ENOMEM when there is none. */
int ow_waiting_grow_entries(struct ow_waiting *waiting);
int ow_waiting_grow_queues(struct ow_waiting *waiting);

static inline uint32_t ow_waiting_bucket(const struct ow_waiting *w, uint64_t id)
{
	return (uint32_t)(id >> 24) & (w->heads - 1);
}

/* The queue of an id, or OW_NOBODY. */
static inline uint32_t ow_waiting_find(const struct ow_waiting *w, uint64_t id)
{
	uint32_t q = w->head[ow_waiting_bucket(w, id)];
	while (q != OW_NOBODY && w->queue[q].id != id)
		q = w->queue[q].hash_next;
	return q;
}

/* An empty queue for an id that has none, or OW_NOBODY when out of memory. */
static inline uint32_t ow_waiting_new_queue(struct ow_waiting *w, uint64_t id)
{
	if ((w->free_queue == OW_NOBODY || w->queues_used >= w->heads / OW_WAITING_SPREAD) &&
	    ow_waiting_grow_queues(w) < 0)
		return OW_NOBODY;
	uint32_t q = w->free_queue;
	w->free_queue = w->queue[q].hash_next;
	w->queues_used++;
	uint32_t *bucket = &w->head[ow_waiting_bucket(w, id)];
	w->queue[q] = (struct ow_waiting_queue){
		.id = id,
		.hash_next = *bucket,
		.head = {OW_NOBODY, OW_NOBODY},
		.tail = {OW_NOBODY, OW_NOBODY},
		.pending = OW_NOBODY,
		.pending_tail = OW_NOBODY,
	};
	*bucket = q;
	return q;
}

static inline void ow_waiting_release(struct ow_waiting *w, uint32_t i)
{
	w->entry[i].next = w->free_entry;
	w->free_entry = i;
}

/* A free waiter, or OW_NOBODY when out of memory. */
static inline uint32_t ow_waiting_new(struct ow_waiting *w)
{
	if (w->free_entry == OW_NOBODY && ow_waiting_grow_entries(w) < 0)
		return OW_NOBODY;
	uint32_t i = w->free_entry;
	w->free_entry = w->entry[i].next;
	return i;
}

static inline void ow_waiting_release_queue(struct ow_waiting *w, uint32_t q)
{
	uint32_t *link = &w->head[ow_waiting_bucket(w, w->queue[q].id)];
	while (*link != q)
		link = &w->queue[*link].hash_next;
	*link = w->queue[q].hash_next;
	w->queue[q].hash_next = w->free_queue;
	w->free_queue = q;
	w->queues_used--;
}

static inline void ow_waiting_start(struct ow_waiting *w, uint32_t i)
{
	struct ow_waiter *e = &w->entry[i];
	e->newer = OW_NOBODY;
	e->older = w->newest[e->side];
	if (e->older == OW_NOBODY) {
		w->oldest[e->side] = i;
		w->oldest_ns[e->side] = e->record.time_ns;
	} else {
		w->entry[e->older].newer = i;
	}
	w->newest[e->side] = i;
	if (++w->count > w->peak)
		w->peak = w->count;
}

static inline void ow_waiting_stop(struct ow_waiting *w, uint32_t i)
{
	struct ow_waiter *e = &w->entry[i];
	if (e->newer == OW_NOBODY)
		w->newest[e->side] = e->older;
	else
		w->entry[e->newer].older = e->older;
	if (e->older == OW_NOBODY) {
		w->oldest[e->side] = e->newer;
		w->oldest_ns[e->side] = e->newer == OW_NOBODY ? INT64_MAX : w->entry[e->newer].record.time_ns;
	} else {
		w->entry[e->older].newer = e->newer;
	}
	w->count--;
}

static inline void ow_waiting_enqueue(struct ow_waiting *w, uint32_t q, uint32_t i)
{
	struct ow_waiting_queue *queue = &w->queue[q];
	w->entry[i].queue = q;
	w->entry[i].next = OW_NOBODY;
	unsigned side = w->entry[i].side;
	if (queue->tail[side] == OW_NOBODY)
		queue->head[side] = i;
	else
		w->entry[queue->tail[side]].next = i;
	queue->tail[side] = i;
}

/* Takes an entry out of its queue; `before` is its predecessor there, or OW_NOBODY when it is the head. */
static inline void ow_waiting_dequeue(struct ow_waiting *w, uint32_t i, uint32_t before)
{
	struct ow_waiting_queue *queue = &w->queue[w->entry[i].queue];
	unsigned side = w->entry[i].side;
	if (before == OW_NOBODY)
		queue->head[side] = w->entry[i].next;
	else
		w->entry[before].next = w->entry[i].next;
	if (queue->tail[side] == i)
		queue->tail[side] = before;
}

#endif
