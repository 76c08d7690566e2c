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
	for (uint32_t i = 0; i < monitor->places; i++) {
		for (int g = 0; g < GRAINS; g++)
			free(monitor->place[i]->grain[g]);
		free(monitor->place[i]);
	}
	for (uint32_t i = 0; i < monitor->paths; i++) {
		path_done(&monitor->path[i]);
		free((char *)monitor->path[i].target.name);
		free((char *)monitor->path[i].target.from);
		free((char *)monitor->path[i].target.to);
		free((char *)monitor->path[i].target.class_name);
		free((char *)monitor->path[i].target.place);
	}
	free(monitor->place);
	ow_id_map_done(&monitor->by_name);
	free(monitor->path);
	free(monitor->verdict);
	free(monitor);
}

/* -- places by name ---------------------------------------------------------------------------------------------------
 */

/* The place of this name; NULL if there is none. */
static struct place *find_place(const struct ow_monitor *monitor, const char *name, size_t length)
{
	uint64_t hash = XXH3_64bits(name, length);
	uint32_t known = OW_ID_MAP_FIND(&monitor->by_name, hash, i, strcmp(monitor->place[i]->name, name) == 0);
	return known == OW_ID_MAP_NONE ? NULL : monitor->place[known];
}

/* Finds the other direction of a new place. */
static void find_back(struct ow_monitor *monitor, struct place *place)
{
	char name[OW_PLACE_TEXT];
	if (!ow_place_reverse(place->name, name))
		return;
	place->back = find_place(monitor, name, strlen(name));
	if (place->back)
		place->back->back = place;
}

/* The place of this name, entering it if new. */
static int find_or_add_place(struct ow_monitor *monitor, const char *name, struct place **ret_place,
                             struct ow_error *err)
{
	size_t length = strlen(name);
	uint64_t hash = XXH3_64bits(name, length);
	*ret_place = find_place(monitor, name, length);
	if (*ret_place)
		return 0;
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
	find_back(monitor, place);
	monitor->place[monitor->places++] = place;
	monitor->threshold = ow_watch_threshold(monitor->places, monitor->options.false_alarms);
	*ret_place = place;
	return 0;
}

static int64_t end_of(const struct ow_watch_sample *sample)
{
	return sample->start_ns + sample->length_ns;
}

/* The next interval should have come; it may be late by the stale time. */
static bool is_fresh(const struct ow_monitor *monitor, const struct grain *grain, int64_t now_ns)
{
	const struct ow_watch_sample *last = &grain->watch.last;
	return last->length_ns && last->start_ns <= now_ns &&
	       now_ns - end_of(last) <= monitor->options.stale_ns + last->length_ns;
}

/*
 * The intervals of this length. If there are two other lengths already, a new one replaces one that has ended: the
 * configuration was changed. NULL with *ret_full: both go on.
 */
static struct grain *find_or_add_grain(const struct ow_monitor *monitor, struct place *place,
                                       const struct ow_watch_sample *sample, bool *ret_full)
{
	*ret_full = false;
	for (int g = 0; g < GRAINS; g++)
		if (place->grain[g] && place->grain[g]->length_ns == sample->length_ns)
			return place->grain[g];
	int at = 0;
	while (at < GRAINS && place->grain[at] && is_fresh(monitor, place->grain[at], sample->start_ns))
		at++;
	*ret_full = at == GRAINS;
	struct grain *grain = *ret_full ? NULL : calloc(1, sizeof(*grain));
	if (!grain)
		return NULL;
	grain->length_ns = sample->length_ns;
	ow_watch_init(&grain->watch);
	/* A free place behind one that has ended is better. */
	if (place->grain[at] && !place->grain[GRAINS - 1])
		at = GRAINS - 1;
	free(place->grain[at]);
	place->grain[at] = grain;
	if (place->grain[1] && place->grain[0]->length_ns > place->grain[1]->length_ns) {
		struct grain *longer = place->grain[0];
		place->grain[0] = place->grain[1];
		place->grain[1] = longer;
	}
	return grain;
}

int ow_monitor_add(struct ow_monitor *monitor, const char *name, const struct ow_watch_sample *sample,
                   struct ow_error *err)
{
	struct place *place;
	int r = find_or_add_place(monitor, name, &place, err);
	if (r < 0)
		return r;
	bool full;
	struct grain *grain = find_or_add_grain(monitor, place, sample, &full);
	if (!grain)
		return full ? 0 : ow_error_set(err, ENOMEM, "out of memory");
	const struct ow_watch_sample *last = &grain->watch.last;
	if (last->length_ns && sample->start_ns <= last->start_ns)
		return 0;
	if (!last->length_ns || sample->start_ns - end_of(last) > monitor->options.stale_ns)
		grain->run_ns = sample->start_ns;
	ow_watch_add(&grain->watch, sample, monitor->threshold);
	snprintf(place->cause, sizeof(place->cause), "%s", sample->cause ? sample->cause : "");
	return 0;
}

bool ow_monitor_is_new(const struct ow_monitor *monitor, const char *name, const struct ow_watch_sample *sample)
{
	const struct place *place = find_place(monitor, name, strlen(name));
	for (int g = 0; place && g < GRAINS; g++)
		if (place->grain[g] && place->grain[g]->length_ns == sample->length_ns)
			return sample->start_ns > place->grain[g]->watch.last.start_ns;
	return true;
}

static bool has_changed(const struct ow_plane_watch *watch)
{
	return watch->delay.changed || watch->loss.changed;
}

/* The start of the first change that the watch shows now. */
static int64_t changed_ns(const struct ow_plane_watch *watch)
{
	int64_t delay_ns = watch->delay.changed ? watch->delay.since_ns : INT64_MAX;
	int64_t loss_ns = watch->loss.changed ? watch->loss.since_ns : INT64_MAX;
	return delay_ns < loss_ns ? delay_ns : loss_ns;
}

static bool has_learned(const struct ow_plane_watch *watch)
{
	return watch->delay.count >= OW_WATCH_LEARN || watch->loss.count >= OW_WATCH_LEARN;
}

/* Whether the shorter intervals know what is usual, or at least as much as the longer ones. */
static bool fine_counts(const struct grain *fine, const struct grain *coarse)
{
	if (!has_learned(&fine->watch))
		return !has_learned(&coarse->watch) && !has_changed(&coarse->watch);
	return !has_changed(&coarse->watch) || fine->run_ns <= changed_ns(&coarse->watch) - coarse->length_ns;
}

void ow_monitor_forget_delay(struct place *place)
{
	for (int g = 0; g < GRAINS; g++)
		if (place->grain[g])
			place->grain[g]->watch.delay = (struct ow_watch_level){0};
}

const struct ow_plane_watch *ow_monitor_watch_of(const struct ow_monitor *monitor, const struct place *place,
                                                 int64_t now_ns)
{
	const struct grain *fine = place->grain[0], *coarse = place->grain[1];
	bool fine_is_fresh = fine && is_fresh(monitor, fine, now_ns);
	bool coarse_is_fresh = coarse && is_fresh(monitor, coarse, now_ns);
	if (fine_is_fresh && (!coarse_is_fresh || fine_counts(fine, coarse)))
		return &fine->watch;
	return coarse_is_fresh ? &coarse->watch : NULL;
}

/* -- targets and the network ------------------------------------------------------------------------------------------
 */

/* The path of a target that is one place. */
static int find_alone(struct ow_monitor *monitor, struct path *path, struct ow_error *err)
{
	if (ow_route_alone(&path->route) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	path->place = calloc(1, sizeof(struct place *));
	path->finding = calloc(1, sizeof(*path->finding));
	if (!path->place || !path->finding)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = find_or_add_place(monitor, path->target.place, &path->place[0], err);
	if (r < 0)
		return r;
	path->place[0]->on_paths++;
	path->places = 1;
	path->found = true;
	return 0;
}

int ow_monitor_add_target(struct ow_monitor *monitor, const struct ow_target *target, struct ow_error *err)
{
	if (monitor->paths == OW_MONITOR_TARGETS_MAX)
		return ow_error_set(err, E2BIG, "more than %u targets", OW_MONITOR_TARGETS_MAX);
	if (OW_GROW(monitor->path, monitor->paths_room, monitor->paths + 1) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct path *path = monitor->path + monitor->paths;
	*path = (struct path){.target = *target};
	path->target.name = strdup(target->name);
	path->target.from = strdup(target->from);
	path->target.to = strdup(target->to);
	path->target.class_name = target->class_name ? strdup(target->class_name) : NULL;
	path->target.place = target->place ? strdup(target->place) : NULL;
	monitor->paths++;
	if (!path->target.name || !path->target.from || !path->target.to ||
	    (target->class_name && !path->target.class_name) || (target->place && !path->target.place))
		return ow_error_set(err, ENOMEM, "out of memory");
	if (target->place)
		return find_alone(monitor, path, err);
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
	return path->plain && !ow_monitor_is_seen(path->place[i]) ? path->plain[i] : path->place[i];
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
		if (monitor->path[i].target.place)
			continue;
		hold_places(&monitor->path[i], now_ns + monitor->options.hold_ns);
		path_done(&monitor->path[i]);
		monitor->path[i].found = false;
	}
	for (uint32_t i = 0; r == 0 && i < monitor->paths; i++)
		if (!monitor->path[i].target.place)
			r = find_path(monitor, topology, is_mrouter, &monitor->path[i], err);
	return r;
}

void ow_monitor_count(const struct ow_monitor *monitor, int64_t now_ns, struct ow_monitor_count *ret_count)
{
	struct ow_monitor_count count = {.places = monitor->places, .threshold = monitor->threshold};
	for (uint32_t i = 0; i < monitor->places; i++) {
		const struct place *place = monitor->place[i];
		const struct ow_plane_watch *watch = ow_monitor_watch_of(monitor, place, now_ns);
		count.learning += ow_monitor_is_seen(place) && (!watch || !has_learned(watch));
		count.fresh += watch != NULL;
		count.changed += watch && has_changed(watch);
		count.old += place->held_until_ns && !place->on_paths;
	}
	*ret_count = count;
}
