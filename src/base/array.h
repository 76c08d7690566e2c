/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <errno.h>
#include <stddef.h>

/* Returns memory for at least `needed` items, one or more; *room doubles until it is enough. NULL: out of memory, and
 * `items` and *room are unchanged. */
void *ow_grow(void *items, size_t *room, size_t needed, size_t item_size);
/* The same; new items are zero. */
void *ow_grow_zeroed(void *items, size_t *room, size_t needed, size_t item_size);

/* The same for an array whose room is of any integer type. Returns 0 or -ENOMEM. */
#define OW_GROW(items, room, needed)        OW_GROW_BY(ow_grow, items, room, needed)
#define OW_GROW_ZEROED(items, room, needed) OW_GROW_BY(ow_grow_zeroed, items, room, needed)

#define OW_GROW_BY(grow, items, room, needed)                                    \
	({                                                                       \
		size_t room_ = (room), needed_ = (needed);                       \
		void *grown_ = (items);                                          \
		if (room_ < needed_ || !grown_) {                                \
			grown_ = grow(grown_, &room_, needed_, sizeof *(items)); \
			if (grown_) {                                            \
				(items) = grown_;                                \
				(room) = (__typeof__(room))room_;                \
			}                                                        \
		}                                                                \
		grown_ ? 0 : -ENOMEM;                                            \
	})
