/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/folder.h"

#include "base/array.h"
#include "base/state_file.h"
#include "base/time.h"
#include "config/config_fleet.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define FILE_MAX_BYTES 65536
#define DAY_NS         (UINT64_C(86400) * OW_NS_PER_S)

/* -- settings ------------------------------------------------------------------------------------------------------ */

static int read_servers(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_bus_host host;
	struct ow_error why;
	if (node->kind != OW_YAML_SEQUENCE || node->count == 0 || node->count > OW_BUS_SERVERS_MAX)
		return ow_key_fail(r, node, "must be a list of 1 to 16 hosts");
	for (const struct ow_yaml *entry = node->first; entry; entry = entry->next) {
		int code = ow_key_check_text(r, entry);
		if (code == 0 && ow_bus_host_parse(entry->text, &host, &why) < 0)
			code = ow_key_fail(r, node, why.text);
		if (code < 0)
			return code;
	}
	*(const struct ow_yaml **)field = node;
	return 0;
}

#define SETTING(member) offsetof(struct ow_fleet_settings, member)
#define GENERATION(name)                                                                                      \
	{                                                                                                     \
#name, OW_KEY_COUNT, SETTING(name), "1", "Generation of its certificate.", .least = 1,        \
											   .most = UINT32_MAX \
	}
const struct ow_key ow_fleet_settings_keys[] = {
	{"name", OW_KEY_NAME, SETTING(name), NULL, "Name of the fleet.", .needed = true},
	{"servers", OW_KEY_OTHER, SETTING(server_list), NULL, "Hosts of the bus.", .read = read_servers,
         .needed = true},
	{"address", OW_KEY_TEXT, SETTING(address), NULL, "Where points get their certificates.", .needed = true},
	{"database", OW_KEY_TEXT, SETTING(database), NULL, "PostgreSQL."},
	{"sample_key", OW_KEY_TEXT, SETTING(sample_key), NULL, "By which points sample packets.", .needed = true},
	{"valid", OW_KEY_DURATION, SETTING(valid_ns), "7d", "Validity of the certificates of points.",
         .least = 10 * OW_NS_PER_S, .most = 825 * DAY_NS},
	GENERATION(collector),
	GENERATION(station),
	GENERATION(controller),
	GENERATION(serve),
	{0},
};

bool ow_fleet_name_valid(const char *name)
{
	return ow_point_name_valid(name) && !strchr(name, '.') &&
	       !ow_fleet_service(&(struct ow_fleet_settings){0}, name);
}

uint64_t *ow_fleet_service(struct ow_fleet_settings *s, const char *name)
{
	return strcmp(name, "collector") == 0    ? &s->collector
	       : strcmp(name, "station") == 0    ? &s->station
	       : strcmp(name, "controller") == 0 ? &s->controller
	       : strcmp(name, "serve") == 0      ? &s->serve
	                                         : NULL;
}

int ow_bus_host_parse(const char *text, struct ow_bus_host *ret_host, struct ow_error *err)
{
	struct ow_bus_host host = {.port = OW_BUS_PORT};
	const char *end = *text == '[' ? strchr(text, ']') : NULL, *colon = strchr(end ? end : text, ':');
	uint8_t address[16];
	/* An IPv6 address without brackets has no port. */
	if (inet_pton(AF_INET6, text, address) == 1)
		colon = NULL;
	size_t length = end ? (size_t)(end - text - 1) : colon ? (size_t)(colon - text) : strlen(text);
	char *rest;
	if (length == 0 || length >= sizeof host.host || (end && end[1] && end[1] != ':'))
		return ow_error_set(err, EINVAL, "'%.60s' is not a host, nor host:port", text);
	memcpy(host.host, end ? text + 1 : text, length);
	if (colon) {
		unsigned long port = strtoul(colon + 1, &rest, 10);
		if (!isdigit((unsigned char)colon[1]) || *rest || port == 0 || port > 63000)
			return ow_error_set(err, EINVAL, "'%.60s': the port is not in 1 .. 63000", text);
		host.port = (unsigned)port;
	}
	host.is_address = inet_pton(AF_INET, host.host, address) == 1 || inet_pton(AF_INET6, host.host, address) == 1;
	for (const char *c = host.host; *c && !host.is_address; c++) {
		if (!isalnum((unsigned char)*c) && *c != '.' && *c != '-')
			return ow_error_set(err, EINVAL, "'%.60s' is not a host, nor host:port", text);
	}
	*ret_host = host;
	return 0;
}

int ow_fleet_write_settings(const char *path, const struct ow_fleet_settings *s, struct ow_error *err)
{
	char *text = NULL, *file = ow_state_path(path, "settings.yaml"), valid[OW_DURATION_TEXT];
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out || !file) {
		free(file);
		return ow_error_set(err, ENOMEM, "not enough memory");
	}
	fprintf(out, "# Settings of the fleet; oneway fleet reads and writes them.\nname: %s\nservers:\n", s->name);
	for (const struct ow_yaml *host = s->server_list->first; host; host = host->next)
		fprintf(out, "  - '%s'\n", host->text);
	fprintf(out, "address: '%s' # where points get their certificates\n", s->address);
	if (s->database)
		fprintf(out, "database: '%s'\n", s->database);
	fprintf(out, "sample_key: %s # decides which packets points sample\n", s->sample_key);
	snprintf(valid, sizeof valid, "%" PRId64 "s", s->valid_ns / (int64_t)OW_NS_PER_S);
	fprintf(out, "valid: %s # certificates of points\n# generations of the certificates of services\n", valid);
	fprintf(out, "collector: %ju\nstation: %ju\ncontroller: %ju\nserve: %ju\n", (uintmax_t)s->collector,
	        (uintmax_t)s->station, (uintmax_t)s->controller, (uintmax_t)s->serve);
	int r = fclose(out) == 0 ? ow_state_write(file, text, size, err)
	                         : ow_error_set(err, ENOMEM, "not enough memory");
	free(text);
	free(file);
	return r;
}

int ow_fleet_save_settings(const struct ow_fleet *fleet, struct ow_error *err)
{
	return ow_fleet_write_settings(fleet->path, &fleet->settings, err);
}

/* Reads a file of YAML by its table. */
static int read_file(const char *file, const struct ow_key *keys, void *target, struct ow_yaml **ret_tree,
                     struct ow_error *err)
{
	char *bytes = NULL;
	size_t size;
	struct ow_key_reader reader = {.path = file, .err = err};
	int r = ow_state_read(file, FILE_MAX_BYTES, &bytes, &size, err);
	if (r == 0)
		r = ow_yaml_parse(file, bytes, size, ret_tree, err);
	if (r == 0)
		r = ow_keys_read(&reader, *ret_tree, keys, target, NULL);
	free(bytes);
	return r;
}

static int take_lock(const char *path, const char *name, struct ow_error *err)
{
	char *file = ow_state_path(path, name);
	int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	free(file);
	if (fd < 0)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX) < 0) {
		int error = errno;
		close(fd);
		return ow_error_set(err, error, "%s: %s", path, strerror(error));
	}
	return fd;
}

static int open_locked(const char *path, const char *lock, struct ow_fleet **ret_fleet, struct ow_error *err)
{
	struct ow_fleet *fleet = calloc(1, sizeof *fleet);
	char *file = ow_state_path(path, "settings.yaml");
	int r = 0;
	if (!fleet || !file || !(fleet->path = strdup(path))) {
		r = ow_error_set(err, ENOMEM, "not enough memory");
	} else if (access(file, F_OK) < 0) {
		int error = errno;
		fleet->lock = -1;
		r = error == ENOENT || error == ENOTDIR
		            ? ow_error_set(err, ENOENT,
		                           "%s is not the folder of a fleet; 'oneway fleet init %s' makes one", path,
		                           path)
		            : ow_error_set(err, error, "%s: %s", path, strerror(error));
	} else {
		r = fleet->lock = lock ? take_lock(path, lock, err) : 0;
		if (r >= 0)
			r = read_file(file, ow_fleet_settings_keys, &fleet->settings, &fleet->tree, err);
	}
	free(file);
	if (r < 0) {
		ow_fleet_close(fleet);
		return r;
	}
	*ret_fleet = fleet;
	return 0;
}

int ow_fleet_open(const char *path, struct ow_fleet **ret_fleet, struct ow_error *err)
{
	return open_locked(path, ".lock", ret_fleet, err);
}

int ow_fleet_open_to_lead(const char *path, struct ow_fleet **ret_fleet, struct ow_error *err)
{
	return open_locked(path, ".lead", ret_fleet, err);
}

int ow_fleet_open_to_look(const char *path, struct ow_fleet **ret_fleet, struct ow_error *err)
{
	return open_locked(path, NULL, ret_fleet, err);
}

void ow_fleet_close(struct ow_fleet *fleet)
{
	if (!fleet)
		return;
	if (fleet->lock > 0)
		close(fleet->lock);
	ow_yaml_free(fleet->tree);
	free(fleet->path);
	free(fleet);
}

/* -- points -------------------------------------------------------------------------------------------------------- */

struct point_record {
	const char *token, *token_key;
	enum ow_fleet_state state;
	uint64_t generation, token_generation, token_until_s, until_s;
};

static const struct ow_choice states[] = {
	{"waiting", OW_FLEET_WAITING}, {"enrolled", OW_FLEET_ENROLLED}, {"revoked", OW_FLEET_REVOKED}, {0}};

#define RECORD(member) offsetof(struct point_record, member)
const struct ow_key ow_fleet_point_keys[] = {
	{"state", OW_KEY_CHOICE, RECORD(state), NULL, "", .choices = states, .needed = true},
	{"generation", OW_KEY_COUNT, RECORD(generation), "0", "", .most = UINT32_MAX},
	{"until", OW_KEY_COUNT, RECORD(until_s), "0", "", .most = INT64_MAX},
	{"token", OW_KEY_TEXT, RECORD(token), NULL, ""},
	{"token_until", OW_KEY_COUNT, RECORD(token_until_s), "0", "", .most = INT64_MAX},
	{"token_generation", OW_KEY_COUNT, RECORD(token_generation), "0", "", .most = UINT32_MAX},
	{"token_key", OW_KEY_TEXT, RECORD(token_key), NULL, ""},
	{0},
};

static char *point_file(const struct ow_fleet *fleet, const char *name)
{
	char *path;
	return asprintf(&path, "%s/points/%s.yaml", fleet->path, name) < 0 ? NULL : path;
}

int ow_fleet_point_load(const struct ow_fleet *fleet, const char *name, struct ow_fleet_point *ret_point,
                        struct ow_error *err)
{
	struct point_record record = {0};
	struct ow_yaml *tree = NULL;
	char *file = point_file(fleet, name);
	if (!file)
		return ow_error_set(err, ENOMEM, "not enough memory");
	int r = access(file, F_OK) < 0 ? ow_error_set(err, ENOENT, "the fleet has no point '%.64s'", name)
	                               : read_file(file, ow_fleet_point_keys, &record, &tree, err);
	if (r == 0) {
		*ret_point = (struct ow_fleet_point){.state = record.state,
		                                     .generation = record.generation,
		                                     .until_s = (int64_t)record.until_s,
		                                     .token_until_s = (int64_t)record.token_until_s,
		                                     .token_generation = record.token_generation};
		snprintf(ret_point->name, sizeof ret_point->name, "%s", name);
		snprintf(ret_point->token, sizeof ret_point->token, "%s", record.token ? record.token : "");
		snprintf(ret_point->token_key, sizeof ret_point->token_key, "%s",
		         record.token_key ? record.token_key : "");
	}
	ow_yaml_free(tree);
	free(file);
	return r;
}

int ow_fleet_point_save(const struct ow_fleet *fleet, const struct ow_fleet_point *p, struct ow_error *err)
{
	char *text = NULL, *file = point_file(fleet, p->name);
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out || !file) {
		free(file);
		return ow_error_set(err, ENOMEM, "not enough memory");
	}
	fprintf(out, "state: %s\ngeneration: %ju\nuntil: %" PRId64 "\n", states[p->state].name,
	        (uintmax_t)p->generation, p->until_s);
	if (p->token[0])
		fprintf(out, "token: %s\ntoken_until: %" PRId64 "\ntoken_generation: %ju\n", p->token, p->token_until_s,
		        (uintmax_t)p->token_generation);
	if (p->token_key[0])
		fprintf(out, "token_key: %s\n", p->token_key);
	int r = fclose(out) == 0 ? ow_state_write(file, text, size, err)
	                         : ow_error_set(err, ENOMEM, "not enough memory");
	free(text);
	free(file);
	return r;
}

int ow_fleet_point_by_name(const void *a, const void *b)
{
	return strcmp(((const struct ow_fleet_point *)a)->name, ((const struct ow_fleet_point *)b)->name);
}

/* "london.yaml" is of london; other files are not of points. */
static bool name_of_file(const char *file, char name[OW_POINT_NAME])
{
	const char *dot = strrchr(file, '.');
	if (!dot || strcmp(dot, ".yaml") != 0 || dot - file >= OW_POINT_NAME)
		return false;
	snprintf(name, OW_POINT_NAME, "%.*s", (int)(dot - file), file);
	return ow_fleet_name_valid(name);
}

int ow_fleet_points(const struct ow_fleet *fleet, struct ow_fleet_point **ret_points, size_t *ret_count,
                    struct ow_error *err)
{
	char *folder = ow_state_path(fleet->path, "points"), name[OW_POINT_NAME];
	DIR *list = folder ? opendir(folder) : NULL;
	struct ow_fleet_point *points = NULL;
	size_t count = 0, room = 0;
	int r = list ? 0 : ow_error_set(err, errno, "%s/points: %s", fleet->path, strerror(errno));
	for (struct dirent *entry; list && r == 0 && (entry = readdir(list));) {
		if (!name_of_file(entry->d_name, name))
			continue;
		if (OW_GROW(points, room, count + 1) < 0)
			r = ow_error_set(err, ENOMEM, "not enough memory");
		else
			r = ow_fleet_point_load(fleet, name, &points[count++], err);
	}
	if (list)
		closedir(list);
	free(folder);
	if (r < 0) {
		free(points);
		return r;
	}
	if (count)
		qsort(points, count, sizeof *points, ow_fleet_point_by_name);
	*ret_points = points;
	*ret_count = count;
	return 0;
}
