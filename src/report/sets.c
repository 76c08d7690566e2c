/* SPDX-License-Identifier: Apache-2.0 */
/* What the nodes of a network must watch, and how that changes: text and JSON. */
#include "report/sets.h"

#include "base/format.h"
#include "base/word.h"
#include "plane/route.h"

#include <inttypes.h>

static const char *clean(const struct ow_style *style, const char *name, char text[OW_TOPOLOGY_NAME_MAX + 1])
{
	ow_format_clean(name, !style->utf8, text, OW_TOPOLOGY_NAME_MAX + 1);
	return text;
}

static void put_tree(FILE *out, const struct ow_style *style, const struct ow_owner_set *set)
{
	char text[OW_TOPOLOGY_NAME_MAX + 1];
	for (uint32_t n = 1; n < set->spf->reached; n++) {
		uint32_t node = set->spf->order[n];
		fprintf(out, "    tree  %s, cost %.10g, from",
		        clean(style, ow_topology_name(set->topology, node), text),
		        (double)set->spf->cost[node] / OW_COST_ONE);
		for (uint32_t i = set->spf->first[node]; i < set->spf->first[node + 1]; i++)
			fprintf(out, " %s", clean(style, ow_topology_name(set->topology, set->spf->from[i]), text));
		fputc('\n', out);
	}
}

static void put_segment(FILE *out, const struct ow_style *style, const struct ow_owner_set *set, const uint16_t *node,
                        uint32_t nodes)
{
	char text[OW_TOPOLOGY_NAME_MAX + 1];
	fputs("    watch ", out);
	for (uint32_t i = 0; i < nodes; i++)
		fprintf(out, "%s%s", i ? " > " : "", clean(style, ow_topology_name(set->topology, node[i]), text));
	fprintf(out, "%s\n", set->is_mrouter[node[nodes - 1]] ? "   (m-router)" : "");
}

void ow_report_set_text(FILE *out, const struct ow_style *style, const struct ow_owner_set *set)
{
	char text[OW_TOPOLOGY_NAME_MAX + 1];
	struct ow_paths_measure measure;
	ow_paths_measure(set->segments, &measure);
	fprintf(out, "%s, %s: %" PRIu64 " %s, %" PRIu64 " probe %s\n",
	        clean(style, ow_topology_name(set->topology, set->spf->source), text),
	        set->is_mrouter[set->spf->source] ? "m-router" : "m-server", measure.paths,
	        ow_plural(measure.paths, "segment", "segments"), measure.probe_hops,
	        ow_plural(measure.probe_hops, "hop", "hops"));
	if (set->tree)
		put_tree(out, style, set);
	for (uint32_t i = 0; i < ow_paths_count(set->segments); i++) {
		uint32_t nodes;
		const uint16_t *node = ow_paths_get(set->segments, i, &nodes);
		put_segment(out, style, set, node, nodes);
	}
	for (uint32_t i = 0; i < set->spf->nodes; i++)
		if (set->spf->cost[i] == INT64_MAX)
			fprintf(out, "    no path to %s\n", clean(style, ow_topology_name(set->topology, i), text));
}

static void json_tree(struct ow_json *json, const struct ow_owner_set *set)
{
	ow_json_line(json);
	ow_json_rows(json, "tree");
	for (uint32_t n = 1; n < set->spf->reached; n++) {
		uint32_t node = set->spf->order[n];
		ow_json_row(json);
		ow_json_string(json, "router", ow_topology_name(set->topology, node));
		ow_json_digits(json, "cost", (double)set->spf->cost[node] / OW_COST_ONE, 10);
		ow_json_array(json, "from");
		for (uint32_t i = set->spf->first[node]; i < set->spf->first[node + 1]; i++)
			ow_json_string(json, NULL, ow_topology_name(set->topology, set->spf->from[i]));
		ow_json_end(json);
		ow_json_end(json);
	}
	ow_json_end(json);
}

void ow_report_set_json(struct ow_json *json, const struct ow_owner_set *set)
{
	ow_json_row(json);
	ow_json_string(json, "owner", ow_topology_name(set->topology, set->spf->source));
	ow_json_string(json, "kind", set->is_mrouter[set->spf->source] ? "m-router" : "m-server");
	ow_json_rows(json, "segments");
	for (uint32_t i = 0; i < ow_paths_count(set->segments); i++) {
		uint32_t nodes;
		const uint16_t *node = ow_paths_get(set->segments, i, &nodes);
		ow_json_row(json);
		ow_json_string(json, "to", ow_topology_name(set->topology, node[nodes - 1]));
		ow_json_flag(json, "m_router", set->is_mrouter[node[nodes - 1]]);
		ow_json_array(json, "path");
		for (uint32_t k = 0; k < nodes; k++)
			ow_json_string(json, NULL, ow_topology_name(set->topology, node[k]));
		ow_json_end(json);
		ow_json_end(json);
	}
	ow_json_end(json);
	if (set->tree)
		json_tree(json, set);
	ow_json_end(json);
}

static const char *const turnover_name[] = {"new", "old", "back", "gone"};

void ow_report_turnover_text(FILE *out, const struct ow_style *style, int64_t now_ns, enum ow_turnover_event event,
                             const char *segment)
{
	char text[OW_PLACE_TEXT], time[OW_FORMAT];
	ow_format_clean(segment, !style->utf8, text, sizeof(text));
	fprintf(out, "%s  %c %s\n", ow_format_local(now_ns, "%H:%M:%S", time), "+-^x"[event], text);
}

void ow_report_turnover_json(FILE *out, int64_t now_ns, enum ow_turnover_event event, const char *segment)
{
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_integer(&json, "time_ns", now_ns);
	ow_json_string(&json, "event", turnover_name[event]);
	ow_json_string(&json, "segment", segment);
	ow_json_end(&json);
}
