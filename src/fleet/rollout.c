/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/rollout.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/state_file.h"
#include "base/word.h"
#include "config/config_fleet.h"
#include "fleet/desired.h"
#include "fleet/streams.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING "{}\n"
#define LOOK_MS 1000

/* -- what was applied last ----------------------------------------------------------------------------------------- */

static char *applied_file(const struct ow_fleet *fleet, const char *name)
{
	char *path;
	return asprintf(&path, "%s/desired/%s.yaml", fleet->path, name) < 0 ? NULL : path;
}

/* The body that the point has, to be freed; NULL if none. *ref_version becomes its version if that is larger. */
static char *applied(const struct ow_fleet *fleet, const char *name, uint64_t *ref_version)
{
	char *path = applied_file(fleet, name), *bytes = NULL, *body = NULL;
	size_t size;
	struct ow_error ignored;
	struct ow_desired_head head;
	if (path && ow_state_read(path, OW_DESIRED_MAX, &bytes, &size, &ignored) == 0 &&
	    ow_desired_head(bytes, size, &head, &ignored) == 0) {
		body = strdup(bytes + head.body);
		*ref_version = head.version > *ref_version ? head.version : *ref_version;
	}
	free(bytes);
	free(path);
	return body;
}

uint64_t ow_applied_version(const struct ow_fleet *fleet, const char *point)
{
	uint64_t version = 0;
	free(applied(fleet, point, &version));
	return version;
}

static int add_change(struct ow_changes *changes, const char *name, char *before, const char *after)
{
	if (before && strcmp(before, after) == 0) {
		free(before);
		changes->unchanged++;
		return 0;
	}
	if (OW_GROW(changes->change, changes->room, changes->count + 1) < 0) {
		free(before);
		return -ENOMEM;
	}
	struct ow_change *change = &changes->change[changes->count++];
	*change = (struct ow_change){.before = before, .after = after};
	snprintf(change->name, sizeof change->name, "%s", name);
	return 0;
}

static bool is_planned(const struct ow_fleet_plan *plan, const char *name)
{
	for (unsigned i = 0; i < plan->count; i++) {
		if (strcmp(plan->points[i].name, name) == 0)
			return true;
	}
	return false;
}

/* Every point that was ever led. */
static int each_led(const struct ow_fleet *fleet, int (*each)(void *arg, const char *name), void *arg)
{
	char *folder = ow_state_path(fleet->path, "desired"), name[OW_POINT_NAME];
	DIR *list = folder ? opendir(folder) : NULL;
	int r = 0;
	for (struct dirent *entry; r == 0 && list && (entry = readdir(list));) {
		const char *dot = strrchr(entry->d_name, '.');
		if (!dot || strcmp(dot, ".yaml") != 0 || dot - entry->d_name >= OW_POINT_NAME)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)(dot - entry->d_name), entry->d_name);
		r = each(arg, name);
	}
	if (list)
		closedir(list);
	free(folder);
	return r;
}

/* Looks for points that have something to measure. */
struct measuring {
	const struct ow_fleet *fleet;
	int (*each)(void *arg, const char *name);
	void *arg;
};

static int pass_measuring(void *arg, const char *name)
{
	const struct measuring *m = arg;
	uint64_t version = 0;
	char *body = applied(m->fleet, name, &version);
	int r = body && strcmp(body, NOTHING) != 0 ? m->each(m->arg, name) : 0;
	free(body);
	return r;
}

int ow_applied_each(const struct ow_fleet *fleet, int (*each)(void *arg, const char *name), void *arg)
{
	struct measuring m = {fleet, each, arg};
	return each_led(fleet, pass_measuring, &m);
}

/* Points that were led, and are not in the plan. */
struct removal {
	const struct ow_fleet *fleet;
	const struct ow_fleet_plan *plan;
	struct ow_changes *changes;
	uint64_t *version;
};

static int add_removed(void *arg, const char *name)
{
	const struct removal *removal = arg;
	char *before = is_planned(removal->plan, name) ? NULL : applied(removal->fleet, name, removal->version);
	return before ? add_change(removal->changes, name, before, NOTHING) : 0;
}

int ow_changes_find(const struct ow_fleet *fleet, const struct ow_fleet_plan *plan, struct ow_changes *ret_changes,
                    struct ow_error *err)
{
	struct ow_changes changes = {0};
	uint64_t last = 0;
	int r = 0;
	for (unsigned i = 0; r == 0 && i < plan->count; i++) {
		char *before = applied(fleet, plan->points[i].name, &last);
		r = add_change(&changes, plan->points[i].name, before, plan->points[i].body);
	}
	if (r == 0)
		r = each_led(fleet, add_removed, &(struct removal){fleet, plan, &changes, &last});
	changes.version = last + 1;
	if (r < 0) {
		ow_changes_done(&changes);
		return ow_error_set(err, ENOMEM, "not enough memory");
	}
	*ret_changes = changes;
	return 0;
}

void ow_changes_done(struct ow_changes *changes)
{
	for (unsigned i = 0; i < changes->count; i++)
		free(changes->change[i].before);
	free(changes->change);
	*changes = (struct ow_changes){0};
}

/* The lines of one text that the other does not have. */
static void print_lines(FILE *out, char mark, const char *text, const char *other)
{
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");
		bool found = strncmp(line, NOTHING, length + 1) == 0;
		for (const char *o = other; !found && *o; o += strcspn(o, "\n") + (o[strcspn(o, "\n")] != 0))
			found = strcspn(o, "\n") == length && strncmp(o, line, length) == 0;
		if (!found)
			fprintf(out, "  %c %.*s\n", mark, (int)length, line);
		line += length + (line[length] != 0);
	}
}

void ow_changes_print(FILE *out, const struct ow_changes *changes)
{
	for (unsigned i = 0; i < changes->count; i++) {
		const struct ow_change *c = &changes->change[i];
		fprintf(out, "%s:%s\n", c->name, c->before ? "" : " (new)");
		print_lines(out, '-', c->before ? c->before : "", c->after);
		print_lines(out, '+', c->after, c->before ? c->before : "");
	}
}

/* -- publishing ---------------------------------------------------------------------------------------------------- */

/* First the folder: a version that a point may have is never used again. */
static int publish(const struct ow_rollout *how, const char *name, uint64_t version, const char *body,
                   struct ow_error *err)
{
	char *bytes = NULL, *path = applied_file(how->fleet, name);
	size_t size;
	uint64_t revision;
	int r = path ? ow_desired_sign(how->ca, name, version, body, &bytes, &size, err)
	             : ow_error_set(err, ENOMEM, "not enough memory");
	if (r == 0)
		r = ow_state_write(path, bytes, size, err);
	if (r == 0)
		r = ow_bus_put_key(how->bus, OW_BUCKET_CONFIG, name, bytes, size, OW_BUS_ANY, &revision, err);
	free(bytes);
	free(path);
	return r;
}

int ow_rollout_restore(const struct ow_rollout *how, struct ow_error *err)
{
	int restored = 0, r = 0;
	for (unsigned i = 0; r == 0 && i < how->plan->count; i++) {
		const char *name = how->plan->points[i].name;
		char *path = applied_file(how->fleet, name), *bytes = NULL, *there = NULL;
		size_t size, there_size = 0;
		uint64_t revision;
		struct ow_error ignored;
		if (path && ow_state_read(path, OW_DESIRED_MAX, &bytes, &size, &ignored) == 0) {
			r = ow_bus_get_key(how->bus, OW_BUCKET_CONFIG, name, &there, &there_size, &revision, err);
			bool same = r == 0 && there_size == size && memcmp(there, bytes, size) == 0;
			r = r == -ENOENT ? 0 : r;
			if (r == 0 && !same)
				r = ow_bus_put_key(how->bus, OW_BUCKET_CONFIG, name, bytes, size, OW_BUS_ANY, &revision,
				                   err);
			restored += r == 0 && !same;
		}
		free(there);
		free(bytes);
		free(path);
	}
	return r < 0 ? r : restored;
}

__attribute__((format(printf, 2, 3))) static void say(const struct ow_rollout *how, const char *format, ...)
{
	char line[600];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	how->say(line);
}

/* -- waiting for the points ---------------------------------------------------------------------------------------- */

enum report { ACCEPTED, REFUSED, PENDING, ABSENT };

static enum report report_of(const struct ow_healths *healths, const struct ow_healths *before, const char *name,
                             uint64_t version)
{
	const struct ow_health *was = ow_healths_find(before, name), *is = ow_healths_find(healths, name);
	if (is && is->config_refused == version)
		return REFUSED;
	if (is && is->config_version >= version)
		return ACCEPTED;
	return was ? PENDING : ABSENT;
}

/* Points that had not reported lately when the rollout began get their state when they come. */
static void drop_stale(struct ow_healths *healths)
{
	size_t kept = 0;
	int64_t now = ow_clock_real_ns();
	for (size_t i = 0; i < healths->count; i++) {
		if (ow_health_is_fresh(&healths->health[i], now))
			healths->health[kept++] = healths->health[i];
	}
	healths->count = kept;
}

struct step {
	unsigned from, until; /* of the changes */
	unsigned pending, absent;
	const char *first_pending;
};

static int look(const struct ow_rollout *how, const struct ow_healths *before, struct step *step, struct ow_error *err)
{
	struct ow_healths now = {0};
	int r = ow_healths_read(&now, how->bus, err);
	step->pending = step->absent = 0;
	for (unsigned i = step->from; r == 0 && i < step->until; i++) {
		const struct ow_change *c = &how->changes->change[i];
		enum report report = report_of(&now, before, c->name, how->changes->version);
		step->absent += report == ABSENT;
		if (report == PENDING && step->pending++ == 0)
			step->first_pending = c->name;
		if (report == REFUSED)
			r = ow_error_set(err, ECANCELED, "%s refuses version %ju: %s", c->name,
			                 (uintmax_t)how->changes->version, ow_healths_find(&now, c->name)->config_why);
	}
	ow_healths_done(&now);
	return r;
}

static int wait_for(const struct ow_rollout *how, const struct ow_healths *before, struct step *step,
                    struct ow_error *err)
{
	int64_t until = ow_clock_steady_ns() + how->plan->wait_ns;
	for (;;) {
		int r = look(how, before, step, err);
		if (r == -ECANCELED || (r == 0 && step->pending == 0))
			return r;
		if (how->interrupted && *how->interrupted)
			return ow_error_set(err, ECANCELED, "interrupted");
		/* A bus that does not answer now may do so in time. */
		if (ow_clock_steady_ns() >= until)
			return r < 0 ? r
			             : ow_error_set(err, ECANCELED,
			                            "%s has not reported version %ju; %u of %u points have not",
			                            step->first_pending, (uintmax_t)how->changes->version,
			                            step->pending, step->until - step->from);
		ow_bus_poll(how->bus, LOOK_MS);
	}
}

/* Everything that was published gets what it had before, as a newer version. */
static void take_back(const struct ow_rollout *how, unsigned count)
{
	struct ow_error err;
	uint64_t version = how->changes->version + 1;
	for (unsigned i = 0; i < count; i++) {
		const struct ow_change *c = &how->changes->change[i];
		if (publish(how, c->name, version, c->before ? c->before : NOTHING, &err) < 0)
			say(how, "%s: cannot be changed back: %s", c->name, err.text);
	}
	say(how, "changed back: %u %s, as version %ju", count, ow_plural(count, "point", "points"), (uintmax_t)version);
}

static int do_step(const struct ow_rollout *how, const struct ow_healths *before, struct step *step, unsigned *ref_done,
                   struct ow_error *err)
{
	int r = 0;
	for (unsigned i = step->from; r == 0 && i < step->until; i++) {
		const struct ow_change *c = &how->changes->change[i];
		r = publish(how, c->name, how->changes->version, c->after, err);
		*ref_done = i + 1;
	}
	if (r == 0)
		r = wait_for(how, before, step, err);
	if (r < 0)
		return r;
	unsigned there = step->until - step->from - step->absent;
	say(how, "version %ju: %u of %u %s changed%s", (uintmax_t)how->changes->version, step->until,
	    how->changes->count, ow_plural(how->changes->count, "point", "points"),
	    there ? "" : " (none of these is there now)");
	if (there && step->absent)
		say(how, "  %u of them %s not there now: they get it when they come", step->absent,
		    ow_plural(step->absent, "is", "are"));
	return 0;
}

int ow_rollout(const struct ow_rollout *how, struct ow_error *err)
{
	unsigned count = how->changes->count, done = 0;
	unsigned size = (unsigned)ceil(how->plan->canary * count);
	struct ow_healths before = {0};
	struct step step = {0};
	int r = ow_healths_read(&before, how->bus, err);
	drop_stale(&before);
	for (size = size ? size : 1; r == 0 && step.until < count; size *= 2) {
		step.from = step.until;
		step.until = count - step.from < size ? count : step.from + size;
		r = do_step(how, &before, &step, &done, err);
	}
	if (r < 0 && done)
		take_back(how, done);
	ow_healths_done(&before);
	return r;
}
