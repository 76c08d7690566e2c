/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oneway plane monitor: the station, which composes results of segments into results of paths and names the segments at
 * fault.
 */
#include "base/clock.h"
#include "base/format.h"
#include "base/word.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/plane.h"
#include "cli/terminal.h"
#include "base/when.h"
#include "report/verdicts.h"
#include "report/why.h"
#include "station/monitoring.h"

#include <errno.h>
#include <oneway/oneway.h>
#include <string.h>

struct arguments {
	const char *since, *until, *why, *class_name;
	bool follow, quiet, json, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Options:"},
	{"follow", 'f', NULL, ow_option_flag, FIELD(follow), "Continue with new results, until interrupted."},
	{"since", 0, "T", ow_option_text, FIELD(since),
         "Use results from T on: '2026-11-15 10:02', 10:02, -2h, or seconds since 1970. With --why: slow since T."},
	{"until", 0, "T", ow_option_text, FIELD(until), "Use results before T."},
	{"why", 0, "A,B", ow_option_text, FIELD(why),
         "Explain why A to B is worse since T: compare every part of the path before and after T."},
	{"class", 0, "C", ow_option_text, FIELD(class_name), "With --why: use packets of this class."},
	{"quiet", 'q', NULL, ow_option_flag, FIELD(quiet), "Print only changes, no table at the end."},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print a line of JSON for each interval."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway plane monitor STATION [OPTION]... RESULTS...\n"
	      "\n"
	      "The monitoring station. STATION (YAML) names the network, the routers that are\n"
	      "measured inside, and the paths that matter; RESULTS are stores of points and\n"
	      "files of JSON lines (- is standard input). Paths are composed from their\n"
	      "segments; when one breaks its target the segments that have changed are named,\n"
	      "since when, and by how much. Exit code 3: a path broke its target; 1: none of\n"
	      "the paths could be judged.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway plane monitor station.yaml london.db paris.db --since -1h\n"
	      "  oneway plane monitor station.yaml --follow london.db paris.db\n"
	      "  oneway plane monitor station.yaml --why A,D --since 10:02 london.db paris.db\n"
	      "  oneway live --from eth0 --to eth1 --json |\n"
	      "      oneway plane monitor station.yaml -f -\n",
	      stdout);
}

static void on_news(void *arg, int64_t now_ns, const struct ow_monitor_verdict *verdict, const char *hops)
{
	const struct arguments *args = arg;
	struct ow_style style = ow_terminal_style(stdout, false);
	if (!args->json)
		ow_report_verdict(stdout, &style, now_ns, verdict, hops);
}

static void on_interval(void *arg, int64_t now_ns, const struct ow_monitor_verdict *verdict, uint32_t count,
                        const char *hops)
{
	const struct arguments *args = arg;
	if (args->json)
		ow_report_verdicts_json(stdout, now_ns, verdict, count, hops);
	fflush(stdout);
}

static void on_network(void *arg, int64_t now_ns, const char *changes)
{
	const struct arguments *args = arg;
	char time[OW_FORMAT];
	if (!args->json)
		printf("%s  the network has changed: %s\n", ow_format_local(now_ns, "%H:%M:%S", time), changes);
}

static void on_stale_network(void *arg, const char *why)
{
	(void)arg;
	ow_cli_say("oneway plane monitor: warning: %s; the last known network is used", why);
}

static void on_homeless(void *arg, const struct ow_monitoring_end *end)
{
	(void)arg;
	if (end->homeless)
		ow_cli_say("oneway plane monitor: warning: %llu %s to no place, the first of segment %s; 'places' of "
		           "the station says where they belong",
		           (unsigned long long)end->homeless,
		           ow_plural(end->homeless, "result belongs", "results belong"), end->homeless_name);
}

static void on_end(void *arg, const struct ow_monitor_verdict *verdict, uint32_t count,
                   const struct ow_monitor_count *counts)
{
	const struct arguments *args = arg;
	struct ow_style style = ow_terminal_style(stdout, false);
	if (!args->json && !args->quiet)
		ow_report_verdict_table(stdout, &style, verdict, count, counts);
}

static int ask_why(const struct ow_monitoring *how, const struct arguments *args, char **paths, int count,
                   struct ow_error *err)
{
	const char *comma = strchr(args->why, ',');
	char from[OW_TOPOLOGY_NAME_MAX + 1];
	struct ow_style style = ow_terminal_style(stdout, false);
	struct ow_why why;
	if (!comma || !args->since)
		return ow_error_set(err, EINVAL, "--why needs two routers, A,B, and --since");
	snprintf(from, sizeof(from), "%.*s", (int)(comma - args->why), args->why);
	struct ow_why_question question = {from, comma + 1, args->class_name, how->since_ns, how->until_ns};
	int r = ow_why_ask(how->station, paths, count, &question, &why, err);
	if (r < 0)
		return r;
	if (args->json)
		ow_report_why_json(stdout, &question, &why);
	else
		ow_report_why_text(stdout, &style, &question, &why);
	ow_why_done(&why);
	return 0;
}

static int run(struct arguments *args, char **operand, int operands, struct ow_monitoring_end *ret_end,
               struct ow_error *err)
{
	int64_t now_ns = ow_clock_real_ns();
	struct ow_station *station = NULL;
	struct ow_monitoring how = {
		.until_ns = INT64_MAX,
		.follow = args->follow,
		.stop = &ow_interrupted,
		.on_news = on_news,
		.on_interval = on_interval,
		.on_network = on_network,
		.on_stale_network = on_stale_network,
		.on_homeless = on_homeless,
		.on_end = on_end,
		.arg = args,
	};
	int r = ow_station_read(operand[0], &station, err);
	how.station = station;
	if (r == 0 && args->since)
		r = ow_when_parse(args->since, now_ns, &how.since_ns, err);
	if (r == 0 && args->until)
		r = ow_when_parse(args->until, now_ns, &how.until_ns, err);
	if (r == 0 && args->why)
		r = ask_why(&how, args, operand + 1, operands - 1, err);
	else if (r == 0)
		r = ow_monitoring_run(&how, operand + 1, operands - 1, ret_end, err);
	ow_station_free(station);
	return r;
}

int ow_cli_plane_monitor(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_monitoring_end end = {0};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands < 0)
		return ow_cli_refused("plane monitor", operands, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (operands < 2) {
		ow_error_set(&err, EINVAL, "STATION and at least one of RESULTS are required");
		return ow_cli_misused("plane monitor", &err);
	}
	ow_interrupt_catch();
	if (run(&args, argv + 1, operands, &end, &err) < 0)
		return ow_cli_failed("plane monitor", &err);
	return end.broke ? OW_EXIT_CROSSED : OW_EXIT_OK;
}
