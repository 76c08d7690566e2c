/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oneway plane monitor: the station, which composes results of segments into results of paths and names the segments at
 * fault.
 */
#include "base/clock.h"
#include "base/format.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/plane.h"
#include "cli/terminal.h"
#include "base/when.h"
#include "report/verdicts.h"
#include "report/why.h"
#include "station/alerts.h"
#include "station/incident_file.h"
#include "station/monitoring.h"

#include <errno.h>
#include <oneway/oneway.h>
#include <stdlib.h>
#include <string.h>

/* The line of status is written again after this time. */
#define STATUS_NS (OW_NS_PER_S / 2)

struct arguments {
	const char *since, *until, *why, *class_name, *incidents, *alertmanager, *alertmanager_ca;
	struct ow_station_access access;
	bool follow, quiet, json, help, version;
	bool has_station;  /* the first operand is the station's configuration */
	bool has_status;   /* a line is on the terminal that the next output replaces */
	int64_t status_ns; /* when it was written, by the steady clock */
	struct ow_incident_file *incident_file;
	struct ow_alerts *alerts;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Options:"},
	{"follow", 'f', NULL, ow_option_flag, FIELD(follow), "Continue with new results, until interrupted."},
	{"incidents", 0, "FILE", ow_option_text, FIELD(incidents),
         "Append what begins, gets worse and ends to FILE, as lines of JSON."},
	{"alertmanager", 0, "URL", ow_option_text, FIELD(alertmanager),
         "Post incidents as alerts to this Alertmanager: http://HOST:9093."},
	{"alertmanager-ca", 0, "FILE", ow_option_text, FIELD(alertmanager_ca),
         "With https: certificates that the Alertmanager's must follow from (default: those of this host)."},
	{"ca", 0, "FILE", ow_option_text, FIELD(access.ca),
         "For the stream of a fleet: the fleet's authority, ca.pem."},
	{"cert", 0, "FILE", ow_option_text, FIELD(access.certificate), "The station's certificate, station.pem."},
	{"key", 0, "FILE", ow_option_text, FIELD(access.key), "Its key, station.key."},
	{"since", 0, "T", ow_option_text, FIELD(since),
         "Use results from T on: '2026-11-15 10:02', 10:02, -2h, or seconds since 1970. With --why: slow since T."},
	{"until", 0, "T", ow_option_text, FIELD(until), "Use results before T."},
	{"why", 0, "A,B", ow_option_text, FIELD(why),
         "Explain why A to B is worse since T: compare every part of the path before and after T."},
	{"class", 0, "C", ow_option_text, FIELD(class_name), "With --why: use packets of this class."},
	{"quiet", 'q', NULL, ow_option_flag, FIELD(quiet), "Print only incidents, no table at the end."},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print a line of JSON for each interval."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway plane monitor [STATION] [OPTION]... RESULTS...\n"
	      "\n"
	      "The monitoring station. RESULTS are stores of points and files of JSON lines\n"
	      "(- is standard input). When a segment loses more or is slower than usual, it is\n"
	      "named, since when, and by how much; a line when that begins, gets worse and\n"
	      "ends. STATION (YAML) names the paths that matter with their targets, and the\n"
	      "network; without it every segment is watched. Exit code 3: a path was broken;\n"
	      "1: none could be judged.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway plane monitor --follow london.db paris.db rome.db\n"
	      "  oneway plane monitor station.yaml london.db paris.db --since -1h\n"
	      "  oneway plane monitor station.yaml --why A,D --since 10:02 london.db paris.db\n"
	      "  oneway live --from eth0 --to eth1 --json | oneway plane monitor -f -\n",
	      stdout);
}

static void clear_status(struct arguments *args)
{
	if (args->has_status)
		ow_report_status_clear(stdout);
	args->has_status = false;
	fflush(stdout);
}

static void publish(enum ow_incident_event event, int64_t now_ns, const struct ow_incident *incident,
                    struct ow_station_input *input)
{
	char *json = NULL;
	size_t length = 0;
	if (!ow_station_input_publishes(input))
		return;
	FILE *out = open_memstream(&json, &length);
	if (out)
		ow_report_incident_json(out, event, now_ns, incident);
	if (!out || fclose(out) != 0 || ow_station_input_publish(input, json, length) < 0)
		ow_cli_say("oneway plane monitor: warning: %s is not published", incident->id);
	free(json);
}

static void on_incident(void *arg, enum ow_incident_event event, int64_t now_ns, const struct ow_incident *incident,
                        struct ow_station_input *input)
{
	struct arguments *args = arg;
	struct ow_style style = ow_terminal_style(stdout, false);
	if (!args->json) {
		clear_status(args);
		ow_report_incident(stdout, &style, event, now_ns, incident);
		fflush(stdout);
	}
	/* The file remembers, over restarts, what was told. */
	bool is_told = args->incident_file && !ow_incident_file_wants(args->incident_file, incident->id,
	                                                              incident->events, event == OW_INCIDENT_END);
	if (!is_told)
		publish(event, now_ns, incident, input);
	if (args->incident_file && !is_told) {
		FILE *out = ow_incident_file_out(args->incident_file);
		ow_report_incident_json(out, event, now_ns, incident);
		fflush(out);
	}
	if (args->alerts) {
		char sentence[OW_REPORT_SENTENCE];
		ow_report_incident_sentence(incident, sentence);
		if (ow_alerts_tell(args->alerts, event, incident, sentence) < 0)
			ow_cli_say("oneway plane monitor: warning: %s: too many alerts", incident->id);
	}
}

static void on_caught_up(void *arg)
{
	const struct arguments *args = arg;
	if (args->alerts)
		ow_alerts_release(args->alerts);
}

static void on_idle(void *arg)
{
	struct arguments *args = arg;
	struct ow_error line;
	if (!args->alerts || !ow_alerts_news(args->alerts, &line))
		return;
	clear_status(args);
	ow_cli_say("oneway plane monitor: %s", line.text);
}

static void on_interval(void *arg, int64_t start_ns, int64_t length_ns, const struct ow_monitor_verdict *verdict,
                        uint32_t count, const char *hops)
{
	struct arguments *args = arg;
	struct ow_style style = ow_terminal_style(stdout, false);
	if (args->json) {
		ow_report_verdicts_json(stdout, start_ns, length_ns, verdict, count, hops);
	} else if (args->follow && style.moves && !args->quiet && ow_clock_steady_ns() - args->status_ns > STATUS_NS) {
		ow_report_status(stdout, &style, start_ns + length_ns, verdict, count);
		args->has_status = true;
		args->status_ns = ow_clock_steady_ns();
	}
	fflush(stdout);
}

static void on_network(void *arg, int64_t now_ns, const char *changes)
{
	struct arguments *args = arg;
	char time[OW_FORMAT];
	clear_status(args);
	if (!args->json)
		printf("%s  the network has changed: %s\n", ow_format_local(now_ns, "%H:%M:%S", time), changes);
}

static void on_warning(void *arg, const char *text)
{
	clear_status(arg);
	ow_cli_say("oneway plane monitor: warning: %s", text);
}

static void on_end(void *arg, const struct ow_monitor_verdict *verdict, uint32_t count,
                   const struct ow_monitor_count *counts)
{
	struct arguments *args = arg;
	struct ow_style style = ow_terminal_style(stdout, false);
	clear_status(args);
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

/* Whether a file has results, and is not the configuration of a station. */
static bool is_results(const char *path)
{
	char first[16] = "";
	const char *end = strrchr(path, '.');
	if (strcmp(path, "-") == 0 || strstr(path, "://"))
		return true;
	if (end && (strcmp(end, ".db") == 0 || strcmp(end, ".jsonl") == 0 || strcmp(end, ".json") == 0))
		return true;
	FILE *file = fopen(path, "re");
	size_t length = file ? fread(first, 1, sizeof(first) - 1, file) : 0;
	if (file)
		fclose(file);
	return length && (first[0] == '{' || strcmp(first, "SQLite format 3") == 0);
}

static int read_times(const struct arguments *args, struct ow_monitoring *how, struct ow_error *err)
{
	int64_t now_ns = ow_clock_real_ns();
	int r = 0;
	if (args->since)
		r = ow_when_parse(args->since, now_ns, &how->since_ns, err);
	if (r == 0 && args->until)
		r = ow_when_parse(args->until, now_ns, &how->until_ns, err);
	return r;
}

/* Where incidents go. */
static int open_outputs(struct arguments *args, struct ow_error *err)
{
	int r = args->incidents ? ow_incident_file_open(args->incidents, &args->incident_file, err) : 0;
	if (r == 0 && args->alertmanager)
		r = ow_alerts_start(args->alertmanager, args->alertmanager_ca, &args->alerts, err);
	return r;
}

static int close_outputs(struct arguments *args, struct ow_error *err)
{
	ow_alerts_stop(args->alerts);
	return ow_incident_file_close(args->incident_file, err);
}

static int run(struct arguments *args, char **operand, int operands, struct ow_monitoring_count *ret_count,
               struct ow_error *err)
{
	struct ow_station *station = NULL;
	struct ow_monitoring how = {
		.until_ns = INT64_MAX,
		.follow = args->follow,
		.access = args->access,
		.stop = &ow_interrupted,
		.on_incident = on_incident,
		.on_interval = on_interval,
		.on_network = on_network,
		.on_caught_up = on_caught_up,
		.on_idle = on_idle,
		.on_warning = on_warning,
		.on_end = on_end,
		.arg = args,
	};
	bool has_station = args->has_station;
	char **paths = operand + has_station;
	int count = operands - has_station;
	int r = ow_station_read(has_station ? operand[0] : NULL, &station, err);
	how.station = station;
	if (r == 0)
		r = read_times(args, &how, err);
	if (r == 0)
		r = open_outputs(args, err);
	if (r == 0 && args->why)
		r = ask_why(&how, args, paths, count, err);
	else if (r == 0)
		r = ow_monitoring_run(&how, paths, count, ret_count, err);
	struct ow_error closing;
	if (close_outputs(args, &closing) < 0 && r == 0)
		r = ow_error_set(err, EIO, "%s", closing.text);
	ow_station_free(station);
	return r;
}

int ow_cli_plane_monitor(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_monitoring_count count = {0};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands < 0)
		return ow_cli_refused("plane monitor", operands, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	args.has_station = operands > 0 && !is_results(argv[1]);
	if (operands - args.has_station < 1) {
		if (args.has_station)
			ow_error_set(
				&err, EINVAL,
				"'%.200s' is no file of results, so it is taken for STATION; at least one of RESULTS "
				"is required",
				argv[1]);
		else
			ow_error_set(&err, EINVAL, "at least one of RESULTS is required");
		return ow_cli_misused("plane monitor", &err);
	}
	ow_interrupt_catch();
	if (run(&args, argv + 1, operands, &count, &err) < 0)
		return ow_cli_failed("plane monitor", &err);
	return count.broke ? OW_EXIT_CROSSED : OW_EXIT_OK;
}
