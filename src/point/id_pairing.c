/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets mostly arrive in the order in which they were sent. So first both lists are walked side by side, and a packet
 * is looked for among the next few of the other list: no hashing, no cache misses. What that leaves over, reordered
 * packets and those of several capturing threads, meets in a hash table, whose slots are fetched ahead.
 */
#include "point/id_pairing.h"

#include <errno.h>
#include <stdlib.h>

#define AHEAD 8 /* packets that are compared before the walk gives a packet up */
/* After this many misses in a row, and again after as many times that, the walk looks further for its place. */
#define RESYNC_AFTER 16
#define RESYNC_FAR   4096
/* Probes under way at a time. */
#define BATCH 16

struct slot {
	uint32_t tag;   /* upper half of the id */
	uint32_t place; /* in a, from 1; 0 = free */
};

static size_t look(const struct ow_sighting *a, size_t from, size_t to, uint64_t id)
{
	while (from < to && a[from].id != id)
		from++;
	return from;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void walk(const struct ow_sighting *a, size_t as, const struct ow_sighting *b, size_t bs, uint32_t *of_a,
                 uint32_t *of_b)
{
	size_t next = 0, misses = 0, resync = RESYNC_AFTER;
	for (size_t j = 0; j < bs; j++) {
		size_t to = least(next + AHEAD, as), at = look(a, next, to, b[j].id);
		if (at == to && ++misses == resync) {
			to = least(next + RESYNC_FAR, as);
			at = look(a, next, to, b[j].id);
			resync *= 2;
		}
		if (at == to) {
			of_b[j] = OW_PAIRING_NONE;
			continue;
		}
		if (misses) {
			misses = 0;
			resync = RESYNC_AFTER;
		}
		of_b[j] = (uint32_t)at;
		of_a[at] = (uint32_t)j;
		next = at + 1;
	}
}

static void insert(struct slot *table, size_t mask, uint64_t id, uint32_t place)
{
	size_t at = id & mask;
	while (table[at].place)
		at = (at + 1) & mask;
	table[at] = (struct slot){(uint32_t)(id >> 32), place + 1};
}

static uint32_t find(const struct slot *table, size_t mask, const struct ow_sighting *a, const uint32_t *of_a,
                     uint64_t id)
{
	for (size_t at = id & mask; table[at].place; at = (at + 1) & mask) {
		uint32_t place = table[at].place - 1;
		if (table[at].tag == (uint32_t)(id >> 32) && a[place].id == id && of_a[place] == OW_PAIRING_NONE)
			return place;
	}
	return OW_PAIRING_NONE;
}

/* The next places of a list that have no counterpart yet, up to BATCH of them, their slots on the way to the cache. */
static unsigned gather(const struct ow_sighting *stamps, size_t count, const uint32_t *of, const struct slot *table,
                       size_t mask, size_t *from, uint32_t place[BATCH])
{
	unsigned n = 0;
	for (; *from < count && n < BATCH; ++*from) {
		if (of[*from] != OW_PAIRING_NONE)
			continue;
		__builtin_prefetch(table + (stamps[*from].id & mask));
		place[n++] = (uint32_t)*from;
	}
	return n;
}

int ow_pairing(const struct ow_sighting *a, size_t as, const struct ow_sighting *b, size_t bs, uint32_t *of_a,
               uint32_t *of_b)
{
	size_t rest_a = 0, rest_b = 0, room = 16, from = 0;
	uint32_t place[BATCH];
	for (size_t i = 0; i < as; i++)
		of_a[i] = OW_PAIRING_NONE;
	walk(a, as, b, bs, of_a, of_b);
	for (size_t i = 0; i < as; i++)
		rest_a += of_a[i] == OW_PAIRING_NONE;
	for (size_t j = 0; j < bs; j++)
		rest_b += of_b[j] == OW_PAIRING_NONE;
	if (!rest_a || !rest_b)
		return 0;
	while (room < 2 * rest_a)
		room *= 2;
	struct slot *table = calloc(room, sizeof *table);
	if (!table)
		return -ENOMEM;
	for (unsigned n; (n = gather(a, as, of_a, table, room - 1, &from, place)) > 0;) {
		for (unsigned i = 0; i < n; i++)
			insert(table, room - 1, a[place[i]].id, place[i]);
	}
	from = 0;
	for (unsigned n; (n = gather(b, bs, of_b, table, room - 1, &from, place)) > 0;) {
		for (unsigned i = 0; i < n; i++) {
			uint32_t at = find(table, room - 1, a, of_a, b[place[i]].id);
			of_b[place[i]] = at;
			if (at != OW_PAIRING_NONE)
				of_a[at] = place[i];
		}
	}
	free(table);
	return 0;
}
