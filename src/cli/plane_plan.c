/* SPDX-License-Identifier: Apache-2.0 */
/* oneway plane plan: computes in which order routers should be upgraded. */
#include "cli/shared_options.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/plane.h"
#include "cli/terminal.h"
#include "report/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
	int64_t default_cost;
	uint64_t steps; /* UINT64_MAX: all */
	uint64_t seed;
	enum ow_planner planner;
	const char *upgraded, *csv, *plot;
	bool compare, json, help, version;
};

static int set_planner(void *field, const char *value, struct ow_error *err)
{
	size_t i = 0;
	int r = ow_option_choice(ow_planner_name, OW_PLANNERS, value, &i, err);
	if (r == 0)
		*(enum ow_planner *)field = (enum ow_planner)i;
	return r;
}

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Options:"},
	{"steps", 'n', "N", ow_option_count, FIELD(steps), "Upgrade N routers (default: all)."},
	{"planner", 0, "NAME", set_planner, FIELD(planner),
         "paper (default): each time the router on most paths (Algorithm 1); beam: a search for fewer probe hops, at "
         "no "
         "step more than paper; greedy: each time the router that leaves the fewest; random."},
	{"compare", 0, NULL, ow_option_flag, FIELD(compare), "Show all planners in the plot and in the CSV."},
	{"upgraded", 0, "A,B,...", ow_option_text, FIELD(upgraded), "Routers that are upgraded already."},
	{"seed", 0, "N", ow_option_count, FIELD(seed), "Seed of the random planner (default: 1)."},
	{"default-cost", 0, "N", ow_option_cost, FIELD(default_cost),
         "Cost of links that have none in the file (default: such links are an error)."},
	{NULL, 0, NULL, NULL, 0, "Output:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print JSON instead of text."},
	{"csv", 0, "FILE", ow_option_output, FIELD(csv), "Write a row for each step; - is standard output."},
	{"plot", 0, "FILE", ow_option_plot, FIELD(plot),
         "Plot the probe hops over the number of upgraded routers, as .svg or .png (needs gnuplot)."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway plane plan TOPOLOGY [OPTION]...\n"
	      "\n"
	      "Computes which routers to measure inside first. Without any, every pair of\n"
	      "routers is probed over all its shortest paths; a router that is measured inside\n"
	      "cuts the paths through it. Prints for each step the paths that are left to\n"
	      "probe, the sum of the hops of their probes, and the hops of a path (mean, least,\n"
	      "most), which tell how closely a fault can be located.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway plane plan weights.intra --steps 20\n"
	      "  oneway plane plan weights.intra --compare --steps 100 --plot plan.svg \\\n"
	      "      --csv plan.csv\n"
	      "  oneway plane plan weights.intra --upgraded R1,R2 --steps 3 --json\n",
	      stdout);
}

struct job {
	const struct arguments *args;
	struct ow_topology *topology;
	struct ow_made_plan plan[OW_PLANNERS];
	unsigned plans;
};

static int make_plans(struct job *job, struct ow_error *err)
{
	const struct arguments *args = job->args;
	struct ow_plan_options o = {.seed = args->seed, .on_progress = ow_progress_show};
	o.steps = args->steps < UINT32_MAX ? (uint32_t)args->steps : UINT32_MAX;
	uint32_t *upgraded = NULL;
	int r = 0;
	if (args->upgraded)
		r = ow_topology_routers(job->topology, args->upgraded, &upgraded, &o.upgrades, err);
	o.upgraded = upgraded;
	unsigned wanted = args->compare ? OW_PLANNERS : 1;
	for (unsigned i = 0; r == 0 && i < wanted; i++) {
		/* The planner that was asked for is first: text and JSON show this one. */
		struct ow_made_plan *plan = &job->plan[i];
		plan->planner = i == 0               ? args->planner
		                : i <= args->planner ? (enum ow_planner)(i - 1)
		                                     : (enum ow_planner)i;
		o.planner = plan->planner;
		struct ow_progress progress;
		ow_progress_init(&progress, ow_planner_name[o.planner]);
		o.arg = &progress;
		r = ow_plan(job->topology, &o, &plan->steps, &plan->count, err);
		ow_progress_done(&progress);
		job->plans += r == 0;
	}
	free(upgraded);
	return r;
}

static int put_csv(const struct job *job, struct ow_error *err)
{
	struct ow_output output;
	int r = ow_output_open(&output, job->args->csv, err);
	if (r < 0)
		return r;
	ow_report_plans_csv(output.stream, job->topology, job->plan, job->plans);
	return ow_output_close(&output, err);
}

static int run(struct job *job, const char *path, struct ow_error *err)
{
	int r = ow_topology_read(path, job->args->default_cost, &job->topology, err);
	if (r < 0)
		return r;
	if (ow_plane_warn_parts("plane plan", job->topology) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	r = make_plans(job, err);
	if (r == 0 && job->args->csv)
		r = put_csv(job, err);
	if (r == 0 && job->args->plot)
		r = ow_report_plans_plot(job->plan, job->plans, job->args->plot, err);
	if (r < 0)
		return r;
	struct ow_style style = ow_terminal_style(stdout, false);
	if (job->args->json)
		ow_report_plan_json(stdout, job->topology, &job->plan[0]);
	else if (!job->args->csv || strcmp(job->args->csv, "-") != 0)
		ow_report_plan_text(stdout, &style, job->topology, &job->plan[0]);
	return 0;
}

int ow_cli_plane_plan(int argc, char **argv)
{
	struct arguments args = {.steps = UINT64_MAX, .seed = 1, .planner = OW_PLANNER_PAPER};
	struct job job = {.args = &args};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands < 0)
		return ow_cli_refused("plane plan", operands, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (operands != 1) {
		ow_error_set(&err, EINVAL, "one TOPOLOGY, the file of the network, is required");
		return ow_cli_misused("plane plan", &err);
	}
	int r = run(&job, argv[1], &err);
	for (unsigned i = 0; i < job.plans; i++)
		free(job.plan[i].steps);
	ow_topology_free(job.topology);
	return r < 0 ? ow_cli_failed("plane plan", &err) : OW_EXIT_OK;
}
