/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "discovery/map.h"
#include "plane/topology.h"

/* The map by points: which points are neighbours. Vantages of one point are one node. */
struct ow_point_edge {
	uint32_t from, to;           /* points; with an unknown order, from is the first by name */
	enum ow_adjacency adjacency; /* the best of its pairs */
	uint32_t pair;               /* of the map: the one with the most packets */
	uint64_t packets;            /* sampled, of all its pairs */
	int links; /* between both, by TTL: 1 = they are neighbours in the network, too; -1 = unknown */
};

struct ow_point_map {
	const struct ow_map *map;
	const char **point; /* names in the map, rising */
	uint32_t points;
	uint32_t *point_of;         /* each vantage's */
	struct ow_point_edge *edge; /* by from, to */
	uint32_t edges;
};

/* The map must stay. -ENOMEM. */
int ow_point_map_make(const struct ow_map *map, struct ow_point_map *ret_points);
void ow_point_map_done(struct ow_point_map *points);

/* -- comparison with a topology ------------------------------------------------------------------------------------ */

enum ow_disagreement_kind {
	OW_DISAGREE_NO_ROUTER, /* a point that is no router of the topology */
	OW_DISAGREE_NO_LINK,   /* packets pass between neighbours that have no link */
	OW_DISAGREE_LENGTH,    /* packets pass more or fewer links than any shortest path has */
	OW_DISAGREE_NOT_SEEN,  /* a link between two points over which no packet was seen */
	OW_DISAGREEMENTS,
};

struct ow_disagreement {
	enum ow_disagreement_kind kind;
	uint32_t from, to;   /* points */
	int found, expected; /* links */
};

/* Points have the names of routers. Returns the number in *ret_count; the list is freed by the caller. -ENOMEM. */
int ow_point_map_compare(const struct ow_point_map *points, const struct ow_topology *topology,
                         struct ow_disagreement **ret_list, size_t *ret_count);
/* One line. */
#define OW_DISAGREEMENT_TEXT 256
void ow_disagreement_text(const struct ow_point_map *points, const struct ow_disagreement *one,
                          char text[OW_DISAGREEMENT_TEXT]);

/* -- segments ------------------------------------------------------------------------------------------------------- */

/* What a point watches for a segment. Packets of the segment pass other interfaces of a router, too: those of the other
 * side, in the other direction. */
#define OW_DISCOVERED_INTERFACES 16
struct ow_discovered_end {
	char point[OW_SAMPLE_NAME];
	char interface[OW_DISCOVERED_INTERFACES][OW_SAMPLE_NAME];
	unsigned interfaces;
	bool away; /* packets to the other end come in at these interfaces */
};

/* A segment that is to be measured exactly. */
struct ow_discovered_segment {
	struct ow_discovered_end a, b; /* a.point < b.point */
	double share;                  /* of the busier direction */
	unsigned without;              /* maps in a row that did not show it */
};

struct ow_discover_limits {
	unsigned segments;       /* in all */
	unsigned point_segments; /* of one point */
	double least_share;      /* a new segment needs as much, */
	unsigned patience;       /* and an old one ends after so many maps without packets */
};
#define OW_DISCOVER_LIMITS ((struct ow_discover_limits){1000, 16, 0.01, 30})

/*
 * Neighbours that share traffic become segments, those with the highest share first, firm ones before provisional ones.
 * A segment that exists keeps its place while packets pass, whatever its share, so that nothing flaps at the limits.
 * `before`: what the last call returned (or none). The list is sorted by points and freed by the caller. -ENOMEM.
 */
int ow_discover_segments(const struct ow_point_map *points, const struct ow_discover_limits *limits,
                         const struct ow_discovered_segment *before, size_t before_count,
                         struct ow_discovered_segment **ret_segments, size_t *ret_count);
