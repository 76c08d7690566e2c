/* SPDX-License-Identifier: Apache-2.0 */
/* oneway fleet load: made-up points, to try a bus, collectors and a database. */
#include "base/clock.h"
#include "base/time.h"
#include "cli/fleet.h"
#include "fleet/load.h"
#include "fleet/streams.h"
#include "store/postgres.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct arguments {
	const char *nats, *to, *folder;
	uint64_t points, lanes, processes, replicas;
	double speed;
	int64_t run_ns, drain_ns, ago_ns;
	bool help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static int set_speed(void *field, const char *value, struct ow_error *err)
{
	char *end;
	double speed = strtod(value, &end);
	if (end == value || *end || !(speed >= 0.01 && speed <= 10000))
		return ow_error_set(err, EINVAL, "'%.40s' is not a number from 0.01 to 10000", value);
	*(double *)field = speed;
	return 0;
}

static const struct ow_option options[] = {
	{"nats", 0, "URLS", ow_option_text, FIELD(nats), "Servers of the bus (required), with commas between them."},
	{"to", 0, "URL", ow_option_text, FIELD(to), "Database whose rows are counted, postgresql://...."},
	{"folder", 0, "DIR", ow_option_text, FIELD(folder),
         "For the stores of the points; it must not exist. Default: a folder that is removed afterwards."},
	{"points", 0, "N", ow_option_count, FIELD(points), "Number of points. Default: 2000."},
	{"lanes", 0, "N", ow_option_count, FIELD(lanes), "Lanes of each point. Default: 10."},
	{"processes", 0, "N", ow_option_count, FIELD(processes),
         "Processes that the points are divided among. Default: 20."},
	{"seconds", 0, "N", ow_option_seconds, FIELD(run_ns), "How long results are made. Default: 600."},
	{"drain", 0, "N", ow_option_seconds, FIELD(drain_ns),
         "Seconds after that in which all must arrive. Default: 300."},
	{"speed", 0, "FACTOR", set_speed, FIELD(speed), "Results of so many seconds in a second. Default: 1."},
	{"ago", 0, "TIME", ow_option_positive_duration, FIELD(ago_ns),
         "The last result is of that long ago. Default: of the moment when it is made."},
	{"replicas", 0, "N", ow_option_count, FIELD(replicas),
         "Make the streams, with 1 or 3 copies. Default: the streams exist."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("oneway fleet load: made-up points, to try a bus, collectors and a database\n"
	      "\n"
	      "usage: oneway fleet load --nats URLS [OPTION]...\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Every result is written into a store as points do, and sent as a batch of its\n"
	      "point. Processes that are killed are started again (DIR/pids has their numbers)\n"
	      "and go on from their stores. Prints once a second: results made, not yet in the\n"
	      "stream, and in the database.\n"
	      "\n"
	      "example:\n"
	      "  oneway fleet load --nats nats://127.0.0.1:4222 --replicas 1 --seconds 60 \\\n"
	      "      --to postgresql:///oneway\n",
	      stdout);
}

struct shown {
	struct ow_postgres *database;
	int64_t begin_ns;
};

/* -1: not known now. */
static int64_t rows_of(struct shown *shown)
{
	int64_t rows = -1;
	if (shown->database && ow_postgres_revive(shown->database, NULL) == 0 &&
	    ow_postgres_ask(shown->database, "SELECT (SELECT count(*) FROM result) + (SELECT count(*) FROM minute)",
	                    &rows, NULL) < 0)
		rows = -1;
	return rows;
}

static void show(void *arg, const struct ow_load_counts *c)
{
	struct shown *shown = arg;
	int64_t rows = rows_of(shown);
	printf("%6.1f s  %ju results and %ju minutes made, %ju not in the stream, %ju messages (%.1f MB), %ju sent "
	       "again",
	       (double)(ow_clock_steady_ns() - shown->begin_ns) / OW_NS_PER_S, (uintmax_t)c->made,
	       (uintmax_t)c->made_minutes, (uintmax_t)c->behind, (uintmax_t)c->messages, (double)c->bytes / 1e6,
	       (uintmax_t)c->repeated);
	if (c->restarts)
		printf(", %ju restarts", (uintmax_t)c->restarts);
	if (rows >= 0)
		printf(", %jd rows in the database", (intmax_t)rows);
	putchar('\n');
	fflush(stdout);
}

static int make_streams(const struct arguments *args, struct ow_error *err)
{
	struct ow_bus_options o = {.urls = args->nats, .name = "load"};
	struct ow_streams_options streams = {.replicas = (unsigned)args->replicas, .max_bytes = OW_STREAMS_MAX_BYTES};
	struct ow_bus *bus = NULL;
	int r = ow_bus_create(&o, &bus, err);
	if (r == 0)
		r = ow_bus_wait(bus, 10000, err);
	if (r == 0)
		r = ow_streams_make(bus, &streams, err);
	ow_bus_free(bus);
	return r;
}

static int make_folder(const struct arguments *args, char folder[4096], struct ow_error *err)
{
	snprintf(folder, 4096, "%s", args->folder ? args->folder : "/tmp/oneway-load-XXXXXX");
	bool made = args->folder ? mkdir(folder, 0700) == 0 : mkdtemp(folder) != NULL;
	return made ? 0 : ow_error_set(err, errno, "%s: cannot be made", folder);
}

static void remove_folder(const char *folder, unsigned processes)
{
	static const char *const ends[] = {".db",        ".db-wal",        ".db-shm",
	                                   ".positions", ".positions-wal", ".positions-shm"};
	char path[4200];
	for (unsigned i = 0; i < processes; i++) {
		for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
			snprintf(path, sizeof path, "%s/load-%u%s", folder, i, ends[k]);
			unlink(path);
		}
	}
	snprintf(path, sizeof path, "%s/pids", folder);
	unlink(path);
	rmdir(folder);
}

static int run(const struct arguments *args, struct ow_error *err)
{
	char folder[4096];
	struct shown shown = {.begin_ns = ow_clock_steady_ns()};
	int r = args->replicas ? make_streams(args, err) : 0;
	if (r == 0)
		r = make_folder(args, folder, err);
	if (r < 0)
		return r;
	struct ow_load_options o = {.urls = args->nats,
	                            .folder = folder,
	                            .points = (unsigned)args->points,
	                            .lanes = (unsigned)args->lanes,
	                            .processes = (unsigned)args->processes,
	                            .speed = args->speed,
	                            .run_ns = args->run_ns,
	                            .drain_ns = args->drain_ns,
	                            .ago_ns = args->ago_ns};
	if (args->to)
		r = ow_postgres_open(args->to, &shown.database, err);
	if (r == 0)
		r = ow_load_run(&o, show, &shown, err);
	ow_postgres_close(shown.database);
	if (!args->folder)
		remove_folder(folder, o.processes);
	return r;
}

static int check(const struct arguments *a, struct ow_error *err)
{
	if (!a->nats)
		return ow_error_set(err, EINVAL, "needs --nats URLS");
	if (a->points == 0 || a->points > 1000000 || a->lanes == 0 || a->lanes > 1000)
		return ow_error_set(err, EINVAL, "--points is 1 to 1000000, --lanes 1 to 1000");
	if (a->processes == 0 || a->processes > 256 || a->processes > a->points)
		return ow_error_set(err, EINVAL, "--processes is 1 to 256, and not more than --points");
	if (a->replicas > 5 || (a->replicas && a->replicas % 2 == 0))
		return ow_error_set(err, EINVAL, "--replicas is 1, 3 or 5");
	return 0;
}

int ow_cli_fleet_load(int argc, char **argv)
{
	struct arguments args = {.points = 2000,
	                         .lanes = 10,
	                         .processes = 20,
	                         .speed = 1,
	                         .run_ns = 600 * OW_NS_PER_S,
	                         .drain_ns = 300 * OW_NS_PER_S};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands > 0)
		operands = ow_error_set(&err, EINVAL, "unexpected '%.60s'", argv[1]);
	if (operands < 0)
		return ow_cli_misused("fleet load", &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (check(&args, &err) < 0)
		return ow_cli_misused("fleet load", &err);
	return run(&args, &err) < 0 ? ow_cli_failed("fleet load", &err) : OW_EXIT_OK;
}
