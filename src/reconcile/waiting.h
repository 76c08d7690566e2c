/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/record.h"
#include "reconcile/byte_range_index.h"
#include <oneway/match.h>

/*
 * Internal to the matcher: the records that wait for their counterpart, in the waiting list of their side, oldest
 * first. Most are alone of their kind: they hang in a hash table by id. Identical packets, pieces of trains and
 * doubtful pairs have a queue for their id, in a table of its own, in which they wait oldest first. Everything is an
 * index into growing arrays, so that a million waiting packets cost 110 MB and none cost nothing. In line: this is the
 * hot path.
 */
#define OW_NOBODY UINT32_MAX
/* Hash buckets for each waiting packet: lost packets wait long, and should not slow down the search for others. */
#define OW_WAITING_SPREAD 8

struct ow_waiter {
	struct ow_record record;
	uint32_t queue;        /* of its id, or OW_NOBODY: it is alone */
	uint32_t next;         /* in the queue (or hash bucket, or free list) */
	uint32_t newer, older; /* in the waiting list of its side */
	uint32_t before;       /* in the queue; OW_NOBODY for its head */
	uint8_t side;
	bool copy;
};

struct ow_waiting_queue {
	uint64_t id;
	uint32_t hash_next;
	uint32_t head[OW_SIDES], tail[OW_SIDES]; /* waiting, oldest first */
	uint32_t waits[OW_SIDES];                /* how many */
	uint32_t root[OW_SIDES];                 /* those that are pieces of a train, by sequence number */
	bool met;                                /* one of them matched: those that stay behind are copies of it */
	/* Of identical packets, which wait in no list but this queue: */
	uint32_t told;                /* pairs that were counted before it was known which they are */
	uint8_t way;                  /* enum ow_direction, or OW_DIRECTIONS: not known yet */
	struct ow_align_carry *carry; /* of those that are decided */
};

struct ow_waiting {
	/* The first entry of each side is no waiter: its neighbours are the oldest (newer) and the newest (older). */
	struct ow_waiter *entry;
	struct ow_waiting_queue *queue;
	struct ow_byte_range_node *node; /* as many as entries, once there are pieces of trains */
	uint64_t turns;                  /* of pieces that came */
	uint64_t looked;                 /* nodes visited, for tests */
	uint32_t *alone, *head;          /* hash buckets: of those that are alone, and of queues */
	uint32_t alones, heads;          /* how many buckets */
	uint32_t entries, queues;        /* powers of two */
	uint32_t free_entry, free_queue;
	uint32_t queues_used;
	int64_t window_ns;
	int64_t until_ns[OW_SIDES]; /* after this time the oldest has waited too long; INT64_MAX when none waits */
};

int ow_waiting_init(struct ow_waiting *waiting, int64_t window_ns);
void ow_waiting_done(struct ow_waiting *waiting);
/* Make room: -ENOMEM when there is none. */
int ow_waiting_grow_entries(struct ow_waiting *waiting);
int ow_waiting_grow_queues(struct ow_waiting *waiting);

static inline uint32_t ow_waiting_bucket(uint64_t id, uint32_t buckets)
{
	return (uint32_t)(id >> 24) & (buckets - 1);
}

/* What links to the one with this id that waits alone; OW_NOBODY is linked where there is none. */
static inline uint32_t *ow_waiting_alone(const struct ow_waiting *w, uint64_t id)
{
	uint32_t *link = &w->alone[ow_waiting_bucket(id, w->alones)];
	while (*link != OW_NOBODY && w->entry[*link].record.id != id)
		link = &w->entry[*link].next;
	return link;
}

/* The queue of an id, or OW_NOBODY. */
static inline uint32_t ow_waiting_find(const struct ow_waiting *w, uint64_t id)
{
	uint32_t q = w->head[ow_waiting_bucket(id, w->heads)];
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
	uint32_t *bucket = &w->head[ow_waiting_bucket(id, w->heads)];
	w->queue[q] = (struct ow_waiting_queue){
		.id = id,
		.hash_next = *bucket,
		.head = {OW_NOBODY, OW_NOBODY},
		.tail = {OW_NOBODY, OW_NOBODY},
		.root = {OW_NOBODY, OW_NOBODY},
		.way = OW_DIRECTIONS,
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
	uint32_t *link = &w->head[ow_waiting_bucket(w->queue[q].id, w->heads)];
	while (*link != q)
		link = &w->queue[*link].hash_next;
	*link = w->queue[q].hash_next;
	w->queue[q].hash_next = w->free_queue;
	w->free_queue = q;
	w->queues_used--;
}

static inline uint32_t ow_waiting_oldest(const struct ow_waiting *w, unsigned side)
{
	return w->entry[side].newer;
}

/* The oldest of a side is another one now. */
static inline void ow_waiting_note_oldest(struct ow_waiting *w, unsigned side)
{
	int64_t oldest_ns = w->entry[ow_waiting_oldest(w, side)].record.time_ns; /* INT64_MAX when none waits */
	if (__builtin_add_overflow(oldest_ns, w->window_ns, &w->until_ns[side]))
		w->until_ns[side] = INT64_MAX;
}

/* Puts an entry into the waiting list, behind this one. */
static inline void ow_waiting_start_behind(struct ow_waiting *w, uint32_t i, uint32_t older)
{
	struct ow_waiter *e = &w->entry[i];
	e->older = older;
	e->newer = w->entry[older].newer;
	w->entry[older].newer = i;
	w->entry[e->newer].older = i;
	if (older == e->side)
		ow_waiting_note_oldest(w, e->side);
}

static inline void ow_waiting_start(struct ow_waiting *w, uint32_t i)
{
	ow_waiting_start_behind(w, i, w->entry[w->entry[i].side].older);
}

static inline void ow_waiting_stop(struct ow_waiting *w, uint32_t i)
{
	const struct ow_waiter *e = &w->entry[i];
	w->entry[e->newer].older = e->older;
	w->entry[e->older].newer = e->newer;
	if (e->older == e->side)
		ow_waiting_note_oldest(w, e->side);
}

static inline void ow_waiting_enqueue(struct ow_waiting *w, uint32_t q, uint32_t i)
{
	struct ow_waiting_queue *queue = &w->queue[q];
	w->entry[i].queue = q;
	w->entry[i].next = OW_NOBODY;
	unsigned side = w->entry[i].side;
	w->entry[i].before = queue->tail[side];
	if (queue->tail[side] == OW_NOBODY)
		queue->head[side] = i;
	else
		w->entry[queue->tail[side]].next = i;
	queue->tail[side] = i;
	queue->waits[side]++;
	if (w->entry[i].record.len) {
		w->node[i].turn = w->turns++;
		ow_byte_range_index_add(w, i);
	}
}

/* The rear part of a piece of a train, cut off from waiter i, waits right behind it. */
static inline void ow_waiting_enqueue_rear(struct ow_waiting *w, uint32_t rear, uint32_t i)
{
	struct ow_waiter *front = &w->entry[i], *e = &w->entry[rear];
	struct ow_waiting_queue *queue = &w->queue[front->queue];
	e->queue = front->queue;
	e->before = i;
	e->next = front->next;
	if (e->next != OW_NOBODY)
		w->entry[e->next].before = rear;
	else
		queue->tail[front->side] = rear;
	front->next = rear;
	queue->waits[front->side]++;
	w->node[rear].turn = w->node[i].turn;
	ow_byte_range_index_add(w, rear);
}

/* Gives the one that waits alone, at this link, a queue: others of its kind are about. OW_NOBODY when out of memory. */
static inline uint32_t ow_waiting_accompany(struct ow_waiting *w, uint32_t *link)
{
	uint32_t i = *link, q = ow_waiting_new_queue(w, w->entry[i].record.id);
	if (q == OW_NOBODY)
		return q;
	*link = w->entry[i].next;
	ow_waiting_enqueue(w, q, i);
	return q;
}

/* Takes an entry out of its queue. */
static inline void ow_waiting_dequeue(struct ow_waiting *w, uint32_t i)
{
	struct ow_waiting_queue *queue = &w->queue[w->entry[i].queue];
	unsigned side = w->entry[i].side;
	uint32_t before = w->entry[i].before, next = w->entry[i].next;
	if (w->entry[i].record.len)
		ow_byte_range_index_remove(w, i);
	if (before == OW_NOBODY)
		queue->head[side] = next;
	else
		w->entry[before].next = next;
	if (next == OW_NOBODY)
		queue->tail[side] = before;
	else
		w->entry[next].before = before;
	queue->waits[side]--;
}
