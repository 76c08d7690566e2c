/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the part of Graphviz's DOT that describes networks: nodes, edges and chains of edges with attributes, defaults
 * of edges, subgraphs. The reader ignores attributes for drawing.
 */
#include "plane/graph_build.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define DEPTH_MAX 32 /* nesting of subgraphs */
#define CHAIN_MAX 64 /* routers in A -- B -- C -- ... */

enum kind { END, WORD, MARK }; /* MARK: one of { } [ ] ; , = : or an edge */

struct token {
	enum kind kind;
	char text[OW_GRAPH_TEXT]; /* the text of a word, or the sign of a mark; '-' '-' and '-' '>' are edges */
	bool quoted;
	unsigned line;
};

struct dot {
	struct ow_graph_build *build;
	const char *at, *end;
	unsigned line;
	struct token token; /* the next token */
	bool directed;
	struct ow_graph_attributes defaults[DEPTH_MAX]; /* default attributes of edges, for each nested subgraph */
	unsigned depth;
	struct ow_error *err;
};

static int wrong(struct dot *dot, const char *what)
{
	return ow_error_set(dot->err, EINVAL, "%s:%u: %s%s%.60s%s", dot->build->name, dot->token.line, what,
	                    dot->token.kind == END ? ", but the file ends" : ", not \"",
	                    dot->token.kind == END ? "" : dot->token.text, dot->token.kind == END ? "" : "\"");
}

/* -- tokens ---------------------------------------------------------------------------------------------------------
 */

static bool starts(const struct dot *dot, const char *what)
{
	size_t length = strlen(what);
	return (size_t)(dot->end - dot->at) >= length && memcmp(dot->at, what, length) == 0;
}

static void step(struct dot *dot)
{
	dot->line += *dot->at++ == '\n';
}

static void skip_blanks(struct dot *dot)
{
	while (dot->at < dot->end) {
		bool is_comment = starts(dot, "/*");
		if (is_comment) {
			while (dot->at < dot->end && !starts(dot, "*/"))
				step(dot);
			dot->at = dot->end - dot->at >= 2 ? dot->at + 2 : dot->end;
		} else if (starts(dot, "//") || *dot->at == '#') {
			while (dot->at < dot->end && *dot->at != '\n')
				step(dot);
		} else if (isspace((unsigned char)*dot->at)) {
			step(dot);
		} else {
			return;
		}
	}
}

static int put(struct dot *dot, size_t *length, char c)
{
	if (*length + 1 >= sizeof(dot->token.text))
		return ow_error_set(dot->err, EINVAL, "%s:%u: a word has more than %zu bytes", dot->build->name,
		                    dot->line, sizeof(dot->token.text) - 1);
	dot->token.text[(*length)++] = c;
	dot->token.text[*length] = 0;
	return 0;
}

static int next_quoted(struct dot *dot)
{
	size_t length = 0;
	dot->token.kind = WORD;
	dot->token.quoted = true;
	for (step(dot); dot->at < dot->end && *dot->at != '"'; step(dot)) {
		if (*dot->at == '\\' && dot->end - dot->at > 1 && dot->at[1] == '"')
			step(dot);
		if (*dot->at == 0)
			return ow_error_set(dot->err, EINVAL, "%s:%u: the file contains a zero byte", dot->build->name,
			                    dot->line);
		if (put(dot, &length, *dot->at) < 0)
			return -EINVAL;
	}
	if (dot->at == dot->end)
		return ow_error_set(dot->err, EINVAL, "%s:%u: a quoted text has no end", dot->build->name,
		                    dot->token.line);
	step(dot);
	return 0;
}

/* <...> with tags inside: the reader only needs to find its end. */
static int next_html(struct dot *dot)
{
	unsigned depth = 0;
	dot->token.kind = WORD;
	dot->token.quoted = true;
	do {
		depth += *dot->at == '<';
		depth -= *dot->at == '>';
		step(dot);
	} while (depth && dot->at < dot->end);
	return depth ? ow_error_set(dot->err, EINVAL, "%s:%u: '<' without '>'", dot->build->name, dot->token.line) : 0;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || (unsigned char)c >= 0x80;
}

static int next(struct dot *dot)
{
	skip_blanks(dot);
	dot->token = (struct token){.kind = END, .line = dot->line};
	if (dot->at == dot->end)
		return 0;
	if (*dot->at == '"')
		return next_quoted(dot);
	if (*dot->at == '<')
		return next_html(dot);
	size_t length = 0;
	if (in_word(*dot->at) || (*dot->at == '-' && dot->end - dot->at > 1 && in_word(dot->at[1]))) {
		dot->token.kind = WORD;
		do {
			if (put(dot, &length, *dot->at) < 0)
				return -EINVAL;
			step(dot);
		} while (dot->at < dot->end && in_word(*dot->at));
		return 0;
	}
	dot->token.kind = MARK;
	bool is_edge = starts(dot, "->") || starts(dot, "--");
	if (!is_edge && (!strchr("{}[];,=:", *dot->at) || !*dot->at))
		return ow_error_set(dot->err, EINVAL, "%s:%u: unexpected byte 0x%02x", dot->build->name, dot->line,
		                    (unsigned char)*dot->at);
	for (int letters = is_edge ? 2 : 1; letters > 0; letters--) {
		put(dot, &length, *dot->at);
		step(dot);
	}
	return 0;
}

static bool is_mark(const struct dot *dot, char mark)
{
	return dot->token.kind == MARK && dot->token.text[0] == mark;
}

static bool is_keyword(const struct dot *dot, const char *word)
{
	return dot->token.kind == WORD && !dot->token.quoted && strcasecmp(dot->token.text, word) == 0;
}

/* -- statements -----------------------------------------------------------------------------------------------------
 */

/* Any number of [ a = b, c ]. attributes may be NULL. */
static int attribute_lists(struct dot *dot, struct ow_graph_attributes *attributes)
{
	int r = 0;
	while (r == 0 && is_mark(dot, '[')) {
		r = next(dot);
		while (r == 0 && !is_mark(dot, ']')) {
			if (is_mark(dot, ',') || is_mark(dot, ';')) {
				r = next(dot);
				continue;
			}
			if (dot->token.kind != WORD)
				return wrong(dot, "expected an attribute or ']'");
			char name[OW_GRAPH_TEXT];
			memcpy(name, dot->token.text, sizeof(name));
			r = next(dot);
			if (r < 0 || !is_mark(dot, '='))
				continue;
			r = next(dot);
			if (r == 0 && dot->token.kind != WORD)
				return wrong(dot, "expected the value of an attribute");
			if (r == 0 && attributes)
				ow_graph_attribute(attributes, name, dot->token.text);
			if (r == 0)
				r = next(dot);
		}
		if (r == 0)
			r = next(dot);
	}
	return r;
}

/* Skips the port of a router, ":x:y". */
static int skip_port(struct dot *dot)
{
	int r = 0;
	while (r == 0 && is_mark(dot, ':')) {
		r = next(dot);
		if (r == 0 && dot->token.kind != WORD)
			return wrong(dot, "expected a port");
		if (r == 0)
			r = next(dot);
	}
	return r;
}

/* A router, or routers joined by edges; the first name is the current token. */
static int routers(struct dot *dot)
{
	char name[CHAIN_MAX][OW_GRAPH_TEXT];
	unsigned count = 0, line = dot->token.line;
	int r;
	for (;;) {
		if (dot->token.kind != WORD || is_keyword(dot, "subgraph"))
			return wrong(dot, "expected the name of a router at the end of an edge");
		if (count == CHAIN_MAX)
			return ow_error_set(dot->err, E2BIG, "%s:%u: more than %d routers in one chain of edges",
			                    dot->build->name, line, CHAIN_MAX);
		memcpy(name[count++], dot->token.text, sizeof(name[0]));
		r = next(dot);
		if (r == 0)
			r = skip_port(dot);
		if (r < 0)
			return r;
		if (!is_mark(dot, '-'))
			break;
		if ((dot->token.text[1] == '>') != dot->directed)
			return wrong(dot, dot->directed ? "edges of a digraph are written ->"
			                                : "edges of a graph are written --");
		r = next(dot);
		if (r < 0)
			return r;
	}
	const struct ow_graph_attributes *defaults = &dot->defaults[dot->depth];
	struct ow_graph_attributes attributes = {0};
	r = attribute_lists(dot, &attributes);
	if (!attributes.cost_rank) {
		attributes.cost_rank = defaults->cost_rank;
		memcpy(attributes.cost, defaults->cost, sizeof(attributes.cost));
	}
	if (!attributes.latency[0])
		memcpy(attributes.latency, defaults->latency, sizeof(attributes.latency));
	uint32_t node;
	if (r == 0 && count == 1)
		r = ow_graph_node(dot->build, name[0], line, &node, dot->err);
	for (unsigned i = 1; r == 0 && i < count; i++)
		r = ow_graph_edge(dot->build, name[i - 1], name[i], &attributes, dot->directed, line, dot->err);
	return r;
}

static int open_block(struct dot *dot)
{
	if (!is_mark(dot, '{'))
		return wrong(dot, "expected '{'");
	if (dot->depth + 1 == DEPTH_MAX)
		return ow_error_set(dot->err, E2BIG, "%s:%u: more than %d nested subgraphs", dot->build->name,
		                    dot->token.line, DEPTH_MAX);
	dot->defaults[dot->depth + 1] = dot->defaults[dot->depth];
	dot->depth++;
	return next(dot);
}

/* One statement at the current token, the start or end of a subgraph, or ';'. */
static int statement(struct dot *dot)
{
	if (is_mark(dot, ';'))
		return next(dot);
	if (is_mark(dot, '}')) {
		dot->depth--;
		int r = next(dot);
		return r == 0 && is_mark(dot, '-') ? wrong(dot, "an edge from a whole subgraph is not supported") : r;
	}
	if (is_mark(dot, '{'))
		return open_block(dot);
	if (dot->token.kind != WORD)
		return wrong(dot, "expected a router, an edge or '}'");
	bool is_subgraph = is_keyword(dot, "subgraph");
	bool is_default = is_keyword(dot, "graph") || is_keyword(dot, "node") || is_keyword(dot, "edge");
	bool is_edge = is_keyword(dot, "edge");
	if (is_subgraph || is_default) {
		int r = next(dot);
		if (r < 0)
			return r;
		if (is_default)
			return attribute_lists(dot, is_edge ? &dot->defaults[dot->depth] : NULL);
		if (dot->token.kind == WORD)
			r = next(dot);
		return r < 0 ? r : open_block(dot);
	}
	/* "name = value" is an attribute of the graph. */
	struct dot here = *dot;
	int r = next(dot);
	if (r == 0 && is_mark(dot, '=')) {
		r = next(dot);
		return r < 0 ? r : next(dot);
	}
	if (r < 0)
		return r;
	*dot = here;
	return routers(dot);
}

int ow_graph_read_dot(struct ow_graph_build *build, const char *text, size_t size, struct ow_error *err)
{
	struct dot dot = {.build = build, .at = text, .end = text + size, .line = 1, .err = err};
	int r = next(&dot);
	if (r == 0 && is_keyword(&dot, "strict"))
		r = next(&dot);
	if (r < 0)
		return r;
	dot.directed = is_keyword(&dot, "digraph");
	if (!dot.directed && !is_keyword(&dot, "graph"))
		return wrong(&dot, "expected graph or digraph");
	r = next(&dot);
	if (r == 0 && dot.token.kind == WORD)
		r = next(&dot);
	if (r == 0)
		r = open_block(&dot);
	while (r == 0 && dot.depth) {
		if (dot.token.kind == END)
			return wrong(&dot, "expected '}'");
		r = statement(&dot);
	}
	return r;
}
