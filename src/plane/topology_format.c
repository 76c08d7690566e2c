/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises the format of a network, and reads it. */
#include "plane/topology.h"

#include "plane/graph_build.h"
#include <errno.h>
#include <string.h>
#include <strings.h>

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
		return memmem(text, size, "\"edges\"", 7) ? OW_TOPOLOGY_MAP : OW_TOPOLOGY_FRR;
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
	if (format == OW_TOPOLOGY_MAP)
		return ow_topology_parse_map(name, text, size, ret_topology, err);
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
