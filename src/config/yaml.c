/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a tree from libyaml's events. Aliases are not followed, so the tree is no larger than the file. Its depth is
 * limited, and with it the recursion.
 */
#include "config/yaml.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>
#include <yaml.h>

struct loader {
	yaml_parser_t parser;
	const char *name;
	struct ow_error *err;
};

static unsigned line_of(const yaml_event_t *event)
{
	return (unsigned)event->start_mark.line + 1;
}

static int no_memory(struct loader *l)
{
	return ow_error_set(l->err, ENOMEM, "%s: not enough memory", l->name);
}

static int next_event(struct loader *l, yaml_event_t *event)
{
	const yaml_parser_t *p = &l->parser;
	if (yaml_parser_parse(&l->parser, event))
		return 0;
	if (p->error == YAML_MEMORY_ERROR)
		return no_memory(l);
	if (p->error == YAML_READER_ERROR)
		return ow_error_set(l->err, EINVAL, "%s: byte %zu: %s", l->name, p->problem_offset,
		                    p->problem ? p->problem : "cannot be read");
	return ow_error_set(l->err, EINVAL, "%s:%zu: %s%s%s", l->name, p->problem_mark.line + 1,
	                    p->problem ? p->problem : "cannot be read", p->context ? " " : "",
	                    p->context ? p->context : "");
}

static const char *anchor_of(const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL;
	if (event->type == YAML_SCALAR_EVENT)
		anchor = event->data.scalar.anchor;
	else if (event->type == YAML_SEQUENCE_START_EVENT)
		anchor = event->data.sequence_start.anchor;
	else if (event->type == YAML_MAPPING_START_EVENT)
		anchor = event->data.mapping_start.anchor;
	return (const char *)anchor;
}

static bool has_tag(const yaml_event_t *event)
{
	return (event->type == YAML_SCALAR_EVENT && event->data.scalar.tag) ||
	       (event->type == YAML_SEQUENCE_START_EVENT && event->data.sequence_start.tag) ||
	       (event->type == YAML_MAPPING_START_EVENT && event->data.mapping_start.tag);
}

/* A copy of the event's text. */
static int take_text(struct loader *l, const yaml_event_t *event, char **ret_text)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	if (length > OW_YAML_TEXT_MAX)
		return ow_error_set(l->err, EINVAL, "%s:%u: text of more than %d bytes", l->name, line_of(event),
		                    OW_YAML_TEXT_MAX);
	for (size_t i = 0; i < length; i++) {
		if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
			return ow_error_set(l->err, EINVAL, "%s:%u: control character in a text", l->name,
			                    line_of(event));
	}
	*ret_text = strndup(value, length);
	return *ret_text ? 0 : no_memory(l);
}

static int take_node(struct loader *l, const yaml_event_t *event, unsigned depth, struct ow_yaml **ret_node);

/* A key of a mapping. */
static int take_key(struct loader *l, const struct ow_yaml *mapping, const yaml_event_t *event, char **ret_key)
{
	if (event->type != YAML_SCALAR_EVENT || anchor_of(event) || has_tag(event))
		return ow_error_set(l->err, EINVAL, "%s:%u: a key must be a plain word", l->name, line_of(event));
	char *key;
	int r = take_text(l, event, &key);
	if (r < 0)
		return r;
	const struct ow_yaml *twice = ow_yaml_entry(mapping, key);
	if (twice) {
		r = ow_error_set(l->err, EINVAL, "%s:%u: key '%.60s' was given in line %u already", l->name,
		                 line_of(event), key, twice->line);
		free(key);
		return r;
	}
	*ret_key = key;
	return 0;
}

/* Reads one entry, given its first event. */
static int take_entry(struct loader *l, struct ow_yaml *parent, yaml_event_t *event, unsigned depth,
                      struct ow_yaml ***end)
{
	char *key = NULL;
	unsigned line = line_of(event);
	int r = 0;
	yaml_event_t value = {0};
	if (parent->count == OW_YAML_ENTRIES_MAX)
		return ow_error_set(l->err, EINVAL, "%s:%u: more than %d entries", l->name, line, OW_YAML_ENTRIES_MAX);
	if (parent->kind == OW_YAML_MAPPING) {
		r = take_key(l, parent, event, &key);
		if (r < 0 || (r = next_event(l, &value)) < 0)
			goto done;
		event = &value;
	}
	struct ow_yaml *node;
	r = take_node(l, event, depth + 1, &node);
	if (r < 0)
		goto done;
	node->line = line;
	node->key = key;
	key = NULL;
	**end = node;
	*end = &node->next;
	parent->count++;
done:
	yaml_event_delete(&value);
	free(key);
	return r;
}

static int take_entries(struct loader *l, struct ow_yaml *parent, unsigned depth)
{
	const yaml_event_type_t last =
		parent->kind == OW_YAML_MAPPING ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
	struct ow_yaml **end = &parent->first;
	for (;;) {
		yaml_event_t event;
		int r = next_event(l, &event);
		if (r < 0)
			return r;
		bool over = event.type == last;
		if (!over)
			r = take_entry(l, parent, &event, depth, &end);
		yaml_event_delete(&event);
		if (over || r < 0)
			return r;
	}
}

static int check_event(struct loader *l, const yaml_event_t *event, unsigned depth)
{
	if (event->type == YAML_ALIAS_EVENT || anchor_of(event))
		return ow_error_set(l->err, EINVAL, "%s:%u: anchors (&) and aliases (*) are not used here: quote texts",
		                    l->name, line_of(event));
	if (has_tag(event))
		return ow_error_set(l->err, EINVAL, "%s:%u: tags (!) are not used here: quote texts", l->name,
		                    line_of(event));
	if (depth > OW_YAML_DEPTH_MAX)
		return ow_error_set(l->err, EINVAL, "%s:%u: more than %d levels deep", l->name, line_of(event),
		                    OW_YAML_DEPTH_MAX);
	return 0;
}

static int take_node(struct loader *l, const yaml_event_t *event, unsigned depth, struct ow_yaml **ret_node)
{
	int r = check_event(l, event, depth);
	if (r < 0)
		return r;
	struct ow_yaml *node = calloc(1, sizeof *node);
	if (!node)
		return no_memory(l);
	node->line = line_of(event);
	if (event->type == YAML_SCALAR_EVENT) {
		node->kind = OW_YAML_TEXT;
		r = take_text(l, event, &node->text);
		if (r == 0 && node->text && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
		    (!*node->text || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0))
			r = ow_error_set(l->err, EINVAL, "%s:%u: no value", l->name, node->line);
	} else {
		node->kind = event->type == YAML_MAPPING_START_EVENT ? OW_YAML_MAPPING : OW_YAML_SEQUENCE;
		r = take_entries(l, node, depth);
	}
	if (r < 0) {
		ow_yaml_free(node);
		return r;
	}
	*ret_node = node;
	return 0;
}

/* The events before and after the only node of the document; *ret_root stays NULL if the document is empty. */
static int take_document(struct loader *l, struct ow_yaml **ret_root)
{
	bool over = false;
	int r = 0;
	while (!over && r == 0) {
		yaml_event_t event;
		r = next_event(l, &event);
		if (r < 0)
			break;
		over = event.type == YAML_STREAM_END_EVENT;
		if (event.type == YAML_DOCUMENT_START_EVENT && *ret_root)
			r = ow_error_set(l->err, EINVAL, "%s:%u: a second document", l->name, line_of(&event));
		else if (!*ret_root &&
		         (event.type == YAML_ALIAS_EVENT || event.type == YAML_SCALAR_EVENT ||
		          event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT))
			r = take_node(l, &event, 1, ret_root);
		yaml_event_delete(&event);
	}
	return r;
}

static int read_whole(int fd, char *bytes, size_t room, size_t *ret_size)
{
	size_t size = 0;
	while (size < room) {
		ssize_t n = read(fd, bytes + size, room - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	*ret_size = size;
	return 0;
}

int ow_yaml_load(const char *path, char **ret_bytes, size_t *ret_size, struct ow_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	/* One byte more than allowed, to detect a file that is too long. */
	char *bytes = malloc(OW_YAML_BYTES_MAX + 1);
	int r = bytes ? read_whole(fd, bytes, OW_YAML_BYTES_MAX + 1, ret_size) : -ENOMEM;
	close(fd);
	if (r < 0) {
		free(bytes);
		return ow_error_set(err, -r, "%s: %s", path, strerror(-r));
	}
	*ret_bytes = bytes;
	return 0;
}

int ow_yaml_parse(const char *name, const char *bytes, size_t size, struct ow_yaml **ret_root, struct ow_error *err)
{
	struct loader l = {.name = name, .err = err};
	struct ow_yaml *root = NULL;
	if (size > OW_YAML_BYTES_MAX)
		return ow_error_set(err, EINVAL, "%s: more than %u bytes", name, OW_YAML_BYTES_MAX);
	if (!yaml_parser_initialize(&l.parser))
		return no_memory(&l);
	yaml_parser_set_encoding(&l.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&l.parser, (const unsigned char *)bytes, size);
	int r = take_document(&l, &root);
	yaml_parser_delete(&l.parser);
	if (r == 0 && !root)
		r = ow_error_set(err, EINVAL, "%s: is empty", name);
	if (r < 0) {
		ow_yaml_free(root);
		return r;
	}
	*ret_root = root;
	return 0;
}

void ow_yaml_free(struct ow_yaml *root)
{
	if (!root)
		return;
	for (struct ow_yaml *entry = root->first, *next; entry; entry = next) {
		next = entry->next;
		ow_yaml_free(entry);
	}
	free(root->key);
	free(root->text);
	free(root);
}

struct ow_yaml *ow_yaml_entry(const struct ow_yaml *mapping, const char *key)
{
	for (struct ow_yaml *entry = mapping->first; entry; entry = entry->next) {
		if (entry->key && strcmp(entry->key, key) == 0)
			return entry;
	}
	return NULL;
}
