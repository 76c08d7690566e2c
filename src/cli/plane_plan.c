/* SPDX-License-Identifier: Apache-2.0 */
/* oneway plane plan: in which order routers are best upgraded. */
#include "base/word.h"
#include "plane/plan.h"
#include "cli/captures.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/plane.h"
#include "cli/terminal.h"
#include "report/chart.h"
#include "base/json_writer.h"
#include "base/format.h"

#include <errno.h>
#include <inttypes.h>
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

static const char *const planner_names[] = {"paper", "beam", "greedy", "random"};

static int set_planner(void *field, const char *value, struct ow_error *err)
{
	size_t i = 0;
	int r = ow_option_choice(planner_names, OW_PLANNERS, value, &i, err);
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
	{"compare", 0, NULL, ow_option_flag, FIELD(compare), "All planners, in the plot and the CSV."},
	{"upgraded", 0, "A,B,...", ow_option_text, FIELD(upgraded), "Routers that are upgraded already."},
	{"seed", 0, "N", ow_option_count, FIELD(seed), "Of the random planner (default: 1)."},
	{"default-cost", 0, "N", ow_option_cost, FIELD(default_cost),
         "The cost of links that have none in the file (default: they are an error)."},
	{NULL, 0, NULL, NULL, 0, "Output:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "JSON instead of text."},
	{"csv", 0, "FILE", ow_option_output, FIELD(csv), "A row for each step; - is standard output."},
	{"plot", 0, "FILE", ow_option_plot, FIELD(plot),
         "Probe hops over the number of upgraded routers, as .svg or .png (needs gnuplot)."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway plane plan TOPOLOGY [OPTION]...\n"
	      "\n"
	      "Which routers to measure inside first. Without any, every pair of routers is\n"
	      "probed over all its shortest paths; a router that is measured inside cuts the\n"
	      "paths through it. Printed for each step: the paths that are left to probe, the\n"
	      "hops that their probes take together, and the hops of a path (mean, least,\n"
	      "most): how closely a fault can be located.\n",
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

struct plan {
	enum ow_planner planner;
	struct ow_plan_step *steps;
	uint32_t count;
};

struct job {
	const struct arguments *args;
	struct ow_topology *topology;
	struct plan plan[OW_PLANNERS];
	unsigned plans;
};

static void on_progress(void *arg, double done)
{
	ow_progress_show(arg, done);
}

static int make_plans(struct job *job, struct ow_error *err)
{
	const struct arguments *args = job->args;
	struct ow_plan_options o = {.seed = args->seed, .on_progress = on_progress};
	o.steps = args->steps < UINT32_MAX ? (uint32_t)args->steps : UINT32_MAX;
	uint32_t *upgraded = NULL;
	int r = 0;
	if (args->upgraded)
		r = ow_topology_routers(job->topology, args->upgraded, &upgraded, &o.upgrades, err);
	o.upgraded = upgraded;
	unsigned wanted = args->compare ? OW_PLANNERS : 1;
	for (unsigned i = 0; r == 0 && i < wanted; i++) {
		/* The one that was asked for comes first: text and JSON show it. */
		struct plan *plan = &job->plan[i];
		plan->planner = i == 0               ? args->planner
		                : i <= args->planner ? (enum ow_planner)(i - 1)
		                                     : (enum ow_planner)i;
		o.planner = plan->planner;
		struct ow_progress progress;
		ow_progress_init(&progress, planner_names[o.planner]);
		o.arg = &progress;
		r = ow_plan(job->topology, &o, &plan->steps, &plan->count, err);
		ow_progress_done(&progress);
		job->plans += r == 0;
	}
	free(upgraded);
	return r;
}

static void put_router(const struct ow_topology *topology, uint32_t router, bool ascii, size_t columns, char *text,
                       size_t size)
{
	if (router == UINT32_MAX) {
		snprintf(text, size, "-");
		return;
	}
	ow_format_clean(ow_topology_name(topology, router), ascii, text, size);
	ow_format_cut(text, columns);
}

/* Columns of a row without the name of the router. */
#define NUMBERS 51

static void put_text(const struct job *job)
{
	char hops[OW_FORMAT], paths[OW_FORMAT], name[OW_TOPOLOGY_NAME_MAX + 1];
	int width = ow_terminal_width(stdout);
	size_t room = width > 80 ? 40 : width >= 26 + NUMBERS ? 26 : width >= 8 + NUMBERS ? (size_t)width - NUMBERS : 8;
	printf("%u %s, %u directed %s, planner %s\n\n", ow_topology_nodes(job->topology),
	       ow_plural(ow_topology_nodes(job->topology), "router", "routers"), ow_topology_links(job->topology),
	       ow_plural(ow_topology_links(job->topology), "link", "links"), planner_names[job->plan[0].planner]);
	printf("%8s %-*s %11s %12s %6s %4s %4s\n", "upgraded", (int)room, "router", "paths", "probe hops", "mean",
	       "min", "max");
	for (uint32_t i = 0; i < job->plan[0].count; i++) {
		const struct ow_plan_step *step = &job->plan[0].steps[i];
		put_router(job->topology, step->router, !ow_terminal_utf8(), room, name, sizeof(name));
		printf("%8u %s%*s %11s %12s %6.2f %4u %4u\n", i, name, (int)(room - ow_format_columns(name)), "",
		       ow_format_count(step->measure.paths, paths), ow_format_count(step->measure.probe_hops, hops),
		       step->measure.mean, step->measure.min, step->measure.max);
	}
}

static void json_step(struct ow_json *json, const struct job *job, uint32_t i)
{
	const struct ow_plan_step *step = &job->plan[0].steps[i];
	bool none = step->router == UINT32_MAX;
	ow_json_line(json);
	ow_json_object(json, NULL);
	ow_json_style(json, OW_JSON_PADDED);
	ow_json_count(json, "upgraded", i);
	ow_json_string(json, "router", none ? NULL : ow_topology_name(job->topology, step->router));
	ow_json_count(json, "paths", step->measure.paths);
	ow_json_count(json, "probe_hops", step->measure.probe_hops);
	ow_json_object(json, "granularity");
	ow_json_style(json, OW_JSON_PADDED);
	ow_json_digits(json, "mean", step->measure.mean, 6);
	ow_json_count(json, "min", step->measure.min);
	ow_json_count(json, "max", step->measure.max);
	ow_json_end(json);
	ow_json_end(json);
}

static void put_json(const struct job *job)
{
	struct ow_json json = {.out = stdout, .indent = 2};
	ow_json_object(&json, NULL);
	ow_json_style(&json, OW_JSON_PADDED);
	ow_json_command(&json, "plane plan");
	ow_json_string(&json, "planner", planner_names[job->plan[0].planner]);
	ow_json_line(&json);
	ow_json_count(&json, "routers", ow_topology_nodes(job->topology));
	ow_json_count(&json, "links", ow_topology_links(job->topology));
	ow_json_array(&json, "steps");
	ow_json_style(&json, OW_JSON_PADDED);
	for (uint32_t i = 0; i < job->plan[0].count; i++)
		json_step(&json, job, i);
	ow_json_end(&json);
	ow_json_end(&json);
}

static int put_csv(const struct job *job, struct ow_error *err)
{
	struct ow_output output;
	int r = ow_output_open(&output, job->args->csv, err);
	if (r < 0)
		return r;
	fputs("planner,upgraded,router,paths,probe_hops,granularity_mean,granularity_min,granularity_max\n",
	      output.stream);
	for (unsigned p = 0; p < job->plans; p++) {
		for (uint32_t i = 0; i < job->plan[p].count; i++) {
			const struct ow_plan_step *step = &job->plan[p].steps[i];
			fprintf(output.stream, "%s,%u,", planner_names[job->plan[p].planner], i);
			ow_format_csv(output.stream, step->router == UINT32_MAX
			                                     ? NULL
			                                     : ow_topology_name(job->topology, step->router));
			fprintf(output.stream, ",%" PRIu64 ",%" PRIu64 ",%.6f,%u,%u\n", step->measure.paths,
			        step->measure.probe_hops, step->measure.mean, step->measure.min, step->measure.max);
		}
	}
	return ow_output_close(&output, err);
}

static int put_plot(const struct job *job, struct ow_error *err)
{
	struct ow_chart chart = {
		.title = "Probe hop count", .x_label = "upgraded routers", .y_label = "probe hops", .log_y = true};
	int r = 0;
	for (unsigned p = 0; p < job->plans; p++) {
		for (uint32_t i = 0; r == 0 && i < job->plan[p].count; i++) {
			double hops = (double)job->plan[p].steps[i].measure.probe_hops;
			if (hops > 0)
				r = ow_chart_add(&chart, planner_names[job->plan[p].planner], i, hops, hops, hops);
		}
	}
	if (r < 0)
		ow_error_set(err, ENOMEM, "out of memory");
	else
		r = ow_chart_draw(&chart, job->args->plot, err);
	ow_chart_done(&chart);
	return r;
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
		r = put_plot(job, err);
	if (r < 0)
		return r;
	if (job->args->json)
		put_json(job);
	else if (!job->args->csv || strcmp(job->args->csv, "-") != 0)
		put_text(job);
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
		ow_error_set(&err, EINVAL, "one TOPOLOGY is needed, the file of the network");
		return ow_cli_misused("plane plan", &err);
	}
	int r = run(&job, argv[1], &err);
	for (unsigned i = 0; i < job.plans; i++)
		free(job.plan[i].steps);
	ow_topology_free(job.topology);
	return r < 0 ? ow_cli_failed("plane plan", &err) : OW_EXIT_OK;
}
