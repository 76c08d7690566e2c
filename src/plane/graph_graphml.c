/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads GraphML with expat, in two passes: first the routers, because edges may come before them. The <key> elements
 * name the attributes.
 */
#include "plane/graph_build.h"
#include <errno.h>
#include <expat.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define KEYS_MAX 256

struct key {
	char id[OW_GRAPH_TEXT], name[OW_GRAPH_TEXT];
};

struct graphml {
	struct ow_graph_build *build;
	struct ow_graph_names names;
	XML_Parser parser;
	struct key *key;
	unsigned keys;
	bool edges; /* this is the second pass */
	bool directed_default, directed, in_node, in_edge, in_data, seen;
	unsigned line; /* line of the node or edge */
	char id[OW_GRAPH_TEXT], label[OW_GRAPH_TEXT], from[OW_GRAPH_TEXT], to[OW_GRAPH_TEXT];
	char data_key[OW_GRAPH_TEXT], data[OW_GRAPH_TEXT];
	struct ow_graph_attributes attributes;
	int r;
	struct ow_error *err;
};

static unsigned line_of(const struct graphml *graphml)
{
	return (unsigned)XML_GetCurrentLineNumber(graphml->parser);
}

static void stop(struct graphml *graphml, int r)
{
	if (r == 0)
		return;
	graphml->r = r;
	XML_StopParser(graphml->parser, XML_FALSE);
}

static const char *attribute(const char **attributes, const char *name)
{
	for (; *attributes; attributes += 2)
		if (strcmp(attributes[0], name) == 0)
			return attributes[1];
	return "";
}

/* Reading ends where a text does not fit: a shortened name could be the name of another router. */
static void copy(struct graphml *graphml, char to[OW_GRAPH_TEXT], const char *from)
{
	if (strlen(from) >= OW_GRAPH_TEXT)
		stop(graphml, ow_error_set(graphml->err, EINVAL, "%s:%u: a text has more than %d bytes",
		                           graphml->build->name, line_of(graphml), OW_GRAPH_TEXT - 1));
	else
		memcpy(to, from, strlen(from) + 1);
}

static void add_key(struct graphml *graphml, const char **attributes)
{
	if (graphml->edges)
		return;
	if (graphml->keys == KEYS_MAX) {
		stop(graphml, ow_error_set(graphml->err, E2BIG, "%s:%u: more than %d keys", graphml->build->name,
		                           line_of(graphml), KEYS_MAX));
		return;
	}
	struct key *key = &graphml->key[graphml->keys++];
	copy(graphml, key->id, attribute(attributes, "id"));
	copy(graphml, key->name, attribute(attributes, "attr.name"));
}

/* The element's name without the namespace prefix. */
static const char *plain(const char *element)
{
	const char *colon = strrchr(element, ':');
	return colon ? colon + 1 : element;
}

static void XMLCALL on_start(void *arg, const char *element, const char **attributes)
{
	struct graphml *graphml = arg;
	element = plain(element);
	if (strcmp(element, "graphml") == 0) {
		graphml->seen = true;
	} else if (strcmp(element, "key") == 0) {
		add_key(graphml, attributes);
	} else if (strcmp(element, "graph") == 0) {
		graphml->directed_default = strcmp(attribute(attributes, "edgedefault"), "directed") == 0;
	} else if (strcmp(element, "node") == 0) {
		graphml->in_node = true;
		graphml->line = line_of(graphml);
		graphml->label[0] = 0;
		copy(graphml, graphml->id, attribute(attributes, "id"));
	} else if (strcmp(element, "edge") == 0) {
		const char *directed = attribute(attributes, "directed");
		graphml->in_edge = true;
		graphml->line = line_of(graphml);
		graphml->directed = *directed ? strcmp(directed, "true") == 0 : graphml->directed_default;
		graphml->attributes = (struct ow_graph_attributes){0};
		copy(graphml, graphml->from, attribute(attributes, "source"));
		copy(graphml, graphml->to, attribute(attributes, "target"));
	} else if (strcmp(element, "data") == 0) {
		graphml->in_data = true;
		graphml->data[0] = 0;
		copy(graphml, graphml->data_key, attribute(attributes, "key"));
	}
}

static void XMLCALL on_text(void *arg, const char *text, int length)
{
	struct graphml *graphml = arg;
	size_t used = strlen(graphml->data), more = (size_t)length;
	/* A longer text is a description: it is neither a name nor a number that the reader needs. */
	if (!graphml->in_data || used + more >= sizeof(graphml->data))
		return;
	memcpy(graphml->data + used, text, more);
	graphml->data[used + more] = 0;
}

static void end_data(struct graphml *graphml)
{
	const char *name = graphml->data_key;
	for (unsigned i = 0; i < graphml->keys; i++)
		if (strcmp(graphml->key[i].id, graphml->data_key) == 0 && graphml->key[i].name[0])
			name = graphml->key[i].name;
	if (graphml->in_edge)
		ow_graph_attribute(&graphml->attributes, name, graphml->data);
	else if (graphml->in_node && (strcasecmp(name, "label") == 0 || strcasecmp(name, "name") == 0))
		memcpy(graphml->label, graphml->data, sizeof(graphml->label));
}

static void end_edge(struct graphml *graphml)
{
	const char *from =
		ow_graph_names_find(graphml->build, &graphml->names, graphml->from, graphml->line, graphml->err);
	const char *to =
		from ? ow_graph_names_find(graphml->build, &graphml->names, graphml->to, graphml->line, graphml->err)
		     : NULL;
	stop(graphml, to ? ow_graph_edge(graphml->build, from, to, &graphml->attributes, graphml->directed,
	                                 graphml->line, graphml->err)
	                 : -EINVAL);
}

static void XMLCALL on_end(void *arg, const char *element)
{
	struct graphml *graphml = arg;
	element = plain(element);
	if (graphml->r < 0)
		return;
	if (strcmp(element, "data") == 0) {
		end_data(graphml);
		graphml->in_data = false;
	} else if (strcmp(element, "node") == 0) {
		graphml->in_node = false;
		if (!graphml->edges)
			stop(graphml, ow_graph_names_add(graphml->build, &graphml->names, graphml->id, graphml->label,
			                                 graphml->line, graphml->err));
	} else if (strcmp(element, "edge") == 0) {
		graphml->in_edge = false;
		if (graphml->edges)
			end_edge(graphml);
	}
}

static int pass(struct graphml *graphml, const char *text, size_t size, bool edges)
{
	graphml->edges = edges;
	graphml->parser = XML_ParserCreate(NULL);
	if (!graphml->parser)
		return ow_error_set(graphml->err, ENOMEM, "%s: out of memory", graphml->build->name);
	XML_SetUserData(graphml->parser, graphml);
	XML_SetElementHandler(graphml->parser, on_start, on_end);
	XML_SetCharacterDataHandler(graphml->parser, on_text);
	enum XML_Status status = XML_Parse(graphml->parser, text, (int)size, XML_TRUE);
	if (graphml->r == 0 && status != XML_STATUS_OK)
		graphml->r = ow_error_set(graphml->err, EINVAL, "%s:%u: %s", graphml->build->name, line_of(graphml),
		                          XML_ErrorString(XML_GetErrorCode(graphml->parser)));
	XML_ParserFree(graphml->parser);
	if (graphml->r == 0 && !graphml->seen)
		graphml->r =
			ow_error_set(graphml->err, EINVAL, "%s: an XML file without <graphml>", graphml->build->name);
	return graphml->r;
}

int ow_graph_read_graphml(struct ow_graph_build *build, const char *text, size_t size, struct ow_error *err)
{
	if (size > INT_MAX)
		return ow_error_set(err, EFBIG, "%s: more than %d bytes", build->name, INT_MAX);
	struct graphml *graphml = calloc(1, sizeof(*graphml));
	struct key *key = calloc(KEYS_MAX, sizeof(*key));
	int r;
	if (graphml && key) {
		*graphml = (struct graphml){.build = build, .key = key, .err = err};
		r = pass(graphml, text, size, false);
		if (r == 0)
			r = ow_graph_names_enter(build, &graphml->names, err);
		if (r == 0)
			r = pass(graphml, text, size, true);
		ow_graph_names_done(&graphml->names);
	} else {
		r = ow_error_set(err, ENOMEM, "%s: out of memory", build->name);
	}
	free(graphml);
	free(key);
	return r;
}
