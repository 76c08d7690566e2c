/* SPDX-License-Identifier: Apache-2.0 */
/* The network as routers with names and directed links with costs. */
#include "plane/topology.h"
#include "base/array.h"
#include "base/id_map.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct ow_topology {
	char **name;
	uint32_t nodes, nodes_room;
	struct ow_id_map by_name; /* nodes by the hash of their names */
	struct ow_link *link;
	uint32_t links, links_room;
	uint32_t *first; /* after finish: nodes + 1 places in link */
};

int ow_topology_create(struct ow_topology **ret_topology)
{
	struct ow_topology *topology = calloc(1, sizeof(*topology));
	if (!topology)
		return -ENOMEM;
	*ret_topology = topology;
	return 0;
}

void ow_topology_free(struct ow_topology *topology)
{
	if (!topology)
		return;
	for (uint32_t i = 0; i < topology->nodes; i++)
		free(topology->name[i]);
	free(topology->name);
	ow_id_map_done(&topology->by_name);
	free(topology->link);
	free(topology->first);
	free(topology);
}

/* The node of this name, or OW_ID_MAP_NONE. */
static uint32_t look_up(const struct ow_topology *topology, const char *name, size_t length)
{
	return OW_ID_MAP_FIND(&topology->by_name, XXH3_64bits(name, length), i,
	                      strlen(topology->name[i]) == length && memcmp(topology->name[i], name, length) == 0);
}

static int enter(struct ow_topology *topology, const char *name, size_t length, uint32_t *ret_node)
{
	if (OW_GROW(topology->name, topology->nodes_room, topology->nodes + 1) < 0)
		return -ENOMEM;
	char *copy = strndup(name, length);
	if (!copy || ow_id_map_add(&topology->by_name, XXH3_64bits(name, length), topology->nodes) < 0) {
		free(copy);
		return -ENOMEM;
	}
	topology->name[topology->nodes] = copy;
	*ret_node = topology->nodes++;
	return 0;
}

int ow_topology_add_node(struct ow_topology *topology, const char *name, size_t length, uint32_t *ret_node,
                         struct ow_error *err)
{
	if (length == 0 || length > OW_TOPOLOGY_NAME_MAX || memchr(name, 0, length))
		return ow_error_set(err, EINVAL, "a router's name must have 1 to %d bytes", OW_TOPOLOGY_NAME_MAX);
	*ret_node = look_up(topology, name, length);
	if (*ret_node != OW_ID_MAP_NONE)
		return 0;
	if (topology->nodes == OW_TOPOLOGY_NODES_MAX)
		return ow_error_set(err, E2BIG, "more than %u routers", OW_TOPOLOGY_NODES_MAX);
	if (enter(topology, name, length, ret_node) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	return 0;
}

int ow_topology_add_link(struct ow_topology *topology, const struct ow_link *link, struct ow_error *err)
{
	if (link->cost <= 0 || link->cost > OW_COST_MAX)
		return ow_error_set(err, EINVAL, "the cost of the link %s - %s is not between 0 and %lld",
		                    topology->name[link->from], topology->name[link->to],
		                    (long long)(OW_COST_MAX / OW_COST_ONE));
	if (link->from == link->to)
		return ow_error_set(err, EINVAL, "a link from %s to itself", topology->name[link->from]);
	if (topology->links == OW_TOPOLOGY_LINKS_MAX)
		return ow_error_set(err, E2BIG, "more than %u links", OW_TOPOLOGY_LINKS_MAX);
	if (OW_GROW(topology->link, topology->links_room, topology->links + 1) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	topology->link[topology->links++] = *link;
	return 0;
}

static int by_ends(const void *pa, const void *pb)
{
	const struct ow_link *a = pa, *b = pb;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return (a->cost > b->cost) - (a->cost < b->cost);
}

int ow_topology_finish(struct ow_topology *topology)
{
	free(topology->first);
	topology->first = calloc((size_t)topology->nodes + 1, sizeof(*topology->first));
	if (!topology->first)
		return -ENOMEM;
	if (topology->links)
		qsort(topology->link, topology->links, sizeof(*topology->link), by_ends);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < topology->links; i++) {
		struct ow_link *link = &topology->link[i], *last = kept ? &topology->link[kept - 1] : NULL;
		if (last && last->from == link->from && last->to == link->to) {
			if (isnan(last->latency_ns))
				last->latency_ns = link->latency_ns;
		} else {
			topology->link[kept++] = *link;
		}
	}
	topology->links = kept;
	for (uint32_t i = 0; i < kept; i++)
		topology->first[topology->link[i].from + 1]++;
	for (uint32_t i = 0; i < topology->nodes; i++)
		topology->first[i + 1] += topology->first[i];
	return 0;
}

uint32_t ow_topology_nodes(const struct ow_topology *topology)
{
	return topology->nodes;
}

uint32_t ow_topology_links(const struct ow_topology *topology)
{
	return topology->links;
}

const char *ow_topology_name(const struct ow_topology *topology, uint32_t node)
{
	return topology->name[node];
}

uint32_t ow_topology_find(const struct ow_topology *topology, const char *name)
{
	return look_up(topology, name, strlen(name));
}

const struct ow_link *ow_topology_from(const struct ow_topology *topology, uint32_t node, uint32_t *ret_count)
{
	*ret_count = topology->first[node + 1] - topology->first[node];
	return topology->link + topology->first[node];
}

const struct ow_link *ow_topology_link(const struct ow_topology *topology, uint32_t from, uint32_t to)
{
	uint32_t count;
	const struct ow_link *link = ow_topology_from(topology, from, &count);
	for (uint32_t low = 0, high = count; low < high;) {
		uint32_t middle = low + (high - low) / 2;
		if (link[middle].to == to)
			return &link[middle];
		if (link[middle].to < to)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static uint32_t root_of(uint32_t *parent, uint32_t node)
{
	while (parent[node] != node)
		node = parent[node] = parent[parent[node]];
	return node;
}

int ow_topology_parts(const struct ow_topology *topology, uint32_t *ret_part, uint32_t *ret_parts)
{
	uint32_t nodes = topology->nodes, parts = 0;
	uint32_t *parent = calloc((size_t)nodes * 2 + 1, sizeof(*parent));
	if (!parent)
		return -ENOMEM;
	uint32_t *number = parent + nodes;
	for (uint32_t i = 0; i < nodes; i++)
		parent[i] = i;
	for (uint32_t i = 0; i < topology->links; i++)
		parent[root_of(parent, topology->link[i].from)] = root_of(parent, topology->link[i].to);
	for (uint32_t i = 0; i < nodes; i++) {
		uint32_t root = root_of(parent, i);
		if (!number[root])
			number[root] = ++parts;
		if (ret_part)
			ret_part[i] = number[root] - 1;
	}
	free(parent);
	*ret_parts = parts;
	return 0;
}

bool ow_topology_same(const struct ow_topology *a, const struct ow_topology *b)
{
	if (a->nodes != b->nodes || a->links != b->links)
		return false;
	for (uint32_t i = 0; i < a->nodes; i++)
		if (ow_topology_find(b, a->name[i]) == UINT32_MAX)
			return false;
	for (uint32_t i = 0; i < a->links; i++) {
		const struct ow_link *one = &a->link[i];
		const struct ow_link *other = ow_topology_link(b, ow_topology_find(b, a->name[one->from]),
		                                               ow_topology_find(b, a->name[one->to]));
		if (!other || other->cost != one->cost)
			return false;
	}
	return true;
}

int ow_cost_parse(const char *text, size_t length, int64_t *ret_cost)
{
	int64_t cost = 0, unit = OW_COST_ONE;
	bool fraction = false, digit = false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '.' && !fraction) {
			fraction = true;
		} else if (text[i] < '0' || text[i] > '9') {
			return -EINVAL;
		} else if (!fraction) {
			cost = cost * 10 + (int64_t)(text[i] - '0') * OW_COST_ONE;
			digit = true;
		} else {
			unit /= 10; /* further digits are smaller than the resolution of a cost */
			cost += (text[i] - '0') * unit;
			digit = true;
		}
		if (cost > OW_COST_MAX)
			return -EINVAL;
	}
	if (!digit || cost <= 0)
		return -EINVAL;
	*ret_cost = cost;
	return 0;
}
