/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of clock offsets as shortest paths: clock_bounds.h. */
#include "discovery/clock_bounds.h"

#include "base/array.h"
#include "base/id_map.h"
#include "base/random.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONTRADICTIONS_MAX 32 /* with more, clocks are not what we think they are */
#define FAR                INT64_MAX
#define NOBODY             UINT32_MAX

struct bound {
	uint32_t from, to;
	int64_t most_ns;
	uint32_t packets; /* that gave it */
	bool dropped;
};

struct heap_item {
	int64_t distance;
	uint32_t clock;
};

struct ow_clock_bounds {
	uint32_t clocks;
	struct bound *bound;
	uint32_t count, room;
	struct ow_id_map map;
	bool solved;
	uint32_t *first, *by_from; /* bounds by the clock that they start from */
	int64_t *potential;
	uint32_t *reason;   /* the bound that gave the potential */
	int64_t **distance; /* from a clock to all; NULL: not asked yet */
	struct heap_item *heap;
	size_t heap_count, heap_room;
};

int ow_clock_bounds_create(struct ow_clock_bounds **ret_bounds)
{
	struct ow_clock_bounds *bounds = calloc(1, sizeof *bounds);
	if (!bounds)
		return -ENOMEM;
	*ret_bounds = bounds;
	return 0;
}

static void forget(struct ow_clock_bounds *bounds)
{
	for (uint32_t i = 0; bounds->distance && i < bounds->clocks; i++)
		free(bounds->distance[i]);
	free(bounds->distance);
	free(bounds->first);
	free(bounds->by_from);
	free(bounds->potential);
	free(bounds->reason);
	bounds->distance = NULL;
	bounds->first = bounds->by_from = bounds->reason = NULL;
	bounds->potential = NULL;
	bounds->count = bounds->clocks = 0;
	bounds->solved = false;
	ow_id_map_clear(&bounds->map);
}

void ow_clock_bounds_free(struct ow_clock_bounds *bounds)
{
	if (!bounds)
		return;
	forget(bounds);
	free(bounds->bound);
	free(bounds->heap);
	ow_id_map_done(&bounds->map);
	free(bounds);
}

int ow_clock_bounds_reset(struct ow_clock_bounds *bounds, uint32_t clocks)
{
	forget(bounds);
	bounds->first = calloc(clocks + 2, sizeof *bounds->first);
	bounds->potential = calloc(clocks + 1, sizeof *bounds->potential);
	bounds->reason = calloc(clocks + 1, sizeof *bounds->reason);
	bounds->distance = calloc(clocks + 1, sizeof *bounds->distance);
	if (!bounds->first || !bounds->potential || !bounds->reason || !bounds->distance) {
		forget(bounds);
		return -ENOMEM;
	}
	bounds->clocks = clocks;
	return 0;
}

int ow_clock_bounds_add(struct ow_clock_bounds *bounds, uint32_t from, uint32_t to, int64_t most_ns)
{
	uint64_t key = (uint64_t)from << 32 | to;
	if (from == to)
		return 0;
	uint32_t found =
		OW_ID_MAP_FIND(&bounds->map, key, i, bounds->bound[i].from == from && bounds->bound[i].to == to);
	if (found != OW_ID_MAP_NONE) {
		struct bound *known = &bounds->bound[found];
		known->packets++;
		known->most_ns = most_ns < known->most_ns ? most_ns : known->most_ns;
		return 0;
	}
	if (OW_GROW(bounds->bound, bounds->room, bounds->count + 1) < 0 ||
	    ow_id_map_add(&bounds->map, key, bounds->count) < 0)
		return -ENOMEM;
	bounds->bound[bounds->count++] = (struct bound){.from = from, .to = to, .most_ns = most_ns, .packets = 1};
	return 0;
}

/* Puts the bounds in the order of the clocks that they start from. */
static int arrange(struct ow_clock_bounds *bounds)
{
	uint32_t *at = bounds->first;
	bounds->by_from = calloc(bounds->count + 1, sizeof *bounds->by_from);
	if (!bounds->by_from)
		return -ENOMEM;
	for (uint32_t i = 0; i < bounds->count; i++)
		at[bounds->bound[i].from + 2]++;
	for (uint32_t c = 0; c < bounds->clocks; c++)
		at[c + 2] += at[c + 1];
	for (uint32_t i = 0; i < bounds->count; i++)
		bounds->by_from[at[bounds->bound[i].from + 1]++] = i;
	return 0;
}

/* The bounds that gave the potentials lead back in a circle: drops the one with the fewest packets. */
static void drop_weakest(struct ow_clock_bounds *bounds, uint32_t clock)
{
	for (uint32_t i = 0; i < bounds->clocks; i++) /* into the circle */
		clock = bounds->bound[bounds->reason[clock]].from;
	struct bound *weakest = NULL;
	uint32_t at = clock;
	do {
		struct bound *bound = &bounds->bound[bounds->reason[at]];
		if (!weakest || bound->packets < weakest->packets)
			weakest = bound;
		at = bound->from;
	} while (at != clock);
	weakest->dropped = true;
}

/* Potentials from 0 everywhere. Returns 1 if there was a contradiction, of which a bound was dropped. */
static int relax(struct ow_clock_bounds *bounds)
{
	uint32_t changed = NOBODY;
	memset(bounds->potential, 0, bounds->clocks * sizeof *bounds->potential);
	for (uint32_t i = 0; i < bounds->clocks; i++)
		bounds->reason[i] = NOBODY;
	for (uint32_t round = 0; round <= bounds->clocks; round++) {
		changed = NOBODY;
		for (uint32_t i = 0; i < bounds->count; i++) {
			const struct bound *b = &bounds->bound[i];
			int64_t least = bounds->potential[b->from] + b->most_ns;
			if (b->dropped || least >= bounds->potential[b->to])
				continue;
			bounds->potential[b->to] = least;
			bounds->reason[b->to] = i;
			changed = b->to;
		}
		if (changed == NOBODY)
			return 0;
	}
	drop_weakest(bounds, changed);
	return 1;
}

int ow_clock_bounds_solve(struct ow_clock_bounds *bounds)
{
	int dropped = 0, r = arrange(bounds);
	while (r == 0 && relax(bounds) == 1) {
		if (++dropped > CONTRADICTIONS_MAX)
			return -ELOOP;
	}
	bounds->solved = r == 0;
	return r < 0 ? r : dropped;
}

/* -- the search ---------------------------------------------------------------------------------------------------- */

static int heap_push(struct ow_clock_bounds *bounds, int64_t distance, uint32_t clock)
{
	if (OW_GROW(bounds->heap, bounds->heap_room, bounds->heap_count + 1) < 0)
		return -ENOMEM;
	size_t at = bounds->heap_count++;
	while (at > 0 && bounds->heap[(at - 1) / 2].distance > distance) {
		bounds->heap[at] = bounds->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	bounds->heap[at] = (struct heap_item){distance, clock};
	return 0;
}

static struct heap_item heap_pop(struct ow_clock_bounds *bounds)
{
	struct heap_item least = bounds->heap[0], last = bounds->heap[--bounds->heap_count];
	size_t at = 0;
	for (size_t child = 1; child < bounds->heap_count; child = 2 * at + 1) {
		if (child + 1 < bounds->heap_count && bounds->heap[child + 1].distance < bounds->heap[child].distance)
			child++;
		if (bounds->heap[child].distance >= last.distance)
			break;
		bounds->heap[at] = bounds->heap[child];
		at = child;
	}
	bounds->heap[at] = last;
	return least;
}

/* Distances with the potentials taken off are not negative. */
static int walk(struct ow_clock_bounds *bounds, int64_t *distance)
{
	while (bounds->heap_count) {
		struct heap_item item = heap_pop(bounds);
		if (item.distance > distance[item.clock])
			continue;
		for (uint32_t k = bounds->first[item.clock]; k < bounds->first[item.clock + 1]; k++) {
			const struct bound *b = &bounds->bound[bounds->by_from[k]];
			int64_t more = b->most_ns + bounds->potential[b->from] - bounds->potential[b->to];
			if (b->dropped || item.distance + more >= distance[b->to])
				continue;
			distance[b->to] = item.distance + more;
			if (heap_push(bounds, distance[b->to], b->to) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int search(struct ow_clock_bounds *bounds, uint32_t from)
{
	int64_t *distance = malloc((bounds->clocks + 1) * sizeof *distance);
	int r = distance ? 0 : -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < bounds->clocks; i++)
		distance[i] = FAR;
	bounds->heap_count = 0;
	if (r == 0) {
		distance[from] = 0;
		r = heap_push(bounds, 0, from);
	}
	if (r == 0)
		r = walk(bounds, distance);
	if (r < 0) {
		free(distance);
		return r;
	}
	for (uint32_t i = 0; i < bounds->clocks; i++) {
		if (distance[i] != FAR)
			distance[i] += bounds->potential[i] - bounds->potential[from];
	}
	bounds->distance[from] = distance;
	return 0;
}

int ow_clock_bounds_between(struct ow_clock_bounds *bounds, uint32_t from, uint32_t to, int64_t *ret_least_ns,
                            int64_t *ret_most_ns)
{
	*ret_least_ns = INT64_MIN;
	*ret_most_ns = INT64_MAX;
	if (!bounds->solved || from >= bounds->clocks || to >= bounds->clocks)
		return 0;
	if ((!bounds->distance[from] && search(bounds, from) < 0) || (!bounds->distance[to] && search(bounds, to) < 0))
		return -ENOMEM;
	if (bounds->distance[to][from] != FAR)
		*ret_least_ns = -bounds->distance[to][from];
	if (bounds->distance[from][to] != FAR)
		*ret_most_ns = bounds->distance[from][to];
	return 0;
}
