/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/topology.h"

/*
 * The ways from one router to another, each a sequence of places that can be measured: segments of links up to the next
 * m-router, and the insides of m-routers from the incoming to the outgoing link. With equal costs there are several
 * ways; each router shares its packets evenly among its next hops.
 */
#define OW_ROUTE_WAYS_MAX 4096

struct ow_place {
	bool inside;        /* the inside of node[1], from node[0] to node[2]; otherwise the links from node[0] on */
	uint32_t at, nodes; /* position and number in the way's routers */
};

struct ow_way {
	double share; /* share of the packets that take this way */
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

/* -ENOENT with an error message if there is no way; -E2BIG. */
int ow_route_find(const struct ow_topology *topology, const bool *is_mrouter, uint32_t from, uint32_t to,
                  struct ow_route *ret_route, struct ow_error *err);
/* A route of one place between two routers without numbers. -ENOMEM. */
int ow_route_alone(struct ow_route *ret_route);
void ow_route_done(struct ow_route *route);

/*
 * The name of a place: "F>E>D" for links, "F[A>C]" for the inside of F from A to C. The results of a segment with this
 * name belong to the place. Returns false if the name does not fit.
 */
#define OW_PLACE_TEXT 1024
bool ow_place_text(const struct ow_topology *topology, const struct ow_way *way, const struct ow_place *place,
                   char text[OW_PLACE_TEXT]);
/*
 * The name of the other direction: "D>E>F" of "F>E>D", "F[C>A]" of "F[A>C]". What is behind '/' or " (" stays at the
 * end. Returns false if the name has no directions.
 */
bool ow_place_reverse(const char *name, char ret_name[OW_PLACE_TEXT]);
