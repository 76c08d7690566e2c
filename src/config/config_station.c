/* SPDX-License-Identifier: Apache-2.0 */
/* The station's configuration, and the place that a result belongs to. */
#include "config/config_station.h"
#include "base/time.h"
#include "config/keys.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX OW_YAML_ENTRIES_MAX
#define LONG_NS     (UINT64_C(36500) * 86400 * OW_NS_PER_S)

static struct ow_station *station_of(const struct ow_key_reader *r)
{
	return r->context;
}

/* -- places -------------------------------------------------------------------------------------------------------- */

#define PLACE(member) offsetof(struct ow_station_place, member)
static const struct ow_key place_keys[] = {
	{"segment", OW_KEY_TEXT, PLACE(segment), NULL,
         "Results with these values belong to the place. A key that is not given matches all values."},
	{"class", OW_KEY_TEXT, PLACE(class_name), NULL, NULL},
	{"from", OW_KEY_TEXT, PLACE(from), NULL, NULL},
	{"to", OW_KEY_TEXT, PLACE(to), NULL, NULL},
	{"place", OW_KEY_TEXT, PLACE(place), NULL, "The name of the place.", .needed = true},
	{0},
};

static int read_place(struct ow_key_reader *r, struct ow_yaml *entry, void *item)
{
	ow_keys_enter(r, "place", entry, "place");
	return ow_keys_read(r, entry, place_keys, item, NULL);
}

static int read_places(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_station *s = station_of(r);
	(void)field;
	return ow_keys_read_list(r, node, ENTRIES_MAX, sizeof *s->place, (void **)&s->place, &s->places, read_place);
}

/* -- targets ------------------------------------------------------------------------------------------------------- */

struct target_values {
	struct ow_target target;
	int64_t mean_ns;
};

#define TARGET(member) offsetof(struct target_values, target.member)
static const struct ow_key target_keys[] = {
	{"name", OW_KEY_TEXT, TARGET(name), NULL, "The name of the path."},
	{"from", OW_KEY_TEXT, TARGET(from), NULL, "The routers at the ends of the path.", .needed = true},
	{"to", OW_KEY_TEXT, TARGET(to), NULL, NULL, .needed = true},
	{"class", OW_KEY_TEXT, TARGET(class_name), NULL, "The class of traffic."},
	{"mean", OW_KEY_DURATION, offsetof(struct target_values, mean_ns), NULL, "The highest acceptable mean delay.",
         .least = 1, .most = LONG_NS},
	{"loss", OW_KEY_SHARE, TARGET(max_loss), NULL, "The highest acceptable loss: 0.1% or 0.001."},
	{0},
};

/*
 * A target without a name is named by its ends. The tree owns this text, as the key of the list entry, which has none.
 */
static int name_target(struct ow_key_reader *r, struct ow_yaml *entry, struct ow_target *t)
{
	if (t->name)
		return 0;
	if (asprintf(&entry->key, "%.255s to %.255s%s%.64s", t->from, t->to, t->class_name ? ", " : "",
	             t->class_name ? t->class_name : "") < 0) {
		entry->key = NULL;
		return ow_key_no_memory(r);
	}
	t->name = entry->key;
	return 0;
}

static int read_target(struct ow_key_reader *r, struct ow_yaml *entry, void *item)
{
	struct target_values values = {.target = {.max_mean_ns = NAN, .max_loss = NAN}};
	ow_keys_enter(r, "target", entry, "name");
	int code = ow_keys_read(r, entry, target_keys, &values, NULL);
	if (code == 0)
		code = name_target(r, entry, &values.target);
	if (values.mean_ns)
		values.target.max_mean_ns = (double)values.mean_ns;
	*(struct ow_target *)item = values.target;
	return code;
}

static int read_targets(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_station *s = station_of(r);
	(void)field;
	return ow_keys_read_list(r, node, ENTRIES_MAX, sizeof *s->target, (void **)&s->target, &s->targets,
	                         read_target);
}

/* -- the network --------------------------------------------------------------------------------------------------- */

static int read_router(struct ow_key_reader *r, struct ow_yaml *entry, void *item)
{
	int code = ow_key_check_text(r, entry);
	*(const char **)item = entry->text;
	return code;
}

static int read_m_routers(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_station *s = station_of(r);
	(void)field;
	return ow_keys_read_list(r, node, ENTRIES_MAX, sizeof *s->mrouter, (void **)&s->mrouter, &s->mrouters,
	                         read_router);
}

/* names: {10.255.0.1: A, ...} */
static int read_names(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_station *s = station_of(r);
	(void)field;
	if (node->kind != OW_YAML_MAPPING)
		return ow_key_fail(r, node, "must be ids with names, {10.255.0.1: A}");
	s->router_id = calloc(node->count + 1, sizeof *s->router_id);
	s->router_name = calloc(node->count + 1, sizeof *s->router_name);
	if (!s->router_id || !s->router_name)
		return ow_key_no_memory(r);
	int code = 0;
	for (struct ow_yaml *entry = node->first; code == 0 && entry; entry = entry->next) {
		s->router_id[s->routers] = entry->key;
		code = read_router(r, entry, &s->router_name[s->routers++]);
	}
	return code;
}

#define STATION(member) offsetof(struct ow_station, member)
static const struct ow_key network_keys[] = {
	{"file", OW_KEY_PATH, STATION(network), NULL, "a map"},
	{"vtysh", OW_KEY_TEXT, STATION(vtysh), NULL, "FRR's program", .needed = true},
	{"socket", OW_KEY_TEXT, STATION(vtysh_socket), NULL, "its folder"},
	{0},
};

static const struct ow_key map_keys[] = {
	{"map", OW_KEY_PATH, STATION(map), NULL, "a map of the fleet", .needed = true},
	{0},
};

/* network: FILE, {vtysh: PROGRAM, socket: FOLDER}, or {map: FILE} */
static int read_network(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	bool has_map = node->kind == OW_YAML_MAPPING && node->first && strcmp(node->first->key, "map") == 0;
	if (node->kind == OW_YAML_MAPPING)
		return ow_keys_read(r, node, has_map ? map_keys : network_keys + 1, field, NULL);
	return ow_key_read_value(r, network_keys, node, (char *)field + STATION(network));
}

static int read_cost(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	int code = ow_key_check_text(r, node);
	if (code == 0 && ow_cost_parse(node->text, strlen(node->text), field) < 0)
		code = ow_key_fail(r, node, "is not a number above 0");
	return code;
}

const struct ow_key ow_station_keys[] = {
	{"network", OW_KEY_OTHER, 0, NULL,
         "A file, relative to the folder of the configuration; or `{vtysh: PROGRAM, socket: FOLDER}` to ask FRR. "
         "`socket` is needed if FRR's sockets are not in the usual folder; or `{map: FILE}`, the output of `oneway "
         "fleet map --json`. Without it the segments that have results are the network.",
         .read = read_network},
	{"names", OW_KEY_OTHER, 0, NULL, "Names for routers, which FRR knows only by their ids: `{10.0.0.1: A, ...}`.",
         .read = read_names},
	{"default_cost", OW_KEY_OTHER, STATION(default_cost), NULL, "The cost of links that have none.",
         .read = read_cost},
	{"m_routers", OW_KEY_OTHER, 0, "none",
         "The routers that are measured inside. If the network is a file, they must be in it. If FRR provides the "
         "network, they may be missing for a time.",
         .read = read_m_routers},
	{"places", OW_KEY_OTHER, 0, NULL,
         "A list: results with this `segment`, `class`, `from` and `to` belong to `place`. A key that is not given "
         "matches all values. The first entry that matches counts.",
         .read = read_places},
	{"targets", OW_KEY_OTHER, 0, NULL,
         "A list of paths with `from`, `to`, and optionally `name`, `class`, `mean` (5ms) and `loss` (0.1%). Where "
         "the class has no results, those of all packets are used. Without `mean` and `loss`, a path is broken when "
         "it is worse than usual. Without `network` and `targets` every segment is watched.",
         .read = read_targets},
	{"refresh", OW_KEY_DURATION, STATION(refresh_ns), "2s",
         "With `--follow`: how often the station reads the network again.", .least = 1, .most = LONG_NS},
	{"hold", OW_KEY_DURATION, STATION(options.hold_ns), "60s",
         "How long the station continues to watch the segments of old paths.", .least = 1, .most = LONG_NS},
	{"stale", OW_KEY_DURATION, STATION(options.stale_ns), "10s",
         "The station uses a result until the next one of its length should have ended, and for this time after that.",
         .least = 1, .most = LONG_NS},
	{"false_alarms", OW_KEY_REAL, STATION(options.false_alarms), "1000",
         "The mean number of intervals between two false alarms of the whole network.", .most = UINT32_MAX},
	{"worth", OW_KEY_SHARE, STATION(options.worth), "2%",
         "The station names a part that has become slower if it adds at least this share of the path's delay, or if "
         "no other part explains why the path is too slow."},
	{0},
};

static int read_station(struct ow_key_reader *r, struct ow_station *s)
{
	int code = ow_keys_read(r, s->tree, ow_station_keys, s, NULL);
	if (code == 0 && !s->targets && !ow_station_by_segments(s))
		code = ow_error_set(r->err, EINVAL, "%s: targets is missing: which paths are watched?", r->path);
	return code;
}

int ow_station_read(const char *path, struct ow_station **ret_station, struct ow_error *err)
{
	struct ow_station *station = calloc(1, sizeof *station);
	struct ow_key_reader reader = {.path = path, .err = err, .context = station};
	char *bytes = NULL;
	size_t size = 0;
	if (!station)
		return ow_error_set(err, ENOMEM, "not enough memory");
	int r = path ? ow_yaml_load(path, &bytes, &size, err) : 0;
	if (r == 0)
		r = ow_yaml_parse(path ? path : "", bytes ? bytes : "{}", bytes ? size : 2, &station->tree, err);
	if (r == 0)
		r = read_station(&reader, station);
	free(bytes);
	if (r < 0)
		ow_station_free(station);
	else
		*ret_station = station;
	return r;
}

void ow_station_free(struct ow_station *station)
{
	if (!station)
		return;
	free(station->mrouter);
	free(station->place);
	free(station->target);
	free(station->router_id);
	free(station->router_name);
	ow_yaml_free(station->tree);
	free(station);
}

bool ow_station_by_segments(const struct ow_station *station)
{
	return !station->network && !station->vtysh;
}

/* -- results and places -----------------------------------------------------------------------------------------------
 */

static bool matches(const char *pattern, const char *text)
{
	return !pattern || strcmp(pattern, text) == 0;
}

/* Whether the name begins (ends) with this router. */
static bool begins(const char *name, const char *router)
{
	size_t length = strlen(router);
	return strncmp(name, router, length) == 0 && name[length] == '>';
}

static bool ends(const char *name, const char *router)
{
	const char *last = strrchr(name, '>');
	return last && strcmp(last + 1, router) == 0;
}

/*
 * Both directions of a segment have its name, and possibly others. A result counts only if its ends are those of the
 * place.
 */
static bool by_its_name(const struct ow_interval_result *result, char ret_place[OW_PLACE_TEXT])
{
	const char *name = result->segment, *from = result->from, *to = result->to, *bracket = strchr(name, '[');
	if (!bracket && begins(name, to) && ends(name, from))
		return ow_place_reverse(name, ret_place);
	if (!bracket) {
		snprintf(ret_place, OW_PLACE_TEXT, "%s", name);
		return begins(name, from) && ends(name, to);
	}
	char there[2 * OW_RESULT_NAME + 3], back[2 * OW_RESULT_NAME + 3];
	snprintf(there, sizeof(there), "[%s>%s]", from, to);
	snprintf(back, sizeof(back), "[%s>%s]", to, from);
	snprintf(ret_place, OW_PLACE_TEXT, "%.*s%s", (int)(bracket - name), name, there);
	return strcmp(bracket, there) == 0 || strcmp(bracket, back) == 0;
}

/* "FROM>TO", if both are names of points and different. */
static bool by_its_ends(const struct ow_interval_result *result, char ret_place[OW_PLACE_TEXT])
{
	const char *from = result->from, *to = result->to;
	snprintf(ret_place, OW_PLACE_TEXT, "%s>%s", from, to);
	return *from && *to && strcmp(from, to) != 0 && !strpbrk(from, ">[/") && !strpbrk(to, ">[/");
}

bool ow_station_is_round_trip(const struct ow_interval_result *result)
{
	return result->active && strcmp(result->from, result->to) == 0;
}

bool ow_station_place(const struct ow_station *station, const struct ow_interval_result *result,
                      char ret_place[OW_PLACE_TEXT])
{
	bool found = false;
	for (unsigned i = 0; i < station->places && !found; i++) {
		const struct ow_station_place *place = &station->place[i];
		found = matches(place->segment, result->segment) && matches(place->class_name, result->class_name) &&
		        matches(place->from, result->from) && matches(place->to, result->to);
		if (found)
			snprintf(ret_place, OW_PLACE_TEXT, "%s", place->place);
	}
	if (!found)
		found = by_its_name(result, ret_place);
	if (!found && ow_station_by_segments(station))
		found = by_its_ends(result, ret_place);
	if (!found)
		return false;
	if (strcmp(result->class_name, "all") == 0 || !*result->class_name)
		return true;
	size_t used = strlen(ret_place);
	return (size_t)snprintf(ret_place + used, OW_PLACE_TEXT - used, "/%s", result->class_name) <
	       OW_PLACE_TEXT - used;
}
