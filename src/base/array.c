/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 16

void *ow_grow(void *items, size_t *room, size_t needed, size_t item_size)
{
	if (needed <= *room && items)
		return items;
	size_t more = *room > ROOM_FIRST / 2 ? *room : ROOM_FIRST / 2;
	if (more > SIZE_MAX / 4)
		return NULL;
	more *= 2;
	if (more < needed)
		more = needed;
	void *grown = reallocarray(items, more, item_size);
	if (grown)
		*room = more;
	return grown;
}

void *ow_grow_zeroed(void *items, size_t *room, size_t needed, size_t item_size)
{
	size_t had = items ? *room : 0;
	char *grown = ow_grow(items, room, needed, item_size);
	if (grown)
		memset(grown + had * item_size, 0, (*room - had) * item_size);
	return grown;
}
