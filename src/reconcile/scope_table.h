/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Internal to scope: a bounded table of entries by key. It grows up to a limit; then the quarter of the entries that
 * was not used for longest goes, but nothing that was used in the present tick.
 */

#define OW_SCOPE_LINE 64 /* of the cache: an entry whose size is a multiple of it begins with one */

/* The first member of an entry. A new entry is zero but for this. */
struct ow_scope_entry {
	uint64_t key; /* 0 = free */
	int32_t used; /* tick */
};

struct ow_scope_table {
	uint8_t *slot;
	size_t size; /* of an entry */
	size_t slots, slots_max, used;
	uint64_t secret;
	int32_t full;   /* tick in which nothing could go */
	uint64_t moves; /* how often entries have moved */
};

/* slots_max: a power of two; three quarters of them are used. */
void ow_scope_table_init(struct ow_scope_table *table, size_t entry_size, size_t slots_max, uint64_t secret);
void ow_scope_table_done(struct ow_scope_table *table);
/* Loads so many lines of the place where the entry probably is. */
void ow_scope_table_prefetch(const struct ow_scope_table *table, uint64_t key, size_t lines);
/* NULL: there is none. */
void *ow_scope_table_find(const struct ow_scope_table *table, uint64_t key);
/* Finds or adds. NULL: full, or out of memory. Entries move when one is added. */
void *ow_scope_table_get(struct ow_scope_table *table, uint64_t key, int32_t tick);
