/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a configuration: tables of keys, one for each kind of mapping, say how a value is read (config_value.c) and
 * where it goes. What entries must agree on among each other, and with this host, is in config_check.c.
 */
#include "config/config.h"

#include "config/config_check.h"
#include "config/config_value.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_sequence(struct ow_config_reader *r, const struct ow_yaml *node, unsigned max)
{
	if (node->kind != OW_YAML_SEQUENCE || node->count == 0)
		return ow_config_fail(r, node, "must be a list of at least one entry");
	return node->count > max ? ow_config_fail(r, node, "has too many entries") : 0;
}

/* Errors within an entry say which one it is: by its name, if it has one, else by number. */
static void enter(struct ow_config_reader *r, const char *kind, const struct ow_yaml *entry, const char *key,
                  unsigned number)
{
	const struct ow_yaml *name = entry->kind == OW_YAML_MAPPING ? ow_yaml_entry(entry, key) : NULL;
	if (name && name->kind == OW_YAML_TEXT)
		snprintf(r->where, sizeof r->where, " of %s '%.60s'", kind, name->text);
	else
		snprintf(r->where, sizeof r->where, " of %s %u", kind, number);
}

#define INTERFACE(member) offsetof(struct ow_config_interface, member)
static const struct ow_config_field interface_fields[] = {
	{"name", ow_config_read_name, INTERFACE(name), 0},
	{"file", ow_config_read_path, INTERFACE(file), 0},
	{"speed", ow_config_read_speed, INTERFACE(speed), 0},
	{"threads", ow_config_read_threads, INTERFACE(threads), 0},
	{"ring", ow_config_read_ring, INTERFACE(ring_bytes), 0},
	{"hardware_timestamps", ow_config_read_bool, INTERFACE(hardware_stamps), 0},
	{"filter", ow_config_read_filter, INTERFACE(filter), 0},
	{0},
};

/* A file that has no name goes by the last part of its path. The tree owns it, as the key that no list entry has. */
static int name_file(struct ow_config_reader *r, struct ow_yaml *entry, struct ow_config_interface *i)
{
	if (!i->file || i->name)
		return 0;
	const char *slash = strrchr(i->file, '/');
	entry->key = strdup(slash ? slash + 1 : i->file);
	i->name = entry->key;
	return i->name ? 0 : ow_config_no_memory(r);
}

static int read_interfaces(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config *c = r->config;
	(void)field;
	int code = check_sequence(r, node, OW_SOURCES_MAX);
	if (code < 0)
		return code;
	c->interfaces = calloc(node->count, sizeof *c->interfaces);
	if (!c->interfaces)
		return ow_config_no_memory(r);
	for (struct ow_yaml *entry = node->first; code == 0 && entry; entry = entry->next) {
		struct ow_config_interface *i = &c->interfaces[c->interface_count++];
		*i = (struct ow_config_interface){.speed = 1, .threads = 1, .line = entry->line};
		enter(r, "interface", entry, ow_yaml_entry(entry, "name") ? "name" : "file", c->interface_count);
		code = ow_config_read_mapping(r, entry, interface_fields, i, NULL);
		if (code == 0)
			code = name_file(r, entry, i);
	}
	if (code == 0)
		r->where[0] = 0;
	return code;
}

#define CLASS(member) offsetof(struct ow_config_class, member)
static const struct ow_config_field class_fields[] = {
	{"name", ow_config_read_name, CLASS(name), 0},
	{"filter", ow_config_read_filter, CLASS(filter), 0},
	{0},
};

static int read_class_list(struct ow_config_reader *r, struct ow_yaml *node, struct ow_config_class **classes,
                           unsigned *count)
{
	char outer[sizeof r->where];
	int code = check_sequence(r, node, OW_CONFIG_CLASSES_MAX);
	if (code < 0)
		return code;
	*classes = calloc(node->count, sizeof **classes);
	if (!*classes)
		return ow_config_no_memory(r);
	memcpy(outer, r->where, sizeof outer);
	for (struct ow_yaml *entry = node->first; entry; entry = entry->next) {
		struct ow_config_class *class = &(*classes)[(*count)++];
		class->line = entry->line;
		enter(r, "class", entry, "name", *count);
		code = ow_config_read_mapping(r, entry, class_fields, class, NULL);
		if (code < 0)
			return code;
	}
	memcpy(r->where, outer, sizeof outer);
	return 0;
}

static int read_classes(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config_segment *s = field;
	return read_class_list(r, node, &s->classes, &s->class_count);
}

/* Names of interfaces. They may come later in the file: looked up when all is read. */
static int read_watched(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	int code = check_sequence(r, node, OW_SOURCES_MAX);
	for (struct ow_yaml *entry = node->first; code == 0 && entry; entry = entry->next) {
		code = ow_config_check_text(r, entry);
	}
	*(struct ow_yaml **)field = node;
	return code;
}

struct segment_target {
	struct ow_config_segment segment;
	struct ow_yaml *watched;
};

#define SEGMENT(member) offsetof(struct segment_target, segment.member)
static const struct ow_config_field segment_fields[] = {
	{"name", ow_config_read_name, SEGMENT(name), 0},
	{"peer", ow_config_read_peer, SEGMENT(peer), 0},
	{"connect", ow_config_read_connect, SEGMENT(connect), 0},
	{"interfaces", read_watched, offsetof(struct segment_target, watched), 0},
	{"facing", ow_config_read_facing, SEGMENT(away), 0},
	{"to_peer", ow_config_read_filter, SEGMENT(to_peer), 0},
	{"interval", ow_config_read_interval, SEGMENT(interval_ns), OW_STATED_INTERVAL},
	{"wait", ow_config_read_wait, SEGMENT(wait_ns), OW_STATED_WAIT},
	{"method", ow_config_read_method, SEGMENT(method), OW_STATED_METHOD},
	{"identity", ow_config_read_level, SEGMENT(level), OW_STATED_IDENTITY},
	{"inner", ow_config_read_bool, SEGMENT(inner), OW_STATED_INNER},
	{"classes", read_classes, offsetof(struct segment_target, segment), OW_STATED_CLASSES},
	{0},
};

static int find_interface(struct ow_config_reader *r, const struct ow_yaml *name, unsigned *ret_index)
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

static int watch(struct ow_config_reader *r, const struct ow_yaml *watched, uint32_t *ret_interfaces)
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

static int read_segment(struct ow_config_reader *r, struct ow_yaml *entry, struct ow_config_segment *ret_segment)
{
	struct segment_target t = {.segment = {.interval_ns = OW_CONFIG_INTERVAL_NS,
	                                       .wait_ns = OW_CONFIG_WAIT_NS,
	                                       .method = OW_METHOD_FOLD,
	                                       .level = OW_LEVEL_IP,
	                                       .line = entry->line}};
	int code = ow_config_read_mapping(r, entry, segment_fields, &t, &t.segment.stated);
	if (code == 0)
		code = watch(r, t.watched, &t.segment.interfaces);
	if (code == 0 && ow_yaml_entry(entry, "facing") && t.segment.to_peer)
		code = ow_error_set(r->err, EINVAL, "%s:%u: facing%s: to_peer tells the direction already",
		                    r->config->path, ow_yaml_entry(entry, "facing")->line, r->where);
	*ret_segment = t.segment;
	return code;
}

/* The point that connects states everything. */
static int complete(struct ow_config_reader *r, struct ow_config_segment *s)
{
	if (!s->connect)
		return 0;
	if (!(s->stated & OW_STATED_CLASSES)) {
		s->classes = calloc(1, sizeof *s->classes);
		if (!s->classes)
			return ow_config_no_memory(r);
		s->classes[0] = (struct ow_config_class){.name = "all", .line = s->line};
		s->class_count = 1;
	}
	s->stated = OW_STATED_ALL;
	return 0;
}

static int read_segments(struct ow_config_reader *r, struct ow_yaml *node)
{
	struct ow_config *c = r->config;
	int code = check_sequence(r, node, OW_CONFIG_SEGMENTS_MAX);
	if (code < 0)
		return code;
	c->segments = calloc(node->count, sizeof *c->segments);
	if (!c->segments)
		return ow_config_no_memory(r);
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

static int read_flow_classes(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config_flows *flows = field;
	return read_class_list(r, node, &flows->classes, &flows->class_count);
}

static int read_flow_value(struct ow_config_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_error why;
	int code = ow_config_check_text(r, node);
	if (code == 0 && ow_config_flows_set(field, node->key, node->text, &why) < 0)
		code = ow_config_fail(r, node, why.text);
	return code;
}

#define FLOWS(member) offsetof(struct flows_target, flows.member)
static const struct ow_config_field flows_fields[] = {
	{"file", ow_config_read_path, FLOWS(file), 0},
	{"interfaces", read_watched, offsetof(struct flows_target, watched), 0},
	{"filter", ow_config_read_filter, FLOWS(filter), 0},
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

static int read_flows_entry(struct ow_config_reader *r, struct ow_yaml *entry, struct ow_config_flows *ret_flows)
{
	struct flows_target t = {0};
	struct ow_error why;
	ow_config_flows_defaults(&t.flows);
	t.flows.line = entry->line;
	int code = ow_config_read_mapping(r, entry, flows_fields, &t, NULL);
	if (code == 0)
		code = watch(r, t.watched, &t.flows.interfaces);
	if (code == 0 && ow_config_flows_complete(&t.flows, &why) < 0)
		code = ow_config_fail(r, entry, why.text);
	*ret_flows = t.flows;
	return code;
}

static int read_flows(struct ow_config_reader *r, struct ow_yaml *node)
{
	struct ow_config *c = r->config;
	int code = check_sequence(r, node, OW_CONFIG_FLOWS_MAX);
	if (code < 0)
		return code;
	c->flows = calloc(node->count, sizeof *c->flows);
	if (!c->flows)
		return ow_config_no_memory(r);
	for (struct ow_yaml *entry = node->first; code == 0 && entry; entry = entry->next) {
		struct ow_config_flows *flows = &c->flows[c->flows_count++];
		enter(r, "flows", entry, "file", c->flows_count);
		code = read_flows_entry(r, entry, flows);
		for (unsigned i = 0; code == 0 && i + 1 < c->flows_count; i++) {
			if (strcmp(c->flows[i].file, flows->file) == 0)
				code = ow_config_fail(r, entry, "another recording has this file already");
		}
	}
	r->where[0] = 0;
	return code;
}

/* They name interfaces, so they are read last. */
static int keep_segments(struct ow_config_reader *r, struct ow_yaml *node, void *field)
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
static const struct ow_config_field config_fields[] = {
	{"point", ow_config_read_point, CONFIG(point), 0},
	{"listen", ow_config_read_address, CONFIG(listen), 0},
	{"certificate", ow_config_read_path, CONFIG(certificate), 0},
	{"key", ow_config_read_path, CONFIG(key), 0},
	{"ca", ow_config_read_path, CONFIG(ca), 0},
	{"psk", ow_config_read_path, CONFIG(psk), 0},
	{"memory", ow_config_read_memory, CONFIG(memory), 0},
	{"store", ow_config_read_path, CONFIG(store), 0},
	{"retention", ow_config_read_retention, CONFIG(retention_ns), 0},
	{"store_max", ow_config_read_store_max, CONFIG(store_max), 0},
	{"metrics", ow_config_read_metrics, CONFIG(metrics), 0},
	{"output", ow_config_read_output, CONFIG(output), 0},
	{"user", ow_config_read_text, CONFIG(user), 0},
	{"sandbox", ow_config_read_sandbox, CONFIG(sandbox), 0},
	{"interfaces", read_interfaces, 0, 0},
	{"segments", keep_segments, offsetof(struct config_target, segments), 0},
	{"flows", keep_segments, offsetof(struct config_target, flows), 0},
	{0},
};

static int read_config(struct config_target *t, struct ow_error *err)
{
	struct ow_config_reader r = {.config = &t->config, .err = err};
	int code = ow_config_read_mapping(&r, t->config.tree, config_fields, t, NULL);
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
