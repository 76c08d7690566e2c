/* SPDX-License-Identifier: Apache-2.0 */
/* oneway point -c FILE: the daemon. It writes results to standard output and SQLite, and events to standard error. */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/parts.h"
#include "cli/shared_options.h"
#include "cli/terminal.h"
#include "cli/web.h"
#include "config/config_fleet.h"
#include "config/memory_budget.h"
#include "fleet/agent.h"
#include "fleet/supervisor.h"
#include "point/fleet_report.h"
#include "point/journal.h"
#include "point/run.h"
#include "report/config.h"
#include "sandbox/privileges.h"
#include "exchange/session.h"

#include <errno.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct arguments {
	const char *config;
	bool check, json, text, quiet, provisional, no_color, help, version;
	int64_t run_ns;
};

/* --seconds 30, also 1.5 */
static int set_seconds(void *field, const char *value, struct ow_error *err)
{
	char *end;
	double seconds = strtod(value, &end);
	if (end == value || *end || !(seconds > 0 && seconds < 1e9))
		return ow_error_set(err, EINVAL, "'%.40s' is not a number of seconds above 0", value);
	*(int64_t *)field = (int64_t)(seconds * 1e9);
	return 0;
}

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{"config", 'c', "FILE", ow_option_text, FIELD(config), "The configuration of the point (required)."},
	{"check-config", 0, NULL, ow_option_flag, FIELD(check),
         "Read the configuration, check the files, interfaces and filters that it names, print what was understood, "
         "and exit."},
	{"seconds", 0, "N", set_seconds, FIELD(run_ns), "Stop after N seconds."},

	{NULL, 0, NULL, NULL, 0, "Output (overrides the configuration):"},
	{"text", 0, NULL, ow_option_flag, FIELD(text), "Print one line of text for each final result."},
	{"json", 0, NULL, ow_option_flag, FIELD(json),
         "Print one line of JSON for each result and each event of flows."},
	{"quiet", 'q', NULL, ow_option_flag, FIELD(quiet), "Print no results; the store gets them anyway."},
	{"provisional", 0, NULL, ow_option_flag, FIELD(provisional),
         "With text: also print the provisional result of each interval, shortly after its end."},
	OW_OPTIONS_NO_COLOR(struct arguments),

	{NULL, 0, NULL, NULL, 0, "Other:"},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static const struct ow_cli_part parts[] = {
	{"keygen", "certificates and keys that points authenticate with", ow_cli_point_keygen},
	{NULL, NULL, NULL},
};

static void help(void)
{
	ow_cli_parts_tell(parts);
	fputs("usage: oneway point -c FILE [OPTION]...\n"
	      "       oneway point keygen ...\n"
	      "\n"
	      "One measurement point: watches interfaces, compares with its peers what passed,\n"
	      "and reports delay and loss of each segment, class and direction, an interval at\n"
	      "a time. FILE says what to watch and with whom to compare (docs/config.md).\n"
	      "'oneway point keygen' makes certificates or a shared key. Ctrl-C or SIGTERM ends\n"
	      "the run after the current interval with a summary, a second one at once; SIGHUP\n"
	      "reads FILE again.\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway point keygen --folder keys london paris\n"
	      "  oneway point -c london.yaml --check-config\n"
	      "  oneway point -c london.yaml\n"
	      "  oneway point -c london.yaml --json |\n"
	      "      jq 'select(.final) | [.segment, .loss_ratio]'\n",
	      stdout);
}

static int read_arguments(int argc, char **argv, struct arguments *args, struct ow_error *err)
{
	int operands = ow_options_parse(options, argc, argv, args, err);
	if (operands < 0 || args->help || args->version)
		return operands < 0 ? operands : 0;
	if (operands > 0)
		return ow_error_set(err, EINVAL, "unexpected '%.60s'", argv[1]);
	if (!args->config)
		return ow_error_set(err, EINVAL, "needs -c FILE");
	if (args->json + args->text + args->quiet > 1)
		return ow_error_set(err, EINVAL, "--json, --text and --quiet exclude each other");
	return 0;
}

/* What opening the interfaces needs: enum ow_privileges_for. */
static unsigned find_privileges(const struct ow_config *config)
{
	unsigned needed = 0;
	for (unsigned i = 0; i < config->interface_count; i++) {
		needed |= config->interfaces[i].hardware_stamps ? OW_PRIVILEGES_STAMPS : 0;
		needed |= config->interfaces[i].capture == OW_IFACE_KERNEL ? OW_PRIVILEGES_KERNEL : 0;
	}
	return needed;
}

/* The page, if the configuration has one. */
static int start_web(const struct ow_config *config, pid_t *ret_pid, struct ow_error *err)
{
	char url[OW_WEB_URL];
	*ret_pid = 0;
	if (!config->web)
		return 0;
	if (!config->store)
		return ow_error_set(err, EINVAL, "%s: 'web' shows the store: it needs 'store'", config->path);
	struct ow_error why;
	int r = ow_cli_web_beside(config->web, config->store, NULL, ret_pid, url, &why);
	if (r < 0)
		return ow_error_set(err, -r, "web: %.400s", why.text);
	ow_cli_say("oneway point: the page is at %s", url);
	return 0;
}

/* Waits for the fleet, if the point belongs to one, and measures. */
static int measure(const struct arguments *args, struct ow_config **ref_config, struct ow_error *err)
{
	int r = (*ref_config)->fleet.address ? ow_fleet_wait(ref_config, err) : 0;
	if (r == 0)
		r = ow_config_check(*ref_config, err);
	if (r < 0)
		return r;
	struct ow_point_run how = {.output = args->quiet  ? OW_OUTPUT_NONE
	                                     : args->json ? OW_OUTPUT_JSON
	                                     : args->text ? OW_OUTPUT_TEXT
	                                                  : (*ref_config)->output,
	                           .provisional = args->provisional,
	                           .style = ow_terminal_style(stdout, args->no_color),
	                           .run_ns = args->run_ns};
	return ow_point_run(&how, ref_config, err);
}

static int run(const struct arguments *args, struct ow_config **ref_config, struct ow_error *err)
{
	struct ow_error ignored;
	/* Files are checked with the rights of the user that will use them. */
	int r = ow_privileges_reduce((*ref_config)->user, find_privileges(*ref_config), err);
	if (r == 0)
		r = measure(args, ref_config, err);
	/* Again with the desired state that was good before. */
	if (r < 0 && ow_config_reject(*ref_config, err, &ignored) == 1) {
		ow_cli_failed("point", err);
		r = OW_POINT_RESTART;
	}
	return r;
}

static int check(const struct ow_config *c, struct ow_error *err)
{
	struct ow_tls *tls = NULL;
	struct ow_tls_options keys = {
		.certificate = c->certificate, .key = c->key, .ca = c->ca, .psk_file = c->psk, .name = c->point};
	int r = ow_config_check(c, err);
	if (r == 0)
		r = ow_tls_create(&keys, &tls, err);
	ow_tls_free(tls);
	if (r < 0)
		return r;
	unsigned lanes;
	uint64_t needed = ow_agree_needed(c, &lanes);
	ow_report_config(stdout, c, lanes, needed);
	return 0;
}

/* -- a point of a fleet -------------------------------------------------------------------------------------------- */

struct processes {
	const struct arguments *args;
	struct ow_config *config;
	struct ow_journal *journal; /* of the agent, and of the process that waits for both */
};

static void log_line(void *arg, bool warning, const char *line)
{
	const struct processes *p = arg;
	ow_journal_line(p->journal, warning ? OW_EVENT_WARNING : OW_EVENT_INFO, line, ow_clock_steady_ns());
}

static void log_ended(void *arg, const char *line)
{
	log_line(arg, true, line);
}

static int run_agent(void *arg)
{
	const struct processes *p = arg;
	struct ow_agent_options how = {.point = p->config->point,
	                               .store = p->config->store,
	                               .folder = p->config->fleet.state,
	                               .log = log_line,
	                               .arg = arg};
	return ow_agent_run(p->config, &how);
}

/* A point that is started again may have another configuration. */
static int run_point(void *arg)
{
	const struct processes *p = arg;
	struct ow_config *config = NULL;
	struct ow_error err;
	/* systemd watches the process that it has started, which only waits: this one reports instead of it. */
	unsetenv("WATCHDOG_PID");
	int r = ow_config_load(p->args->config, &config, &err);
	if (r == 0)
		r = run(p->args, &config, &err);
	/* An interface may have another name than before: without the agent nothing else could come from the fleet. */
	bool later = r < 0 && config && config->fleet.version;
	if (later)
		ow_fleet_report_unusable(config, &err);
	ow_config_free(config);
	if (r < 0)
		ow_cli_failed("point", &err);
	return later                   ? OW_SUPERVISOR_LATER
	       : r < 0                 ? OW_EXIT_FAILED
	       : r == OW_POINT_RESTART ? OW_EXIT_AGAIN
	                               : OW_EXIT_OK;
}

static int run_both(const struct arguments *args, struct ow_config *config)
{
	struct processes p = {.args = args, .config = config};
	if (ow_journal_create(stderr, config->point, ow_journal_is_stream(STDERR_FILENO), &p.journal) < 0)
		return ow_cli_failed("point", &(struct ow_error){"not enough memory"});
	int code = ow_supervise(&(struct ow_supervised){run_point, run_agent, &p, log_ended});
	ow_journal_free(p.journal);
	return code;
}

int ow_cli_point(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_error err;
	struct ow_config *config;
	if (argc > 1 && strcmp(argv[1], parts->name) == 0)
		return parts->run(argc - 1, argv + 1);
	if (read_arguments(argc, argv, &args, &err) < 0)
		return ow_cli_misused("point", &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (ow_config_load(args.config, &config, &err) < 0)
		return ow_cli_failed("point", &err);
	pid_t web = 0;
	int r = args.check ? check(config, &err) : start_web(config, &web, &err), code = OW_EXIT_OK;
	if (r == 0 && !args.check && config->fleet.address)
		code = run_both(&args, config);
	else if (r == 0 && !args.check)
		r = run(&args, &config, &err);
	ow_cli_web_end(web);
	ow_config_free(config);
	return r < 0 ? ow_cli_failed("point", &err) : code;
}
