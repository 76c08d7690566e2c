/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A packet on its way: the headers (and the first payload bytes) inline, the rest as a slice of a payload pool that
 * outlives it. Slots are reused: after the start nothing is allocated.
 */
#define OW_WIRE_HEAD 144

struct ow_wire {
	struct ow_wire *next, *prev; /* in a side's output list; next also in the free list */
	struct ow_wire *more;        /* the next segment of the superframe that begins with this packet */
	struct ow_wire *last;        /* of the first segment: the last one */
	int64_t time_ns;             /* true time at the side where it is now */
	int64_t stamp_ns;            /* time that the sending side stored */
	uint64_t order;              /* number of its record among those sent in its direction */
	uint64_t number;             /* decides between packets of the same time */
	uint32_t flow;
	uint32_t row;  /* of a path of several points: where its truth is kept .. */
	uint8_t stage; /* .. and the place that it reaches next */
	uint8_t direction;
	bool frame;          /* the bytes are a whole link frame, not an IP packet */
	bool copy;           /* a duplicate made by the network */
	bool sent_covered;   /* the sending side's capture contains it */
	bool data;           /* a TCP segment that GRO may merge */
	bool train_end;      /* no segment of the burst follows */
	bool ce;             /* congestion was marked on the way */
	bool open;           /* GRO may still append to it */
	bool received;       /* in the output list: arrived here (else sent from here) */
	uint16_t segments;   /* number of segments of the burst that begins here, else 1 */
	uint16_t l4;         /* offset of the transport header in head; 0 = none (later fragment, not captured) */
	uint8_t proto;       /* IP protocol of it */
	uint16_t header_len; /* IP and transport headers */
	uint16_t head_len;   /* valid bytes of head, at least header_len */
	uint32_t super_len;  /* payload bytes of the superframe so far */
	const uint8_t *body;
	uint32_t body_len;
	uint32_t missing; /* bytes that were on the wire but not in the traffic file */
	uint8_t *owned;   /* storage of the body where it is not in the pool */
	uint32_t owned_size;
	uint8_t head[OW_WIRE_HEAD];
};

static inline uint32_t ow_wire_len(const struct ow_wire *wire)
{
	return wire->head_len + wire->body_len;
}

struct ow_wire_pool;
int ow_wire_pool_create(struct ow_wire_pool **ret_pool);
void ow_wire_pool_free(struct ow_wire_pool *pool);
/* A cleared packet (except for the head bytes), or NULL. */
struct ow_wire *ow_wire_get(struct ow_wire_pool *pool);
void ow_wire_put(struct ow_wire_pool *pool, struct ow_wire *wire);
/* A copy with its own body where the body is not in the pool; NULL = out of memory. */
struct ow_wire *ow_wire_clone(struct ow_wire_pool *pool, const struct ow_wire *wire);
/* Takes the bytes of a frame: the head inline, the rest into owned storage. */
int ow_wire_fill(struct ow_wire *wire, const uint8_t *data, uint32_t len);

/* Packets by time, ties by number: a binary heap. */
struct ow_wire_heap {
	struct ow_wire_entry {
		int64_t time_ns;
		uint64_t number;
		struct ow_wire *wire;
	} * entry;
	size_t count, size;
};
int ow_wire_heap_push(struct ow_wire_heap *heap, struct ow_wire *wire);
/* The earliest packet if it is not after until_ns, else NULL. */
struct ow_wire *ow_wire_heap_pop(struct ow_wire_heap *heap, int64_t until_ns);
void ow_wire_heap_done(struct ow_wire_heap *heap, struct ow_wire_pool *pool);

/*
 * The one's complement sum of bytes, for Internet checksums; begin with 0 and fold at the end. Only the last part may
 * have an odd length.
 */
uint64_t ow_sum_add(uint64_t sum, const uint8_t *data, size_t len);
uint16_t ow_sum_fold(uint64_t sum);
