/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_BASE_ARRAY_H
#define OW_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>

/* Items in memory for at least `needed` of them, one or more; *room doubles until it is enough. NULL: not enough
 * memory, and all is as it was. */
void *ow_grow(void *items, size_t *room, size_t needed, size_t item_size);

/* The same for an array whose room is of any integer type: 0 or -ENOMEM. */
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
