/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the monitoring station: places by name, paths with targets, and verdicts. */
#include "plane/monitor.h"
#include "base/array.h"
#include "base/time.h"
#include "plane/monitor_private.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FALSE_ALARMS 1000.0
#define WORTH        0.02
#define STALE_NS     (10 * OW_NS_PER_S)
#define HOLD_NS      (60 * OW_NS_PER_S)

int ow_monitor_create(const struct ow_monitor_options *options, struct ow_monitor **ret_monitor)
{
	struct ow_monitor *monitor = calloc(1, sizeof(*monitor));
	if (!monitor)
		return -ENOMEM;
	monitor->options = *options;
	if (!(options->false_alarms > 0))
		monitor->options.false_alarms = FALSE_ALARMS;
	if (!(options->worth > 0))
		monitor->options.worth = WORTH;
	if (options->stale_ns <= 0)
		monitor->options.stale_ns = STALE_NS;
	if (options->hold_ns <= 0)
		monitor->options.hold_ns = HOLD_NS;
	*ret_monitor = monitor;
	return 0;
}

static void path_done(struct path *path)
{
	ow_route_done(&path->route);
	free(path->place);
	free(path->finding);
	free(path->plain);
	path->place = path->plain = NULL;
	path->finding = NULL;
	path->places = 0;
}

void ow_monitor_free(struct ow_monitor *monitor)
{
	if (!monitor)
		return;
	for (uint32_t i = 0; i < monitor->places; i++)
		free(monitor->place[i]);
	for (uint32_t i = 0; i < monitor->paths; i++) {
		path_done(&monitor->path[i]);
		free((char *)monitor->path[i].target.name);
		free((char *)monitor->path[i].target.from);
		free((char *)monitor->path[i].target.to);
		free((char *)monitor->path[i].target.class_name);
	}
	free(monitor->place);
	ow_id_map_done(&monitor->by_name);
	free(monitor->path);
	free(monitor->verdict);
	free(monitor);
}

/* -- places by name ---------------------------------------------------------------------------------------------------
 */

/* The place of this name, entering it if new. */
static int find_or_add_place(struct ow_monitor *monitor, const char *name, struct place **ret_place,
                             struct ow_error *err)
{
	size_t length = strlen(name);
	uint64_t hash = XXH3_64bits(name, length);
	uint32_t known = OW_ID_MAP_FIND(&monitor->by_name, hash, i, strcmp(monitor->place[i]->name, name) == 0);
	if (known != OW_ID_MAP_NONE) {
		*ret_place = monitor->place[known];
		return 0;
	}
	if (length == 0 || length >= OW_PLACE_TEXT)
		return ow_error_set(err, EINVAL, "a place's name has 1 to %d bytes", OW_PLACE_TEXT - 1);
	if (monitor->places == OW_MONITOR_PLACES_MAX)
		return ow_error_set(err, E2BIG, "more than %u places", OW_MONITOR_PLACES_MAX);
	if (OW_GROW(monitor->place, monitor->places_room, monitor->places + 1) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct place *place = calloc(1, sizeof(*place) + length + 1);
	if (!place || ow_id_map_add(&monitor->by_name, hash, monitor->places) < 0) {
		free(place);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	memcpy(place->name, name, length + 1);
	ow_watch_init(&place->watch);
	monitor->place[monitor->places++] = place;
	monitor->threshold = ow_watch_threshold(monitor->places, monitor->options.false_alarms);
	*ret_place = place;
	return 0;
}

int ow_monitor_add(struct ow_monitor *monitor, const char *name, const struct ow_watch_sample *sample,
                   struct ow_error *err)
{
	struct place *place;
	int r = find_or_add_place(monitor, name, &place, err);
	if (r < 0)
		return r;
	if (place->seen && sample->start_ns <= place->watch.last.start_ns)
		return 0;
	place->seen = true;
	ow_watch_add(&place->watch, sample, monitor->threshold);
	return 0;
}

bool ow_monitor_is_fresh(const struct ow_monitor *monitor, const struct place *place, int64_t now_ns)
{
	const struct ow_watch_sample *last = &place->watch.last;
	return place->seen && last->start_ns <= now_ns && now_ns - last->start_ns <= monitor->options.stale_ns;
}

/* -- targets and the network ------------------------------------------------------------------------------------------
 */

int ow_monitor_add_target(struct ow_monitor *monitor, const struct ow_target *target, struct ow_error *err)
{
	if (monitor->paths == OW_MONITOR_TARGETS_MAX)
		return ow_error_set(err, E2BIG, "more than %d targets", OW_MONITOR_TARGETS_MAX);
	if (OW_GROW(monitor->path, monitor->paths_room, monitor->paths + 1) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct path *path = monitor->path + monitor->paths;
	*path = (struct path){.target = *target};
	path->target.name = strdup(target->name);
	path->target.from = strdup(target->from);
	path->target.to = strdup(target->to);
	path->target.class_name = target->class_name ? strdup(target->class_name) : NULL;
	monitor->paths++;
	if (!path->target.name || !path->target.from || !path->target.to ||
	    (target->class_name && !path->target.class_name))
		return ow_error_set(err, ENOMEM, "out of memory");
	snprintf(path->cause, sizeof(path->cause), "no network is known yet");
	return 0;
}

static void hold_places(struct path *path, int64_t until_ns)
{
	for (uint32_t i = 0; i < path->places; i++) {
		struct place *place = path->place[i];
		place->on_paths--;
		place->held_until_ns = until_ns;
	}
}

struct place *ow_monitor_place_of(const struct path *path, uint32_t i)
{
	return path->plain && !path->place[i]->seen ? path->plain[i] : path->place[i];
}

/* The next place of the path: that of the class and, if the path has a class, that of all classes together. */
static int add_place(struct ow_monitor *monitor, struct path *path, char name[OW_PLACE_TEXT], struct ow_error *err)
{
	int r = 0;
	if (path->plain) {
		r = find_or_add_place(monitor, name, &path->plain[path->places], err);
		size_t used = strlen(name), room = OW_PLACE_TEXT - used;
		if (r == 0 && (size_t)snprintf(name + used, room, "/%s", path->target.class_name) >= room)
			r = ow_error_set(err, E2BIG, "a place's name has 1 to %d bytes", OW_PLACE_TEXT - 1);
	}
	if (r == 0)
		r = find_or_add_place(monitor, name, &path->place[path->places], err);
	if (r == 0)
		path->place[path->places++]->on_paths++;
	return r;
}

/* All places of all ways, in order. */
static int find_places(struct ow_monitor *monitor, const struct ow_topology *topology, struct path *path,
                       struct ow_error *err)
{
	char name[OW_PLACE_TEXT];
	uint32_t count = 0;
	for (uint32_t w = 0; w < path->route.ways; w++)
		count += path->route.way[w].places;
	path->place = calloc(count, sizeof(struct place *));
	path->finding = calloc(count, sizeof(*path->finding));
	if (path->target.class_name)
		path->plain = calloc(count, sizeof(struct place *));
	if (!path->place || !path->finding || (path->target.class_name && !path->plain))
		return ow_error_set(err, ENOMEM, "out of memory");
	for (uint32_t w = 0; w < path->route.ways; w++) {
		const struct ow_way *way = &path->route.way[w];
		for (uint32_t i = 0; i < way->places; i++) {
			if (!ow_place_text(topology, way, &way->place[i], name))
				return ow_error_set(err, E2BIG, "the name of a part of the path has more than %d bytes",
				                    OW_PLACE_TEXT - 1);
			int r = add_place(monitor, path, name, err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int find_path(struct ow_monitor *monitor, const struct ow_topology *topology, const bool *is_mrouter,
                     struct path *path, struct ow_error *err)
{
	struct ow_error why = {""};
	const struct ow_target *target = &path->target;
	uint32_t from = ow_topology_find(topology, target->from), to = ow_topology_find(topology, target->to);
	if (from == UINT32_MAX || to == UINT32_MAX) {
		snprintf(path->cause, sizeof(path->cause), "the network has no router %.100s",
		         from == UINT32_MAX ? target->from : target->to);
		return 0;
	}
	if (from == to) {
		snprintf(path->cause, sizeof(path->cause), "both ends are %.100s", target->from);
		return 0;
	}
	int r = ow_route_find(topology, is_mrouter, from, to, &path->route, &why);
	if (r == -ENOENT || r == -E2BIG) {
		snprintf(path->cause, sizeof(path->cause), "%.300s", why.text);
		return 0;
	}
	if (r < 0)
		return ow_error_set(err, -r, "%s", why.text);
	r = find_places(monitor, topology, path, err);
	path->found = r == 0;
	return r;
}

int ow_monitor_set_network(struct ow_monitor *monitor, const struct ow_topology *topology, const bool *is_mrouter,
                           int64_t now_ns, struct ow_error *err)
{
	int r = 0;
	for (uint32_t i = 0; i < monitor->paths; i++) {
		hold_places(&monitor->path[i], now_ns + monitor->options.hold_ns);
		path_done(&monitor->path[i]);
		monitor->path[i].found = false;
	}
	for (uint32_t i = 0; r == 0 && i < monitor->paths; i++)
		r = find_path(monitor, topology, is_mrouter, &monitor->path[i], err);
	return r;
}

void ow_monitor_count(const struct ow_monitor *monitor, int64_t now_ns, struct ow_monitor_count *ret_count)
{
	struct ow_monitor_count count = {.places = monitor->places, .threshold = monitor->threshold};
	for (uint32_t i = 0; i < monitor->places; i++) {
		const struct place *place = monitor->place[i];
		count.learning += place->watch.delay.count < OW_WATCH_LEARN;
		count.fresh += ow_monitor_is_fresh(monitor, place, now_ns);
		count.changed += place->watch.delay.changed || place->watch.loss.changed;
		count.old += place->held_until_ns && !place->on_paths;
	}
	*ret_count = count;
}
