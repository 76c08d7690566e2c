/* SPDX-License-Identifier: Apache-2.0 */
/* A growing set of packet keys. */
#include "reconcile/keyset.h"

#include <errno.h>
#include <stdlib.h>

#define KEYS_FIRST 32u

static void set_bit(struct ow_keyset *set, uint64_t key)
{
	set->bits[(key & set->bit_mask) / 64] |= UINT64_C(1) << key % 64;
}

/* At least 64 bits for each key: one in 64 absent keys passes the filter. */
static int grow(struct ow_keyset *set)
{
	size_t room = set->room ? 2 * set->room : KEYS_FIRST;
	uint64_t *key = reallocarray(set->key, room, sizeof *key), *bits = calloc(room, sizeof *bits);
	if (key)
		set->key = key;
	if (!key || !bits) {
		free(bits);
		return -ENOMEM;
	}
	free(set->bits);
	set->bits = bits;
	set->bit_mask = room * 64 - 1;
	set->room = room;
	for (size_t i = 0; i < set->used; i++)
		set_bit(set, key[i]);
	return 0;
}

int ow_keyset_add(struct ow_keyset *set, uint64_t key)
{
	if (ow_keyset_has(set, key))
		return 0;
	int r = set->used == set->room ? grow(set) : 0;
	if (r == 0)
		r = ow_id_map_add(&set->by_key, key, (uint32_t)set->used);
	if (r < 0)
		return r;
	set->key[set->used++] = key;
	set_bit(set, key);
	return 0;
}

void ow_keyset_done(struct ow_keyset *set)
{
	free(set->key);
	ow_id_map_done(&set->by_key);
	free(set->bits);
	*set = (struct ow_keyset){0};
}
