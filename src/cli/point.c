/* SPDX-License-Identifier: Apache-2.0 */
/* oneway point -c FILE: the daemon. Results to standard output and SQLite, events to standard error. */
#include "base/time.h"
#include "cli/cli.h"
#include "cli/exporter.h"
#include "cli/guard.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "point/daemon.h"
#include "point/privileges.h"
#include "wire/session.h"
#include "report/live.h"
#include "report/keeper.h"

#include <errno.h>
#include <oneway/oneway.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
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
		return ow_error_set(err, EINVAL, "'%.40s' is no number of seconds above 0", value);
	*(int64_t *)field = (int64_t)(seconds * 1e9);
	return 0;
}

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{"config", 'c', "FILE", ow_option_text, FIELD(config), "The configuration of the point (needed)."},
	{"check-config", 0, NULL, ow_option_flag, FIELD(check),
         "Read it, look at the files, interfaces and filters that it names, print what was understood, and exit."},
	{"seconds", 0, "N", set_seconds, FIELD(run_ns), "Stop after N seconds."},

	{NULL, 0, NULL, NULL, 0, "Output (instead of what the configuration says):"},
	{"text", 0, NULL, ow_option_flag, FIELD(text), "One line of text a final result."},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "One line of JSON a result."},
	{"quiet", 'q', NULL, ow_option_flag, FIELD(quiet),
         "No results on standard output; the store gets them anyway."},
	{"provisional", 0, NULL, ow_option_flag, FIELD(provisional),
         "Text: print the provisional result of each interval, too, a moment after its end."},
	{"no-color", 0, NULL, ow_option_flag, FIELD(no_color), "No colours, also on a terminal (as NO_COLOR)."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	{"help", 'h', NULL, ow_option_flag, FIELD(help), "This text."},
	{"version", 0, NULL, ow_option_flag, FIELD(version), "The version."},
	{0},
};

static void help(void)
{
	fputs("usage: oneway point -c FILE [OPTION]...\n"
	      "       oneway point keygen ...\n"
	      "\n"
	      "One measurement point: watches interfaces, compares with its peers what passed, and\n"
	      "reports delay and loss of each segment, class and direction, an interval at a time.\n"
	      "FILE says what to watch and with whom to compare (docs/config.md). 'oneway point\n"
	      "keygen' makes certificates or a shared key. Ctrl-C or SIGTERM ends the run after the\n"
	      "current interval with a summary, a second one at once.\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway point keygen --folder keys london paris\n"
	      "  oneway point -c london.yaml --check-config\n"
	      "  oneway point -c london.yaml\n"
	      "  oneway point -c london.yaml --json | jq 'select(.final) | [.segment, .loss_ratio]'\n",
	      stdout);
}

/* Results and events. */

struct output {
	enum ow_output kind;
	bool provisional;
	struct ow_live_text text;
	struct ow_keeper *keeper;
	struct ow_exporter *exporter;
	const char *point;
};

static void log_line(void *arg, const char *line)
{
	const struct output *out = arg;
	struct timespec now;
	struct tm tm;
	char when[32] = "";
	clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &tm))
		strftime(when, sizeof when, "%H:%M:%S", &tm);
	fprintf(stderr, "%s.%03ld %s: %s\n", when, now.tv_nsec / 1000000, out->point, line);
}

static void on_result(void *arg, const struct ow_live_result *result)
{
	struct output *out = arg;
	if (out->kind == OW_OUTPUT_JSON)
		ow_live_json(stdout, result);
	else if (out->kind == OW_OUTPUT_TEXT && (result->final || out->provisional))
		ow_live_text(&out->text, result);
	if (out->keeper)
		ow_keeper_add(out->keeper, result);
	ow_exporter_result(out->exporter, result);
}

static void on_total(void *arg, const struct ow_live_result *total)
{
	struct output *out = arg;
	if (out->kind == OW_OUTPUT_JSON) {
		fputs("{\"summary\": ", stdout);
		ow_live_json_object(stdout, total);
		fputs("}\n", stdout);
	} else if (out->kind == OW_OUTPUT_TEXT) {
		putchar('\n');
		ow_live_summary(stdout, total);
		/* What comes after it begins with a heading. */
		out->text.lines = 0;
	}
}

/* What the store has to say: that it fails, that it works again. */
static void log_store(struct output *out)
{
	struct ow_error line;
	while (ow_keeper_news(out->keeper, &line))
		log_line(out, line.text);
}

static void on_flush(void *arg)
{
	struct output *out = arg;
	struct ow_keeper_state state;
	fflush(stdout);
	if (!out->keeper)
		return;
	ow_keeper_commit(out->keeper);
	log_store(out);
	ow_keeper_state(out->keeper, &state);
	ow_exporter_store(out->exporter, state.lost, state.waiting);
}

/* What is still to be written is written; what cannot be is said. */
static void end_store(struct output *out)
{
	struct ow_keeper_state state;
	if (!out->keeper)
		return;
	ow_keeper_commit(out->keeper);
	ow_keeper_stop(out->keeper);
	log_store(out);
	ow_keeper_state(out->keeper, &state);
	if (state.waiting || state.lost) {
		struct ow_error line;
		ow_error_set(&line, EIO, "store: %zu results could not be written, %ju intervals were lost before",
		             state.waiting, (uintmax_t)state.lost);
		log_line(out, line.text);
	}
	ow_keeper_free(out->keeper);
}

static void on_peer(void *arg, const char *peer, bool connected)
{
	struct output *out = arg;
	ow_exporter_peer(out->exporter, peer, connected);
}

/* What was understood. */

static void show_segment(const struct ow_config *c, const struct ow_config_segment *s)
{
	char interval[OW_DURATION_TEXT], wait[OW_DURATION_TEXT];
	ow_duration_text((double)s->interval_ns, interval);
	ow_duration_text((double)s->wait_ns, wait);
	printf("segment    %s: peer %s, %s%s\n", s->name, s->peer, s->connect ? "connects to " : "is connected to",
	       s->connect ? s->connect : "");
	printf("  packets to %s: %s%s\n", s->peer,
	       s->to_peer ? "those that match "
	       : s->away  ? "those that come in"
	                  : "those that go out",
	       s->to_peer ? s->to_peer : "");
	fputs("  watches", stdout);
	for (unsigned i = 0; i < c->interface_count; i++) {
		if (s->interfaces >> i & 1)
			printf(" %s", c->interfaces[i].name);
	}
	fputs("\n", stdout);
	if (s->stated == 0)
		fputs("  all parameters as the peer states them\n", stdout);
	if (s->stated & OW_STATED_INTERVAL)
		printf("  interval %s\n", interval);
	if (s->stated & OW_STATED_WAIT)
		printf("  wait %s\n", wait);
	if (s->stated & OW_STATED_METHOD)
		printf("  method %s\n", s->method == OW_METHOD_RDA ? "rda" : "fold");
	if (s->stated & (OW_STATED_IDENTITY | OW_STATED_INNER))
		printf("  identity %s%s\n", s->level == OW_LEVEL_NAT ? "nat" : "ip",
		       s->inner ? ", inside tunnels" : "");
	for (unsigned i = 0; i < s->class_count; i++)
		printf("  class %s: %s\n", s->classes[i].name,
		       s->classes[i].filter ? s->classes[i].filter : "all IP packets");
}

static void show_store(const struct ow_config *c)
{
	printf("store      %s", c->store);
	if (c->retention_ns)
		printf(", for %.4g days", (double)c->retention_ns / (86400 * 1e9));
	if (c->store_max)
		printf(", at most %.4g MiB", (double)c->store_max / (1 << 20));
	putchar('\n');
}

static void show(const struct ow_config *c)
{
	printf("point      %s\n", c->point);
	if (c->listen)
		printf("listens    %s\n", c->listen);
	if (c->psk)
		printf("psk        %s\n", c->psk);
	else
		printf("keys       certificate %s, key %s, ca %s\n", c->certificate, c->key, c->ca);
	printf("memory     %.4g MiB\n", (double)c->memory / (1 << 20));
	if (c->store)
		show_store(c);
	if (c->metrics)
		printf("metrics    http://%s/metrics\n", c->metrics);
	if (c->user)
		printf("user       %s\n", c->user);
	if (c->sandbox != OW_SANDBOX_ON)
		printf("sandbox    %s\n", c->sandbox == OW_SANDBOX_OFF ? "none" : "only logs what it would kill for");
	for (unsigned i = 0; i < c->interface_count; i++) {
		const struct ow_config_interface *in = &c->interfaces[i];
		if (in->file)
			printf("file       %s: %s, replayed at speed %g", in->name, in->file, in->speed);
		else
			printf("interface  %s: %ju thread%s%s", in->name, (uintmax_t)in->threads,
			       in->threads == 1 ? "" : "s", in->hardware_stamps ? ", its own timestamps" : "");
		printf("%s%s\n", in->filter ? ", only " : "", in->filter ? in->filter : "");
	}
	for (unsigned i = 0; i < c->segment_count; i++)
		show_segment(c, &c->segments[i]);
}

static int check(const struct ow_config *c)
{
	struct ow_error err;
	struct ow_tls *tls = NULL;
	struct ow_tls_options keys = {
		.certificate = c->certificate, .key = c->key, .ca = c->ca, .psk_file = c->psk, .name = c->point};
	if (ow_tls_create(&keys, &tls, &err) < 0)
		return ow_cli_failed("point", &err);
	ow_tls_free(tls);
	show(c);
	return OW_EXIT_OK;
}

/* Running. */

/* Signals become readable; threads that are started later do not get them either. */
static int open_signals(struct ow_error *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	int fd = sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -1 : signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? ow_error_set(err, errno, "signalfd: %s", strerror(errno)) : fd;
}

/* Whether an interface is to be set up for timestamps of its own. */
static bool sets_up_stamps(const struct ow_config *config)
{
	for (unsigned i = 0; i < config->interface_count; i++) {
		if (config->interfaces[i].hardware_stamps)
			return true;
	}
	return false;
}

static int start_exporter(struct output *out, struct ow_error *err)
{
	char line[120];
	int r = ow_exporter_start(out->exporter, err);
	if (r == 0 && out->exporter) {
		snprintf(line, sizeof line, "metrics at http://%s/metrics", ow_exporter_address(out->exporter));
		log_line(out, line);
	}
	return r;
}

struct sandbox {
	const struct ow_config *config;
	struct output *out;
};

/* Everything is open, and no thread runs yet. */
static int confine(void *arg, struct ow_error *err)
{
	const struct sandbox *s = arg;
	const struct ow_config *c = s->config;
	const struct ow_guard guard = {
		.sandbox = c->sandbox, .read = {c->path, c->certificate, c->key, c->ca, c->psk}, .store = c->store};
	char text[OW_CONFINE_TEXT], line[OW_CONFINE_TEXT + 40];
	bool whole;
	int r = ow_guard_close(&guard, text, &whole, err);
	if (r < 0)
		return r;
	snprintf(line, sizeof line, "no privileges from here on; %s", text);
	log_line(s->out, line);
	/* Here, because both start threads. */
	struct ow_keeper_options keep = {.path = c->store, .limits = {c->retention_ns, c->store_max}};
	if (c->store)
		r = ow_keeper_create(&keep, &s->out->keeper, err);
	return r < 0 ? r : start_exporter(s->out, err);
}

static int run_daemon(const struct ow_config *config, struct output *out, int64_t run_ns, struct ow_error *err)
{
	struct ow_daemon *daemon;
	struct sandbox sandbox = {config, out};
	struct ow_daemon_options o = {.sink = {on_result, on_total, on_flush, out, on_peer},
	                              .log = log_line,
	                              .log_arg = out,
	                              .opened = confine,
	                              .opened_arg = &sandbox,
	                              .run_ns = run_ns};
	int r = o.stop_fd = open_signals(err);
	if (r < 0)
		return r;
	r = ow_exporter_create(config, &out->exporter, err);
	if (r == 0)
		r = ow_daemon_create(config, &o, &daemon, err);
	if (r == 0) {
		r = ow_daemon_run(daemon, err);
		ow_daemon_free(daemon);
	}
	ow_exporter_free(out->exporter);
	out->exporter = NULL;
	close(o.stop_fd);
	return r;
}

static int run(const struct arguments *args, const struct ow_config *config)
{
	struct output out = {.kind = args->quiet  ? OW_OUTPUT_NONE
	                             : args->json ? OW_OUTPUT_JSON
	                             : args->text ? OW_OUTPUT_TEXT
	                                          : config->output,
	                     .provisional = args->provisional,
	                     .point = config->point};
	struct ow_error err;
	out.text = (struct ow_live_text){.out = stdout,
	                                 .width = isatty(STDOUT_FILENO) ? (unsigned)ow_terminal_width(stdout) : 0,
	                                 .colour = !args->no_color && ow_terminal_colour(stdout)};
	int r = run_daemon(config, &out, args->run_ns, &err);
	on_flush(&out);
	end_store(&out);
	return r < 0 ? ow_cli_failed("point", &err) : OW_EXIT_OK;
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

int ow_cli_point(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_error err;
	struct ow_config *config;
	if (argc > 1 && strcmp(argv[1], "keygen") == 0)
		return ow_cli_point_keygen(argc - 1, argv + 1);
	if (read_arguments(argc, argv, &args, &err) < 0)
		return ow_cli_misused("point", &err);
	if (args.help) {
		help();
		return OW_EXIT_OK;
	}
	if (args.version) {
		printf("oneway %s\n", ow_version());
		return OW_EXIT_OK;
	}
	if (ow_config_load(args.config, &config, &err) < 0)
		return ow_cli_failed("point", &err);
	int code = OW_EXIT_OK;
	/* What the files are looked at as is what they are used as. */
	if ((!args.check && ow_privileges_reduce(config->user, sets_up_stamps(config), &err) < 0) ||
	    ow_config_check(config, &err) < 0)
		code = ow_cli_failed("point", &err);
	else if (args.check)
		code = check(config);
	else
		code = run(&args, config);
	ow_config_free(config);
	return code;
}
