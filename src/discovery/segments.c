/* SPDX-License-Identifier: Apache-2.0 */
/* Which neighbours become segments: point_map.h. */
#include "discovery/point_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
	uint32_t a, b; /* points, a < b */
	double share;
	bool firm;
	bool old; /* a segment by now */
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
	struct candidate one = {.a = edge->from < edge->to ? edge->from : edge->to,
	                        .b = edge->from < edge->to ? edge->to : edge->from,
	                        .share = pair->share.status == OW_VALUE_NONE ? 0 : pair->share.value,
	                        .firm = edge->adjacency != OW_PROVISIONAL};
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
		if (strcmp(list[i].a.point, a) == 0 && strcmp(list[i].b.point, b) == 0)
			return &list[i];
	}
	return NULL;
}

static void copy_name(char to[OW_SAMPLE_NAME], const char *from)
{
	memcpy(to, from, OW_SAMPLE_NAME);
}

/* Packets of a segment at one of its points, by interface: [1] where its packets to the other end come in. */
struct passed {
	const char *interface;
	uint64_t packets[2];
};

static bool is_listed(const struct ow_discovered_end *end, const char *interface)
{
	for (unsigned i = 0; i < end->interfaces; i++) {
		if (strcmp(end->interface[i], interface) == 0)
			return true;
	}
	return false;
}

/* What a point says must not be read as something else in a list of names. */
static bool is_name(const char *interface)
{
	for (const char *c = interface; *c; c++) {
		if ((unsigned char)*c <= ' ' || *c == '/' || *c == '<' || *c == 0x7f)
			return false;
	}
	return *interface;
}

static void pass(struct passed *passed, uint32_t *count, const struct ow_map_vantage *v, bool first, uint64_t packets)
{
	uint32_t i = 0;
	if (!is_name(v->interface))
		return;
	while (i < *count && strcmp(passed[i].interface, v->interface) != 0)
		i++;
	if (i == *count)
		passed[(*count)++] = (struct passed){.interface = v->interface};
	passed[i].packets[v->kind != OW_VANTAGE_TAP && (v->kind == OW_VANTAGE_IN) == first] += packets;
}

/* A point has one direction for all interfaces of a segment: that of most packets. An interface with few of them is
 * added only if it was there before. */
static void choose_interfaces(const struct passed *passed, uint32_t count, const struct ow_discovered_end *before,
                              double least_share, struct ow_discovered_end *end)
{
	uint64_t all[2] = {0, 0};
	for (uint32_t i = 0; i < count; i++) {
		all[0] += passed[i].packets[0];
		all[1] += passed[i].packets[1];
	}
	end->away = all[1] > all[0];
	for (uint32_t i = 0; i < count && end->interfaces < OW_DISCOVERED_INTERFACES; i++) {
		uint64_t packets = passed[i].packets[end->away];
		bool old = before && before->away == end->away && is_listed(before, passed[i].interface);
		if (packets && (old || (double)packets >= least_share * (double)all[end->away]))
			copy_name(end->interface[end->interfaces++], passed[i].interface);
	}
}

/* The end of a segment at a point: where neighbouring vantages of the other point see its packets. */
static void fill_end(const struct ow_point_map *p, uint32_t here, uint32_t there,
                     const struct ow_discovered_end *before, double least_share, struct passed *passed,
                     struct ow_discovered_end *end)
{
	const struct ow_map *map = p->map;
	uint32_t count = 0;
	copy_name(end->point, p->point[here]);
	for (uint32_t i = 0; i < map->pairs; i++) {
		const struct ow_map_pair *pair = &map->pair[i];
		bool first = p->point_of[pair->from] == here && p->point_of[pair->to] == there;
		if (pair->adjacency != OW_NOT_ADJACENT &&
		    (first || (p->point_of[pair->from] == there && p->point_of[pair->to] == here)))
			pass(passed, &count, &map->vantage[first ? pair->from : pair->to], first, pair->packets);
	}
	choose_interfaces(passed, count, before, least_share, end);
}

static struct ow_discovered_segment segment_of(const struct ow_point_map *p, const struct candidate *one,
                                               const struct ow_discovered_segment *before, double least_share,
                                               struct passed *passed)
{
	struct ow_discovered_segment s = {.share = one->share};
	fill_end(p, one->a, one->b, before ? &before->a : NULL, least_share, passed, &s.a);
	fill_end(p, one->b, one->a, before ? &before->b : NULL, least_share, passed, &s.b);
	return s;
}

static int by_name(const void *a, const void *b)
{
	const struct ow_discovered_segment *x = a, *y = b;
	int order = strcmp(x->a.point, y->a.point);
	return order ? order : strcmp(x->b.point, y->b.point);
}

/* The segments of a point in the list. */
static unsigned count_of(const struct ow_discovered_segment *list, size_t count, const char *point)
{
	unsigned of_point = 0;
	for (size_t i = 0; i < count; i++)
		of_point += strcmp(list[i].a.point, point) == 0 || strcmp(list[i].b.point, point) == 0;
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
			there = strcmp(p->point[one[k].a], before[i].a.point) == 0 &&
			        strcmp(p->point[one[k].b], before[i].b.point) == 0;
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
	struct passed *passed = calloc((size_t)points->map->vantages + 1, sizeof *passed);
	if (!one || !list || !passed) {
		free(one);
		free(list);
		free(passed);
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
		list[count] =
			segment_of(points, &one[i], find(before, before_count, a, b), limits->least_share, passed);
		count += list[count].a.interfaces && list[count].b.interfaces;
	}
	qsort(list, count, sizeof *list, by_name);
	free(one);
	free(passed);
	*ret_segments = list;
	*ret_count = count;
	return 0;
}
