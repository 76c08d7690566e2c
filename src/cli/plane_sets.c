/* SPDX-License-Identifier: Apache-2.0 */
/* oneway plane sets: what each node of the network must watch. */
#include "base/clock.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/plane.h"
#include "cli/terminal.h"
#include "plane/sets.h"
#include "report/sets.h"
#include "station/network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct arguments {
	int64_t default_cost;
	const char *mrouters, *of, *station;
	bool follow, tree, json, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Options:"},
	{"m-routers", 'm', "A,B,...", ow_option_text, FIELD(mrouters),
         "The routers that are measured inside (default: none). All others have a measurement server."},
	{"of", 0, "A,B,...", ow_option_text, FIELD(of), "Print only the sets of these routers (default: of all)."},
	{"station", 0, "FILE", ow_option_text, FIELD(station),
         "Take network, names and m-routers from the station's configuration (see 'oneway plane monitor') instead of "
         "TOPOLOGY."},
	{"follow", 'f', NULL, ow_option_flag, FIELD(follow),
         "With --station: watch the network until interrupted, and print what is to be measured: + new, - "
         "old (measured for the hold time), ^ back, x gone."},
	{"tree", 0, NULL, ow_option_flag, FIELD(tree),
         "Also print the shortest-path tree: for each router, where its shortest paths come from, and its cost."},
	{"default-cost", 0, "N", ow_option_cost, FIELD(default_cost),
         "Cost of links that have none in the file (default: such links are an error)."},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print JSON instead of text."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway plane sets TOPOLOGY|--station FILE [OPTION]...\n"
	      "\n"
	      "Prints what each node must watch (its m-set): its shortest paths, all those of\n"
	      "equal cost, up to the first router that is measured inside, or to their ends.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway plane sets network.intra --m-routers C,F\n"
	      "  oneway plane sets network.intra --m-routers C,F --of F --tree\n"
	      "  vtysh -c 'show ip ospf database router json' |\n"
	      "      oneway plane sets - --m-routers 10.0.0.3\n"
	      "  oneway plane sets --station station.yaml --follow\n",
	      stdout);
}

struct job {
	const struct arguments *args;
	struct ow_station *station;
	struct ow_topology *topology;
	bool *is_mrouter;
	uint32_t *owner;
	uint32_t owners;
};

/* json: NULL for text. */
static int one(const struct job *job, uint32_t n, struct ow_json *json, struct ow_error *err)
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
	struct ow_style style = ow_terminal_style(stdout, false);
	struct ow_owner_set set = {job->topology, job->is_mrouter, &spf, segments, job->args->tree};
	if (json)
		ow_report_set_json(json, &set);
	else
		ow_report_set_text(stdout, &style, &set);
	ow_spf_done(&spf);
	ow_paths_free(segments);
	return 0;
}

/* The routers of --of, or all. */
static int find_owners(struct job *job, struct ow_error *err)
{
	uint32_t nodes = ow_topology_nodes(job->topology);
	free(job->owner);
	job->owner = NULL;
	if (job->args->of)
		return ow_topology_routers(job->topology, job->args->of, &job->owner, &job->owners, err);
	job->owner = calloc(nodes, sizeof(*job->owner));
	if (!job->owner)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (job->owners = 0; job->owners < nodes; job->owners++)
		job->owner[job->owners] = job->owners;
	return 0;
}

static int mark_mrouters(struct job *job, struct ow_error *err)
{
	uint32_t count = 0, *mrouter = NULL;
	job->is_mrouter = calloc(ow_topology_nodes(job->topology), sizeof(*job->is_mrouter));
	if (!job->is_mrouter)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = 0;
	if (job->args->mrouters)
		r = ow_topology_routers(job->topology, job->args->mrouters, &mrouter, &count, err);
	for (uint32_t i = 0; r == 0 && i < count; i++)
		job->is_mrouter[mrouter[i]] = true;
	free(mrouter);
	return r;
}

/* -- following the network --------------------------------------------------------------------------------------------
 */

static void tell(void *arg, enum ow_turnover_event event, const char *segment)
{
	const struct job *job = arg;
	struct ow_style style = ow_terminal_style(stdout, false);
	int64_t now_ns = ow_clock_real_ns();
	if (job->args->json)
		ow_report_turnover_json(stdout, now_ns, event, segment);
	else
		ow_report_turnover_text(stdout, &style, now_ns, event, segment);
}

static int turn_over(struct job *job, struct ow_turnover *turnover, struct ow_error *err)
{
	bool *owners = calloc((size_t)ow_topology_nodes(job->topology) + 1, sizeof(*owners));
	if (!owners)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = find_owners(job, err);
	for (uint32_t i = 0; r == 0 && i < job->owners; i++)
		owners[job->owner[i]] = true;
	if (r == 0)
		r = ow_turnover_network(turnover, job->topology, job->is_mrouter, owners, ow_clock_steady_ns(), tell,
		                        job, err);
	free(owners);
	fflush(stdout);
	return r;
}

/* If the network cannot be read now, the last known one stays in use. */
static int refresh(struct job *job, struct ow_turnover *turnover, struct ow_error *err)
{
	struct ow_topology *topology;
	bool *is_mrouter;
	if (ow_station_network(job->station, &topology, &is_mrouter, err) < 0) {
		ow_cli_say("oneway plane sets: warning: %s; the last known network is used", err->text);
		return 0;
	}
	bool is_same = ow_topology_same(job->topology, topology);
	ow_topology_free(job->topology);
	free(job->is_mrouter);
	job->topology = topology;
	job->is_mrouter = is_mrouter;
	return is_same ? 0 : turn_over(job, turnover, err);
}

static int follow(struct job *job, struct ow_error *err)
{
	int64_t hold_ns = job->station->options.hold_ns ? job->station->options.hold_ns : 60 * OW_NS_PER_S;
	int64_t refresh_ns = job->station->refresh_ns;
	struct timespec pause = {refresh_ns / OW_NS_PER_S, refresh_ns % OW_NS_PER_S};
	struct ow_turnover *turnover;
	ow_interrupt_catch();
	if (ow_turnover_create(hold_ns, &turnover) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = turn_over(job, turnover, err);
	while (r == 0 && !ow_interrupted) {
		nanosleep(&pause, NULL);
		r = refresh(job, turnover, err);
		ow_turnover_expire(turnover, ow_clock_steady_ns(), tell, job);
		fflush(stdout);
	}
	ow_turnover_free(turnover);
	return r;
}

static void begin_sets(struct ow_json *json)
{
	ow_json_object(json, NULL);
	ow_json_style(json, OW_JSON_PADDED);
	ow_json_command(json, "plane sets");
	ow_json_rows(json, "sets");
}

static void end_sets(struct ow_json *json)
{
	ow_json_end(json);
	ow_json_end(json);
}

static int list(struct job *job, struct ow_error *err)
{
	struct ow_json json = {.out = stdout, .indent = 2};
	if (ow_plane_warn_parts("plane sets", job->topology) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = find_owners(job, err);
	if (r == 0 && job->args->json)
		begin_sets(&json);
	for (uint32_t n = 0; r == 0 && n < job->owners; n++)
		r = one(job, n, job->args->json ? &json : NULL, err);
	if (r == 0 && job->args->json)
		end_sets(&json);
	return r;
}

static int run(struct job *job, const char *path, struct ow_error *err)
{
	int r;
	if (job->args->station) {
		r = ow_station_read(job->args->station, &job->station, err);
		if (r == 0)
			r = ow_station_network(job->station, &job->topology, &job->is_mrouter, err);
	} else {
		r = ow_topology_read(path, job->args->default_cost, &job->topology, err);
		if (r == 0)
			r = mark_mrouters(job, err);
	}
	if (r < 0)
		return r;
	return job->args->follow ? follow(job, err) : list(job, err);
}

int ow_cli_plane_sets(int argc, char **argv)
{
	struct arguments args = {0};
	struct job job = {.args = &args};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands < 0)
		return ow_cli_refused("plane sets", operands, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	int r = 0;
	if (operands != (args.station ? 0 : 1))
		r = ow_error_set(&err, EINVAL, "one TOPOLOGY, the file of the network, or --station is required");
	else if (args.station && args.mrouters)
		r = ow_error_set(&err, EINVAL, "--station and --m-routers exclude each other");
	else if (args.follow && !args.station)
		r = ow_error_set(&err, EINVAL, "--follow needs --station");
	if (r < 0)
		return ow_cli_refused("plane sets", r, &err);
	r = run(&job, args.station ? NULL : argv[1], &err);
	free(job.is_mrouter);
	free(job.owner);
	ow_topology_free(job.topology);
	ow_station_free(job.station);
	return r < 0 ? ow_cli_failed("plane sets", &err) : OW_EXIT_OK;
}
