/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets usually arrive in the order in which they were sent. So first both lists are scanned in parallel, and a
 * packet is searched among the next few of the other list: no hashing, no cache misses. The remaining packets, which
 * were reordered or come from several capture threads, are found with a hash table, whose slots are prefetched.
 */
#include "reconcile/id_pairing.h"

#include "base/id_map.h"

#define AHEAD 8 /* packets that are compared before the scan gives up a packet */
/* After this many misses in a row, and again after this many times that, the scan searches further for its position. */
#define RESYNC_AFTER 16
#define RESYNC_FAR   4096
/* Probes in progress at a time. */
#define BATCH 16

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

/* The next positions of a list without a counterpart, up to BATCH of them; prefetches their slots. */
static unsigned gather(const struct ow_sighting *sightings, size_t count, const uint32_t *of,
                       const struct ow_id_map *map, size_t *from, uint32_t place[BATCH])
{
	unsigned n = 0;
	for (; *from < count && n < BATCH; ++*from) {
		if (of[*from] != OW_PAIRING_NONE)
			continue;
		ow_id_map_prefetch(map, sightings[*from].id);
		place[n++] = (uint32_t)*from;
	}
	return n;
}

int ow_pairing(const struct ow_sighting *a, size_t as, const struct ow_sighting *b, size_t bs, uint32_t *of_a,
               uint32_t *of_b)
{
	size_t rest_a = 0, rest_b = 0, from = 0;
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
	struct ow_id_map map = {0};
	int r = ow_id_map_reserve(&map, rest_a);
	for (unsigned n; r == 0 && (n = gather(a, as, of_a, &map, &from, place)) > 0;) {
		for (unsigned i = 0; i < n; i++)
			(void)ow_id_map_add(&map, a[place[i]].id, place[i]); /* there is room */
	}
	from = 0;
	for (unsigned n; r == 0 && (n = gather(b, bs, of_b, &map, &from, place)) > 0;) {
		for (unsigned i = 0; i < n; i++) {
			uint64_t id = b[place[i]].id;
			uint32_t at = OW_ID_MAP_FIND(&map, id, j, a[j].id == id && of_a[j] == OW_PAIRING_NONE);
			of_b[place[i]] = at;
			if (at != OW_PAIRING_NONE)
				of_a[at] = place[i];
		}
	}
	ow_id_map_done(&map);
	return r;
}
