/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a configuration: tables of keys, one for each kind of mapping, say how a value is read and where it goes. What
 * entries must agree on among each other, and with this host, is in config_check.c.
 */
#include "point/config.h"

#include "base/size.h"

#include "base/time.h"
#include "base/word.h"
#include "point/config_check.h"
#include "point/yaml.h"
#include "wire/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct reader {
	struct ow_config *config;
	struct ow_error *err;
	char where[100]; /* " of segment 'x'" */
};

struct field {
	const char *name;
	int (*read)(struct reader *r, struct ow_yaml *node, void *field);
	size_t offset;
	unsigned stated; /* bit for struct ow_config_segment */
};

static int fail(struct reader *r, const struct ow_yaml *node, const char *why)
{
	return ow_error_set(r->err, EINVAL, "%s:%u: %s%s: %.300s", r->config->path, node->line,
	                    node->key ? node->key : "entry", r->where, why);
}

static int no_memory(struct reader *r)
{
	return ow_error_set(r->err, ENOMEM, "%s: not enough memory", r->config->path);
}

static int unknown_key(struct reader *r, const struct field *table, const struct ow_yaml *node)
{
	const char *best = NULL;
	unsigned nearest = OW_WORD_NEAR + 1;
	char in[sizeof r->where + 2] = "";
	for (; table->name; table++) {
		unsigned distance = ow_word_distance(node->key, table->name);
		if (distance < nearest) {
			nearest = distance;
			best = table->name;
		}
	}
	if (*r->where)
		snprintf(in, sizeof in, " in%s", r->where + strlen(" of"));
	return ow_error_set(r->err, EINVAL, "%s:%u: unknown key '%.60s'%s%s%s%s", r->config->path, node->line,
	                    node->key, in, best ? ", did you mean '" : "", best ? best : "", best ? "'?" : "");
}

/* Reads all entries of a mapping. ret_stated may be NULL. */
static int read_mapping(struct reader *r, struct ow_yaml *mapping, const struct field *table, void *target,
                        unsigned *ret_stated)
{
	if (mapping->kind != OW_YAML_MAPPING)
		return fail(r, mapping, "must be keys with values");
	for (struct ow_yaml *node = mapping->first; node; node = node->next) {
		const struct field *f = table;
		while (f->name && strcmp(f->name, node->key) != 0)
			f++;
		if (!f->name)
			return unknown_key(r, table, node);
		int code = f->read(r, node, (char *)target + f->offset);
		if (code < 0)
			return code;
		if (ret_stated)
			*ret_stated |= f->stated;
	}
	return 0;
}

static int check_text(struct reader *r, const struct ow_yaml *node)
{
	if (node->kind != OW_YAML_TEXT)
		return fail(r, node, "must be a single value");
	return *node->text ? 0 : fail(r, node, "is empty");
}

static int read_text(struct reader *r, struct ow_yaml *node, void *field)
{
	int code = check_text(r, node);
	if (code == 0)
		*(const char **)field = node->text;
	return code;
}

static int read_name(struct reader *r, struct ow_yaml *node, void *field)
{
	struct ow_error why;
	int code = read_text(r, node, field);
	if (code == 0 && ow_name_check(node->text, &why) < 0)
		code = fail(r, node, why.text);
	return code;
}

/* Names of points stand in certificates, too. */
static int read_peer(struct reader *r, struct ow_yaml *node, void *field)
{
	int code = read_text(r, node, field);
	if (code == 0 && !ow_point_name_valid(node->text))
		code = fail(r, node, "a point's name has 1 to 63 letters, digits, '.', '_' and '-'");
	return code;
}

static int read_point(struct reader *r, struct ow_yaml *node, void *field)
{
	const char *name;
	int code = read_peer(r, node, &name);
	if (code == 0)
		snprintf(field, OW_LIVE_NAME, "%s", node->text);
	return code;
}

/* A path; if it is relative, then to the folder of the configuration. */
static int read_path(struct reader *r, struct ow_yaml *node, void *field)
{
	int code = read_text(r, node, field);
	const char *slash = strrchr(r->config->path, '/');
	if (code < 0 || *node->text == '/' || !slash)
		return code;
	char *path;
	if (asprintf(&path, "%.*s/%s", (int)(slash - r->config->path), r->config->path, node->text) < 0)
		return no_memory(r);
	free(node->text);
	node->text = path;
	*(const char **)field = path;
	return 0;
}

static int read_filter(struct reader *r, struct ow_yaml *node, void *field)
{
	int code = read_text(r, node, field);
	if (code == 0 && strlen(node->text) > OW_CONFIG_FILTER_MAX)
		code = fail(r, node, "is too long for a filter");
	return code;
}

/* host:port, [v6]:port, :port */
static int read_address(struct reader *r, struct ow_yaml *node, void *field)
{
	int code = read_text(r, node, field);
	if (code < 0)
		return code;
	const char *text = node->text, *colon = strrchr(text, ':');
	if (!colon || strlen(text) > OW_CONFIG_ADDRESS_MAX)
		return fail(r, node,
		            "is no address (examples: 192.0.2.7:8620, point.example:8620, [2001:db8::7]:8620)");
	if (*text == '[' ? colon[-1] != ']' : memchr(text, ':', (size_t)(colon - text)) != NULL)
		return fail(r, node, "is ambiguous: write [address]:port for IPv6");
	char *end;
	unsigned long port = strtoul(colon + 1, &end, 10);
	if (!colon[1] || *end || colon[1] < '0' || colon[1] > '9' || port > 65535)
		return fail(r, node, "has no port in 0 .. 65535");
	return 0;
}

static int read_connect(struct reader *r, struct ow_yaml *node, void *field)
{
	int code = read_address(r, node, field);
	if (code == 0 && *node->text == ':')
		return fail(r, node, "names no host");
	if (code == 0 && strtoul(strrchr(node->text, ':') + 1, NULL, 10) == 0)
		return fail(r, node, "has port 0");
	return code;
}

/* An address of this host. Metrics are for whoever runs it: all addresses must be asked for. */
static int read_metrics(struct reader *r, struct ow_yaml *node, void *field)
{
	int code = read_address(r, node, field);
	if (code == 0 && *node->text == ':')
		return fail(r, node, "names no host (127.0.0.1:9620, or 0.0.0.0:9620 and [::]:9620 for everybody)");
	return code;
}

static int read_bool(struct reader *r, struct ow_yaml *node, void *field)
{
	int code = check_text(r, node);
	if (code < 0)
		return code;
	bool yes = strcmp(node->text, "true") == 0 || strcmp(node->text, "yes") == 0;
	if (!yes && strcmp(node->text, "false") != 0 && strcmp(node->text, "no") != 0)
		return fail(r, node, "is not true or false");
	*(bool *)field = yes;
	return 0;
}

static int read_size(struct reader *r, struct ow_yaml *node, uint64_t min, uint64_t max, uint64_t *field)
{
	struct ow_error why;
	int code = check_text(r, node);
	if (code < 0)
		return code;
	if (ow_size_parse(node->text, field, &why) < 0)
		return fail(r, node, why.text);
	if (*field < min || *field > max) {
		ow_error_set(&why, EINVAL, "'%.40s' is not in %juMiB .. %juMiB", node->text, (uintmax_t)(min >> 20),
		             (uintmax_t)(max >> 20));
		return fail(r, node, why.text);
	}
	return 0;
}

static int read_memory(struct reader *r, struct ow_yaml *node, void *field)
{
	return read_size(r, node, OW_CONFIG_MEMORY_MIN, OW_CONFIG_MEMORY_MAX, field);
}

static bool is_zero(const struct ow_yaml *node)
{
	return node->kind == OW_YAML_TEXT && strcmp(node->text, "0") == 0;
}

/* 0: no limit */
static int read_store_max(struct reader *r, struct ow_yaml *node, void *field)
{
	if (!is_zero(node))
		return read_size(r, node, OW_CONFIG_STORE_MIN, OW_CONFIG_STORE_MAX, field);
	*(uint64_t *)field = 0;
	return 0;
}

static int read_ring(struct reader *r, struct ow_yaml *node, void *field)
{
	return read_size(r, node, OW_CONFIG_RING_MIN, OW_CONFIG_RING_MAX, field);
}

static int read_threads(struct reader *r, struct ow_yaml *node, void *field)
{
	char *end;
	int code = check_text(r, node);
	if (code < 0)
		return code;
	unsigned long n = strtoul(node->text, &end, 10);
	if (*node->text < '0' || *node->text > '9' || *end || n < 1 || n > OW_CONFIG_THREADS_MAX)
		return fail(r, node, "is no number in 1 .. 64");
	*(uint64_t *)field = n;
	return 0;
}

static int read_speed(struct reader *r, struct ow_yaml *node, void *field)
{
	char *end;
	int code = check_text(r, node);
	if (code < 0)
		return code;
	double speed = strtod(node->text, &end);
	if (end == node->text || *end || !(speed > 0 && speed <= OW_CONFIG_SPEED_MAX))
		return fail(r, node, "is no number above 0, up to 1000 (1 = in the capture's own time)");
	*(double *)field = speed;
	return 0;
}

static int read_duration(struct reader *r, struct ow_yaml *node, int64_t min, int64_t max, int64_t *field)
{
	struct ow_error why;
	int64_t ns;
	int code = check_text(r, node);
	if (code < 0)
		return code;
	if (ow_duration_parse(node->text, &ns, &why) < 0)
		return fail(r, node, why.text);
	if (ns < min || ns > max) {
		char low[OW_DURATION_TEXT], high[OW_DURATION_TEXT];
		ow_duration_text((double)min, low);
		ow_duration_text((double)max, high);
		ow_error_set(&why, EINVAL, "'%.40s' is not in %s .. %s", node->text, low, high);
		return fail(r, node, why.text);
	}
	*field = ns;
	return 0;
}

static int read_interval(struct reader *r, struct ow_yaml *node, void *field)
{
	return read_duration(r, node, OW_INTERVAL_MIN_NS, OW_INTERVAL_MAX_NS, field);
}

static int read_wait(struct reader *r, struct ow_yaml *node, void *field)
{
	return read_duration(r, node, OW_NS_PER_US, 24 * 3600 * OW_NS_PER_S, field);
}

/* 0: for ever */
static int read_retention(struct reader *r, struct ow_yaml *node, void *field)
{
	if (!is_zero(node))
		return read_duration(r, node, 60 * OW_NS_PER_S, 36500 * INT64_C(86400) * OW_NS_PER_S, field);
	*(int64_t *)field = 0;
	return 0;
}

static int read_choice(struct reader *r, struct ow_yaml *node, const char *const *names, unsigned count,
                       unsigned *ret_index)
{
	struct ow_error why;
	int code = check_text(r, node);
	for (unsigned i = 0; code == 0 && i < count; i++) {
		if (strcmp(node->text, names[i]) == 0) {
			*ret_index = i;
			return 0;
		}
	}
	if (code < 0)
		return code;
	ow_error_set(&why, EINVAL, "'%.40s' is not %s%s%s%s%s", node->text, names[0], count > 2 ? ", " : " or ",
	             names[1], count > 2 ? " or " : "", count > 2 ? names[2] : "");
	return fail(r, node, why.text);
}

static int read_output(struct reader *r, struct ow_yaml *node, void *field)
{
	static const char *const names[] = {"text", "json", "none"};
	unsigned i = 0;
	int code = read_choice(r, node, names, 3, &i);
	if (code == 0)
		*(enum ow_config_output *)field = (enum ow_config_output)i;
	return code;
}

static int read_sandbox(struct reader *r, struct ow_yaml *node, void *field)
{
	static const char *const names[] = {"true", "false", "log"};
	unsigned i = 0;
	int code = read_choice(r, node, names, 3, &i);
	if (code == 0)
		*(enum ow_sandbox *)field = (enum ow_sandbox)i;
	return code;
}

static int read_facing(struct reader *r, struct ow_yaml *node, void *field)
{
	static const char *const names[] = {"peer", "away"};
	unsigned i = 0;
	int code = read_choice(r, node, names, 2, &i);
	if (code == 0)
		*(bool *)field = i == 1;
	return code;
}

static int read_method(struct reader *r, struct ow_yaml *node, void *field)
{
	static const char *const names[] = {"fold", "rda"};
	unsigned i = 0;
	int code = read_choice(r, node, names, 2, &i);
	if (code == 0)
		*(enum ow_method *)field = i ? OW_METHOD_RDA : OW_METHOD_FOLD;
	return code;
}

static int read_level(struct reader *r, struct ow_yaml *node, void *field)
{
	static const char *const names[] = {"ip", "nat"};
	unsigned i = 0;
	int code = read_choice(r, node, names, 2, &i);
	if (code == 0)
		*(enum ow_level *)field = i ? OW_LEVEL_NAT : OW_LEVEL_IP;
	return code;
}

static int check_sequence(struct reader *r, const struct ow_yaml *node, unsigned max)
{
	if (node->kind != OW_YAML_SEQUENCE || node->count == 0)
		return fail(r, node, "must be a list of at least one entry");
	return node->count > max ? fail(r, node, "has too many entries") : 0;
}

/* Errors within an entry say which one it is: by its name, if it has one, else by number. */
static void enter(struct reader *r, const char *kind, const struct ow_yaml *entry, const char *key, unsigned number)
{
	const struct ow_yaml *name = entry->kind == OW_YAML_MAPPING ? ow_yaml_entry(entry, key) : NULL;
	if (name && name->kind == OW_YAML_TEXT)
		snprintf(r->where, sizeof r->where, " of %s '%.60s'", kind, name->text);
	else
		snprintf(r->where, sizeof r->where, " of %s %u", kind, number);
}

#define INTERFACE(member) offsetof(struct ow_config_interface, member)
static const struct field interface_fields[] = {
	{"name", read_name, INTERFACE(name), 0},
	{"file", read_path, INTERFACE(file), 0},
	{"speed", read_speed, INTERFACE(speed), 0},
	{"threads", read_threads, INTERFACE(threads), 0},
	{"ring", read_ring, INTERFACE(ring_bytes), 0},
	{"hardware_timestamps", read_bool, INTERFACE(hardware_stamps), 0},
	{"filter", read_filter, INTERFACE(filter), 0},
	{0},
};

/* A file that has no name goes by the last part of its path. The tree owns it, as the key that no list entry has. */
static int name_file(struct reader *r, struct ow_yaml *entry, struct ow_config_interface *i)
{
	if (!i->file || i->name)
		return 0;
	const char *slash = strrchr(i->file, '/');
	entry->key = strdup(slash ? slash + 1 : i->file);
	i->name = entry->key;
	return i->name ? 0 : no_memory(r);
}

static int read_interfaces(struct reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config *c = r->config;
	(void)field;
	int code = check_sequence(r, node, OW_SOURCES_MAX);
	if (code < 0)
		return code;
	c->interfaces = calloc(node->count, sizeof *c->interfaces);
	if (!c->interfaces)
		return no_memory(r);
	for (struct ow_yaml *entry = node->first; code == 0 && entry; entry = entry->next) {
		struct ow_config_interface *i = &c->interfaces[c->interface_count++];
		*i = (struct ow_config_interface){.speed = 1, .threads = 1, .line = entry->line};
		enter(r, "interface", entry, ow_yaml_entry(entry, "name") ? "name" : "file", c->interface_count);
		code = read_mapping(r, entry, interface_fields, i, NULL);
		if (code == 0)
			code = name_file(r, entry, i);
	}
	if (code == 0)
		r->where[0] = 0;
	return code;
}

#define CLASS(member) offsetof(struct ow_config_class, member)
static const struct field class_fields[] = {
	{"name", read_name, CLASS(name), 0},
	{"filter", read_filter, CLASS(filter), 0},
	{0},
};

static int read_class_list(struct reader *r, struct ow_yaml *node, struct ow_config_class **classes, unsigned *count)
{
	char outer[sizeof r->where];
	int code = check_sequence(r, node, OW_CONFIG_CLASSES_MAX);
	if (code < 0)
		return code;
	*classes = calloc(node->count, sizeof **classes);
	if (!*classes)
		return no_memory(r);
	memcpy(outer, r->where, sizeof outer);
	for (struct ow_yaml *entry = node->first; entry; entry = entry->next) {
		struct ow_config_class *class = &(*classes)[(*count)++];
		class->line = entry->line;
		enter(r, "class", entry, "name", *count);
		code = read_mapping(r, entry, class_fields, class, NULL);
		if (code < 0)
			return code;
	}
	memcpy(r->where, outer, sizeof outer);
	return 0;
}

static int read_classes(struct reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config_segment *s = field;
	return read_class_list(r, node, &s->classes, &s->class_count);
}

/* Names of interfaces. They may come later in the file: looked up when all is read. */
static int read_watched(struct reader *r, struct ow_yaml *node, void *field)
{
	int code = check_sequence(r, node, OW_SOURCES_MAX);
	for (struct ow_yaml *entry = node->first; code == 0 && entry; entry = entry->next) {
		code = check_text(r, entry);
	}
	*(struct ow_yaml **)field = node;
	return code;
}

struct segment_target {
	struct ow_config_segment segment;
	struct ow_yaml *watched;
};

#define SEGMENT(member) offsetof(struct segment_target, segment.member)
static const struct field segment_fields[] = {
	{"name", read_name, SEGMENT(name), 0},
	{"peer", read_peer, SEGMENT(peer), 0},
	{"connect", read_connect, SEGMENT(connect), 0},
	{"interfaces", read_watched, offsetof(struct segment_target, watched), 0},
	{"facing", read_facing, SEGMENT(away), 0},
	{"to_peer", read_filter, SEGMENT(to_peer), 0},
	{"interval", read_interval, SEGMENT(interval_ns), OW_STATED_INTERVAL},
	{"wait", read_wait, SEGMENT(wait_ns), OW_STATED_WAIT},
	{"method", read_method, SEGMENT(method), OW_STATED_METHOD},
	{"identity", read_level, SEGMENT(level), OW_STATED_IDENTITY},
	{"inner", read_bool, SEGMENT(inner), OW_STATED_INNER},
	{"classes", read_classes, offsetof(struct segment_target, segment), OW_STATED_CLASSES},
	{0},
};

static int find_interface(struct reader *r, const struct ow_yaml *name, unsigned *ret_index)
{
	const struct ow_config *c = r->config;
	struct ow_error why;
	for (unsigned i = 0; i < c->interface_count; i++) {
		if (strcmp(c->interfaces[i].name, name->text) == 0) {
			*ret_index = i;
			return 0;
		}
	}
	ow_error_set(&why, EINVAL, "no interface '%.60s' among the interfaces of this point", name->text);
	return ow_error_set(r->err, EINVAL, "%s:%u: interfaces%s: %.300s", c->path, name->line, r->where, why.text);
}

static int watch(struct reader *r, const struct ow_yaml *watched, uint32_t *ret_interfaces)
{
	uint32_t all = (uint32_t)((UINT64_C(1) << r->config->interface_count) - 1), set = 0;
	for (const struct ow_yaml *name = watched ? watched->first : NULL; name; name = name->next) {
		unsigned i = 0;
		int code = find_interface(r, name, &i);
		if (code < 0)
			return code;
		set |= UINT32_C(1) << i;
	}
	*ret_interfaces = watched ? set : all;
	return 0;
}

static int read_segment(struct reader *r, struct ow_yaml *entry, struct ow_config_segment *ret_segment)
{
	struct segment_target t = {.segment = {.interval_ns = OW_CONFIG_INTERVAL_NS,
	                                       .wait_ns = OW_CONFIG_WAIT_NS,
	                                       .method = OW_METHOD_FOLD,
	                                       .level = OW_LEVEL_IP,
	                                       .line = entry->line}};
	int code = read_mapping(r, entry, segment_fields, &t, &t.segment.stated);
	if (code == 0)
		code = watch(r, t.watched, &t.segment.interfaces);
	if (code == 0 && ow_yaml_entry(entry, "facing") && t.segment.to_peer)
		code = ow_error_set(r->err, EINVAL, "%s:%u: facing%s: to_peer tells the direction already",
		                    r->config->path, ow_yaml_entry(entry, "facing")->line, r->where);
	*ret_segment = t.segment;
	return code;
}

/* The point that connects states everything. */
static int complete(struct reader *r, struct ow_config_segment *s)
{
	if (!s->connect)
		return 0;
	if (!(s->stated & OW_STATED_CLASSES)) {
		s->classes = calloc(1, sizeof *s->classes);
		if (!s->classes)
			return no_memory(r);
		s->classes[0] = (struct ow_config_class){.name = "all", .line = s->line};
		s->class_count = 1;
	}
	s->stated = OW_STATED_ALL;
	return 0;
}

static int read_segments(struct reader *r, struct ow_yaml *node)
{
	struct ow_config *c = r->config;
	int code = check_sequence(r, node, OW_CONFIG_SEGMENTS_MAX);
	if (code < 0)
		return code;
	c->segments = calloc(node->count, sizeof *c->segments);
	if (!c->segments)
		return no_memory(r);
	for (struct ow_yaml *entry = node->first; code == 0 && entry; entry = entry->next) {
		struct ow_config_segment *s = &c->segments[c->segment_count++];
		enter(r, "segment", entry, "name", c->segment_count);
		code = read_segment(r, entry, s);
		if (code == 0)
			code = complete(r, s);
	}
	r->where[0] = 0;
	return code;
}

/* Recordings of flows. */

struct flows_target {
	struct ow_config_flows flows;
	struct ow_yaml *watched;
};

static int read_flow_classes(struct reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config_flows *flows = field;
	return read_class_list(r, node, &flows->classes, &flows->class_count);
}

static int read_flow_value(struct reader *r, struct ow_yaml *node, void *field)
{
	struct ow_error why;
	int code = check_text(r, node);
	if (code == 0 && ow_config_flows_set(field, node->key, node->text, &why) < 0)
		code = fail(r, node, why.text);
	return code;
}

#define FLOWS(member) offsetof(struct flows_target, flows.member)
static const struct field flows_fields[] = {
	{"file", read_path, FLOWS(file), 0},
	{"interfaces", read_watched, offsetof(struct flows_target, watched), 0},
	{"filter", read_filter, FLOWS(filter), 0},
	{"classes", read_flow_classes, offsetof(struct flows_target, flows), 0},
	{"heading", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"key", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"identity", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"inner", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"id_bytes", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"interval", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"counters", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"form", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"banks", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"spread", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"bits", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"check_bits", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"count_bits", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"stddev", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"stddev_spread", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"vectors", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"seed", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"counts", read_flow_value, offsetof(struct flows_target, flows), 0},
	{"flows_max", read_flow_value, offsetof(struct flows_target, flows), 0},
	{0},
};

static int read_flows_entry(struct reader *r, struct ow_yaml *entry, struct ow_config_flows *ret_flows)
{
	struct flows_target t = {0};
	struct ow_error why;
	ow_config_flows_defaults(&t.flows);
	t.flows.line = entry->line;
	int code = read_mapping(r, entry, flows_fields, &t, NULL);
	if (code == 0)
		code = watch(r, t.watched, &t.flows.interfaces);
	if (code == 0 && ow_config_flows_complete(&t.flows, &why) < 0)
		code = fail(r, entry, why.text);
	*ret_flows = t.flows;
	return code;
}

static int read_flows(struct reader *r, struct ow_yaml *node)
{
	struct ow_config *c = r->config;
	int code = check_sequence(r, node, OW_CONFIG_FLOWS_MAX);
	if (code < 0)
		return code;
	c->flows = calloc(node->count, sizeof *c->flows);
	if (!c->flows)
		return no_memory(r);
	for (struct ow_yaml *entry = node->first; code == 0 && entry; entry = entry->next) {
		struct ow_config_flows *flows = &c->flows[c->flows_count++];
		enter(r, "flows", entry, "file", c->flows_count);
		code = read_flows_entry(r, entry, flows);
		for (unsigned i = 0; code == 0 && i + 1 < c->flows_count; i++) {
			if (strcmp(c->flows[i].file, flows->file) == 0)
				code = fail(r, entry, "another recording has this file already");
		}
	}
	r->where[0] = 0;
	return code;
}

/* They name interfaces, so they are read last. */
static int keep_segments(struct reader *r, struct ow_yaml *node, void *field)
{
	(void)r;
	*(struct ow_yaml **)field = node;
	return 0;
}

struct config_target {
	struct ow_config config;
	struct ow_yaml *segments, *flows;
};

#define CONFIG(member) offsetof(struct config_target, config.member)
static const struct field config_fields[] = {
	{"point", read_point, CONFIG(point), 0},
	{"listen", read_address, CONFIG(listen), 0},
	{"certificate", read_path, CONFIG(certificate), 0},
	{"key", read_path, CONFIG(key), 0},
	{"ca", read_path, CONFIG(ca), 0},
	{"psk", read_path, CONFIG(psk), 0},
	{"memory", read_memory, CONFIG(memory), 0},
	{"store", read_path, CONFIG(store), 0},
	{"retention", read_retention, CONFIG(retention_ns), 0},
	{"store_max", read_store_max, CONFIG(store_max), 0},
	{"metrics", read_metrics, CONFIG(metrics), 0},
	{"output", read_output, CONFIG(output), 0},
	{"user", read_text, CONFIG(user), 0},
	{"sandbox", read_sandbox, CONFIG(sandbox), 0},
	{"interfaces", read_interfaces, 0, 0},
	{"segments", keep_segments, offsetof(struct config_target, segments), 0},
	{"flows", keep_segments, offsetof(struct config_target, flows), 0},
	{0},
};

static int read_config(struct config_target *t, struct ow_error *err)
{
	struct reader r = {.config = &t->config, .err = err};
	int code = read_mapping(&r, t->config.tree, config_fields, t, NULL);
	if (code == 0)
		code = ow_config_check_top(&t->config, t->segments != NULL, t->flows != NULL, err);
	if (code == 0 && t->segments)
		code = read_segments(&r, t->segments);
	if (code == 0 && t->flows)
		code = read_flows(&r, t->flows);
	if (code == 0)
		code = ow_config_check_segments(&t->config, err);
	return code;
}

static void done(struct ow_config *config)
{
	for (unsigned i = 0; i < config->segment_count; i++)
		free(config->segments[i].classes);
	free(config->segments);
	for (unsigned i = 0; i < config->flows_count; i++)
		free(config->flows[i].classes);
	free(config->flows);
	free(config->interfaces);
	ow_yaml_free(config->tree);
	free(config->path);
}

int ow_config_parse(const char *path, const char *bytes, size_t size, struct ow_config **ret_config,
                    struct ow_error *err)
{
	struct config_target t = {.config = {.memory = OW_CONFIG_MEMORY,
	                                     .retention_ns = OW_CONFIG_RETENTION_NS,
	                                     .store_max = OW_CONFIG_STORE}};
	int r = ow_yaml_parse(path, bytes, size, &t.config.tree, err);
	if (r < 0)
		return r;
	struct ow_config *config = malloc(sizeof *config);
	t.config.path = strdup(path);
	r = config && t.config.path ? read_config(&t, err) : ow_error_set(err, ENOMEM, "%s: not enough memory", path);
	if (r < 0 || !config) {
		done(&t.config);
		free(config);
		return r;
	}
	*config = t.config;
	*ret_config = config;
	return 0;
}

void ow_config_free(struct ow_config *config)
{
	if (!config)
		return;
	done(config);
	free(config);
}

int ow_config_load(const char *path, struct ow_config **ret_config, struct ow_error *err)
{
	char *bytes;
	size_t size;
	int r = ow_yaml_load(path, &bytes, &size, err);
	if (r < 0)
		return r;
	r = ow_config_parse(path, bytes, size, ret_config, err);
	free(bytes);
	return r;
}
