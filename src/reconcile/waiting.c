/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/waiting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ENTRIES 1024u
#define FIRST_QUEUES  64u

/* Empty hash buckets. */
static uint32_t *new_buckets(uint32_t buckets)
{
	uint32_t *bucket = malloc(buckets * sizeof *bucket);
	if (bucket)
		memset(bucket, 0xff, buckets * sizeof *bucket);
	return bucket;
}

/* Those that are alone move to new buckets. */
static int grow_alones(struct ow_waiting *w, uint32_t alones)
{
	uint32_t *grown = new_buckets(alones);
	if (!grown)
		return -ENOMEM;
	for (uint32_t b = 0; b < w->alones; b++) {
		for (uint32_t i = w->alone[b], next; i != OW_NOBODY; i = next) {
			next = w->entry[i].next;
			uint32_t *bucket = &grown[ow_waiting_bucket(w->entry[i].record.id, alones)];
			w->entry[i].next = *bucket;
			*bucket = i;
		}
	}
	free(w->alone);
	w->alone = grown;
	w->alones = alones;
	return 0;
}

int ow_waiting_grow_entries(struct ow_waiting *w)
{
	uint32_t more = w->entries ? w->entries : FIRST_ENTRIES;
	struct ow_waiter *grown = realloc(w->entry, ((size_t)w->entries + more) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	w->entry = grown;
	if (w->node && ow_byte_range_index_room(w, w->entries + more) < 0)
		return -ENOMEM;
	if (grow_alones(w, (w->entries + more) * OW_WAITING_SPREAD) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < more; i++)
		grown[w->entries + i].next = i + 1 < more ? w->entries + i + 1 : OW_NOBODY;
	w->free_entry = w->entries;
	w->entries += more;
	return 0;
}

static int grow_heads(struct ow_waiting *w)
{
	uint32_t heads = w->heads ? w->heads * 2 : FIRST_QUEUES * OW_WAITING_SPREAD;
	uint32_t *grown = new_buckets(heads);
	if (!grown)
		return -ENOMEM;
	for (uint32_t b = 0; b < w->heads; b++) {
		for (uint32_t q = w->head[b], next; q != OW_NOBODY; q = next) {
			next = w->queue[q].hash_next;
			uint32_t *bucket = &grown[ow_waiting_bucket(w->queue[q].id, heads)];
			w->queue[q].hash_next = *bucket;
			*bucket = q;
		}
	}
	free(w->head);
	w->head = grown;
	w->heads = heads;
	return 0;
}

static int grow_pool(struct ow_waiting *w)
{
	uint32_t more = w->queues ? w->queues : FIRST_QUEUES;
	struct ow_waiting_queue *grown = realloc(w->queue, ((size_t)w->queues + more) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	w->queue = grown;
	for (uint32_t i = 0; i < more; i++)
		grown[w->queues + i].hash_next = i + 1 < more ? w->queues + i + 1 : OW_NOBODY;
	w->free_queue = w->queues;
	w->queues += more;
	return 0;
}

int ow_waiting_grow_queues(struct ow_waiting *w)
{
	int r = w->free_queue == OW_NOBODY ? grow_pool(w) : 0;
	return r < 0 || w->queues_used < w->heads / OW_WAITING_SPREAD ? r : grow_heads(w);
}

int ow_waiting_init(struct ow_waiting *w, int64_t window_ns)
{
	memset(w, 0, sizeof *w);
	w->window_ns = window_ns;
	w->free_entry = w->free_queue = OW_NOBODY;
	if (grow_heads(w) < 0 || ow_waiting_grow_entries(w) < 0)
		return -ENOMEM;
	for (uint32_t side = 0; side < OW_SIDES; side++) {
		w->free_entry = w->entry[side].next;
		w->entry[side].newer = w->entry[side].older = side;
		w->entry[side].record.time_ns = w->until_ns[side] = INT64_MAX;
	}
	return 0;
}

void ow_waiting_done(struct ow_waiting *w)
{
	free(w->entry);
	free(w->node);
	free(w->queue);
	free(w->alone);
	free(w->head);
	memset(w, 0, sizeof *w);
}
