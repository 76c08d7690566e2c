/* SPDX-License-Identifier: Apache-2.0 */
/* Dijkstra's algorithm with a heap, keeping all predecessors of equal cost. */
#include "plane/spf.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct heap {
	uint32_t *node; /* by cost, then number */
	uint32_t *place;
	uint32_t count;
	const int64_t *cost;
};

#define NOWHERE UINT32_MAX

static bool before(const struct heap *heap, uint32_t a, uint32_t b)
{
	return heap->cost[a] != heap->cost[b] ? heap->cost[a] < heap->cost[b] : a < b;
}

static void put(struct heap *heap, uint32_t at, uint32_t node)
{
	heap->node[at] = node;
	heap->place[node] = at;
}

static void rise(struct heap *heap, uint32_t at)
{
	uint32_t node = heap->node[at];
	while (at && before(heap, node, heap->node[(at - 1) / 2])) {
		put(heap, at, heap->node[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put(heap, at, node);
}

static uint32_t take(struct heap *heap)
{
	uint32_t top = heap->node[0], node = heap->node[--heap->count], at = 0;
	heap->place[top] = NOWHERE;
	while (heap->count) {
		uint32_t child = at * 2 + 1;
		if (child + 1 < heap->count && before(heap, heap->node[child + 1], heap->node[child]))
			child++;
		if (child >= heap->count || !before(heap, heap->node[child], node)) {
			put(heap, at, node);
			break;
		}
		put(heap, at, heap->node[child]);
		at = child;
	}
	return top;
}

static void relax(const struct ow_topology *topology, struct ow_spf *spf, struct heap *heap, uint32_t node)
{
	uint32_t count;
	const struct ow_link *link = ow_topology_from(topology, node, &count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t to = link[i].to;
		int64_t cost = spf->cost[node] + link[i].cost;
		if (cost >= spf->cost[to])
			continue;
		bool is_new = spf->cost[to] == INT64_MAX;
		spf->cost[to] = cost;
		if (is_new)
			put(heap, heap->count++, to);
		rise(heap, heap->place[to]);
	}
}

/*
 * For every link on a shortest path, its start is a predecessor of its end. The first pass counts, the second fills in.
 */
static void predecessors(const struct ow_topology *topology, struct ow_spf *spf)
{
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t n = 0; n < spf->reached; n++) {
			uint32_t count, node = spf->order[n];
			const struct ow_link *link = ow_topology_from(topology, node, &count);
			for (uint32_t i = 0; i < count; i++) {
				if (spf->cost[node] + link[i].cost != spf->cost[link[i].to])
					continue;
				if (pass == 0)
					spf->first[link[i].to + 1]++;
				else
					spf->from[spf->first[link[i].to]++] = node;
			}
		}
		if (pass == 0)
			for (uint32_t i = 0; i < spf->nodes; i++)
				spf->first[i + 1] += spf->first[i];
	}
	memmove(spf->first + 1, spf->first, (size_t)spf->nodes * sizeof(*spf->first));
	spf->first[0] = 0;
}

int ow_spf_run(const struct ow_topology *topology, uint32_t source, struct ow_spf *ret_spf)
{
	uint32_t nodes = ow_topology_nodes(topology);
	struct ow_spf spf = {.source = source, .nodes = nodes};
	spf.cost = malloc(nodes * sizeof(*spf.cost));
	spf.first = calloc((size_t)nodes + 1, sizeof(*spf.first));
	spf.from = malloc(((size_t)ow_topology_links(topology) + 1) * sizeof(*spf.from));
	spf.order = malloc(nodes * sizeof(*spf.order));
	struct heap heap = {.node = malloc(nodes * sizeof(uint32_t)), .place = malloc(nodes * sizeof(uint32_t))};
	int r = spf.cost && spf.first && spf.from && spf.order && heap.node && heap.place ? 0 : -ENOMEM;
	if (r == 0) {
		for (uint32_t i = 0; i < nodes; i++) {
			spf.cost[i] = INT64_MAX;
			heap.place[i] = NOWHERE;
		}
		heap.cost = spf.cost;
		spf.cost[source] = 0;
		put(&heap, heap.count++, source);
		while (heap.count) {
			uint32_t node = take(&heap);
			spf.order[spf.reached++] = node;
			relax(topology, &spf, &heap, node);
		}
		predecessors(topology, &spf);
		*ret_spf = spf;
	} else {
		ow_spf_done(&spf);
	}
	free(heap.node);
	free(heap.place);
	return r;
}

void ow_spf_done(struct ow_spf *spf)
{
	free(spf->cost);
	free(spf->first);
	free(spf->from);
	free(spf->order);
	*spf = (struct ow_spf){0};
}
