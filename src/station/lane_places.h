/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config_station.h"

/*
 * The lanes that results have shown, and the place that each of them measures. If the station has no network, the
 * segments are the network: every lane is a link between its points, and a place of its own.
 */
#define OW_LANE_PLACES_MAX OW_MONITOR_PLACES_MAX

struct ow_lane_place {
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME], from[OW_RESULT_NAME], to[OW_RESULT_NAME];
	char *place;  /* NULL: it belongs to no place */
	bool watched; /* it is a path of its own */
	bool apart;   /* another segment has the name FROM>TO already */
};

struct ow_lane_places;
int ow_lane_places_create(const struct ow_station *station, struct ow_lane_places **ret_lanes);
void ow_lane_places_free(struct ow_lane_places *lanes);

/*
 * The lane of a result, entered if it is new; it stays where it is. A second segment between the same points has the
 * place "A>B (segment)". NULL: out of memory, or more than OW_LANE_PLACES_MAX (*ret_full).
 */
struct ow_lane_place *ow_lane_places_find(struct ow_lane_places *lanes, const struct ow_interval_result *result,
                                          bool *ret_is_new, bool *ret_full);
uint32_t ow_lane_places_count(const struct ow_lane_places *lanes);
struct ow_lane_place *ow_lane_places_get(const struct ow_lane_places *lanes, uint32_t number);

/*
 * The network of the lanes: routers are their points, and what the names of segments ("F>E>D") name in between. Points
 * are measured inside, as far as anybody does. ret_is_mrouter: to be freed.
 */
int ow_lane_places_network(const struct ow_lane_places *lanes, struct ow_topology **ret_topology, bool **ret_is_mrouter,
                           struct ow_error *err);
