/* SPDX-License-Identifier: Apache-2.0 */
/* oneway plane sets: what each node of the network must watch. */
#include "plane/sets.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/plane.h"
#include "report/report.h"
#include "report/words.h"
#include "cli/terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
	int64_t default_cost;
	const char *mrouters, *of;
	bool tree, json, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Options:"},
	{"m-routers", 'm', "A,B,...", ow_option_text, FIELD(mrouters),
         "The routers that are measured inside (default: none). All others have a measurement server."},
	{"of", 0, "A,B,...", ow_option_text, FIELD(of), "Only the sets of these (default: of all)."},
	{"tree", 0, NULL, ow_option_flag, FIELD(tree),
         "Also the shortest-path tree: for each router, where its shortest paths come from, and its cost."},
	{"default-cost", 0, "N", ow_option_cost, FIELD(default_cost),
         "The cost of links that have none in the file (default: they are an error)."},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "JSON instead of text."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway plane sets TOPOLOGY [OPTION]...\n"
	      "\n"
	      "What each node must watch (its m-set): its shortest paths, all of equal cost, up to the\n"
	      "first router that is measured inside, or to their ends.\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway plane sets network.intra --m-routers C,F\n"
	      "  oneway plane sets network.intra --m-routers C,F --of F --tree\n",
	      stdout);
}

struct job {
	const struct arguments *args;
	struct ow_topology *topology;
	bool *is_mrouter;
	uint32_t *owner;
	uint32_t owners;
};

static const char *clean(const char *name, char text[OW_TOPOLOGY_NAME_MAX + 1])
{
	ow_words_clean(name, !ow_terminal_utf8(), text, OW_TOPOLOGY_NAME_MAX + 1);
	return text;
}

static void put_tree(const struct job *job, const struct ow_spf *spf)
{
	char text[OW_TOPOLOGY_NAME_MAX + 1];
	for (uint32_t n = 1; n < spf->reached; n++) {
		uint32_t node = spf->order[n];
		printf("    tree  %s, cost %.10g, from", clean(ow_topology_name(job->topology, node), text),
		       (double)spf->cost[node] / OW_COST_ONE);
		for (uint32_t i = spf->first[node]; i < spf->first[node + 1]; i++)
			printf(" %s", clean(ow_topology_name(job->topology, spf->from[i]), text));
		putchar('\n');
	}
}

static void put_segment(const struct job *job, const uint16_t *node, uint32_t nodes)
{
	char text[OW_TOPOLOGY_NAME_MAX + 1];
	fputs("    watch ", stdout);
	for (uint32_t i = 0; i < nodes; i++)
		printf("%s%s", i ? " > " : "", clean(ow_topology_name(job->topology, node[i]), text));
	puts(job->is_mrouter[node[nodes - 1]] ? "   (m-router)" : "");
}

static void put_text(const struct job *job, const struct ow_spf *spf, const struct ow_paths *segments)
{
	char text[OW_TOPOLOGY_NAME_MAX + 1];
	struct ow_paths_measure measure;
	ow_paths_measure(segments, &measure);
	printf("%s, %s: %" PRIu64 " segments, %" PRIu64 " probe hops\n",
	       clean(ow_topology_name(job->topology, spf->source), text),
	       job->is_mrouter[spf->source] ? "m-router" : "m-server", measure.paths, measure.probe_hops);
	if (job->args->tree)
		put_tree(job, spf);
	for (uint32_t i = 0; i < ow_paths_count(segments); i++) {
		uint32_t nodes;
		const uint16_t *node = ow_paths_get(segments, i, &nodes);
		put_segment(job, node, nodes);
	}
	for (uint32_t i = 0; i < spf->nodes; i++)
		if (spf->cost[i] == INT64_MAX)
			printf("    no path to %s\n", clean(ow_topology_name(job->topology, i), text));
}

static void put_names(const struct job *job, const uint16_t *node, uint32_t nodes)
{
	putchar('[');
	for (uint32_t i = 0; i < nodes; i++) {
		fputs(i ? ", " : "", stdout);
		ow_report_json_string(stdout, ow_topology_name(job->topology, node[i]));
	}
	putchar(']');
}

static void put_json_tree(const struct job *job, const struct ow_spf *spf)
{
	fputs(",\n      \"tree\": [", stdout);
	for (uint32_t n = 1; n < spf->reached; n++) {
		uint32_t node = spf->order[n];
		printf("%s\n        { \"router\": ", n > 1 ? "," : "");
		ow_report_json_string(stdout, ow_topology_name(job->topology, node));
		printf(", \"cost\": %.10g, \"from\": [", (double)spf->cost[node] / OW_COST_ONE);
		for (uint32_t i = spf->first[node]; i < spf->first[node + 1]; i++) {
			fputs(i > spf->first[node] ? ", " : "", stdout);
			ow_report_json_string(stdout, ow_topology_name(job->topology, spf->from[i]));
		}
		fputs("] }", stdout);
	}
	fputs(" ]", stdout);
}

static void put_json(const struct job *job, const struct ow_spf *spf, const struct ow_paths *segments, bool first)
{
	printf("%s\n    { \"owner\": ", first ? "" : ",");
	ow_report_json_string(stdout, ow_topology_name(job->topology, spf->source));
	printf(", \"kind\": \"%s\", \"segments\": [", job->is_mrouter[spf->source] ? "m-router" : "m-server");
	for (uint32_t i = 0; i < ow_paths_count(segments); i++) {
		uint32_t nodes;
		const uint16_t *node = ow_paths_get(segments, i, &nodes);
		printf("%s\n        { \"to\": ", i ? "," : "");
		ow_report_json_string(stdout, ow_topology_name(job->topology, node[nodes - 1]));
		printf(", \"m_router\": %s, \"path\": ", job->is_mrouter[node[nodes - 1]] ? "true" : "false");
		put_names(job, node, nodes);
		fputs(" }", stdout);
	}
	fputs(" ]", stdout);
	if (job->args->tree)
		put_json_tree(job, spf);
	fputs(" }", stdout);
}

static int one(const struct job *job, uint32_t n, struct ow_error *err)
{
	struct ow_paths *segments;
	struct ow_spf spf;
	int r = ow_mset_find(job->topology, job->owner[n], job->is_mrouter, &segments, err);
	if (r < 0)
		return r;
	if (ow_spf_run(job->topology, job->owner[n], &spf) < 0) {
		ow_paths_free(segments);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	if (job->args->json)
		put_json(job, &spf, segments, n == 0);
	else
		put_text(job, &spf, segments);
	ow_spf_done(&spf);
	ow_paths_free(segments);
	return 0;
}

static int prepare(struct job *job, struct ow_error *err)
{
	uint32_t nodes = ow_topology_nodes(job->topology), count = 0, *mrouter = NULL;
	job->is_mrouter = calloc(nodes, sizeof(*job->is_mrouter));
	if (!job->is_mrouter)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = 0;
	if (job->args->mrouters)
		r = ow_plane_routers(job->topology, job->args->mrouters, &mrouter, &count, err);
	for (uint32_t i = 0; r == 0 && i < count; i++)
		job->is_mrouter[mrouter[i]] = true;
	free(mrouter);
	if (r < 0)
		return r;
	if (job->args->of)
		return ow_plane_routers(job->topology, job->args->of, &job->owner, &job->owners, err);
	job->owner = calloc(nodes, sizeof(*job->owner));
	if (!job->owner)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (job->owners = 0; job->owners < nodes; job->owners++)
		job->owner[job->owners] = job->owners;
	return 0;
}

static int run(struct job *job, const char *path, struct ow_error *err)
{
	int r = ow_plane_read(path, job->args->default_cost, &job->topology, err);
	if (r == 0)
		r = prepare(job, err);
	if (r < 0)
		return r;
	if (ow_plane_warn_parts("plane sets", job->topology) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	if (job->args->json)
		printf("{ \"tool\": \"oneway\", \"version\": \"%s\", \"command\": \"plane sets\", \"sets\": [",
		       ow_version());
	for (uint32_t n = 0; r == 0 && n < job->owners; n++)
		r = one(job, n, err);
	if (r == 0 && job->args->json)
		fputs(" ] }\n", stdout);
	return r;
}

int ow_cli_plane_sets(int argc, char **argv)
{
	struct arguments args = {0};
	struct job job = {.args = &args};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands < 0)
		return ow_cli_misused("plane sets", &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (operands != 1) {
		ow_error_set(&err, EINVAL, "one TOPOLOGY is needed, the file of the network");
		return ow_cli_misused("plane sets", &err);
	}
	int r = run(&job, argv[1], &err);
	free(job.is_mrouter);
	free(job.owner);
	ow_topology_free(job.topology);
	return r < 0 ? ow_cli_failed("plane sets", &err) : OW_EXIT_OK;
}
