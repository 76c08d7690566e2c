/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/recent.h"

#include <stdlib.h>
#include <string.h>

#define SETS 32768u /* power of two */
#define WAYS 8

struct ow_recent {
	uint64_t set[SETS][WAYS]; /* newest first: upper 48 bits of the id, then 16 bits of seconds */
};

#define ID_MASK UINT64_C(0xffffffffffff0000)

static uint64_t seconds(int64_t time_ns)
{
	return (uint64_t)(time_ns / 1000000000) & 0xffff;
}

/* The low bits choose the set, the upper 48 name the id: together all 64 bits but one are compared. */
static unsigned set_of(uint64_t id)
{
	return (unsigned)id & (SETS - 1);
}

struct ow_recent *ow_recent_create(void)
{
	struct ow_recent *r = aligned_alloc(64, sizeof *r);
	if (r)
		memset(r, 0, sizeof *r);
	return r;
}

void ow_recent_free(struct ow_recent *recent)
{
	free(recent);
}

void ow_recent_add(struct ow_recent *recent, uint64_t id, int64_t time_ns)
{
	uint64_t *way = recent->set[set_of(id)];
	memmove(way + 1, way, (WAYS - 1) * sizeof *way);
	way[0] = (id & ID_MASK) | seconds(time_ns);
}

bool ow_recent_has(const struct ow_recent *recent, uint64_t id, int64_t time_ns, int64_t within_ns)
{
	const uint64_t *way = recent->set[set_of(id)];
	for (int i = 0; i < WAYS; i++) {
		if (((way[i] ^ id) & ID_MASK) != 0 || way[i] == 0)
			continue;
		uint64_t age = (seconds(time_ns) - way[i]) & 0xffff;
		if (age > 0x7fff)
			age = 0x10000 - age; /* clocks that go backwards */
		if (age <= (uint64_t)(within_ns / 1000000000) + 1)
			return true;
	}
	return false;
}

void ow_recent_prefetch(const struct ow_recent *recent, uint64_t id)
{
	__builtin_prefetch(recent->set[set_of(id)], 1);
}
