/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that pairs of networks waste: a small table, from which those that wasted nothing for longest go. */
#include "reconcile/scope_waste.h"

#include "base/array.h"
#include <math.h>
#include <stdlib.h>

#define KEEPS      .9
#define TICK_SHIFT 4 /* a tick of the table is 2^4 intervals */

struct wasted {
	struct ow_scope_entry entry; /* of the pair */
	float waste, flows;
	int64_t interval; /* that they are of */
};

void ow_scope_waste_init(struct ow_scope_waste *waste, uint64_t secret)
{
	*waste = (struct ow_scope_waste){0};
	ow_scope_table_init(&waste->table, sizeof(struct wasted), OW_SCOPE_WASTE_MAX / 3 * 4, secret);
}

void ow_scope_waste_done(struct ow_scope_waste *waste)
{
	ow_scope_table_done(&waste->table);
	free(waste->fine);
	ow_scope_waste_init(waste, waste->table.secret);
}

/* Brings an entry to this interval. */
static void age(struct wasted *wasted, int64_t interval)
{
	if (interval <= wasted->interval)
		return;
	float keeps = (float)pow(KEEPS, (double)(interval - wasted->interval));
	wasted->waste *= keeps;
	wasted->flows *= keeps;
	wasted->interval = interval;
}

void ow_scope_waste_add(struct ow_scope_waste *waste, uint64_t pair_key, int64_t interval, float bytes)
{
	struct wasted *wasted = ow_scope_table_get(&waste->table, pair_key, (int32_t)(interval >> TICK_SHIFT));
	if (!wasted)
		return;
	age(wasted, interval);
	wasted->waste += bytes;
	if (wasted->waste <= 4 * wasted->flows + 8)
		return;
	if (waste->fines < OW_SCOPE_WASTE_MAX && OW_GROW(waste->fine, waste->room, waste->fines + 1) == 0) {
		waste->fine[waste->fines++] = pair_key;
		wasted->waste = 0;
	}
}

void ow_scope_waste_flow(struct ow_scope_waste *waste, uint64_t pair_key, int64_t interval)
{
	struct wasted *wasted = ow_scope_table_find(&waste->table, pair_key);
	if (!wasted)
		return;
	age(wasted, interval);
	wasted->flows++;
}
