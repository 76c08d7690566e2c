/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PLANE_ROUTE_H
#define OW_PLANE_ROUTE_H

#include "plane/topology.h"

/*
 * The way from one router to another as a sequence of places that can be measured: segments of links up to the next
 * m-router, and the insides of m-routers from the link that packets come in by to the one they leave by. Over equal
 * costs there are several ways; each router shares its packets evenly among its next hops.
 */
#define OW_ROUTE_WAYS_MAX 4096

struct ow_place {
	bool inside;        /* of node[1], from node[0] to node[2]; otherwise the links from node[0] on */
	uint32_t at, nodes; /* in the way's routers */
};

struct ow_way {
	double share; /* of the packets */
	uint16_t *node;
	uint32_t nodes;
	struct ow_place *place; /* in the order of travel */
	uint32_t places;
};

struct ow_route {
	uint32_t from, to;
	struct ow_way *way; /* shares add up to 1 */
	uint32_t ways;
};

/* -ENOENT with a line when there is no way; -E2BIG. */
int ow_route_find(const struct ow_topology *topology, const bool *is_mrouter, uint32_t from, uint32_t to,
                  struct ow_route *ret_route, struct ow_error *err);
void ow_route_done(struct ow_route *route);

/* The name of a place: "F>E>D" for links, "F[A>C]" for the inside of F from A to C. Results of a segment that is called
 * so belong to it. false if it does not fit. */
#define OW_PLACE_TEXT 1024
bool ow_place_text(const struct ow_topology *topology, const struct ow_way *way, const struct ow_place *place,
                   char text[OW_PLACE_TEXT]);

#endif
