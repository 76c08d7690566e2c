/* SPDX-License-Identifier: Apache-2.0 */
/* The station's configuration: strict YAML, every error with its line. */
#include "config/config_station.h"
#include "base/time.h"
#include "config/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	const char *path;
	struct ow_station *station;
	struct ow_error *err;
};

static int wrong(const struct reader *reader, const struct ow_yaml *node, const char *what)
{
	return ow_error_set(reader->err, EINVAL, "%s:%u: %s: %s", reader->path, node->line,
	                    node->key ? node->key : "entry", what);
}

static int nomem(const struct reader *reader)
{
	return ow_error_set(reader->err, ENOMEM, "%s: out of memory", reader->path);
}

static int read_text(const struct reader *reader, const struct ow_yaml *node, char **ret_text)
{
	if (node->kind != OW_YAML_TEXT || !*node->text)
		return wrong(reader, node, "a text is expected");
	*ret_text = strdup(node->text);
	return *ret_text ? 0 : nomem(reader);
}

static int read_duration(const struct reader *reader, const struct ow_yaml *node, int64_t *ret_ns)
{
	struct ow_error why;
	if (node->kind != OW_YAML_TEXT)
		return wrong(reader, node, "a duration is expected, like 5ms");
	if (ow_duration_parse(node->text, ret_ns, &why) < 0)
		return wrong(reader, node, why.text);
	return *ret_ns > 0 ? 0 : wrong(reader, node, "must be above 0");
}

/* 0.01 or 1% */
static int read_share(const struct reader *reader, const struct ow_yaml *node, double *ret_share)
{
	char *end = NULL;
	double share = node->kind == OW_YAML_TEXT ? strtod(node->text, &end) : NAN;
	if (end && strcmp(end, "%") == 0) {
		share /= 100;
		end++;
	}
	if (!end || end == node->text || *end || !(share >= 0 && share <= 1))
		return wrong(reader, node, "a share is expected, like 0.1% or 0.001");
	*ret_share = share;
	return 0;
}

/* A list of something: calls read for each entry. *items grows by entries of `size` bytes, zeroed. */
static int read_list(struct reader *reader, const struct ow_yaml *node, size_t size, void **items, unsigned *count,
                     int (*read)(struct reader *reader, const struct ow_yaml *entry, void *item))
{
	if (node->kind != OW_YAML_SEQUENCE)
		return wrong(reader, node, "a list is expected");
	*items = calloc(node->count + 1, size);
	if (!*items)
		return nomem(reader);
	int r = 0;
	for (const struct ow_yaml *entry = node->first; r == 0 && entry; entry = entry->next)
		r = read(reader, entry, (char *)*items + (*count)++ * size);
	return r;
}

static int read_name(struct reader *reader, const struct ow_yaml *entry, void *item)
{
	return read_text(reader, entry, item);
}

static int need(const struct reader *reader, const struct ow_yaml *entry, const void *value, const char *key)
{
	char what[64];
	snprintf(what, sizeof(what), "%s is missing", key);
	return value ? 0 : wrong(reader, entry, what);
}

static int unknown(const struct reader *reader, const struct ow_yaml *node)
{
	return wrong(reader, node, "no such key");
}

static int read_place(struct reader *reader, const struct ow_yaml *entry, void *item)
{
	struct ow_station_place *place = item;
	const struct {
		const char *key;
		char **text;
	} keys[] = {{"segment", &place->segment},
	            {"class", &place->class_name},
	            {"from", &place->from},
	            {"to", &place->to},
	            {"place", &place->place}};
	int r = entry->kind == OW_YAML_MAPPING ? 0 : wrong(reader, entry, "expected segment: and place:");
	for (const struct ow_yaml *node = entry->first; r == 0 && node; node = node->next) {
		size_t i = 0;
		while (i < 5 && strcmp(keys[i].key, node->key) != 0)
			i++;
		r = i < 5 ? read_text(reader, node, keys[i].text) : unknown(reader, node);
	}
	return r < 0 ? r : need(reader, entry, place->place, "place");
}

static int read_target(struct reader *reader, const struct ow_yaml *entry, void *item)
{
	struct ow_target *target = item;
	int64_t mean_ns;
	target->max_mean_ns = target->max_loss = NAN;
	int r = entry->kind == OW_YAML_MAPPING ? 0 : wrong(reader, entry, "expected from: and to:");
	for (const struct ow_yaml *node = entry->first; r == 0 && node; node = node->next) {
		if (strcmp(node->key, "name") == 0) {
			r = read_text(reader, node, (char **)&target->name);
		} else if (strcmp(node->key, "from") == 0) {
			r = read_text(reader, node, (char **)&target->from);
		} else if (strcmp(node->key, "to") == 0) {
			r = read_text(reader, node, (char **)&target->to);
		} else if (strcmp(node->key, "class") == 0) {
			r = read_text(reader, node, (char **)&target->class_name);
		} else if (strcmp(node->key, "mean") == 0) {
			r = read_duration(reader, node, &mean_ns);
			target->max_mean_ns = r == 0 ? (double)mean_ns : NAN;
		} else if (strcmp(node->key, "loss") == 0) {
			r = read_share(reader, node, &target->max_loss);
		} else {
			r = unknown(reader, node);
		}
	}
	if (r == 0)
		r = need(reader, entry, target->from, "from");
	if (r == 0)
		r = need(reader, entry, target->to, "to");
	if (r < 0 || target->name)
		return r;
	char name[600];
	snprintf(name, sizeof(name), "%.255s to %.255s%s%.64s", target->from, target->to,
	         target->class_name ? ", " : "", target->class_name ? target->class_name : "");
	target->name = strdup(name);
	return target->name ? 0 : nomem(reader);
}

/* names: {10.255.0.1: A, ...} */
static int read_routers(struct reader *reader, const struct ow_yaml *node)
{
	struct ow_station *station = reader->station;
	if (node->kind != OW_YAML_MAPPING)
		return wrong(reader, node, "expected ID: NAME");
	station->router_id = calloc(node->count + 1, sizeof(char *));
	station->router_name = calloc(node->count + 1, sizeof(char *));
	if (!station->router_id || !station->router_name)
		return nomem(reader);
	for (const struct ow_yaml *entry = node->first; entry; entry = entry->next) {
		unsigned i = station->routers++;
		station->router_id[i] = strdup(entry->key);
		if (!station->router_id[i])
			return nomem(reader);
		int r = read_text(reader, entry, &station->router_name[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* network: FILE, or {vtysh: PROGRAM, socket: FOLDER} */
static int read_network(struct reader *reader, const struct ow_yaml *node)
{
	struct ow_station *station = reader->station;
	if (node->kind == OW_YAML_TEXT)
		return read_text(reader, node, &station->network);
	if (node->kind != OW_YAML_MAPPING)
		return wrong(reader, node, "expected a file, or vtysh: and socket:");
	int r = 0;
	for (const struct ow_yaml *entry = node->first; r == 0 && entry; entry = entry->next) {
		if (strcmp(entry->key, "vtysh") == 0)
			r = read_text(reader, entry, &station->vtysh);
		else if (strcmp(entry->key, "socket") == 0)
			r = read_text(reader, entry, &station->vtysh_socket);
		else
			r = unknown(reader, entry);
	}
	return r < 0 ? r : need(reader, node, station->vtysh, "vtysh");
}

static int read_key(struct reader *reader, const struct ow_yaml *node)
{
	struct ow_station *station = reader->station;
	int64_t intervals;
	if (strcmp(node->key, "network") == 0)
		return read_network(reader, node);
	if (strcmp(node->key, "refresh") == 0)
		return read_duration(reader, node, &station->refresh_ns);
	if (strcmp(node->key, "hold") == 0)
		return read_duration(reader, node, &station->options.hold_ns);
	if (strcmp(node->key, "stale") == 0)
		return read_duration(reader, node, &station->options.stale_ns);
	if (strcmp(node->key, "worth") == 0)
		return read_share(reader, node, &station->options.worth);
	if (strcmp(node->key, "names") == 0)
		return read_routers(reader, node);
	if (strcmp(node->key, "m_routers") == 0)
		return read_list(reader, node, sizeof(char *), (void **)&station->mrouter, &station->mrouters,
		                 read_name);
	if (strcmp(node->key, "places") == 0)
		return read_list(reader, node, sizeof(*station->place), (void **)&station->place, &station->places,
		                 read_place);
	if (strcmp(node->key, "targets") == 0)
		return read_list(reader, node, sizeof(*station->target), (void **)&station->target, &station->targets,
		                 read_target);
	if (strcmp(node->key, "default_cost") == 0 && node->kind == OW_YAML_TEXT)
		return ow_cost_parse(node->text, strlen(node->text), &station->default_cost) < 0
		               ? wrong(reader, node, "a number above 0 is expected")
		               : 0;
	if (strcmp(node->key, "false_alarms") == 0 && node->kind == OW_YAML_TEXT) {
		char *end;
		intervals = strtoll(node->text, &end, 10);
		if (*end || intervals < 1)
			return wrong(reader, node, "expected the number of intervals between two false alarms");
		station->options.false_alarms = (double)intervals;
		return 0;
	}
	return unknown(reader, node);
}

static int read_root(struct reader *reader, const struct ow_yaml *root)
{
	int r = root->kind == OW_YAML_MAPPING ? 0 : wrong(reader, root, "expected keys and values");
	for (const struct ow_yaml *node = root->first; r == 0 && node; node = node->next)
		r = read_key(reader, node);
	if (r == 0 && !reader->station->network && !reader->station->vtysh)
		r = wrong(reader, root, "network is missing");
	if (r == 0 && !reader->station->targets)
		r = wrong(reader, root, "targets is missing: which paths are to be kept an eye on?");
	return r;
}

/* A file's name in the configuration is relative to where the configuration is. */
static int beside(const char *path, char **name)
{
	const char *slash = strrchr(path, '/');
	if (!*name || **name == '/' || !slash)
		return 0;
	size_t folder = (size_t)(slash - path) + 1, length = strlen(*name);
	char *joined = malloc(folder + length + 1);
	if (!joined)
		return -ENOMEM;
	memcpy(joined, path, folder);
	memcpy(joined + folder, *name, length + 1);
	free(*name);
	*name = joined;
	return 0;
}

int ow_station_read(const char *path, struct ow_station **ret_station, struct ow_error *err)
{
	struct ow_station *station = calloc(1, sizeof(*station));
	struct ow_yaml *root = NULL;
	char *bytes = NULL;
	size_t size = 0;
	struct reader reader = {path, station, err};
	if (!station)
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	station->refresh_ns = 2 * OW_NS_PER_S;
	int r = ow_yaml_load(path, &bytes, &size, err);
	if (r == 0)
		r = ow_yaml_parse(path, bytes, size, &root, err);
	if (r == 0)
		r = read_root(&reader, root);
	if (r == 0 && beside(path, &station->network) < 0)
		r = nomem(&reader);
	ow_yaml_free(root);
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
	for (unsigned i = 0; i < station->mrouters; i++)
		free(station->mrouter[i]);
	for (unsigned i = 0; i < station->places; i++) {
		struct ow_station_place *place = &station->place[i];
		free(place->segment);
		free(place->class_name);
		free(place->from);
		free(place->to);
		free(place->place);
	}
	for (unsigned i = 0; i < station->targets; i++) {
		free((char *)station->target[i].name);
		free((char *)station->target[i].from);
		free((char *)station->target[i].to);
		free((char *)station->target[i].class_name);
	}
	for (unsigned i = 0; i < station->routers; i++) {
		free(station->router_id[i]);
		free(station->router_name[i]);
	}
	free(station->mrouter);
	free(station->place);
	free(station->target);
	free(station->router_id);
	free(station->router_name);
	free(station->network);
	free(station->vtysh);
	free(station->vtysh_socket);
	free(station);
}

/* -- results and places -----------------------------------------------------------------------------------------------
 */

static bool matches(const char *pattern, const char *text)
{
	return !pattern || strcmp(pattern, text) == 0;
}

/* "F>E>D" from D to F is "D>E>F". Names have no '>' themselves. */
static bool turn_around(const char *name, char turned[OW_PLACE_TEXT])
{
	size_t length = strlen(name), used = 0, end = length;
	for (size_t i = length; i-- > 0;) {
		if (i && name[i - 1] != '>')
			continue;
		memcpy(turned + used, name + i, end - i);
		used += end - i;
		if (i) {
			turned[used++] = '>';
			end = i - 1;
		}
	}
	turned[used] = 0;
	return used == length;
}

/* Does the name begin (end) with this router? */
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

/* Both directions of a segment bear its name, and perhaps more: results count only where their ends are the place's. */
static bool by_its_name(const struct ow_interval_result *result, char ret_place[OW_PLACE_TEXT])
{
	const char *name = result->segment, *from = result->from, *to = result->to, *bracket = strchr(name, '[');
	if (!bracket && begins(name, to) && ends(name, from))
		return turn_around(name, ret_place);
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
	if (!found && !by_its_name(result, ret_place))
		return false;
	if (strcmp(result->class_name, "all") == 0 || !*result->class_name)
		return true;
	size_t used = strlen(ret_place);
	return (size_t)snprintf(ret_place + used, OW_PLACE_TEXT - used, "/%s", result->class_name) <
	       OW_PLACE_TEXT - used;
}
