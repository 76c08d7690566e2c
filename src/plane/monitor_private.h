/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/id_map.h"
#include "plane/monitor.h"

/* Shared by the files of the monitor. */

#define GRAINS 2

/* The intervals of one length. */
struct grain {
	int64_t length_ns;
	int64_t run_ns; /* the start of the first interval since the last gap */
	struct ow_plane_watch watch;
};

struct place {
	struct grain *grain[GRAINS]; /* the shorter intervals first; NULL behind them */
	char cause[160];             /* why the last interval has no values; "" if it has */
	bool named;                  /* changed, and named in the last verdict on a path */
	struct place *back;          /* the other direction, if it is known */
	uint32_t on_paths;           /* how often it is on the paths of targets */
	int64_t held_until_ns;       /* end of the hold time of a place whose path no longer exists; 0 = not held */
	char name[];
};

struct path {
	struct ow_target target;
	struct ow_route route;
	bool found;
	char cause[320];      /* why the path was not found */
	struct place **place; /* the places of all ways, in order */
	struct place **plain; /* the same places for all classes together; NULL if the target has no class */
	uint32_t places;
	struct ow_finding *finding; /* room for all places */
};

struct ow_monitor {
	struct ow_monitor_options options;
	double threshold;
	struct place **place;
	uint32_t places, places_room;
	struct ow_id_map by_name; /* places by the hash of their names */
	struct path *path;
	uint32_t paths, paths_room;
	struct ow_monitor_verdict *verdict;
};

/* The i-th place of the path: the place of its class once that has had a result. */
struct place *ow_monitor_place_of(const struct path *path, uint32_t i);
/* The watch that counts now: of the intervals that the place has results of for now_ns. NULL: there are none. */
const struct ow_plane_watch *ow_monitor_watch_of(const struct ow_monitor *monitor, const struct place *place,
                                                 int64_t now_ns);
/* What is usual of its delay is learned again. */
void ow_monitor_forget_delay(struct place *place);
/* True if the place has had a result. */
static inline bool ow_monitor_is_seen(const struct place *place)
{
	return place->grain[0] != NULL;
}
