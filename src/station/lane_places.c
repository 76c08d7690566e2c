/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of results, their places, and the network that they are. */
#include "station/lane_places.h"

#include "base/array.h"
#include "base/id_map.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct ow_lane_places {
	const struct ow_station *station;
	struct ow_lane_place **lane;
	uint32_t lanes, room;
	struct ow_id_map by_names, by_base;
};

int ow_lane_places_create(const struct ow_station *station, struct ow_lane_places **ret_lanes)
{
	struct ow_lane_places *lanes = calloc(1, sizeof(*lanes));
	if (!lanes)
		return -ENOMEM;
	lanes->station = station;
	*ret_lanes = lanes;
	return 0;
}

void ow_lane_places_free(struct ow_lane_places *lanes)
{
	if (!lanes)
		return;
	for (uint32_t i = 0; i < lanes->lanes; i++) {
		free(lanes->lane[i]->place);
		free(lanes->lane[i]);
	}
	free(lanes->lane);
	ow_id_map_done(&lanes->by_names);
	ow_id_map_done(&lanes->by_base);
	free(lanes);
}

uint32_t ow_lane_places_count(const struct ow_lane_places *lanes)
{
	return lanes->lanes;
}

struct ow_lane_place *ow_lane_places_get(const struct ow_lane_places *lanes, uint32_t number)
{
	return lanes->lane[number];
}

static uint64_t hash_of(const struct ow_interval_result *r)
{
	uint64_t hash = XXH3_64bits(r->segment, strlen(r->segment));
	hash = XXH3_64bits_withSeed(r->class_name, strlen(r->class_name), hash);
	hash = XXH3_64bits_withSeed(r->from, strlen(r->from), hash);
	return XXH3_64bits_withSeed(r->to, strlen(r->to), hash);
}

static bool is_lane(const struct ow_lane_place *lane, const struct ow_interval_result *r)
{
	return strcmp(lane->segment, r->segment) == 0 && strcmp(lane->class_name, r->class_name) == 0 &&
	       strcmp(lane->from, r->from) == 0 && strcmp(lane->to, r->to) == 0;
}

/* The name of a place without its class. */
static size_t base_of(const char *place)
{
	return strcspn(place, "/");
}

/* Whether another segment has this place, in any class. */
static bool is_taken(const struct ow_lane_places *lanes, const char *place, const char *segment)
{
	size_t base = base_of(place);
	uint32_t taken = OW_ID_MAP_FIND(&lanes->by_base, XXH3_64bits(place, base), i,
	                                !lanes->lane[i]->apart && strcmp(lanes->lane[i]->segment, segment) != 0 &&
	                                        base_of(lanes->lane[i]->place) == base &&
	                                        memcmp(lanes->lane[i]->place, place, base) == 0);
	return taken != OW_ID_MAP_NONE;
}

/* Two segments between the same points are two places, with their names. */
static bool tell_apart(const char *segment, char place[OW_PLACE_TEXT])
{
	char *class_name = strchr(place, '/'), rest[OW_PLACE_TEXT] = "";
	size_t used = strlen(place);
	if (class_name) {
		snprintf(rest, sizeof(rest), "%s", class_name);
		used = (size_t)(class_name - place);
	}
	return (size_t)snprintf(place + used, OW_PLACE_TEXT - used, " (%s)%s", segment, rest) < OW_PLACE_TEXT - used;
}

static int enter(struct ow_lane_places *lanes, struct ow_lane_place *lane, uint64_t hash)
{
	if (OW_GROW(lanes->lane, lanes->room, lanes->lanes + 1) < 0 ||
	    ow_id_map_reserve(&lanes->by_base, (size_t)lanes->lanes + 1) < 0 ||
	    ow_id_map_add(&lanes->by_names, hash, lanes->lanes) < 0)
		return -ENOMEM;
	if (lane->place)
		ow_id_map_add(&lanes->by_base, XXH3_64bits(lane->place, base_of(lane->place)), lanes->lanes);
	lanes->lane[lanes->lanes++] = lane;
	return 0;
}

static struct ow_lane_place *add(struct ow_lane_places *lanes, const struct ow_interval_result *r, uint64_t hash)
{
	char place[OW_PLACE_TEXT];
	struct ow_lane_place *lane = calloc(1, sizeof(*lane));
	if (!lane)
		return NULL;
	memcpy(lane->segment, r->segment, sizeof(lane->segment));
	memcpy(lane->class_name, r->class_name, sizeof(lane->class_name));
	memcpy(lane->from, r->from, sizeof(lane->from));
	memcpy(lane->to, r->to, sizeof(lane->to));
	bool has_place = ow_station_place(lanes->station, r, place);
	lane->apart = has_place && ow_station_by_segments(lanes->station) && is_taken(lanes, place, r->segment);
	if (lane->apart)
		has_place = tell_apart(r->segment, place);
	if (has_place)
		lane->place = strdup(place);
	if ((has_place && !lane->place) || enter(lanes, lane, hash) < 0) {
		free(lane->place);
		free(lane);
		return NULL;
	}
	return lane;
}

struct ow_lane_place *ow_lane_places_find(struct ow_lane_places *lanes, const struct ow_interval_result *r,
                                          bool *ret_is_new, bool *ret_full)
{
	uint64_t hash = hash_of(r);
	uint32_t known = OW_ID_MAP_FIND(&lanes->by_names, hash, i, is_lane(lanes->lane[i], r));
	*ret_is_new = known == OW_ID_MAP_NONE;
	*ret_full = *ret_is_new && lanes->lanes == OW_LANE_PLACES_MAX;
	if (!*ret_is_new)
		return lanes->lane[known];
	return *ret_full ? NULL : add(lanes, r, hash);
}

/* -- the network ------------------------------------------------------------------------------------------------------
 */

/* The links of "F>E>D", F>E and E>D, and back; its ends are measured. */
static int add_links(struct ow_topology *topology, const char *name, struct ow_error *err)
{
	uint32_t before = UINT32_MAX, node;
	for (const char *at = name; at;) {
		size_t length = strcspn(at, ">/");
		int r = ow_topology_add_node(topology, at, length, &node, err);
		struct ow_link link = {before, node, OW_COST_ONE, (double)NAN};
		if (r == 0 && before != UINT32_MAX && before != node)
			r = ow_topology_add_link(topology, &link, err);
		if (r < 0)
			return r;
		before = node;
		at = at[length] == '>' ? at + length + 1 : NULL;
	}
	return 0;
}

static int fill(const struct ow_lane_places *lanes, struct ow_topology *topology, struct ow_error *err)
{
	int r = 0;
	for (uint32_t i = 0; r == 0 && i < lanes->lanes; i++) {
		const char *place = lanes->lane[i]->place;
		/* The inside of a router is no link, and a second segment is no further way. */
		if (place && !strchr(place, '[') && !strstr(place, " ("))
			r = add_links(topology, place, err);
	}
	if (r == 0 && ow_topology_finish(topology) < 0)
		r = ow_error_set(err, ENOMEM, "out of memory");
	return r;
}

static void mark(const struct ow_lane_places *lanes, const struct ow_topology *topology, bool *is_mrouter)
{
	for (uint32_t i = 0; i < lanes->lanes; i++) {
		uint32_t from = ow_topology_find(topology, lanes->lane[i]->from);
		uint32_t to = ow_topology_find(topology, lanes->lane[i]->to);
		if (from != UINT32_MAX)
			is_mrouter[from] = true;
		if (to != UINT32_MAX)
			is_mrouter[to] = true;
	}
}

int ow_lane_places_network(const struct ow_lane_places *lanes, struct ow_topology **ret_topology, bool **ret_is_mrouter,
                           struct ow_error *err)
{
	struct ow_topology *topology;
	if (ow_topology_create(&topology) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = fill(lanes, topology, err);
	bool *is_mrouter = r < 0 ? NULL : calloc((size_t)ow_topology_nodes(topology) + 1, sizeof(*is_mrouter));
	if (r == 0 && !is_mrouter)
		r = ow_error_set(err, ENOMEM, "out of memory");
	if (r < 0) {
		ow_topology_free(topology);
		return r;
	}
	mark(lanes, topology, is_mrouter);
	*ret_topology = topology;
	*ret_is_mrouter = is_mrouter;
	return 0;
}
