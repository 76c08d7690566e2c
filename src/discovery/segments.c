/* SPDX-License-Identifier: Apache-2.0 */
/* Which neighbours become segments: point_map.h. */
#include "discovery/point_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
	uint32_t a, b;                     /* points, a < b */
	uint32_t interface_a, interface_b; /* vantages */
	double share;
	bool firm;
	bool old; /* a segment by now */
	bool chosen;
	unsigned without;
};

static int by_points(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return x->b < y->b ? -1 : x->b > y->b;
}

/* Segments that exist first, then firm ones, then by share; names decide the rest. */
static int by_rank(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->old != y->old)
		return x->old ? -1 : 1;
	if (x->firm != y->firm)
		return x->firm ? -1 : 1;
	if (x->share != y->share)
		return x->share > y->share ? -1 : 1;
	return by_points(a, b);
}

static struct candidate candidate_of(const struct ow_point_map *p, const struct ow_point_edge *edge)
{
	const struct ow_map_pair *pair = &p->map->pair[edge->pair];
	uint32_t from = p->point_of[pair->from];
	struct candidate one = {.a = edge->from < edge->to ? edge->from : edge->to,
	                        .b = edge->from < edge->to ? edge->to : edge->from,
	                        .share = pair->share.status == OW_VALUE_NONE ? 0 : pair->share.value,
	                        .firm = edge->adjacency != OW_PROVISIONAL};
	one.interface_a = from == one.a ? pair->from : pair->to;
	one.interface_b = from == one.a ? pair->to : pair->from;
	return one;
}

/* One candidate for both directions. Returns how many. */
static size_t join_directions(struct candidate *one, size_t count)
{
	size_t kept = 0;
	qsort(one, count, sizeof *one, by_points);
	for (size_t i = 0; i < count; i++) {
		struct candidate *last = kept ? &one[kept - 1] : NULL;
		if (!last || by_points(last, &one[i]) != 0) {
			one[kept++] = one[i];
			continue;
		}
		bool firm = last->firm || one[i].firm;
		if (one[i].share > last->share)
			*last = one[i];
		last->firm = firm;
	}
	return kept;
}

static const struct ow_discovered_segment *find(const struct ow_discovered_segment *list, size_t count, const char *a,
                                                const char *b)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i].a, a) == 0 && strcmp(list[i].b, b) == 0)
			return &list[i];
	}
	return NULL;
}

static void copy_name(char to[OW_SAMPLE_NAME], const char *from)
{
	memcpy(to, from, OW_SAMPLE_NAME);
}

static struct ow_discovered_segment segment_of(const struct ow_point_map *p, const struct candidate *one)
{
	struct ow_discovered_segment s = {.share = one->share};
	copy_name(s.a, p->point[one->a]);
	copy_name(s.b, p->point[one->b]);
	copy_name(s.interface_a, p->map->vantage[one->interface_a].interface);
	copy_name(s.interface_b, p->map->vantage[one->interface_b].interface);
	return s;
}

static int by_name(const void *a, const void *b)
{
	const struct ow_discovered_segment *x = a, *y = b;
	int order = strcmp(x->a, y->a);
	return order ? order : strcmp(x->b, y->b);
}

/* The segments of a point in the list. */
static unsigned count_of(const struct ow_discovered_segment *list, size_t count, const char *point)
{
	unsigned of_point = 0;
	for (size_t i = 0; i < count; i++)
		of_point += strcmp(list[i].a, point) == 0 || strcmp(list[i].b, point) == 0;
	return of_point;
}

/* Those that this map does not show, but that are not given up yet. */
static size_t keep_absent(const struct candidate *one, size_t count, const struct ow_point_map *p,
                          const struct ow_discover_limits *limits, const struct ow_discovered_segment *before,
                          size_t before_count, struct ow_discovered_segment *list)
{
	size_t kept = 0;
	for (size_t i = 0; i < before_count; i++) {
		bool there = false;
		for (size_t k = 0; k < count && !there; k++)
			there = strcmp(p->point[one[k].a], before[i].a) == 0 &&
			        strcmp(p->point[one[k].b], before[i].b) == 0;
		if (there || before[i].without + 1 >= limits->patience || kept == limits->segments)
			continue;
		list[kept] = before[i];
		list[kept++].without++;
	}
	return kept;
}

int ow_discover_segments(const struct ow_point_map *points, const struct ow_discover_limits *limits,
                         const struct ow_discovered_segment *before, size_t before_count,
                         struct ow_discovered_segment **ret_segments, size_t *ret_count)
{
	struct candidate *one = calloc(points->edges + 1, sizeof *one);
	struct ow_discovered_segment *list = calloc((size_t)limits->segments + 1, sizeof *list);
	if (!one || !list) {
		free(one);
		free(list);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < points->edges; i++)
		one[i] = candidate_of(points, &points->edge[i]);
	size_t candidates = join_directions(one, points->edges);
	for (size_t i = 0; i < candidates; i++)
		one[i].old = find(before, before_count, points->point[one[i].a], points->point[one[i].b]) != NULL;
	size_t count = keep_absent(one, candidates, points, limits, before, before_count, list);
	qsort(one, candidates, sizeof *one, by_rank);
	for (size_t i = 0; i < candidates && count < limits->segments; i++) {
		const char *a = points->point[one[i].a], *b = points->point[one[i].b];
		if (!one[i].old &&
		    (one[i].share < limits->least_share || count_of(list, count, a) >= limits->point_segments ||
		     count_of(list, count, b) >= limits->point_segments))
			continue;
		list[count++] = segment_of(points, &one[i]);
	}
	qsort(list, count, sizeof *list, by_name);
	free(one);
	*ret_segments = list;
	*ret_count = count;
	return 0;
}
