/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/waiting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_HEADS 4096u /* hash buckets at the start; power of two */
#define FIRST_POOL  1024u

int ow_waiting_grow_entries(struct ow_waiting *w)
{
	uint32_t more = w->entries ? w->entries : FIRST_POOL;
	struct ow_waiter *grown = realloc(w->entry, ((size_t)w->entries + more) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	w->entry = grown;
	for (uint32_t i = 0; i < more; i++)
		grown[w->entries + i].next = i + 1 < more ? w->entries + i + 1 : OW_NOBODY;
	w->free_entry = w->entries;
	w->entries += more;
	return 0;
}

static int grow_heads(struct ow_waiting *w)
{
	uint32_t heads = w->heads ? w->heads * 2 : FIRST_HEADS;
	uint32_t *grown = malloc(heads * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	memset(grown, 0xff, heads * sizeof *grown);
	uint32_t *old = w->head, olds = w->heads;
	w->head = grown;
	w->heads = heads;
	for (uint32_t b = 0; b < olds; b++) {
		for (uint32_t q = old[b], next; q != OW_NOBODY; q = next) {
			next = w->queue[q].hash_next;
			uint32_t *bucket = &grown[ow_waiting_bucket(w, w->queue[q].id)];
			w->queue[q].hash_next = *bucket;
			*bucket = q;
		}
	}
	free(old);
	return 0;
}

static int grow_pool(struct ow_waiting *w)
{
	uint32_t more = w->queues ? w->queues : FIRST_POOL;
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

int ow_waiting_init(struct ow_waiting *w)
{
	memset(w, 0, sizeof *w);
	w->free_entry = w->free_queue = OW_NOBODY;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		w->oldest[side] = w->newest[side] = OW_NOBODY;
		w->oldest_ns[side] = INT64_MAX;
	}
	return grow_heads(w);
}

void ow_waiting_done(struct ow_waiting *w)
{
	free(w->entry);
	free(w->queue);
	free(w->head);
	memset(w, 0, sizeof *w);
}
