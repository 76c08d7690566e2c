/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/topology.h"

/* Shared by the readers of DOT, GML and GraphML: makes links from an edge with attributes. */
struct ow_graph_build {
	struct ow_topology *topology;
	const char *name;     /* name of the file, for error messages */
	int64_t default_cost; /* cost of edges without one; 0 = an edge without a cost is an error */
};

/* Texts of attributes, "" where there is none. */
#define OW_GRAPH_TEXT 256
struct ow_graph_attributes {
	char cost[OW_GRAPH_TEXT];    /* cost, else metric, else weight */
	int cost_rank;               /* which of them was found; 0 = none yet, smaller is better */
	char latency[OW_GRAPH_TEXT]; /* latency or delay: a duration, or a number of milliseconds */
};

/* Takes an attribute of an edge and ignores unknown ones. Names are compared without case. */
void ow_graph_attribute(struct ow_graph_attributes *attributes, const char *name, const char *value);
/* Enters the link, and unless directed also the link back. The error names file and line. */
int ow_graph_edge(struct ow_graph_build *build, const char *from, const char *to,
                  const struct ow_graph_attributes *attributes, bool directed, unsigned line, struct ow_error *err);
int ow_graph_node(struct ow_graph_build *build, const char *name, unsigned line, uint32_t *ret_node,
                  struct ow_error *err);

/*
 * Routers by the ids of the file. A router's name is its label if no other router has this label, else its id. First
 * add all routers, then enter them, then ask for names.
 */
struct ow_graph_name {
	char *id, *label; /* label: NULL = none */
	unsigned line, order;
};
struct ow_graph_names {
	struct ow_graph_name *name;
	size_t count, room;
};
int ow_graph_names_add(struct ow_graph_build *build, struct ow_graph_names *names, const char *id, const char *label,
                       unsigned line, struct ow_error *err);
int ow_graph_names_enter(struct ow_graph_build *build, struct ow_graph_names *names, struct ow_error *err);
/* NULL with an error if there is no such id. */
const char *ow_graph_names_find(struct ow_graph_build *build, const struct ow_graph_names *names, const char *id,
                                unsigned line, struct ow_error *err);
void ow_graph_names_done(struct ow_graph_names *names);

/* The readers. */
int ow_graph_read_dot(struct ow_graph_build *build, const char *text, size_t size, struct ow_error *err);
int ow_graph_read_gml(struct ow_graph_build *build, const char *text, size_t size, struct ow_error *err);
int ow_graph_read_graphml(struct ow_graph_build *build, const char *text, size_t size, struct ow_error *err);
