/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECONCILE_RECENT_H
#define OW_RECONCILE_RECENT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Remembers the ids that matched lately, to tell a further copy of a packet from one that was never there. A fixed
 * 2 MB table of 4-way sets: the last 2^18 ids or so. An id is forgotten early with the probability that 4 younger ids
 * fell into its set: 2e-5 for the 10,000 ids that pass in 10 ms at 1 M packets/s.
 */
#define OW_RECENT_SETS 65536u /* power of two */
#define OW_RECENT_WAYS 4

struct ow_recent {
	uint64_t set[OW_RECENT_SETS][OW_RECENT_WAYS]; /* newest first: upper 48 bits of the id, then 16 of seconds */
};

struct ow_recent *ow_recent_create(void);
void ow_recent_free(struct ow_recent *recent);

#define OW_RECENT_ID UINT64_C(0xffffffffffff0000)

static inline uint64_t ow_recent_seconds(int64_t time_ns)
{
	return (uint64_t)time_ns >> 30 & 0xffff; /* near enough: 1.07 s */
}

/* The low bits choose the set, the upper 48 name the id: together all 64 bits are compared. */
static inline unsigned ow_recent_set(uint64_t id)
{
	return (unsigned)id & (OW_RECENT_SETS - 1);
}

static inline void ow_recent_add(struct ow_recent *recent, uint64_t id, int64_t time_ns)
{
	uint64_t *way = recent->set[ow_recent_set(id)];
	for (int i = OW_RECENT_WAYS - 1; i > 0; i--)
		way[i] = way[i - 1];
	way[0] = (id & OW_RECENT_ID) | ow_recent_seconds(time_ns);
}

/* Is this entry for the id young enough? Out of line: hardly ever asked. */
bool ow_recent_young(uint64_t entry, int64_t time_ns, int64_t within_ns);

/* Was the id added within the last within_ns (to the second, at least one)? */
static inline bool ow_recent_has(const struct ow_recent *recent, uint64_t id, int64_t time_ns, int64_t within_ns)
{
	const uint64_t *way = recent->set[ow_recent_set(id)];
	for (int i = 0; i < OW_RECENT_WAYS; i++) {
		if (!((way[i] ^ id) & OW_RECENT_ID) && ow_recent_young(way[i], time_ns, within_ns))
			return true;
	}
	return false;
}

static inline void ow_recent_prefetch(const struct ow_recent *recent, uint64_t id)
{
	__builtin_prefetch(recent->set[ow_recent_set(id)], 1);
}

#endif
