/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a fleet as `oneway fleet map --json` prints it: which points are neighbours. */
#include "plane/topology.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

static int add_node(struct ow_topology *topology, const json_t *name, uint32_t *ret_node, struct ow_error *err)
{
	if (!json_is_string(name))
		return ow_error_set(err, EINVAL, "from and to must be names of points");
	return ow_topology_add_node(topology, json_string_value(name), json_string_length(name), ret_node, err);
}

/* Neighbours, in the order in which packets pass them; both orders where that is not known. Others are no link. */
static int add_edge(struct ow_topology *topology, const json_t *edge, struct ow_error *err)
{
	const char *adjacency = json_string_value(json_object_get(edge, "adjacency"));
	struct ow_link link = {.cost = OW_COST_ONE, .latency_ns = (double)NAN};
	int r = add_node(topology, json_object_get(edge, "from"), &link.from, err);
	if (r == 0)
		r = add_node(topology, json_object_get(edge, "to"), &link.to, err);
	if (r < 0 || (adjacency && strcmp(adjacency, "none") == 0))
		return r;
	r = ow_topology_add_link(topology, &link, err);
	if (r < 0 || !adjacency || strcmp(adjacency, "unknown order") != 0)
		return r;
	struct ow_link back = {link.to, link.from, OW_COST_ONE, (double)NAN};
	return ow_topology_add_link(topology, &back, err);
}

static int add_edges(struct ow_topology *topology, const char *name, const json_t *root, struct ow_error *err)
{
	const json_t *edges = json_object_get(root, "edges"), *edge;
	struct ow_error why = {""};
	size_t i;
	if (!json_is_array(edges))
		return ow_error_set(err, EINVAL, "%s: no edges: not the output of 'oneway fleet map --json'", name);
	json_array_foreach(edges, i, edge)
	{
		int r = add_edge(topology, edge, &why);
		if (r < 0)
			return ow_error_set(err, -r, "%s: edge %zu: %.300s", name, i + 1, why.text);
	}
	return ow_topology_finish(topology) < 0 ? ow_error_set(err, ENOMEM, "%s: out of memory", name) : 0;
}

int ow_topology_parse_map(const char *name, const char *text, size_t size, struct ow_topology **ret_topology,
                          struct ow_error *err)
{
	json_error_t why;
	struct ow_topology *topology = NULL;
	json_t *root = json_loadb(text, size, 0, &why);
	if (!root)
		return ow_error_set(err, EINVAL, "%s:%d: %.200s", name, why.line, why.text);
	int r = ow_topology_create(&topology) < 0 ? ow_error_set(err, ENOMEM, "%s: out of memory", name)
	                                          : add_edges(topology, name, root, err);
	json_decref(root);
	if (r < 0)
		ow_topology_free(topology);
	else
		*ret_topology = topology;
	return r;
}
