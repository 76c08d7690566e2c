/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/sent_lately.h"

#include "synopsis/synopsis.h"

#include <stdlib.h>
#include <string.h>

#define BITS_MIN 6
#define BITS_MAX 18 /* 4 MB; half of the slots are used at most: */
#define MOST     ((size_t)1 << (BITS_MAX - 1))
#define AHEAD    12                           /* look-ups between prefetching a slot and using it */
#define ZERO     UINT64_C(0xd6e8feb86659fd93) /* is stored for the id 0 */

/* The slot of the id, or the free one for it. */
static struct ow_sent_lately_slot *probe(const struct ow_sent_lately_ids *ids, uint64_t key)
{
	size_t at = key >> (64 - ids->bits);
	while (ids->slot[at].id && ids->slot[at].id != key)
		at = (at + 1) & (((size_t)1 << ids->bits) - 1);
	return ids->slot + at;
}

static bool grow(struct ow_sent_lately_ids *ids)
{
	struct ow_sent_lately_ids grown = {.bits = ids->slot ? ids->bits + 1 : BITS_MIN, .used = ids->used};
	if (grown.bits > BITS_MAX)
		return false;
	grown.slot = calloc((size_t)1 << grown.bits, sizeof *grown.slot);
	if (!grown.slot)
		return false;
	for (size_t i = 0; ids->slot && i < (size_t)1 << ids->bits; i++) {
		if (ids->slot[i].id)
			*probe(&grown, ids->slot[i].id) = ids->slot[i];
	}
	free(ids->slot);
	*ids = grown;
	return true;
}

static void put(struct ow_sent_lately_ids *ids, uint64_t id, int64_t time_ns)
{
	uint64_t key = id ? id : ZERO;
	if ((!ids->slot || 2 * ids->used >= (size_t)1 << ids->bits) && !grow(ids))
		return;
	struct ow_sent_lately_slot *slot = probe(ids, key);
	ids->used += !slot->id;
	*slot = (struct ow_sent_lately_slot){key, time_ns};
}

static const struct ow_sent_lately_slot *find(const struct ow_sent_lately_ids ids[2], uint64_t id)
{
	for (int k = 0; k < 2; k++) {
		const struct ow_sent_lately_slot *slot = ids[k].used ? probe(&ids[k], id ? id : ZERO) : NULL;
		if (slot && slot->id)
			return slot;
	}
	return NULL;
}

static void prefetch(const struct ow_sent_lately_ids *ids, uint64_t id)
{
	if (ids->used)
		__builtin_prefetch(ids->slot + (id >> (64 - ids->bits)));
}

/* Keeps the memory, for the next interval. */
static void clear(struct ow_sent_lately_ids *ids)
{
	if (ids->used)
		memset(ids->slot, 0, sizeof *ids->slot << ids->bits);
	ids->used = 0;
}

static void change(struct ow_sent_lately_ids ids[2])
{
	struct ow_sent_lately_ids old = ids[1];
	clear(&old);
	ids[1] = ids[0];
	ids[0] = old;
}

void ow_sent_lately_done(struct ow_sent_lately *lately)
{
	for (int k = 0; k < 2; k++) {
		free(lately->once[k].slot);
		free(lately->again[k].slot);
	}
	*lately = (struct ow_sent_lately){0};
}

void ow_sent_lately_begin(struct ow_sent_lately *lately, int64_t start_ns, int64_t reach_ns)
{
	lately->reach_ns = reach_ns;
	/* Twice: what both hold may be too old. */
	for (int k = 0; k < 2; k++) {
		bool old = k ? start_ns - lately->end_ns > reach_ns : start_ns - lately->since_ns >= reach_ns;
		if (!old)
			break;
		change(lately->once);
		change(lately->again);
		lately->since_ns = start_ns;
	}
}

void ow_sent_lately_note(struct ow_sent_lately *lately, uint64_t id, int64_t time_ns)
{
	const struct ow_sent_lately_slot *before = find(lately->once, id);
	if (before && time_ns > before->time_ns)
		put(&lately->again[0], id, time_ns - before->time_ns);
	put(&lately->once[0], id, time_ns);
}

void ow_sent_lately_add(struct ow_sent_lately *lately, const struct ow_sighting *sighting, size_t count,
                        int64_t start_ns, int64_t length_ns)
{
	size_t first = count, least = count > MOST ? count - MOST : 0;
	while (first > least && sighting[first - 1].time_ns >= length_ns - lately->reach_ns)
		first--;
	for (size_t i = first; i < count; i++) {
		for (int k = 0; i + AHEAD < count && k < 2; k++)
			prefetch(&lately->once[k], sighting[i + AHEAD].id);
		ow_sent_lately_note(lately, sighting[i].id, start_ns + sighting[i].time_ns);
	}
	lately->end_ns = start_ns + length_ns;
}

int64_t ow_sent_lately_last(const struct ow_sent_lately *lately, uint64_t id)
{
	const struct ow_sent_lately_slot *slot = find(lately->once, id);
	return slot ? slot->time_ns : INT64_MIN;
}

int64_t ow_sent_lately_apart(const struct ow_sent_lately *lately, uint64_t id)
{
	const struct ow_sent_lately_slot *slot = find(lately->again, id);
	return slot ? slot->time_ns : 0;
}
