/* SPDX-License-Identifier: Apache-2.0 */
/* Repair of RDA and sRDA: packets that only one point saw are taken out of its table with their cached times. */
#include "reconcile/rda_peel.h"

#include "synopsis/rda.h"
#include "synopsis/srda.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ids to look for. A slot is used by one id, at most a quarter of the slots is. */
struct wanted {
	struct slot {
		uint64_t id;
		bool used, erased;
	} * slot;
	size_t mask;
};

static struct slot *find(const struct wanted *wanted, uint64_t id)
{
	size_t at = ow_mix64(id) & wanted->mask;
	while (wanted->slot[at].used && wanted->slot[at].id != id)
		at = (at + 1) & wanted->mask;
	return wanted->slot + at;
}

static int wanted_init(struct wanted *wanted, const uint64_t *ids, size_t count)
{
	size_t room = 16;
	while (room < 4 * count)
		room *= 2;
	wanted->mask = room - 1;
	wanted->slot = calloc(room, sizeof *wanted->slot);
	if (!wanted->slot)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		*find(wanted, ids[i]) = (struct slot){.id = ids[i], .used = true};
	return 0;
}

int ow_rda_erase(struct ow_synopsis *synopsis, const uint64_t *ids, size_t count, const struct ow_sighting *cache,
                 size_t cached, size_t *ret_erased)
{
	size_t erased = 0;
	if (count) {
		struct wanted wanted;
		int r = wanted_init(&wanted, ids, count);
		if (r < 0)
			return r;
		bool rda = synopsis->ops->kind == OW_SYNOPSIS_RDA;
		for (size_t i = cached; i-- > 0 && erased < count;) {
			struct slot *slot =
				find(&wanted, rda ? ow_rda_id(ow_rda_of(synopsis), cache[i].id) : cache[i].id);
			if (!slot->used || slot->erased)
				continue;
			slot->erased = true;
			erased++;
			synopsis->ops->remove(synopsis, cache + i, 1);
		}
		free(wanted.slot);
	}
	*ret_erased = erased;
	return 0;
}

int ow_rda_copy(const struct ow_synopsis *synopsis, struct ow_synopsis **ret_copy)
{
	struct ow_synopsis *copy = NULL;
	int r = synopsis->ops->kind == OW_SYNOPSIS_RDA
	                ? ow_rda_create(&ow_rda_of(synopsis)->params, synopsis->seed, &copy)
	        : synopsis->ops->kind == OW_SYNOPSIS_SRDA
	                ? ow_srda_create(&ow_srda_of(synopsis)->params, synopsis->seed, &copy)
	                : -EINVAL;
	if (r < 0)
		return r;
	r = copy->ops->merge(copy, synopsis);
	*ret_copy = copy;
	return r;
}
