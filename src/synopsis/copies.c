/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the occurrences of each id in a hash table with open addressing; ids are uniform, so their bits are the hash.
 */
#include "synopsis/copies.h"

#include <errno.h>
#include <stdlib.h>

struct slot {
	uint64_t id, last; /* last: name of its last occurrence */
	bool used;
};

int ow_copies_rename(struct ow_stamp *stamps, size_t count)
{
	/* At most 3 of 4 slots in use, at least 3 of 8. */
	size_t room = 16;
	while (room / 4 * 3 < count)
		room *= 2;
	struct slot *table = calloc(room, sizeof *table);
	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		uint64_t id = stamps[i].id;
		size_t at = id >> 13 & (room - 1);
		while (table[at].used && table[at].id != id)
			at = (at + 1) & (room - 1);
		if (table[at].used)
			stamps[i].id = ow_copy_next(table[at].last);
		table[at] = (struct slot){id, stamps[i].id, true};
	}
	free(table);
	return 0;
}
