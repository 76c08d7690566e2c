/* SPDX-License-Identifier: Apache-2.0 */
/* The map by points, and what it says of a topology: point_map.h. */
#include "discovery/point_map.h"

#include "base/array.h"
#include "plane/spf.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ow_point_map_done(struct ow_point_map *points)
{
	free(points->point);
	free(points->point_of);
	free(points->edge);
	*points = (struct ow_point_map){.map = NULL};
}

/* Routers decrement TTLs before packets leave, so the links between two vantages depend on their directions. */
static int links_of(const struct ow_map *map, const struct ow_map_pair *pair)
{
	enum ow_vantage_kind from = map->vantage[pair->from].kind, to = map->vantage[pair->to].kind;
	if (!pair->hops_known || from == OW_VANTAGE_TAP || to == OW_VANTAGE_TAP || map->vantage[pair->from].bridge ||
	    map->vantage[pair->to].bridge)
		return -1;
	return (int)pair->hops + (from == OW_VANTAGE_OUT) - (to == OW_VANTAGE_OUT);
}

static int by_points(const void *a, const void *b)
{
	const struct ow_point_edge *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static int rank_of(enum ow_adjacency adjacency)
{
	static const int rank[OW_ADJACENCIES] = {
		[OW_NOT_ADJACENT] = 3, [OW_FIRM] = 0, [OW_PROVISIONAL] = 1, [OW_UNKNOWN_ORDER] = 2};
	return rank[adjacency];
}

/* Joins the edges of the same two points. */
static void join_edges(struct ow_point_map *p)
{
	uint32_t kept = 0;
	qsort(p->edge, p->edges, sizeof *p->edge, by_points);
	for (uint32_t i = 0; i < p->edges; i++) {
		struct ow_point_edge *last = kept ? &p->edge[kept - 1] : NULL, one = p->edge[i];
		if (!last || by_points(last, &one) != 0) {
			p->edge[kept++] = one;
			continue;
		}
		if (rank_of(one.adjacency) < rank_of(last->adjacency))
			last->adjacency = one.adjacency;
		if (p->map->pair[one.pair].packets > p->map->pair[last->pair].packets) {
			last->pair = one.pair;
			last->links = one.links;
		}
		last->packets += one.packets;
	}
	p->edges = kept;
}

int ow_point_map_make(const struct ow_map *map, struct ow_point_map *ret_points)
{
	struct ow_point_map p = {.map = map};
	p.point = calloc(map->vantages + 1, sizeof *p.point);
	p.point_of = calloc(map->vantages + 1, sizeof *p.point_of);
	p.edge = calloc(map->pairs + 1, sizeof *p.edge);
	if (!p.point || !p.point_of || !p.edge) {
		ow_point_map_done(&p);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < map->vantages; i++) { /* in the order of their points */
		if (p.points == 0 || strcmp(p.point[p.points - 1], map->vantage[i].point) != 0)
			p.point[p.points++] = map->vantage[i].point;
		p.point_of[i] = p.points - 1;
	}
	for (uint32_t i = 0; i < map->pairs; i++) {
		const struct ow_map_pair *pair = &map->pair[i];
		uint32_t from = p.point_of[pair->from], to = p.point_of[pair->to];
		if (pair->adjacency == OW_NOT_ADJACENT || from == to)
			continue;
		if (pair->adjacency == OW_UNKNOWN_ORDER && from > to) {
			from = to;
			to = p.point_of[pair->from];
		}
		p.edge[p.edges++] = (struct ow_point_edge){.from = from,
		                                           .to = to,
		                                           .adjacency = pair->adjacency,
		                                           .pair = i,
		                                           .packets = pair->packets,
		                                           .links = links_of(map, pair)};
	}
	join_edges(&p);
	*ret_points = p;
	return 0;
}

/* -- comparison ----------------------------------------------------------------------------------------------------- */

struct list {
	struct ow_disagreement *item;
	size_t count, room;
};

static int add(struct list *list, enum ow_disagreement_kind kind, uint32_t from, uint32_t to, int found, int expected)
{
	if (OW_GROW(list->item, list->room, list->count + 1) < 0)
		return -ENOMEM;
	list->item[list->count++] = (struct ow_disagreement){kind, from, to, found, expected};
	return 0;
}

/* Links of the shortest paths: the fewest and the most, if several have equal costs. false: there is no path. */
static bool lengths(const struct ow_spf *spf, uint32_t to, int *least, int *most)
{
	if (spf->cost[to] == INT64_MAX)
		return false;
	for (uint32_t i = 0; i < spf->reached; i++) {
		uint32_t node = spf->order[i];
		least[node] = most[node] = 0;
		for (uint32_t k = spf->first[node]; k < spf->first[node + 1]; k++) {
			int l = least[spf->from[k]] + 1, m = most[spf->from[k]] + 1;
			least[node] = k == spf->first[node] || l < least[node] ? l : least[node];
			most[node] = m > most[node] ? m : most[node];
		}
	}
	return true;
}

static int compare_edge(const struct ow_point_edge *edge, const struct ow_topology *topology, uint32_t from,
                        uint32_t to, int *length, struct list *list)
{
	uint32_t nodes = ow_topology_nodes(topology);
	struct ow_spf spf;
	if (edge->links == 1 && edge->adjacency == OW_FIRM && !ow_topology_link(topology, from, to))
		return add(list, OW_DISAGREE_NO_LINK, edge->from, edge->to, 1, 0);
	if (edge->links < 1)
		return 0;
	int r = ow_spf_run(topology, from, &spf);
	if (r < 0)
		return r;
	bool path = lengths(&spf, to, length, length + nodes);
	if (!path || edge->links < length[to] || edge->links > length[nodes + to])
		r = add(list, OW_DISAGREE_LENGTH, edge->from, edge->to, edge->links, path ? length[to] : 0);
	ow_spf_done(&spf);
	return r;
}

static bool seen(const struct ow_point_map *p, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < p->edges; i++) {
		const struct ow_point_edge *e = &p->edge[i];
		if ((e->from == from && e->to == to) ||
		    (e->adjacency == OW_UNKNOWN_ORDER && e->from == to && e->to == from))
			return true;
	}
	return false;
}

static int compare_links(const struct ow_point_map *p, const struct ow_topology *topology, const uint32_t *node,
                         struct list *list)
{
	int r = 0;
	for (uint32_t a = 0; a < p->points && r == 0; a++) {
		for (uint32_t b = 0; b < p->points && r == 0; b++) {
			if (a != b && node[a] != UINT32_MAX && node[b] != UINT32_MAX &&
			    ow_topology_link(topology, node[a], node[b]) && !seen(p, a, b))
				r = add(list, OW_DISAGREE_NOT_SEEN, a, b, 0, 1);
		}
	}
	return r;
}

int ow_point_map_compare(const struct ow_point_map *points, const struct ow_topology *topology,
                         struct ow_disagreement **ret_list, size_t *ret_count)
{
	struct list list = {.item = NULL};
	uint32_t *node = calloc(points->points + 1, sizeof *node);
	int *length = calloc(2 * (size_t)ow_topology_nodes(topology) + 1, sizeof *length);
	int r = node && length ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < points->points && r == 0; i++) {
		node[i] = ow_topology_find(topology, points->point[i]);
		if (node[i] == UINT32_MAX)
			r = add(&list, OW_DISAGREE_NO_ROUTER, i, i, 0, 0);
	}
	for (uint32_t i = 0; i < points->edges && r == 0; i++) {
		const struct ow_point_edge *e = &points->edge[i];
		if (node[e->from] != UINT32_MAX && node[e->to] != UINT32_MAX)
			r = compare_edge(e, topology, node[e->from], node[e->to], length, &list);
	}
	if (r == 0)
		r = compare_links(points, topology, node, &list);
	free(node);
	free(length);
	if (r < 0) {
		free(list.item);
		return r;
	}
	*ret_list = list.item;
	*ret_count = list.count;
	return 0;
}

void ow_disagreement_text(const struct ow_point_map *points, const struct ow_disagreement *one,
                          char text[OW_DISAGREEMENT_TEXT])
{
	const char *from = points->point[one->from], *to = points->point[one->to];
	switch (one->kind) {
	case OW_DISAGREE_NO_ROUTER:
		snprintf(text, OW_DISAGREEMENT_TEXT, "%s is not in the topology", from);
		break;
	case OW_DISAGREE_NO_LINK:
		snprintf(text, OW_DISAGREEMENT_TEXT, "packets go from %s to %s, which have no link in the topology",
		         from, to);
		break;
	case OW_DISAGREE_LENGTH:
		if (one->expected)
			snprintf(text, OW_DISAGREEMENT_TEXT,
			         "packets from %s to %s pass %d links; shortest paths have %d", from, to, one->found,
			         one->expected);
		else
			snprintf(text, OW_DISAGREEMENT_TEXT,
			         "packets from %s to %s pass %d links; the topology has no path", from, to, one->found);
		break;
	default:
		snprintf(text, OW_DISAGREEMENT_TEXT, "no packets were seen on the link from %s to %s", from, to);
	}
}
