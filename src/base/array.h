/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_BASE_ARRAY_H
#define OW_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>

/* Returns memory for at least `needed` items, one or more; *room doubles until it is enough. NULL: out of memory, and
 * `items` and *room are unchanged. */
void *ow_grow(void *items, size_t *room, size_t needed, size_t item_size);

/* The same for an array whose room is of any integer type. Returns 0 or -ENOMEM. */
#define OW_GROW(items, room, needed)                                                \
	({                                                                          \
		size_t room_ = (room);                                              \
		void *grown_ = ow_grow((items), &room_, (needed), sizeof *(items)); \
		if (grown_) {                                                       \
			(items) = grown_;                                           \
			(room) = (__typeof__(room))room_;                           \
		}                                                                   \
		grown_ ? 0 : -ENOMEM;                                               \
	})

#endif
