/* SPDX-License-Identifier: Apache-2.0 */
/* Ways between two routers, their shares, and the places on them. */
#include "plane/route.h"
#include "plane/paths.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_places(const bool *is_mrouter, struct ow_way *way)
{
	way->place = calloc((size_t)way->nodes * 2, sizeof(*way->place));
	if (!way->place)
		return -ENOMEM;
	uint32_t start = 0;
	for (uint32_t i = 1; i < way->nodes; i++) {
		bool is_end = i + 1 == way->nodes;
		if (!is_end && !is_mrouter[way->node[i]])
			continue;
		way->place[way->places++] = (struct ow_place){false, start, i - start + 1};
		if (!is_end)
			way->place[way->places++] = (struct ow_place){true, i - 1, 3};
		start = i;
	}
	return 0;
}

/* The next hops of each router towards the destination: the routers that follow it on any of the ways. */
static uint32_t next_hops(const struct ow_route *route, uint16_t router)
{
	uint32_t count = 0;
	for (uint32_t w = 0; w < route->ways; w++) {
		const struct ow_way *way = &route->way[w];
		for (uint32_t i = 0; i + 1 < way->nodes; i++) {
			if (way->node[i] != router)
				continue;
			bool is_new = true;
			for (uint32_t v = 0; is_new && v < w; v++)
				for (uint32_t k = 0; k + 1 < route->way[v].nodes; k++)
					if (route->way[v].node[k] == router &&
					    route->way[v].node[k + 1] == way->node[i + 1])
						is_new = false;
			count += is_new;
		}
	}
	return count;
}

/* hops: one for each router, 0 = not computed yet. */
static void share(struct ow_route *route, uint32_t *hops)
{
	for (uint32_t w = 0; w < route->ways; w++) {
		struct ow_way *way = &route->way[w];
		way->share = 1;
		for (uint32_t i = 0; i + 1 < way->nodes && route->ways > 1; i++) {
			if (!hops[way->node[i]])
				hops[way->node[i]] = next_hops(route, way->node[i]);
			way->share /= hops[way->node[i]];
		}
	}
}

static int add_ways(const struct ow_paths *paths, const bool *is_mrouter, struct ow_route *route)
{
	uint32_t count = ow_paths_count(paths);
	route->way = calloc(count, sizeof(*route->way));
	if (!route->way)
		return -ENOMEM;
	for (; route->ways < count; route->ways++) {
		struct ow_way *way = &route->way[route->ways];
		const uint16_t *node = ow_paths_get(paths, route->ways, &way->nodes);
		way->node = malloc(way->nodes * sizeof(*node));
		if (!way->node)
			return -ENOMEM;
		memcpy(way->node, node, way->nodes * sizeof(*node));
		if (find_places(is_mrouter, way) < 0) {
			free(way->node);
			return -ENOMEM;
		}
	}
	return 0;
}

int ow_route_find(const struct ow_topology *topology, const bool *is_mrouter, uint32_t from, uint32_t to,
                  struct ow_route *ret_route, struct ow_error *err)
{
	struct ow_route route = {.from = from, .to = to};
	struct ow_spf spf;
	struct ow_paths *paths = NULL;
	uint32_t *hops = calloc(ow_topology_nodes(topology), sizeof(*hops));
	if (!hops || ow_spf_run(topology, from, &spf) < 0) {
		free(hops);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	int r = ow_paths_create(spf.nodes, &paths);
	if (r < 0)
		ow_error_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = ow_paths_add_shortest(paths, &spf, to, err);
	ow_spf_done(&spf);
	if (r == 0 && ow_paths_count(paths) == 0)
		r = ow_error_set(err, ENOENT, "there is no path from %.100s to %.100s",
		                 ow_topology_name(topology, from), ow_topology_name(topology, to));
	if (r == 0 && ow_paths_count(paths) > OW_ROUTE_WAYS_MAX)
		r = ow_error_set(err, E2BIG, "more than %d ways of equal cost from %.100s to %.100s", OW_ROUTE_WAYS_MAX,
		                 ow_topology_name(topology, from), ow_topology_name(topology, to));
	if (r == 0) {
		r = add_ways(paths, is_mrouter, &route);
		if (r < 0)
			ow_error_set(err, ENOMEM, "out of memory");
		else
			share(&route, hops);
	}
	ow_paths_free(paths);
	free(hops);
	if (r < 0)
		ow_route_done(&route);
	else
		*ret_route = route;
	return r;
}

int ow_route_alone(struct ow_route *ret_route)
{
	struct ow_way *way = calloc(1, sizeof(*way));
	struct ow_place *place = calloc(1, sizeof(*place));
	if (!way || !place) {
		free(way);
		free(place);
		return -ENOMEM;
	}
	*place = (struct ow_place){false, 0, 2};
	*way = (struct ow_way){.share = 1, .place = place, .places = 1};
	*ret_route = (struct ow_route){.way = way, .ways = 1};
	return 0;
}

void ow_route_done(struct ow_route *route)
{
	for (uint32_t i = 0; i < route->ways; i++) {
		free(route->way[i].node);
		free(route->way[i].place);
	}
	free(route->way);
	*route = (struct ow_route){0};
}

bool ow_place_text(const struct ow_topology *topology, const struct ow_way *way, const struct ow_place *place,
                   char text[OW_PLACE_TEXT])
{
	const uint16_t *node = way->node + place->at;
	if (place->inside)
		return snprintf(text, OW_PLACE_TEXT, "%s[%s>%s]", ow_topology_name(topology, node[1]),
		                ow_topology_name(topology, node[0]),
		                ow_topology_name(topology, node[2])) < OW_PLACE_TEXT;
	size_t used = 0;
	for (uint32_t i = 0; i < place->nodes; i++) {
		int n = snprintf(text + used, OW_PLACE_TEXT - used, "%s%s", i ? ">" : "",
		                 ow_topology_name(topology, node[i]));
		used += (size_t)n;
		if (used >= OW_PLACE_TEXT)
			return false;
	}
	return true;
}

bool ow_place_reverse(const char *name, char ret_name[OW_PLACE_TEXT])
{
	const char *bracket = strchr(name, '['), *first = bracket ? bracket + 1 : name, *last = strrchr(name, '>');
	if (!last || last < first || strlen(name) >= OW_PLACE_TEXT)
		return false;
	const char *end = last + 1;
	while (*end && *end != ']' && *end != '/' && strncmp(end, " (", 2) != 0)
		end++;
	size_t used = (size_t)(first - name);
	memcpy(ret_name, name, used);
	for (const char *stop = end, *at = end; at >= first; at--) {
		if (at > first && at[-1] != '>')
			continue;
		memcpy(ret_name + used, at, (size_t)(stop - at));
		used += (size_t)(stop - at);
		if (at > first)
			ret_name[used++] = '>';
		stop = at - 1;
	}
	snprintf(ret_name + used, OW_PLACE_TEXT - used, "%s", end);
	return true;
}
