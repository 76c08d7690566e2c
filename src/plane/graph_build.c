/* SPDX-License-Identifier: Apache-2.0 */
/* Makes links with costs from the edges of a graph file. */
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
