/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include "config/keys.h"
#include "plane/monitor.h"

/*
 * The configuration of the monitoring station (docs/plane.md): the network, the places of measurements, and the
 * targets.
 */

/* Which place a result belongs to. NULL matches all. */
struct ow_station_place {
	const char *segment, *class_name, *from, *to;
	const char *place;
};

struct ow_station {
	const char *network; /* a file, relative to the configuration's folder; NULL = ask FRR: */
	const char *vtysh;   /* with this program and the socket folder below; NULL = the segments are the network */
	const char *vtysh_socket; /* or NULL */
	const char *map;          /* a map of the fleet: the network of the segments; NULL = all segments */
	int64_t refresh_ns;       /* how often the network is read again */
	int64_t default_cost;
	const char **mrouter;
	unsigned mrouters;
	struct ow_station_place *place;
	unsigned places;
	struct ow_target *target;
	unsigned targets;
	const char **router_id, **router_name; /* names for router ids (FRR only has ids) */
	unsigned routers;
	struct ow_monitor_options options;
	struct ow_yaml *tree; /* owns the texts */
};

/* Its keys. */
extern const struct ow_key ow_station_keys[];

/* path NULL: a station without a configuration, which watches all segments. */
int ow_station_read(const char *path, struct ow_station **ret_station, struct ow_error *err);
void ow_station_free(struct ow_station *station);

/* Whether there is no network, or a map of points: a segment is a link between its points. */
bool ow_station_by_segments(const struct ow_station *station);

/* Round trips of probes belong to no place, because they contain both directions. */
bool ow_station_is_round_trip(const struct ow_interval_result *result);
/*
 * The name of the place that a result belongs to. An entry of the configuration decides first. Otherwise it is the name
 * of the segment, if that is the name of a place whose ends are those of the result; for the direction from end to
 * start the name is reversed. Without a network it is "FROM>TO" of any other segment. Classes other than "all" are appended: "F>C/voice". Returns false if the result belongs
 * to no place.
 */
bool ow_station_place(const struct ow_station *station, const struct ow_interval_result *result,
                      char ret_place[OW_PLACE_TEXT]);
