/* SPDX-License-Identifier: Apache-2.0 */
/* oneway collect: results and events from the bus of a fleet into PostgreSQL. */
#include "base/word.h"
#include "base/state_file.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/fleet.h"
#include "cli/interrupt.h"
#include "config/config_fleet.h"
#include "fleet/authority.h"
#include "fleet/collector.h"
#include "fleet/folder.h"
#include "point/http.h"
#include "point/journal.h"
#include "sandbox/guard.h"
#include "sandbox/privileges.h"
#include "store/postgres.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct arguments {
	const char *dir, *nats, *ca, *certificate, *key, *to, *metrics;
	uint64_t rows;
	int64_t wait_ns, run_ns;
	bool no_sandbox, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	OW_OPTION_DIR(struct arguments),
	{"to", 0, "URL", ow_option_text, FIELD(to),
         "The database, postgresql://.... Default: the one that the fleet was made with."},
	{"nats", 0, "URLS", ow_option_text, FIELD(nats),
         "Servers of the bus, nats://host:4222 or tls://host:4222, with commas between them, instead of a folder of a "
         "fleet."},
	{"ca", 0, "FILE", ow_option_text, FIELD(ca), "With --nats: the authority of the servers' certificates."},
	{"cert", 0, "FILE", ow_option_text, FIELD(certificate), "With --nats: the certificate of this collector,"},
	{"key", 0, "FILE", ow_option_text, FIELD(key), "and its key."},
	{"metrics", 0, "ADDRESS", ow_option_text, FIELD(metrics),
         "Serve metrics for Prometheus at this address, host:port, at /metrics; /healthz says if results arrive."},
	{"rows", 0, "N", ow_option_count, FIELD(rows), "Rows of a transaction, if there are so many. Default: 10000."},
	{"wait", 0, "TIME", ow_option_positive_duration, FIELD(wait_ns),
         "How long a row may wait for others before it is written. Default: 500ms."},
	{"no-sandbox", 0, NULL, ow_option_flag, FIELD(no_sandbox), "Run without seccomp and landlock."},
	{"seconds", 0, "N", ow_option_seconds, FIELD(run_ns), "Stop after N seconds."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("oneway collect: writes results from the bus of a fleet into PostgreSQL\n"
	      "\n"
	      "usage: oneway collect [OPTION]...\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Any number of collectors share the work. None has a state: what one has not\n"
	      "stored when it ends, or is killed, comes to the others. SIGTERM lets it store\n"
	      "what it has, and end.\n"
	      "\n"
	      "examples:\n"
	      "  oneway collect --dir /etc/oneway/fleet\n"
	      "  oneway collect --nats nats://127.0.0.1:4222 --to postgresql:///oneway\n",
	      stdout);
}

/* -- metrics ------------------------------------------------------------------------------------------------------ */

struct running {
	struct ow_journal *journal;
	struct ow_collector *collector;
};

static void put_metric(FILE *out, const char *name, const char *type, const char *what, double value)
{
	fprintf(out, "# HELP oneway_collect_%s %s\n# TYPE oneway_collect_%s %s\noneway_collect_%s %.17g\n", name, what,
	        name, type, name, value);
}

static void put_counter(FILE *out, const char *name, const char *what, uint64_t value)
{
	put_metric(out, name, "counter", what, (double)value);
}

static void put_metrics(FILE *out, const struct ow_collector_counts *c)
{
	put_counter(out, "messages_total", "Messages with results that were taken from the bus.", c->messages);
	put_counter(out, "bytes_total", "Bytes of these messages.", c->bytes);
	put_counter(out, "events_total", "Events of flows that were taken from the bus.", c->events);
	put_counter(out, "rows_stored_total", "Results that were stored, new or in place of others.", c->stored);
	put_counter(out, "rows_kept_total", "Results that the database already had.", c->kept);
	put_counter(out, "rows_refused_total",
	            "Results that can never be stored: of others' lanes, too old, too many lanes.", c->refused);
	put_counter(out, "messages_ignored_total", "Messages that could not be decoded.", c->undecodable);
	put_counter(out, "messages_postponed_total", "Messages of points that send too much; they come again.",
	            c->postponed);
	put_counter(out, "commits_total", "Transactions.", c->commits);
	put_counter(out, "failures_total", "Transactions and connections that failed, and are tried again.",
	            c->failures);
	put_counter(out, "gaps_asked_total", "Spans of missing minutes that points were asked for.", c->gaps);
	put_metric(out, "rows_waiting", "gauge", "Results that are here and not stored yet.", (double)c->waiting);
	put_metric(out, "lag_seconds", "gauge",
	           "From the end of the newest result of the last transaction to its commit.",
	           (double)c->lag_ns / OW_NS_PER_S);
	put_metric(out, "connected", "gauge", "1 if there is a connection to the bus.", c->connected);
}

static int on_page(void *arg, const char *path, const char *accept, struct ow_http_page *page)
{
	const struct running *running = arg;
	struct ow_collector_counts counts;
	bool health = strcmp(path, "/healthz") == 0;
	(void)accept;
	if (!health && strcmp(path, "/metrics") != 0)
		return -ENOENT;
	ow_collector_counts(running->collector, &counts);
	FILE *out = open_memstream(&page->body, &page->size);
	if (!out)
		return -ENOMEM;
	if (health)
		fputs(counts.connected ? "connected\n" : "not connected to the bus\n", out);
	else
		put_metrics(out, &counts);
	if (fclose(out) != 0)
		return -ENOMEM;
	page->status = health && !counts.connected ? 503 : 200;
	page->type = health ? "text/plain; charset=utf-8" : "text/plain; version=0.0.4; charset=utf-8";
	return 0;
}

/* -- running ------------------------------------------------------------------------------------------------------ */

static void log_line(void *arg, bool warning, const char *line)
{
	const struct running *running = arg;
	ow_journal_line(running->journal, warning ? OW_EVENT_WARNING : OW_EVENT_INFO, line, ow_clock_steady_ns());
}

static void work(struct running *running, int64_t run_ns)
{
	int64_t until_ns = run_ns ? ow_clock_steady_ns() + run_ns : INT64_MAX, tick_ns = 0;
	while (!ow_interrupted && ow_clock_steady_ns() < until_ns) {
		ow_collector_work(running->collector, 200);
		if (ow_clock_steady_ns() < tick_ns)
			continue;
		tick_ns = ow_clock_steady_ns() + OW_NS_PER_S;
		ow_journal_tick(running->journal, tick_ns);
	}
}

static void say_counts(const struct running *running)
{
	struct ow_collector_counts c;
	char line[300];
	ow_collector_counts(running->collector, &c);
	snprintf(line, sizeof line, "%ju %s, %ju %s stored, %ju known before, %ju refused, %ju %s, %ju %s",
	         (uintmax_t)c.messages, ow_plural(c.messages, "message", "messages"), (uintmax_t)c.stored,
	         ow_plural(c.stored, "row", "rows"), (uintmax_t)c.kept, (uintmax_t)c.refused, (uintmax_t)c.commits,
	         ow_plural(c.commits, "transaction", "transactions"), (uintmax_t)c.failures,
	         ow_plural(c.failures, "failure", "failures"));
	log_line((void *)running, false, line);
}

/*
 * What points send is decoded here. From here on the collector reads its certificate and what libpq needs, and no other
 * file: not the key of the authority, which may lie beside them.
 */
static int confine(const struct arguments *args, const struct ow_bus_options *bus, const char *database,
                   struct running *running, struct ow_error *err)
{
	struct ow_postgres_files *files = calloc(1, sizeof *files);
	char text[OW_CONFINE_TEXT], line[OW_CONFINE_TEXT + 40];
	bool whole;
	struct ow_guard guard = {.sandbox = args->no_sandbox ? OW_SANDBOX_OFF : OW_SANDBOX_ON,
	                         .file = {bus->ca, bus->certificate, bus->key},
	                         .database = true};
	_Static_assert(3 + OW_POSTGRES_FILES <= OW_GUARD_FILE, "each has a place");
	int r = files ? ow_postgres_files(database, files, err) : ow_error_set(err, ENOMEM, "out of memory");
	for (unsigned i = 0; r == 0 && i < OW_POSTGRES_FILES; i++)
		guard.file[3 + i] = files->path[i];
	if (r == 0)
		r = ow_privileges_reduce(NULL, 0, err);
	if (r == 0)
		r = ow_guard_close(&guard, text, &whole, err);
	if (r == 0) {
		snprintf(line, sizeof line, "no privileges from here on; %s", text);
		log_line(running, !whole || args->no_sandbox, line);
	}
	free(files);
	return r;
}

static int run(const struct arguments *args, const struct ow_bus_options *bus, const char *database,
               struct ow_error *err)
{
	struct running running = {0};
	struct ow_http *http = NULL;
	struct ow_http_options pages = {.address = args->metrics, .page = on_page, .arg = &running};
	struct ow_collector_options how = {.bus = *bus,
	                                   .database = {.url = database},
	                                   .rows = (size_t)args->rows,
	                                   .wait_ns = args->wait_ns,
	                                   .log = log_line,
	                                   .arg = &running};
	for (int period = 0; period < OW_PERIODS; period++)
		how.database.retention_ns[period] = ow_periods[period].retention_ns;
	if (ow_journal_create(stderr, "collect", ow_journal_is_stream(STDERR_FILENO), &running.journal) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = args->metrics ? ow_http_create(&pages, &http, err) : 0;
	if (r == 0)
		r = confine(args, bus, database, &running, err);
	if (r == 0)
		r = ow_collector_create(&how, &running.collector, err);
	if (r == 0 && http)
		r = ow_http_start(http, err);
	if (r == 0) {
		ow_interrupt_catch();
		work(&running, args->run_ns);
		r = ow_collector_drain(running.collector, 10000);
		if (r < 0)
			ow_error_set(err, -r, "not everything could be stored; other collectors will get it");
		say_counts(&running);
	}
	ow_http_free(http);
	ow_collector_free(running.collector);
	ow_journal_free(running.journal);
	return r;
}

/* Files of the fleet's folder. */
static int run_of_folder(const struct arguments *args, struct ow_error *err)
{
	const char *dir = ow_cli_fleet_dir(args->dir);
	struct ow_fleet *fleet = NULL;
	char *file[4] = {ow_state_path(dir, OW_FLEET_SERVERS), ow_state_path(dir, OW_FLEET_CA),
	                 ow_state_path(dir, "collector.pem"), ow_state_path(dir, "collector.key")},
	     *urls = NULL, *database = NULL;
	size_t size;
	int r = file[0] && file[1] && file[2] && file[3] ? ow_fleet_open(dir, &fleet, err)
	                                                 : ow_error_set(err, ENOMEM, "out of memory");
	if (r == 0) {
		const char *to = args->to ? args->to : fleet->settings.database;
		database = to ? strdup(to) : NULL;
		r = ow_state_read(file[0], 65536, &urls, &size, err);
	}
	/* Others want to change the folder. */
	ow_fleet_close(fleet);
	if (r == 0 && !database)
		r = ow_error_set(err, EINVAL, "the fleet has no database: needs --to");
	struct ow_bus_options bus = {.urls = urls,
	                             .server = OW_BUS_NAME,
	                             .ca = file[1],
	                             .certificate = file[2],
	                             .key = file[3],
	                             .name = "service.collector"};
	if (r == 0)
		r = run(args, &bus, database, err);
	for (int i = 0; i < 4; i++)
		free(file[i]);
	free(urls);
	free(database);
	return r;
}

static int read_arguments(int argc, char **argv, struct arguments *args, struct ow_error *err)
{
	int operands = ow_options_parse(options, argc, argv, args, err);
	if (operands < 0 || args->help || args->version)
		return operands < 0 ? operands : 0;
	if (operands > 0)
		return ow_error_set(err, EINVAL, "unexpected '%.60s'", argv[1]);
	if (args->nats && args->dir)
		return ow_error_set(err, EINVAL, "--nats and --dir exclude each other");
	if (!args->nats && (args->ca || args->certificate || args->key))
		return ow_error_set(err, EINVAL, "--ca, --cert and --key belong to --nats");
	if (args->nats && !args->to)
		return ow_error_set(err, EINVAL, "--nats needs --to");
	if (args->to && !ow_postgres_is_url(args->to))
		return ow_error_set(err, EINVAL, "--to: '%.60s' is not postgresql://...", args->to);
	return 0;
}

int ow_cli_collect(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_error err;
	if (read_arguments(argc, argv, &args, &err) < 0)
		return ow_cli_misused("collect", &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	struct ow_bus_options bus = {.urls = args.nats,
	                             .ca = args.ca,
	                             .certificate = args.certificate,
	                             .key = args.key,
	                             .server = args.certificate ? OW_BUS_NAME : NULL,
	                             .name = "service.collector"};
	int r = args.nats ? run(&args, &bus, args.to, &err) : run_of_folder(&args, &err);
	return r < 0 ? ow_cli_failed("collect", &err) : OW_EXIT_OK;
}
