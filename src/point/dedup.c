/* SPDX-License-Identifier: Apache-2.0 */
#include "point/dedup.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 65536u /* power of two */

struct ow_dedup {
	struct {
		uint64_t id; /* 0 = free */
		int64_t time_ns;
	} slot[SLOTS];
};

struct ow_dedup *ow_dedup_create(void)
{
	return calloc(1, sizeof(struct ow_dedup));
}

void ow_dedup_free(struct ow_dedup *copies)
{
	free(copies);
}

void ow_dedup_reset(struct ow_dedup *copies)
{
	memset(copies, 0, sizeof *copies);
}

bool ow_dedup_seen(struct ow_dedup *copies, const struct ow_record *record, int64_t within_ns)
{
	/* A piece of a train is the same only if it is the same piece. */
	uint64_t id = record->len ? ow_mix64(record->id ^ ((uint64_t)record->seq << 32 | record->len)) : record->id;
	id += id == 0;
	size_t i = (size_t)(id >> 40) & (SLOTS - 1);
	uint64_t apart = (uint64_t)record->time_ns - (uint64_t)copies->slot[i].time_ns;
	if (record->time_ns < copies->slot[i].time_ns)
		apart = -apart;
	if (copies->slot[i].id == id && apart <= (uint64_t)within_ns)
		return true;
	copies->slot[i].id = id;
	copies->slot[i].time_ns = record->time_ns;
	return false;
}
