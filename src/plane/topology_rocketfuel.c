/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Rocketfuel's weights.intra and latencies.intra: one directed link per line, "FROM TO NUMBER". */
#include "plane/topology.h"
#include <errno.h>
#include <math.h>
#include <string.h>

struct line {
	const char *word[3];
	size_t length[3];
	unsigned number;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next line that is neither empty nor a comment. Returns 1, 0 at the end, or -EINVAL. */
static int next_line(const char **at, const char *end, const char *name, struct line *line, struct ow_error *err)
{
	while (*at < end) {
		const char *p = *at;
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		stop = stop ? stop : end;
		*at = stop < end ? stop + 1 : end;
		line->number++;
		unsigned words = 0;
		while (p < stop) {
			while (p < stop && is_blank(*p))
				p++;
			const char *start = p;
			while (p < stop && !is_blank(*p))
				p++;
			if (p == start)
				break;
			if (words == 0 && *start == '#')
				break;
			if (words == 3)
				return ow_error_set(err, EINVAL, "%s:%u: more than three words", name, line->number);
			line->word[words] = start;
			line->length[words++] = (size_t)(p - start);
		}
		if (words == 0)
			continue;
		if (words < 3)
			return ow_error_set(err, EINVAL, "%s:%u: expected FROM TO NUMBER; %s is missing", name,
			                    line->number, words == 2 ? "the number" : "a router");
		return 1;
	}
	return 0;
}

/* Puts file and line in front of the error. */
static int at_line(const char *name, const struct line *line, int r, struct ow_error *err)
{
	struct ow_error what = err ? *err : (struct ow_error){""};
	return ow_error_set(err, -r, "%s:%u: %.300s", name, line->number, what.text);
}

static int add_line(struct ow_topology *topology, const char *name, const struct line *line, struct ow_error *err)
{
	struct ow_link link = {.latency_ns = NAN};
	int r = ow_topology_add_node(topology, line->word[0], line->length[0], &link.from, err);
	if (r == 0)
		r = ow_topology_add_node(topology, line->word[1], line->length[1], &link.to, err);
	if (r == 0 && ow_cost_parse(line->word[2], line->length[2], &link.cost) < 0)
		r = ow_error_set(err, EINVAL, "\"%.*s\" is not a weight above 0",
		                 (int)(line->length[2] < 40 ? line->length[2] : 40), line->word[2]);
	if (r == 0)
		r = ow_topology_add_link(topology, &link, err);
	return r < 0 ? at_line(name, line, r, err) : 0;
}

int ow_topology_parse_rocketfuel(const char *name, const char *text, size_t size, struct ow_topology **ret_topology,
                                 struct ow_error *err)
{
	struct ow_topology *topology;
	if (ow_topology_create(&topology) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct line line = {.number = 0};
	const char *end = text + size;
	int r;
	while ((r = next_line(&text, end, name, &line, err)) > 0) {
		r = add_line(topology, name, &line, err);
		if (r < 0)
			break;
	}
	if (r == 0 && ow_topology_finish(topology) < 0)
		r = ow_error_set(err, ENOMEM, "out of memory");
	if (r < 0)
		ow_topology_free(topology);
	else
		*ret_topology = topology;
	return r;
}
