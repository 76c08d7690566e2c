/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a point in a fleet: its own file, and the desired state of the fleet for what that omits. */
#include "config/config_fleet.h"

#include "base/state_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLEET(member) offsetof(struct ow_config_fleet, member)
const struct ow_key ow_fleet_keys[] = {
	{"address", OW_KEY_TEXT, FLEET(address), NULL,
         "Where `oneway fleet serve` listens: `host`, or `host:port` if it is not port 8621."},
	{"name", OW_KEY_POINT, FLEET(name), NULL, "The name of this point, instead of `point`."},
	{"token", OW_KEY_TEXT, FLEET(token), NULL,
         "What `oneway fleet enroll` printed. It is needed once; then the point has a certificate."},
	{"state", OW_KEY_PATH, FLEET(state), OW_FLEET_STATE,
         "The folder for the point's certificate and key, the desired state, and the store."},
	{0},
};

/* The keys that a fleet may decide. Files, users and keys are the host's own affair. */
static const char *const desirable[] = {"listen",          "memory",         "retention", "retention_minutes",
                                        "retention_hours", "retention_days", "store_max", "metrics",
                                        "output",          "interfaces",     "segments",  "discovery"};

static bool may_be_desired(const char *key)
{
	for (size_t i = 0; i < sizeof desirable / sizeof *desirable; i++) {
		if (strcmp(desirable[i], key) == 0)
			return true;
	}
	return false;
}

char *ow_state_path(const char *folder, const char *name)
{
	char *path;
	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* -- the first line of a desired state ----------------------------------------------------------------------------- */

int ow_desired_head(const char *bytes, size_t size, struct ow_desired_head *ret_head, struct ow_error *err)
{
	static const char start[] = "# oneway: desired state of ", mark[] = ", signature ";
	char line[512];
	struct ow_desired_head head = {0};
	const char *end = memchr(bytes, '\n', size);
	size_t length = end ? (size_t)(end - bytes) : 0;
	char number[20];
	int used = 0;
	if (length == 0 || length >= sizeof line || memchr(bytes, 0, size))
		return ow_error_set(err, EINVAL, "not a desired state: its first line is missing or too long");
	memcpy(line, bytes, length);
	line[length] = 0;
	const char *signature = strstr(line, mark);
	if (strncmp(line, start, strlen(start)) != 0 || !signature ||
	    sscanf(line + strlen(start), "%63[A-Za-z0-9._-], version %19[0-9]%n", head.point, number, &used) != 2)
		return ow_error_set(err, EINVAL, "not a desired state: its first line says something else");
	head.version = strtoull(number, NULL, 10);
	head.signed_size = (size_t)(signature - line);
	head.signature = bytes + head.signed_size + strlen(mark);
	head.signature_size = length - head.signed_size - strlen(mark);
	head.body = length + 1;
	/* Between version and signature there is nothing. */
	if (head.version == 0 || line + strlen(start) + used != signature)
		return ow_error_set(err, EINVAL, "not a desired state: its first line says something else");
	*ret_head = head;
	return 0;
}

/* -- both files together ------------------------------------------------------------------------------------------- */

int ow_config_state_folder(const char *path, const char *bytes, size_t size, char **ret_folder, struct ow_error *err)
{
	struct ow_yaml *tree = NULL;
	int r = ow_yaml_parse(path, bytes, size, &tree, err);
	const struct ow_yaml *fleet = r == 0 && tree->kind == OW_YAML_MAPPING ? ow_yaml_entry(tree, "fleet") : NULL;
	if (fleet) {
		const struct ow_yaml *state = fleet->kind == OW_YAML_MAPPING ? ow_yaml_entry(fleet, "state") : NULL;
		const char *name = state && state->text ? state->text : OW_FLEET_STATE, *slash = strrchr(path, '/');
		int n = *name == '/' || !slash ? asprintf(ret_folder, "%s", name)
		                               : asprintf(ret_folder, "%.*s/%s", (int)(slash - path), path, name);
		if (n < 0)
			r = ow_error_set(err, ENOMEM, "%s: not enough memory", path);
	}
	ow_yaml_free(tree);
	return r;
}

static void note_kept(struct ow_config_fleet *fleet, const char *key)
{
	size_t used = strlen(fleet->kept);
	snprintf(fleet->kept + used, sizeof fleet->kept - used, "%s%s", used ? ", " : "", key);
}

/* A fleet does not choose files of the host. */
static int check_desirable(const struct ow_yaml *entry, struct ow_error *err)
{
	if (!may_be_desired(entry->key))
		return ow_error_set(err, EINVAL, "desired state: '%.60s' can only be in the point's own file",
		                    entry->key);
	if (strcmp(entry->key, "interfaces") != 0 || entry->kind != OW_YAML_SEQUENCE)
		return 0;
	for (const struct ow_yaml *i = entry->first; i; i = i->next) {
		if (i->kind == OW_YAML_MAPPING && ow_yaml_entry(i, "file"))
			return ow_error_set(err, EINVAL, "desired state: a 'file' can only be in the point's own file");
	}
	return 0;
}

/* Moves the entries of `from` that `to` does not have. */
static int move_entries(struct ow_yaml *to, struct ow_yaml *from, struct ow_config_fleet *fleet, struct ow_error *err)
{
	struct ow_yaml **last = &to->first, **link = &from->first;
	while (*last)
		last = &(*last)->next;
	while (*link) {
		struct ow_yaml *entry = *link;
		int r = check_desirable(entry, err);
		if (r < 0)
			return r;
		if (ow_yaml_entry(to, entry->key)) {
			note_kept(fleet, entry->key);
			link = &entry->next;
			continue;
		}
		fleet->interfaces = fleet->interfaces || strcmp(entry->key, "interfaces") == 0;
		*link = entry->next;
		entry->next = NULL;
		*last = entry;
		last = &entry->next;
		to->count++;
	}
	return 0;
}

int ow_config_merge(struct ow_yaml *tree, const char *desired, size_t size, struct ow_config_fleet *fleet,
                    struct ow_error *err)
{
	struct ow_desired_head head = {0};
	struct ow_yaml *wanted = NULL;
	int r = ow_desired_head(desired, size, &head, err);
	if (r == 0)
		r = ow_yaml_parse("desired state", desired, size, &wanted, err);
	if (r == 0 && (wanted->kind != OW_YAML_MAPPING || tree->kind != OW_YAML_MAPPING))
		r = ow_error_set(err, EINVAL, "desired state: must be keys with values");
	if (r == 0)
		r = move_entries(tree, wanted, fleet, err);
	/* Also of one that is refused. */
	fleet->version = head.version;
	ow_yaml_free(wanted);
	return r;
}

uint64_t ow_desired_version(const char *folder, const char *name)
{
	char *path = ow_state_path(folder, name), *bytes = NULL;
	size_t size;
	struct ow_desired_head head = {0};
	struct ow_error ignored;
	if (path && ow_state_read(path, OW_YAML_BYTES_MAX, &bytes, &size, &ignored) == 0)
		(void)ow_desired_head(bytes, size, &head, &ignored);
	free(bytes);
	free(path);
	return head.version;
}

int ow_config_reject(const struct ow_config *config, const struct ow_error *why, struct ow_error *err)
{
	if (!config->fleet.version || config->fleet.refused ||
	    ow_desired_version(config->fleet.state, OW_FLEET_ACCEPTED) == config->fleet.version)
		return 0;
	char *path = ow_state_path(config->fleet.state, OW_FLEET_TRIED), *text = NULL;
	int n = asprintf(&text, "%ju %.400s", (uintmax_t)config->fleet.version, why->text);
	int r = path && n >= 0 ? ow_state_write(path, text, (size_t)n, err)
	                       : ow_error_set(err, ENOMEM, "not enough memory");
	if (n >= 0)
		free(text);
	free(path);
	return r < 0 ? r : 1;
}

int ow_config_accept(const struct ow_config *config, struct ow_error *err)
{
	char *from = ow_state_path(config->fleet.state, OW_FLEET_DESIRED),
	     *to = ow_state_path(config->fleet.state, OW_FLEET_ACCEPTED), *bytes = NULL;
	size_t size;
	int r = from && to ? ow_state_read(from, OW_YAML_BYTES_MAX, &bytes, &size, err) : -ENOMEM;
	if (r == 0)
		r = ow_state_write(to, bytes, size, err);
	free(bytes);
	free(from);
	free(to);
	return r;
}

/* -- the point's own file ------------------------------------------------------------------------------------------ */

int ow_config_read_fleet(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config_fleet *fleet = field;
	int code = ow_keys_read(r, node, ow_fleet_keys, fleet, NULL);
	if (code == 0 && !fleet->address)
		code = ow_key_fail(r, node, "has no address");
	return code;
}

/* Sets a path in the state folder. The tree owns the text: as an entry that has no key. */
static int set_path(struct ow_config *c, const char *name, const char **field)
{
	struct ow_yaml *node = calloc(1, sizeof *node);
	char *path = ow_state_path(c->fleet.state, name);
	if (!node || !path) {
		free(node);
		free(path);
		return -ENOMEM;
	}
	node->text = path;
	node->next = c->tree->first;
	c->tree->first = node;
	*field = path;
	return 0;
}

int ow_config_complete_fleet(struct ow_key_reader *r, struct ow_config *c, bool measures)
{
	struct ow_config_fleet *fleet = &c->fleet;
	if (!fleet->address)
		return 0;
	if (fleet->name && c->point[0] && strcmp(fleet->name, c->point) != 0)
		return ow_error_set(r->err, EINVAL, "%s: the point has two names: '%s', in 'fleet' '%s'", c->path,
		                    c->point, fleet->name);
	if (fleet->name)
		snprintf(c->point, sizeof c->point, "%s", fleet->name);
	fleet->waits = c->interface_count == 0 || !measures;
	int code = 0;
	if (!c->certificate && !c->key && !c->ca && !c->psk) {
		code = set_path(c, OW_FLEET_CERTIFICATE, &c->certificate);
		code = code < 0 ? code : set_path(c, OW_FLEET_KEY, &c->key);
		code = code < 0 ? code : set_path(c, OW_FLEET_CA, &c->ca);
		code = code < 0 ? code : set_path(c, OW_FLEET_REVOKED_KEYS, &c->revoked);
	}
	if (code == 0 && !c->store)
		code = set_path(c, OW_FLEET_STORE, &c->store);
	return code < 0 ? ow_key_no_memory(r) : 0;
}
