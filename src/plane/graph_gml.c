/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads GML (Himsolt): "graph [ node [ id 0 label "A" ] edge [ source 0 target 1 weight 3 ] ]". The reader skips
 * unknown lists.
 */
#include "plane/graph_build.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define DEPTH_MAX 32

struct gml {
	struct ow_graph_build *build;
	const char *at, *end;
	unsigned line;
	struct ow_graph_names names;
	bool directed;
	struct ow_error *err;
};

static int wrong(const struct gml *gml, unsigned line, const char *what)
{
	return ow_error_set(gml->err, EINVAL, "%s:%u: %s", gml->build->name, line, what);
}

static void skip_blanks(struct gml *gml)
{
	while (gml->at < gml->end && (isspace((unsigned char)*gml->at) || *gml->at == '#')) {
		if (*gml->at == '#') {
			while (gml->at < gml->end && *gml->at != '\n')
				gml->at++;
		} else {
			gml->line += *gml->at++ == '\n';
		}
	}
}

static bool at_mark(struct gml *gml, char mark)
{
	skip_blanks(gml);
	if (gml->at == gml->end || *gml->at != mark)
		return false;
	gml->at++;
	return true;
}

/* A key or a number. */
static int word(struct gml *gml, char text[OW_GRAPH_TEXT])
{
	size_t length = 0;
	skip_blanks(gml);
	unsigned line = gml->line;
	while (gml->at < gml->end && *gml->at && !isspace((unsigned char)*gml->at) && !strchr("[]\"#", *gml->at)) {
		if (length + 1 == OW_GRAPH_TEXT)
			return wrong(gml, line, "a word is too long");
		text[length++] = *gml->at++;
	}
	text[length] = 0;
	return length ? 0
	              : wrong(gml, line,
	                      gml->at == gml->end ? "the file ends inside a list" : "expected a key or value");
}

static int quoted(struct gml *gml, char text[OW_GRAPH_TEXT])
{
	size_t length = 0;
	unsigned line = gml->line;
	while (gml->at < gml->end && *gml->at != '"') {
		if (!*gml->at || length + 1 == OW_GRAPH_TEXT)
			return wrong(gml, line, "a text is too long or contains a zero byte");
		gml->line += *gml->at == '\n';
		text[length++] = *gml->at++;
	}
	text[length] = 0;
	if (gml->at == gml->end)
		return wrong(gml, line, "a quoted text has no end");
	gml->at++;
	return 0;
}

static int value(struct gml *gml, char text[OW_GRAPH_TEXT])
{
	return at_mark(gml, '"') ? quoted(gml, text) : word(gml, text);
}

/* After '[': skips everything up to its ']'. */
static int skip_list(struct gml *gml)
{
	char text[OW_GRAPH_TEXT];
	unsigned depth = 1;
	int r = 0;
	while (r == 0 && depth) {
		if (at_mark(gml, ']')) {
			depth--;
		} else if (at_mark(gml, '[')) {
			if (++depth > DEPTH_MAX)
				return wrong(gml, gml->line, "too many nested lists");
		} else {
			r = value(gml, text);
		}
	}
	return r;
}

/* -- routers and edges ----------------------------------------------------------------------------------------------
 */

/* The known keys of a node or edge. */
struct item {
	char id[OW_GRAPH_TEXT], label[OW_GRAPH_TEXT], source[OW_GRAPH_TEXT], target[OW_GRAPH_TEXT];
	struct ow_graph_attributes attributes;
};

/* After "node [" or "edge [": keys and values up to its end. */
static int read_item(struct gml *gml, struct item *item)
{
	const struct {
		const char *key;
		char *text;
	} keys[] = {{"id", item->id}, {"label", item->label}, {"source", item->source}, {"target", item->target}};
	char key[OW_GRAPH_TEXT], text[OW_GRAPH_TEXT];
	int r = 0;
	while (r == 0 && !at_mark(gml, ']')) {
		r = word(gml, key);
		if (r == 0 && at_mark(gml, '[')) {
			r = skip_list(gml);
			continue;
		}
		if (r == 0)
			r = value(gml, text);
		for (size_t i = 0; r == 0 && i < sizeof(keys) / sizeof(*keys); i++)
			if (strcasecmp(key, keys[i].key) == 0)
				memcpy(keys[i].text, text, sizeof(text));
		if (r == 0)
			ow_graph_attribute(&item->attributes, key, text);
	}
	return r;
}

static int read_node(struct gml *gml)
{
	struct item item = {0};
	unsigned line = gml->line;
	int r = read_item(gml, &item);
	if (r == 0 && !*item.id)
		r = wrong(gml, line, "a node without an id");
	return r < 0 ? r : ow_graph_names_add(gml->build, &gml->names, item.id, item.label, line, gml->err);
}

static int read_edge(struct gml *gml)
{
	struct item item = {0};
	unsigned line = gml->line;
	int r = read_item(gml, &item);
	const char *source = r == 0 ? ow_graph_names_find(gml->build, &gml->names, item.source, line, gml->err) : NULL;
	const char *target = source ? ow_graph_names_find(gml->build, &gml->names, item.target, line, gml->err) : NULL;
	if (!target)
		return r < 0 ? r : -EINVAL;
	return ow_graph_edge(gml->build, source, target, &item.attributes, gml->directed, line, gml->err);
}

/* After "graph [". The first pass reads the nodes, because edges may come before them. */
static int read_graph(struct gml *gml, bool edges)
{
	char key[OW_GRAPH_TEXT], text[OW_GRAPH_TEXT];
	int r = 0;
	while (r == 0 && !at_mark(gml, ']')) {
		r = word(gml, key);
		if (r == 0 && at_mark(gml, '[')) {
			if (strcasecmp(key, "node") == 0 && !edges)
				r = read_node(gml);
			else if (strcasecmp(key, "edge") == 0 && edges)
				r = read_edge(gml);
			else
				r = skip_list(gml);
		} else if (r == 0) {
			r = value(gml, text);
			if (r == 0 && strcasecmp(key, "directed") == 0)
				gml->directed = strcmp(text, "0") != 0;
		}
	}
	return r;
}

static int pass(struct gml *gml, const char *text, size_t size, bool edges)
{
	char key[OW_GRAPH_TEXT], ignored[OW_GRAPH_TEXT];
	gml->at = text;
	gml->end = text + size;
	gml->line = 1;
	for (;;) {
		skip_blanks(gml);
		if (gml->at == gml->end)
			return wrong(gml, gml->line, "the file contains no graph");
		int r = word(gml, key);
		if (r == 0 && at_mark(gml, '[')) {
			if (strcasecmp(key, "graph") == 0)
				return read_graph(gml, edges);
			r = skip_list(gml);
		} else if (r == 0) {
			r = value(gml, ignored);
		}
		if (r < 0)
			return r;
	}
}

int ow_graph_read_gml(struct ow_graph_build *build, const char *text, size_t size, struct ow_error *err)
{
	struct gml gml = {.build = build, .err = err};
	int r = pass(&gml, text, size, false);
	if (r == 0)
		r = ow_graph_names_enter(build, &gml.names, err);
	if (r == 0)
		r = pass(&gml, text, size, true);
	ow_graph_names_done(&gml.names);
	return r;
}
