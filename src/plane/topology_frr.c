/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads OSPF's link-state database as FRR prints it: `vtysh -c "show ip ospf database router json"`. The name of a
 * router is its router id. As in OSPF a link counts only if both ends announce it. Routers on a shared (transit)
 * network are linked with one another: each router pays its own cost onto the network, the way off the network costs
 * nothing.
 */
#include "plane/topology.h"
#include "base/array.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENDS_MAX OW_TOPOLOGY_LINKS_MAX

/* One link as announced by one router. */
struct end {
	uint32_t router;
	uint32_t peer;       /* the other router; UINT32_MAX: the link leads to a transit network */
	const char *network; /* its designated router */
	int64_t metric;
};

struct frr {
	const char *name;
	struct ow_topology *topology;
	struct end *end;
	size_t ends, room;
	struct ow_error *err;
};

static int wrong(const struct frr *frr, const char *router, const char *what)
{
	return ow_error_set(frr->err, EINVAL, "%s: router LSA of %.60s: %s", frr->name, router ? router : "?", what);
}

static int enter(const struct frr *frr, const char *id, uint32_t *ret_node)
{
	return ow_topology_add_node(frr->topology, id, strlen(id), ret_node, frr->err);
}

static int add_end(struct frr *frr, const struct end *end)
{
	if (frr->ends == ENDS_MAX)
		return ow_error_set(frr->err, E2BIG, "%s: more than %u links", frr->name, ENDS_MAX);
	if (OW_GROW(frr->end, frr->room, frr->ends + 1) < 0)
		return ow_error_set(frr->err, ENOMEM, "%s: out of memory", frr->name);
	frr->end[frr->ends++] = *end;
	return 0;
}

static int read_link(struct frr *frr, const char *id, uint32_t router, json_t *link)
{
	struct end end = {.router = router, .peer = UINT32_MAX};
	const char *type = json_string_value(json_object_get(link, "linkType"));
	json_t *metric = json_object_get(link, "tos0Metric");
	if (!metric)
		metric = json_object_get(link, "metric");
	if (!type || !json_is_integer(metric))
		return wrong(frr, id, "a link without linkType or tos0Metric");
	const char *peer = json_string_value(json_object_get(link, "neighborRouterId"));
	end.network = json_string_value(json_object_get(link, "designatedRouterAddress"));
	if (!peer && !end.network)
		return 0; /* a stub network: leads to no router */
	/* Metric 0 occurs on loopbacks and lab networks: it becomes the lowest possible cost. */
	json_int_t cost = json_integer_value(metric);
	if (cost < 0 || cost > 65535)
		return wrong(frr, id, "a metric is not in 0 .. 65535");
	end.metric = cost ? cost * OW_COST_ONE : 1;
	int r = peer ? enter(frr, peer, &end.peer) : 0;
	return r < 0 ? r : add_end(frr, &end);
}

static int read_lsa(struct frr *frr, json_t *lsa)
{
	uint32_t router;
	const char *id = json_string_value(json_object_get(lsa, "advertisingRouter"));
	json_t *links = json_object_get(lsa, "routerLinks"), *link;
	const char *key;
	if (!id || !json_is_object(links))
		return wrong(frr, id, "no advertisingRouter or routerLinks");
	int r = enter(frr, id, &router);
	json_object_foreach(links, key, link)
	{
		if (r == 0)
			r = read_link(frr, id, router, link);
	}
	return r;
}

static int read_areas(struct frr *frr, json_t *root)
{
	json_t *states = json_object_get(root, "routerLinkStates"), *lsas, *lsa;
	json_t *areas = json_object_get(states ? states : root, "areas");
	const char *area;
	size_t i;
	int r = 0;
	if (!json_is_object(areas))
		return ow_error_set(
			frr->err, EINVAL,
			"%s: no routerLinkStates with areas: expected what 'show ip ospf database router json' prints",
			frr->name);
	json_object_foreach(areas, area, lsas)
	{
		json_array_foreach(lsas, i, lsa)
		{
			if (r == 0)
				r = read_lsa(frr, lsa);
		}
	}
	return r;
}

static int by_peers(const void *pa, const void *pb)
{
	const struct end *a = pa, *b = pb;
	if (a->peer != b->peer)
		return a->peer < b->peer ? -1 : 1;
	if (a->peer == UINT32_MAX)
		return strcmp(a->network, b->network);
	return (a->router > b->router) - (a->router < b->router);
}

static int add(const struct frr *frr, uint32_t from, uint32_t to, int64_t cost)
{
	return ow_topology_add_link(frr->topology, &(struct ow_link){from, to, cost, NAN}, frr->err);
}

/*
 * Point-to-point: the other end must announce the link too. Networks: all routers that announce the same designated
 * router.
 */
static int join_ends(const struct frr *frr)
{
	int r = 0;
	if (frr->ends)
		qsort(frr->end, frr->ends, sizeof(*frr->end), by_peers);
	for (size_t i = 0; r == 0 && i < frr->ends; i++) {
		const struct end *end = &frr->end[i];
		if (end->peer == UINT32_MAX) {
			for (size_t n = i + 1; r == 0 && n < frr->ends && by_peers(end, &frr->end[n]) == 0; n++) {
				if (end->router == frr->end[n].router)
					continue;
				r = add(frr, end->router, frr->end[n].router, end->metric);
				if (r == 0)
					r = add(frr, frr->end[n].router, end->router, frr->end[n].metric);
			}
			continue;
		}
		struct end back = {.router = end->peer, .peer = end->router, .network = ""};
		if (end->router != end->peer && bsearch(&back, frr->end, frr->ends, sizeof(back), by_peers))
			r = add(frr, end->router, end->peer, end->metric);
	}
	return r;
}

int ow_topology_parse_frr(const char *name, const char *text, size_t size, struct ow_topology **ret_topology,
                          struct ow_error *err)
{
	struct frr frr = {.name = name, .err = err};
	json_error_t why;
	json_t *root = json_loadb(text, size, 0, &why);
	if (!root)
		return ow_error_set(err, EINVAL, "%s:%d: %.200s", name, why.line, why.text);
	int r = ow_topology_create(&frr.topology);
	if (r < 0)
		ow_error_set(err, ENOMEM, "%s: out of memory", name);
	if (r == 0)
		r = read_areas(&frr, root);
	if (r == 0)
		r = join_ends(&frr);
	if (r == 0 && ow_topology_finish(frr.topology) < 0)
		r = ow_error_set(err, ENOMEM, "%s: out of memory", name);
	free(frr.end);
	json_decref(root);
	if (r < 0)
		ow_topology_free(frr.topology);
	else
		*ret_topology = frr.topology;
	return r;
}
