/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the old and the new segments, sorted by name. */
#include "plane/turnover.h"
#include "plane/route.h"
#include "plane/sets.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	char *name;
	int64_t until_ns; /* INT64_MAX = current */
};

struct ow_turnover {
	int64_t hold_ns;
	struct entry *entry; /* by name */
	uint32_t count;
};

struct names {
	char **name;
	uint32_t count, room;
};

int ow_turnover_create(int64_t hold_ns, struct ow_turnover **ret_turnover)
{
	struct ow_turnover *turnover = calloc(1, sizeof(*turnover));
	if (!turnover)
		return -ENOMEM;
	turnover->hold_ns = hold_ns;
	*ret_turnover = turnover;
	return 0;
}

void ow_turnover_free(struct ow_turnover *turnover)
{
	if (!turnover)
		return;
	for (uint32_t i = 0; i < turnover->count; i++)
		free(turnover->entry[i].name);
	free(turnover->entry);
	free(turnover);
}

static void names_done(struct names *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		free(names->name[i]);
	free(names->name);
}

static int add_name(struct names *names, const char *name)
{
	if (OW_GROW(names->name, names->room, names->count + 1) < 0)
		return -ENOMEM;
	names->name[names->count] = strdup(name);
	return names->name[names->count++] ? 0 : -ENOMEM;
}

/* The segments of one owner. */
static int add_owner(const struct ow_topology *topology, const bool *is_mrouter, uint32_t owner, struct names *names,
                     struct ow_error *err)
{
	struct ow_paths *segments;
	char name[OW_PLACE_TEXT];
	int r = ow_mset_find(topology, owner, is_mrouter, &segments, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; r == 0 && i < ow_paths_count(segments); i++) {
		struct ow_way way = {0};
		const uint16_t *node = ow_paths_get(segments, i, &way.nodes);
		way.node = (uint16_t *)node;
		if (!ow_place_text(topology, &way, &(struct ow_place){false, 0, way.nodes}, name))
			r = ow_error_set(err, E2BIG, "the name of a segment has more than %d bytes", OW_PLACE_TEXT - 1);
		else if (add_name(names, name) < 0)
			r = ow_error_set(err, ENOMEM, "out of memory");
	}
	ow_paths_free(segments);
	return r;
}

static int by_name(const void *pa, const void *pb)
{
	return strcmp(*(char *const *)pa, *(char *const *)pb);
}

/* Merges the sorted names into the sorted entries. Names that were moved into an entry become NULL. */
static int merge(struct ow_turnover *turnover, struct names *names, int64_t now_ns, ow_turnover_sink *sink, void *arg)
{
	struct entry *merged = calloc((size_t)turnover->count + names->count + 1, sizeof(*merged));
	uint32_t count = 0, i = 0, n = 0;
	if (!merged)
		return -ENOMEM;
	while (i < turnover->count || n < names->count) {
		int order = i == turnover->count ? 1
		            : n == names->count  ? -1
		                                 : strcmp(turnover->entry[i].name, names->name[n]);
		if (order > 0) {
			merged[count] = (struct entry){names->name[n], INT64_MAX};
			names->name[n++] = NULL;
			sink(arg, OW_TURNOVER_NEW, merged[count++].name);
			continue;
		}
		struct entry entry = turnover->entry[i++];
		if (order < 0 && entry.until_ns == INT64_MAX) {
			entry.until_ns = now_ns + turnover->hold_ns;
			sink(arg, OW_TURNOVER_OLD, entry.name);
		} else if (order == 0 && entry.until_ns != INT64_MAX) {
			entry.until_ns = INT64_MAX;
			sink(arg, OW_TURNOVER_BACK, entry.name);
		}
		n += order == 0;
		merged[count++] = entry;
	}
	free(turnover->entry);
	turnover->entry = merged;
	turnover->count = count;
	return 0;
}

int ow_turnover_network(struct ow_turnover *turnover, const struct ow_topology *topology, const bool *is_mrouter,
                        const bool *owners, int64_t now_ns, ow_turnover_sink *sink, void *arg, struct ow_error *err)
{
	struct names names = {0};
	int r = 0;
	for (uint32_t i = 0; r == 0 && i < ow_topology_nodes(topology); i++)
		if (!owners || owners[i])
			r = add_owner(topology, is_mrouter, i, &names, err);
	if (r == 0) {
		if (names.count)
			qsort(names.name, names.count, sizeof(char *), by_name);
		if (merge(turnover, &names, now_ns, sink, arg) < 0)
			r = ow_error_set(err, ENOMEM, "out of memory");
	}
	names_done(&names);
	return r;
}

int64_t ow_turnover_expire(struct ow_turnover *turnover, int64_t now_ns, ow_turnover_sink *sink, void *arg)
{
	int64_t next_ns = INT64_MAX;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < turnover->count; i++) {
		struct entry entry = turnover->entry[i];
		if (entry.until_ns <= now_ns) {
			sink(arg, OW_TURNOVER_GONE, entry.name);
			free(entry.name);
			continue;
		}
		next_ns = entry.until_ns < next_ns ? entry.until_ns : next_ns;
		turnover->entry[kept++] = entry;
	}
	turnover->count = kept;
	return next_ns;
}
