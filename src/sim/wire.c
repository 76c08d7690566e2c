/* SPDX-License-Identifier: Apache-2.0 */
/* Slots for packets on their way, a heap of them by time, and the Internet checksum. */
#include "sim/wire.h"
#include "base/bytes.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_SLOTS 256

struct chunk {
	struct chunk *next;
	struct ow_wire slot[CHUNK_SLOTS];
};

struct ow_wire_pool {
	struct ow_wire *free;
	struct chunk *chunks;
};

int ow_wire_pool_create(struct ow_wire_pool **ret_pool)
{
	struct ow_wire_pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return -ENOMEM;
	*ret_pool = pool;
	return 0;
}

void ow_wire_pool_free(struct ow_wire_pool *pool)
{
	if (!pool)
		return;
	while (pool->chunks) {
		struct chunk *chunk = pool->chunks;
		pool->chunks = chunk->next;
		for (size_t i = 0; i < CHUNK_SLOTS; i++)
			free(chunk->slot[i].owned);
		free(chunk);
	}
	free(pool);
}

static int grow(struct ow_wire_pool *pool)
{
	struct chunk *chunk = malloc(sizeof *chunk);
	if (!chunk)
		return -ENOMEM;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	for (size_t i = CHUNK_SLOTS; i-- > 0;) {
		chunk->slot[i].owned = NULL;
		chunk->slot[i].owned_size = 0;
		chunk->slot[i].next = pool->free;
		pool->free = &chunk->slot[i];
	}
	return 0;
}

struct ow_wire *ow_wire_get(struct ow_wire_pool *pool)
{
	if (!pool->free && grow(pool) < 0)
		return NULL;
	struct ow_wire *wire = pool->free;
	pool->free = wire->next;
	uint8_t *owned = wire->owned;
	uint32_t owned_size = wire->owned_size;
	memset(wire, 0, offsetof(struct ow_wire, head));
	wire->owned = owned;
	wire->owned_size = owned_size;
	wire->segments = 1;
	return wire;
}

void ow_wire_put(struct ow_wire_pool *pool, struct ow_wire *wire)
{
	wire->next = pool->free;
	pool->free = wire;
}

static int own_body(struct ow_wire *wire, const uint8_t *data, uint32_t len)
{
	if (len > wire->owned_size) {
		uint8_t *grown = realloc(wire->owned, len);
		if (!grown)
			return -ENOMEM;
		wire->owned = grown;
		wire->owned_size = len;
	}
	if (len)
		memcpy(wire->owned, data, len);
	wire->body = wire->owned;
	wire->body_len = len;
	return 0;
}

struct ow_wire *ow_wire_clone(struct ow_wire_pool *pool, const struct ow_wire *wire)
{
	struct ow_wire *clone = ow_wire_get(pool);
	if (!clone)
		return NULL;
	uint8_t *owned = clone->owned;
	uint32_t owned_size = clone->owned_size;
	memcpy(clone, wire, offsetof(struct ow_wire, head) + wire->head_len);
	clone->owned = owned;
	clone->owned_size = owned_size;
	clone->next = clone->prev = NULL;
	if (wire->body && wire->body == wire->owned && own_body(clone, wire->body, wire->body_len) < 0) {
		ow_wire_put(pool, clone);
		return NULL;
	}
	return clone;
}

int ow_wire_fill(struct ow_wire *wire, const uint8_t *data, uint32_t len)
{
	wire->head_len = len < OW_WIRE_HEAD ? (uint16_t)len : OW_WIRE_HEAD;
	memcpy(wire->head, data, wire->head_len);
	return own_body(wire, data + wire->head_len, len - wire->head_len);
}

static bool before(const struct ow_wire_entry *x, const struct ow_wire_entry *y)
{
	return x->time_ns != y->time_ns ? x->time_ns < y->time_ns : x->number < y->number;
}

int ow_wire_heap_push(struct ow_wire_heap *heap, struct ow_wire *wire)
{
	if (OW_GROW(heap->entry, heap->size, heap->count + 1) < 0)
		return -ENOMEM;
	struct ow_wire_entry entry = {wire->time_ns, wire->number, wire};
	size_t i = heap->count++;
	while (i > 0 && before(&entry, &heap->entry[(i - 1) / 2])) {
		heap->entry[i] = heap->entry[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap->entry[i] = entry;
	return 0;
}

struct ow_wire *ow_wire_heap_pop(struct ow_wire_heap *heap, int64_t until_ns)
{
	if (!heap->count || heap->entry[0].time_ns > until_ns)
		return NULL;
	struct ow_wire *wire = heap->entry[0].wire;
	struct ow_wire_entry entry = heap->entry[--heap->count];
	size_t i = 0, child;
	while ((child = 2 * i + 1) < heap->count) {
		if (child + 1 < heap->count && before(&heap->entry[child + 1], &heap->entry[child]))
			child++;
		if (!before(&heap->entry[child], &entry))
			break;
		heap->entry[i] = heap->entry[child];
		i = child;
	}
	heap->entry[i] = entry;
	return wire;
}

void ow_wire_heap_done(struct ow_wire_heap *heap, struct ow_wire_pool *pool)
{
	for (size_t i = 0; i < heap->count; i++)
		ow_wire_put(pool, heap->entry[i].wire);
	free(heap->entry);
	*heap = (struct ow_wire_heap){0};
}

/*
 * Sums little-endian words: the one's complement sum does not depend on the byte order (RFC 1071). ow_sum_fold swaps
 * the result.
 */
uint64_t ow_sum_add(uint64_t sum, const uint8_t *data, size_t len)
{
	size_t i = 0;
	for (; i + 4 <= len; i += 4)
		sum += ow_load_le32(data + i);
	if (i + 2 <= len) {
		sum += (uint32_t)(data[i] | data[i + 1] << 8);
		i += 2;
	}
	if (i < len)
		sum += data[i];
	return sum;
}

uint16_t ow_sum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum << 8 | sum >> 8);
}
