/* SPDX-License-Identifier: Apache-2.0 */
/* oneway fleet apply FILE: what the points of a fleet measure. */
#include "base/clock.h"
#include "base/state_file.h"
#include "base/word.h"
#include "cli/fleet.h"
#include "cli/interrupt.h"
#include "fleet/authority.h"
#include "fleet/discover.h"
#include "fleet/revocation.h"
#include "fleet/rollout.h"
#include <assert.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COMMAND "fleet apply"
#define WATCH_S 60

struct arguments {
	const char *dir;
	bool dry_run, watch, help, version;
};

static const struct ow_option options[] = {
	OW_OPTION_DIR(struct arguments),
	{"dry-run", 'n', NULL, ow_option_flag, offsetof(struct arguments, dry_run),
         "Print what would change, and change nothing. Needs no connection, unless segments are discovered."},
	{"watch", 'w', NULL, ow_option_flag, offsetof(struct arguments, watch),
         "With 'segments: discover': look every minute which points share traffic, and change what is measured, until "
         "interrupted."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("oneway fleet apply: what the points of a fleet measure\n"
	      "\n"
	      "usage: oneway fleet apply FILE [OPTION]...\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "FILE has points, groups, classes and segments (docs/fleet.md). Prints what\n"
	      "changes for each point, and brings it to them in steps: first to a few, then to\n"
	      "twice as many, and so on. If a point refuses its part, or falls silent,\n"
	      "everything is changed back, and the exit code is 1. Points that are away get\n"
	      "theirs when they come. Applied again, the same file changes nothing.\n"
	      "\n"
	      "With 'segments: discover' the segments are the neighbours of 'oneway fleet map'\n"
	      "that share traffic, those with the highest share first; they end when they share\n"
	      "none for half an hour (with --watch).\n"
	      "\n"
	      "examples:\n"
	      "  oneway fleet apply fleet.yaml --dry-run\n"
	      "  oneway fleet apply fleet.yaml\n"
	      "  oneway fleet apply fleet.yaml --watch\n",
	      stdout);
}

static void say(const char *line)
{
	printf("%s\n", line);
	fflush(stdout);
}

/* Keeps a copy of what was applied. */
static int keep_version(const struct ow_fleet *fleet, uint64_t version, const char *bytes, size_t size,
                        struct ow_error *err)
{
	char *path;
	if (asprintf(&path, "%s/versions/%ju.yaml", fleet->path, (uintmax_t)version) < 0)
		return ow_error_set(err, ENOMEM, "not enough memory");
	int r = ow_state_write(path, bytes, size, err);
	free(path);
	return r;
}

static int roll_out(const struct ow_fleet *fleet, const struct ow_fleet_plan *plan, const struct ow_changes *changes,
                    struct ow_error *err)
{
	struct ow_credential ca = {0};
	struct ow_bus *bus = NULL;
	struct ow_rollout how = {.fleet = fleet,
	                         .ca = &ca,
	                         .plan = plan,
	                         .changes = changes,
	                         .say = say,
	                         .interrupted = &ow_interrupted};
	int r = ow_authority_load(fleet, &ca, err);
	if (r == 0)
		r = ow_control_open(fleet, "controller", &bus, err);
	if (r == 0)
		r = ow_control_setup(fleet, bus, err);
	how.bus = bus;
	if (r == 0 && changes->count)
		r = ow_rollout(&how, err);
	if (r == 0)
		r = ow_revocation_publish(fleet, &ca, bus, err);
	/* What an interrupted run, or a bus that lost its disk, left undone. */
	if (r == 0) {
		r = ow_rollout_restore(&how, err);
		if (r > 0)
			printf("%d %s the bus did not have: published again\n", r,
			       ow_plural((unsigned)r, "state that", "states that"));
	}
	ow_bus_free(bus);
	ow_credential_done(&ca);
	return r < 0 ? r : 0;
}

/* The same file with the segments that were discovered. */
static int discover(const struct ow_fleet *fleet, const char *file, const char *bytes, size_t size, bool dry_run,
                    struct ow_fleet_plan **plan, struct ow_error *err)
{
	struct ow_bus *bus = NULL;
	struct ow_fleet_plan *found = NULL;
	struct ow_discovered_segment *segments = NULL;
	size_t count = 0;
	int r = ow_control_open(fleet, "controller", &bus, err);
	if (r == 0)
		r = ow_control_setup(fleet, bus, err);
	if (r == 0)
		r = ow_fleet_discover(fleet, bus, ow_clock_real_ns(), dry_run, &segments, &count, err);
	if (r == 0)
		r = ow_fleet_plan_make(file, bytes, size,
		                       &(struct ow_fleet_plan_options){fleet->settings.sample_key, segments, count},
		                       &found, err);
	ow_bus_free(bus);
	free(segments);
	if (r < 0)
		return r;
	ow_fleet_plan_free(*plan);
	*plan = found;
	return 0;
}

/* quiet: says nothing if nothing changes. */
static int apply(struct ow_fleet *fleet, const char *file, bool dry_run, bool quiet, struct ow_error *err)
{
	char *bytes = NULL;
	size_t size;
	struct ow_fleet_plan *plan = NULL;
	struct ow_changes changes = {0};
	int r = ow_state_read(file, OW_YAML_BYTES_MAX, &bytes, &size, err);
	if (r == 0)
		r = ow_fleet_plan_make(file, bytes, size, &(struct ow_fleet_plan_options){fleet->settings.sample_key},
		                       &plan, err);
	if (r == 0 && plan->discover)
		r = discover(fleet, file, bytes, size, dry_run, &plan, err);
	assert(r < 0 || plan);
	if (r == 0)
		r = ow_changes_find(fleet, plan, &changes, err);
	if (r == 0 && (changes.count || !quiet)) {
		ow_changes_print(stdout, &changes);
		fputs(plan->notes ? plan->notes : "", stdout);
		printf("%u %s, %u unchanged%s\n", changes.count,
		       ow_plural(changes.count, "point changes", "points change"), changes.unchanged,
		       dry_run && changes.count ? " (nothing was done)" : "");
		fflush(stdout);
	}
	if (r == 0 && !dry_run) {
		if (changes.count)
			r = keep_version(fleet, changes.version, bytes, size, err);
		if (r == 0)
			r = roll_out(fleet, plan, &changes, err);
	}
	ow_changes_done(&changes);
	ow_fleet_plan_free(plan);
	free(bytes);
	return r;
}

/* Applies the file again and again. A fault is said, and the next time may be better. */
static int watch(struct ow_fleet *fleet, const char *file, struct ow_error *err)
{
	int r = apply(fleet, file, false, false, err);
	while (r == 0 && !ow_interrupted) {
		const struct timespec pause = {WATCH_S, 0};
		if (nanosleep(&pause, NULL) < 0)
			continue;
		if (apply(fleet, file, false, true, err) < 0)
			ow_cli_say("oneway " COMMAND ": warning: %s", err->text);
	}
	return r;
}

int ow_cli_fleet_apply(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_fleet *fleet = NULL;
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands >= 0 && ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (operands >= 0 && operands != 1)
		operands = ow_error_set(&err, EINVAL, "needs one FILE");
	if (operands >= 0 && args.watch && args.dry_run)
		operands = ow_error_set(&err, EINVAL, "--watch and --dry-run exclude each other");
	if (operands < 0)
		return ow_cli_misused(COMMAND, &err);
	ow_interrupt_catch();
	int r = ow_fleet_open_to_lead(ow_cli_fleet_dir(args.dir), &fleet, &err);
	if (r == 0)
		r = args.watch ? watch(fleet, argv[1], &err) : apply(fleet, argv[1], args.dry_run, false, &err);
	ow_fleet_close(fleet);
	return r < 0 ? ow_cli_failed(COMMAND, &err) : OW_EXIT_OK;
}
