/* SPDX-License-Identifier: Apache-2.0 */
#include "match/duplicate_filter.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* 2^17 packets: of those with 50,000 others before their copy one in a hundred is forgotten, with 20,000 one in 25,000.
 */
#define SETS 16384u /* power of two */
#define WAYS 8u

struct slot {
	uint64_t id; /* 0 = free */
	int64_t time_ns;
};

struct ow_dedup {
	struct slot slot[SETS][WAYS];
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
	struct slot *set = copies->slot[(size_t)(id >> 40) & (SETS - 1)], *oldest = set;
	for (struct slot *slot = set; slot < set + WAYS; slot++) {
		if (slot->id == id) {
			uint64_t apart = (uint64_t)record->time_ns - (uint64_t)slot->time_ns;
			if (record->time_ns < slot->time_ns)
				apart = -apart;
			slot->time_ns = apart <= (uint64_t)within_ns ? slot->time_ns : record->time_ns;
			return apart <= (uint64_t)within_ns;
		}
		if (!slot->id || (oldest->id && slot->time_ns < oldest->time_ns))
			oldest = slot;
	}
	*oldest = (struct slot){id, record->time_ns};
	return false;
}
