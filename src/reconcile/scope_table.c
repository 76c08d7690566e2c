/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded table with open addressing. */
#include "reconcile/scope_table.h"

#include "base/hash.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 64u
#define AGES      256 /* ticks that are told apart when entries go */

void ow_scope_table_init(struct ow_scope_table *table, size_t entry_size, size_t slots_max, uint64_t secret)
{
	*table = (struct ow_scope_table){
		.size = entry_size, .slots_max = slots_max, .secret = secret, .full = INT32_MIN};
}

void ow_scope_table_done(struct ow_scope_table *table)
{
	free(table->slot);
	ow_scope_table_init(table, table->size, table->slots_max, table->secret);
}

static struct ow_scope_entry *at(const struct ow_scope_table *table, uint8_t *slot, size_t i)
{
	return (void *)(slot + i * table->size);
}

static size_t first_slot(const struct ow_scope_table *table, size_t slots, uint64_t key)
{
	return ow_mum64(key ^ table->secret, UINT64_C(0x9fb21c651e98df25)) & (slots - 1);
}

void ow_scope_table_prefetch(const struct ow_scope_table *table, uint64_t key, size_t lines)
{
	if (!table->slots)
		return;
	const uint8_t *entry = table->slot + first_slot(table, table->slots, key + !key) * table->size;
	for (size_t line = 0; line < lines; line++)
		__builtin_prefetch(entry + line * OW_SCOPE_LINE, 1);
}

static struct ow_scope_entry *place(const struct ow_scope_table *table, uint8_t *slot, size_t slots, uint64_t key)
{
	size_t i = first_slot(table, slots, key);
	while (at(table, slot, i)->key && at(table, slot, i)->key != key)
		i = (i + 1) & (slots - 1);
	return at(table, slot, i);
}

void *ow_scope_table_find(const struct ow_scope_table *table, uint64_t key)
{
	if (!table->slots)
		return NULL;
	struct ow_scope_entry *entry = place(table, table->slot, table->slots, key + !key);
	return entry->key ? entry : NULL;
}

static int age_of(const struct ow_scope_entry *entry, int32_t tick)
{
	int64_t age = (int64_t)tick - entry->used;
	return age < 0 ? 0 : age < AGES ? (int)age : AGES - 1;
}

/* The least age of what is to go: a quarter, and nothing of age 0. AGES: nothing. */
static int oldest_quarter(const struct ow_scope_table *table, int32_t tick)
{
	size_t ages[AGES] = {0}, goes = 0;
	for (size_t i = 0; i < table->slots; i++) {
		const struct ow_scope_entry *entry = at(table, table->slot, i);
		if (entry->key)
			ages[age_of(entry, tick)]++;
	}
	int least = AGES;
	while (least > 1 && goes < table->used / 4)
		goes += ages[--least];
	return goes ? least : AGES;
}

static int rebuild(struct ow_scope_table *table, size_t slots, int32_t tick, int least)
{
	uint8_t *slot = aligned_alloc(OW_SCOPE_LINE, slots * table->size);
	if (!slot)
		return -ENOMEM;
	memset(slot, 0, slots * table->size);
	table->used = 0;
	for (size_t i = 0; i < table->slots; i++) {
		const struct ow_scope_entry *entry = at(table, table->slot, i);
		if (!entry->key || age_of(entry, tick) >= least)
			continue;
		memcpy(place(table, slot, slots, entry->key), entry, table->size);
		table->used++;
	}
	free(table->slot);
	table->slot = slot;
	table->slots = slots;
	table->moves++;
	return 0;
}

static int make_room(struct ow_scope_table *table, int32_t tick)
{
	if (table->slots < table->slots_max)
		return rebuild(table, table->slots ? 2 * table->slots : SLOTS_MIN, tick, AGES);
	if (table->full == tick)
		return -ENOSPC;
	int least = oldest_quarter(table, tick);
	if (least == AGES) {
		table->full = tick;
		return -ENOSPC;
	}
	return rebuild(table, table->slots, tick, least);
}

void *ow_scope_table_get(struct ow_scope_table *table, uint64_t key, int32_t tick)
{
	key += !key; /* 0 is a free slot */
	struct ow_scope_entry *entry = ow_scope_table_find(table, key);
	if (!entry) {
		if (4 * (table->used + 1) > 3 * table->slots && make_room(table, tick) < 0)
			return NULL;
		entry = place(table, table->slot, table->slots, key);
		entry->key = key;
		table->used++;
	}
	entry->used = tick > entry->used ? tick : entry->used;
	return entry;
}
