/* SPDX-License-Identifier: Apache-2.0 */
/* Makes links with costs from the edges of a graph file, and recognises the kind of the file. */
#include "plane/graph_build.h"
#include "base/time.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void ow_graph_attribute(struct ow_graph_attributes *attributes, const char *name, const char *value)
{
	static const char *const costs[] = {"cost", "metric", "weight"};
	for (int i = 0; i < 3; i++) {
		if (strcasecmp(name, costs[i]) == 0 && (!attributes->cost_rank || i + 1 < attributes->cost_rank)) {
			attributes->cost_rank = i + 1;
			snprintf(attributes->cost, sizeof(attributes->cost), "%s", value);
		}
	}
	if (strcasecmp(name, "latency") == 0 || strcasecmp(name, "delay") == 0)
		snprintf(attributes->latency, sizeof(attributes->latency), "%s", value);
}

/* "4ms", or 4: a number without a unit is in milliseconds, as in Rocketfuel's files. */
static int latency_of(const char *text, double *ret_ns)
{
	int64_t ns;
	if (ow_duration_parse(text, &ns, NULL) == 0) {
		*ret_ns = (double)ns;
		return ns >= 0 ? 0 : -EINVAL;
	}
	char *end;
	double ms = strtod(text, &end);
	if (end == text || *end || !(ms >= 0 && ms < 1e9))
		return -EINVAL;
	*ret_ns = ms * (double)OW_NS_PER_MS;
	return 0;
}

static int at_line(const struct ow_graph_build *build, unsigned line, int r, struct ow_error *err)
{
	struct ow_error what = err ? *err : (struct ow_error){""};
	return ow_error_set(err, -r, "%s:%u: %.300s", build->name, line, what.text);
}

int ow_graph_node(struct ow_graph_build *build, const char *name, unsigned line, uint32_t *ret_node,
                  struct ow_error *err)
{
	int r = ow_topology_add_node(build->topology, name, strlen(name), ret_node, err);
	return r < 0 ? at_line(build, line, r, err) : 0;
}

int ow_graph_edge(struct ow_graph_build *build, const char *from, const char *to,
                  const struct ow_graph_attributes *attributes, bool directed, unsigned line, struct ow_error *err)
{
	struct ow_link link = {.cost = build->default_cost, .latency_ns = NAN};
	int r = ow_graph_node(build, from, line, &link.from, err);
	if (r == 0)
		r = ow_graph_node(build, to, line, &link.to, err);
	if (r < 0)
		return r;
	if (attributes->cost_rank && ow_cost_parse(attributes->cost, strlen(attributes->cost), &link.cost) < 0)
		return ow_error_set(err, EINVAL, "%s:%u: \"%.40s\" is not a cost above 0", build->name, line,
		                    attributes->cost);
	if (!link.cost)
		return ow_error_set(
			err, EINVAL,
			"%s:%u: the edge %.80s - %.80s has no cost, metric or weight; --default-cost gives it one",
			build->name, line, from, to);
	if (attributes->latency[0] && latency_of(attributes->latency, &link.latency_ns) < 0)
		return ow_error_set(err, EINVAL, "%s:%u: \"%.40s\" is not a latency", build->name, line,
		                    attributes->latency);
	r = ow_topology_add_link(build->topology, &link, err);
	if (r == 0 && !directed) {
		struct ow_link back = {link.to, link.from, link.cost, link.latency_ns};
		r = ow_topology_add_link(build->topology, &back, err);
	}
	return r < 0 ? at_line(build, line, r, err) : 0;
}

/* -- which kind -----------------------------------------------------------------------------------------------------
 */

static const char *after_blanks(const char *text, const char *end)
{
	while (text < end && strchr(" \t\r\n", *text) && *text)
		text++;
	return text;
}

static bool begins(const char *text, const char *end, const char *word)
{
	size_t length = strlen(word);
	return (size_t)(end - text) >= length && strncasecmp(text, word, length) == 0;
}

static const char *skip_line(const char *text, const char *end)
{
	const char *stop = memchr(text, '\n', (size_t)(end - text));
	return stop ? stop + 1 : end;
}

/* Decided by the first word that is not a comment: XML; (strict) digraph or graph with '{'; GML's graph with '['. */
enum ow_topology_format ow_topology_guess(const char *text, size_t size)
{
	const char *end = text + size, *p = text;
	for (p = after_blanks(p, end); p < end && (*p == '#' || begins(p, end, "//") || begins(p, end, "/*"));
	     p = after_blanks(p, end)) {
		if (begins(p, end, "/*")) {
			while (p < end && !begins(p, end, "*/"))
				p++;
			p = p < end ? p + 2 : p;
		} else {
			p = skip_line(p, end);
		}
	}
	if (p < end && *p == '<')
		return OW_TOPOLOGY_GRAPHML;
	if (p < end && *p == '{')
		return OW_TOPOLOGY_FRR;
	const char *brace = memchr(p, '{', (size_t)(end - p)), *bracket = memchr(p, '[', (size_t)(end - p));
	if (begins(p, end, "strict ") || begins(p, end, "digraph"))
		return OW_TOPOLOGY_DOT;
	if (begins(p, end, "graph") && (brace || bracket))
		return brace && (!bracket || brace < bracket) ? OW_TOPOLOGY_DOT : OW_TOPOLOGY_GML;
	if (begins(p, end, "creator") || begins(p, end, "version") || begins(p, end, "comment"))
		return bracket ? OW_TOPOLOGY_GML : OW_TOPOLOGY_ROCKETFUEL;
	return OW_TOPOLOGY_ROCKETFUEL;
}

int ow_topology_parse(enum ow_topology_format format, const char *name, const char *text, size_t size,
                      int64_t default_cost, struct ow_topology **ret_topology, struct ow_error *err)
{
	static int (*const readers[])(struct ow_graph_build *, const char *, size_t, struct ow_error *) = {
		[OW_TOPOLOGY_GRAPHML] = ow_graph_read_graphml,
		[OW_TOPOLOGY_GML] = ow_graph_read_gml,
		[OW_TOPOLOGY_DOT] = ow_graph_read_dot,
	};
	if (format == OW_TOPOLOGY_AUTO)
		format = ow_topology_guess(text, size);
	if (format == OW_TOPOLOGY_ROCKETFUEL)
		return ow_topology_parse_rocketfuel(name, text, size, ret_topology, err);
	if (format == OW_TOPOLOGY_FRR)
		return ow_topology_parse_frr(name, text, size, ret_topology, err);
	struct ow_graph_build build = {.name = name, .default_cost = default_cost};
	if (ow_topology_create(&build.topology) < 0)
		return ow_error_set(err, ENOMEM, "%s: out of memory", name);
	int r = readers[format](&build, text, size, err);
	if (r == 0 && ow_topology_finish(build.topology) < 0)
		r = ow_error_set(err, ENOMEM, "%s: out of memory", name);
	if (r < 0)
		ow_topology_free(build.topology);
	else
		*ret_topology = build.topology;
	return r;
}
