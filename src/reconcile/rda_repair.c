/* SPDX-License-Identifier: Apache-2.0 */
/* Repair of RDA and sRDA: removes packets that only one point saw from its table, with their cached times. */
#include "reconcile/rda_peel.h"

#include "base/id_map.h"
#include "synopsis/rda.h"
#include "synopsis/srda.h"
#include <errno.h>
#include <stdlib.h>

/* Takes the packets out, the latest first. erased: one for each id, false. */
static size_t erase(struct ow_synopsis *synopsis, const struct ow_id_map *wanted, const uint64_t *ids, size_t count,
                    const struct ow_sighting *cache, size_t cached, bool *erased)
{
	bool rda = synopsis->ops->kind == OW_SYNOPSIS_RDA;
	size_t done = 0;
	for (size_t i = cached; i-- > 0 && done < count;) {
		uint64_t id = rda ? ow_rda_id(ow_rda_of(synopsis), cache[i].id) : cache[i].id;
		uint32_t at = OW_ID_MAP_FIND(wanted, id, j, ids[j] == id);
		if (at == OW_ID_MAP_NONE || erased[at])
			continue;
		erased[at] = true;
		done++;
		synopsis->ops->remove(synopsis, cache + i, 1);
	}
	return done;
}

int ow_rda_erase(struct ow_synopsis *synopsis, const uint64_t *ids, size_t count, const struct ow_sighting *cache,
                 size_t cached, size_t *ret_erased)
{
	struct ow_id_map wanted = {0};
	bool *erased = calloc(count + 1, sizeof *erased);
	int r = erased ? ow_id_map_reserve(&wanted, count) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = ow_id_map_add(&wanted, ids[i], (uint32_t)i);
	if (r == 0)
		*ret_erased = erase(synopsis, &wanted, ids, count, cache, cached, erased);
	ow_id_map_done(&wanted);
	free(erased);
	return r;
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
