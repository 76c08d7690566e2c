/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * Remembers the ids that matched recently, to distinguish a further copy of a packet from one that never matched. A
 * fixed table of 8-way sets with about the last 2^17 ids: 512 KB, which stay in the second-level cache. An id is
 * forgotten early with the probability that 8 younger ids fell into its set: 3e-7 for the 10,000 ids that pass in 10 ms
 * at 1 M packets/s. 38 bits of an id are compared: one packet in 2 million is taken as a copy by mistake; it is then
 * matched with more care, and counts as duplicated only if it stays without a counterpart where it was received.
 */
#define OW_RECENT_SETS 16384u /* power of two */
#define OW_RECENT_WAYS 8

struct ow_recent {
	uint32_t set[OW_RECENT_SETS][OW_RECENT_WAYS]; /* newest first: upper 24 bits of the id, then 8 of seconds */
	int64_t origin_ns; /* seconds count from here: so that results do not depend on the date */
};

struct ow_recent *ow_recent_create(void);
void ow_recent_free(struct ow_recent *recent);

#define OW_RECENT_ID UINT32_C(0xffffff00)

static inline uint32_t ow_recent_seconds(const struct ow_recent *recent, int64_t time_ns)
{
	return ((uint64_t)time_ns - (uint64_t)recent->origin_ns) >> 30 & 0xff; /* accurate enough: 1.07 s */
}

static inline uint32_t ow_recent_tag(uint64_t id)
{
	return (uint32_t)(id >> 32) & OW_RECENT_ID;
}

static inline unsigned ow_recent_set(uint64_t id)
{
	return (unsigned)id & (OW_RECENT_SETS - 1);
}

/* Half of a set. In registers: a copy in memory would be read back before it is written. */
typedef uint32_t ow_recent_half __attribute__((vector_size(16)));

static inline void ow_recent_add(struct ow_recent *recent, uint64_t id, int64_t time_ns)
{
	uint32_t *way = recent->set[ow_recent_set(id)];
	ow_recent_half newer, older;
	memcpy(&newer, way, sizeof newer);
	memcpy(&older, way + 3, sizeof older);
	memcpy(way + 1, &newer, sizeof newer);
	memcpy(way + 4, &older, sizeof older);
	way[0] = ow_recent_tag(id) | ow_recent_seconds(recent, time_ns);
}

/* Whether an entry for the id is young enough. Not inlined, because it is rarely called. */
bool ow_recent_young(const struct ow_recent *recent, uint64_t id, int64_t time_ns, int64_t within_ns);

/* Whether the id was added within the last within_ns (to the second, at least one). */
static inline bool ow_recent_has(const struct ow_recent *recent, uint64_t id, int64_t time_ns, int64_t within_ns)
{
	ow_recent_half half[2];
	memcpy(half, recent->set[ow_recent_set(id)], sizeof half);
	ow_recent_half same = ((half[0] ^ ow_recent_tag(id)) & OW_RECENT_ID) == 0;
	same |= ((half[1] ^ ow_recent_tag(id)) & OW_RECENT_ID) == 0;
	uint64_t found[2];
	memcpy(found, &same, sizeof found);
	return (found[0] | found[1]) && ow_recent_young(recent, id, time_ns, within_ns);
}

static inline void ow_recent_prefetch(const struct ow_recent *recent, uint64_t id)
{
	__builtin_prefetch(recent->set[ow_recent_set(id)], 1);
}
