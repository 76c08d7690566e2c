/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A network: routers and the directed links between them. Costs are fixed-point numbers, so that sums of equal costs
 * compare equal. Of parallel links the cheapest counts, as in OSPF.
 */

#define OW_TOPOLOGY_NODES_MAX 65535u
#define OW_TOPOLOGY_LINKS_MAX (1u << 20) /* directed */
#define OW_TOPOLOGY_NAME_MAX  255        /* bytes of a router's name */
#define OW_TOPOLOGY_FILE_MAX  (64u << 20)
#define OW_COST_ONE           1000000                            /* a cost of 1 */
#define OW_COST_MAX           (INT64_C(100000000) * OW_COST_ONE) /* OW_TOPOLOGY_NODES_MAX links do not overflow */

struct ow_link {
	uint32_t from, to;
	int64_t cost;      /* > 0, in 1 / OW_COST_ONE */
	double latency_ns; /* from the file; NAN if the file has none */
};

struct ow_topology;
int ow_topology_create(struct ow_topology **ret_topology);
void ow_topology_free(struct ow_topology *topology);

/*
 * The number of the router of this name; enters the router if it is new. -EINVAL for an empty or too long name, -E2BIG.
 */
int ow_topology_add_node(struct ow_topology *topology, const char *name, size_t length, uint32_t *ret_node,
                         struct ow_error *err);
/*
 * Adds a directed link. If the link exists already, the lower cost is kept and a missing latency is filled in. -EINVAL
 * for a cost that is not in (0, OW_COST_MAX] or a link from a router to itself.
 */
int ow_topology_add_link(struct ow_topology *topology, const struct ow_link *link, struct ow_error *err);
/* Sorts links by (from, to). To be called once, after the last link and before the functions below. */
int ow_topology_finish(struct ow_topology *topology);

uint32_t ow_topology_nodes(const struct ow_topology *topology);
uint32_t ow_topology_links(const struct ow_topology *topology); /* directed */
const char *ow_topology_name(const struct ow_topology *topology, uint32_t node);
/* UINT32_MAX if no router has this name. */
uint32_t ow_topology_find(const struct ow_topology *topology, const char *name);
/* The links that leave a router, in order of their ends. */
const struct ow_link *ow_topology_from(const struct ow_topology *topology, uint32_t node, uint32_t *ret_count);
/* NULL if there is no such link. */
const struct ow_link *ow_topology_link(const struct ow_topology *topology, uint32_t from, uint32_t to);
/* The number of parts without a link between them, in either direction. ret_part: the part of each node, or NULL. */
int ow_topology_parts(const struct ow_topology *topology, uint32_t *ret_part, uint32_t *ret_parts);
/* True if both have the same routers (by name) and links with the same costs. */
bool ow_topology_same(const struct ow_topology *a, const struct ow_topology *b);

/* Parses a cost: "10", "2.5". Returns 0, or -EINVAL if it is not a number or out of range. */
int ow_cost_parse(const char *text, size_t length, int64_t *ret_cost);

/* -- reading: from the bytes of a file; the error line has its name and the line that is wrong ------------------------
 */

enum ow_topology_format {
	OW_TOPOLOGY_AUTO, /* recognised by the contents */
	OW_TOPOLOGY_ROCKETFUEL,
	OW_TOPOLOGY_GRAPHML,
	OW_TOPOLOGY_GML,
	OW_TOPOLOGY_DOT,
	OW_TOPOLOGY_FRR, /* OSPF's link-state database in JSON, as printed by vtysh */
	OW_TOPOLOGY_MAP, /* the points of a fleet, as printed by `oneway fleet map --json` */
};
enum ow_topology_format ow_topology_guess(const char *text, size_t size);
/* default_cost: cost of edges of GraphML, GML and DOT without one; 0 = such an edge is an error. */
int ow_topology_parse(enum ow_topology_format format, const char *name, const char *text, size_t size,
                      int64_t default_cost, struct ow_topology **ret_topology, struct ow_error *err);
/* Rocketfuel: lines of the form "A B number". */
int ow_topology_parse_rocketfuel(const char *name, const char *text, size_t size, struct ow_topology **ret_topology,
                                 struct ow_error *err);
int ow_topology_parse_frr(const char *name, const char *text, size_t size, struct ow_topology **ret_topology,
                          struct ow_error *err);
int ow_topology_parse_map(const char *name, const char *text, size_t size, struct ow_topology **ret_topology,
                          struct ow_error *err);

/*
 * Reads a network in any format; "-" is standard input. default_cost: cost of links without one, 0 = such a link is an
 * error.
 */
int ow_topology_read(const char *path, int64_t default_cost, struct ow_topology **ret_topology, struct ow_error *err);
/*
 * The routers in a comma-separated list of names. The error names a router that the network does not have, and the most
 * similar name. ret_nodes: to be freed by the caller.
 */
int ow_topology_routers(const struct ow_topology *topology, const char *list, uint32_t **ret_nodes, uint32_t *ret_count,
                        struct ow_error *err);
