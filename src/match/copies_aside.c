/* SPDX-License-Identifier: Apache-2.0 */
#include "match/copies_aside.h"

#include <stdlib.h>
#include <string.h>

#define ROOM   131072u /* power of two */
#define NOBODY UINT32_MAX

struct entry {
	struct ow_record record;
	uint32_t next; /* next one in the same bucket, younger */
	bool used;
};

struct ow_copies_aside {
	struct entry entry[ROOM]; /* a ring */
	uint32_t first[ROOM], last[ROOM];
	uint32_t added;
};

static uint32_t bucket_of(uint64_t id)
{
	return (uint32_t)(id >> 20) & (ROOM - 1);
}

struct ow_copies_aside *ow_copies_aside_create(void)
{
	struct ow_copies_aside *aside = malloc(sizeof *aside);
	if (aside)
		ow_copies_aside_reset(aside);
	return aside;
}

void ow_copies_aside_free(struct ow_copies_aside *aside)
{
	free(aside);
}

void ow_copies_aside_reset(struct ow_copies_aside *aside)
{
	memset(aside->first, 0xff, sizeof aside->first);
	memset(aside->last, 0xff, sizeof aside->last);
	for (uint32_t i = 0; i < ROOM; i++)
		aside->entry[i].used = false;
	aside->added = 0;
}

/* before: the previous entry of its bucket, or NOBODY. */
static void take_out(struct ow_copies_aside *aside, uint32_t bucket, uint32_t before, uint32_t i)
{
	uint32_t next = aside->entry[i].next;
	if (before == NOBODY)
		aside->first[bucket] = next;
	else
		aside->entry[before].next = next;
	if (next == NOBODY)
		aside->last[bucket] = before;
	aside->entry[i].used = false;
}

void ow_copies_aside_add(struct ow_copies_aside *aside, const struct ow_record *record)
{
	uint32_t i = aside->added++ & (ROOM - 1), bucket = bucket_of(record->id);
	struct entry *e = &aside->entry[i];
	if (e->used) /* the oldest entry of all is the oldest of its bucket */
		take_out(aside, bucket_of(e->record.id), NOBODY, i);
	*e = (struct entry){*record, NOBODY, true};
	if (aside->last[bucket] == NOBODY)
		aside->first[bucket] = i;
	else
		aside->entry[aside->last[bucket]].next = i;
	aside->last[bucket] = i;
}

bool ow_copies_aside_take(struct ow_copies_aside *aside, uint64_t id, int64_t from_ns, int64_t to_ns,
                          struct ow_record *ret_record)
{
	uint32_t bucket = bucket_of(id), before = NOBODY;
	for (uint32_t i = aside->first[bucket], next; i != NOBODY; i = next) {
		const struct ow_record *r = &aside->entry[i].record;
		bool same = r->id == id, old = r->time_ns < from_ns;
		next = aside->entry[i].next;
		if (!same || (!old && r->time_ns > to_ns)) {
			before = i;
			continue;
		}
		*ret_record = *r;
		take_out(aside, bucket, before, i);
		if (!old)
			return true;
	}
	return false;
}
