/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts: is a path within its target, and if not, which of its places have changed. */
#include "base/time.h"
#include "plane/monitor_parts.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct finder {
	const struct ow_monitor *monitor;
	const struct path *path;
	int64_t now_ns;
};

/* Places of a path are asked for in the order in which they were found. */
static struct place *place_of(const struct path *path, const struct ow_way *way, const struct ow_place *place)
{
	uint32_t before = 0;
	for (const struct ow_way *w = path->route.way; w != way; w++)
		before += w->places;
	return ow_monitor_place_of(path, before + (uint32_t)(place - way->place));
}

static const struct ow_sample *last_of(void *arg, const struct ow_way *way, const struct ow_place *place)
{
	struct finder *finder = arg;
	struct place *found = place_of(finder->path, way, place);
	return ow_monitor_is_fresh(finder->monitor, found, finder->now_ns) ? &found->watch.last : NULL;
}

static struct ow_finding finding_of(const struct ow_monitor *monitor, const struct place *place, double share)
{
	const struct ow_watch *watch = &place->watch;
	const struct ow_sample *last = &watch->last;
	const struct ow_watch_level *level = watch->delay.changed ? &watch->delay : &watch->loss;
	if (watch->delay.changed && watch->loss.changed && watch->loss.sum > watch->delay.sum)
		level = &watch->loss;
	struct ow_finding finding = {.place = place->name,
	                             .share = share,
	                             .delay = watch->delay.changed,
	                             .loss = watch->loss.changed,
	                             .now_ns = last->has_delay ? last->mean_ns : NAN,
	                             .now_loss = last->sent ? (double)last->lost / (double)last->sent : NAN,
	                             .z = level == &watch->delay ? watch->delay_z : watch->loss_z,
	                             .strength = level->sum / monitor->threshold,
	                             .since_ns = level->since_ns,
	                             .intervals = level->intervals,
	                             .active = last->active};
	if (!ow_watch_usual(watch, &finding.usual_ns, &finding.spread_ns))
		finding.usual_ns = finding.spread_ns = NAN;
	if (!ow_watch_usual_loss(watch, &finding.usual_loss))
		finding.usual_loss = NAN;
	return finding;
}

static int by_strength(const void *pa, const void *pb)
{
	const struct ow_finding *a = pa, *b = pb;
	return (a->strength < b->strength) - (a->strength > b->strength);
}

/* What it adds to the path: excess delay times its share; losses count for more than delay, as they end it. */
static double weight(const struct ow_finding *finding)
{
	double excess = finding->delay && isfinite(finding->usual_ns) ? finding->now_ns - finding->usual_ns : 0;
	return finding->share * (excess > 0 ? excess : 0);
}

static int by_weight(const void *pa, const void *pb)
{
	const struct ow_finding *a = pa, *b = pb;
	double wa = weight(a), wb = weight(b);
	return wa != wb ? (wa < wb) - (wa > wb) : by_strength(pa, pb);
}

/* The changed places of a path, each once, with the share of all ways that pass it. */
static uint32_t findings_of(const struct ow_monitor *monitor, struct path *path, int64_t now_ns)
{
	uint32_t count = 0, at = 0;
	for (uint32_t w = 0; w < path->route.ways; w++) {
		for (uint32_t i = 0; i < path->route.way[w].places; i++, at++) {
			const struct place *place = ow_monitor_place_of(path, at);
			uint32_t n = 0;
			if (!(place->watch.delay.changed || place->watch.loss.changed) ||
			    !ow_monitor_is_fresh(monitor, place, now_ns))
				continue;
			while (n < count && path->finding[n].place != place->name)
				n++;
			if (n < count)
				path->finding[n].share += path->route.way[w].share;
			else
				path->finding[count++] = finding_of(monitor, place, path->route.way[w].share);
		}
	}
	if (count)
		qsort(path->finding, count, sizeof(*path->finding), by_weight);
	return count;
}

/* What is to be said of a target that is broken while no part has changed: is one on the way to it? */
static const char *without_findings(const struct ow_monitor *monitor, const struct path *path)
{
	for (uint32_t i = 0; i < path->places; i++) {
		const struct ow_watch *watch = &ow_monitor_place_of(path, i)->watch;
		if (fmax(watch->delay.sum, watch->loss.sum) > monitor->threshold / 4)
			return "; no part of it has changed for certain yet";
	}
	return "; but no part of it has changed: it is as usual";
}

static void judge_target(const struct ow_monitor *monitor, const struct path *path, struct ow_verdict *verdict)
{
	const struct ow_target *target = &path->target;
	const struct ow_composed *composed = &verdict->composed;
	bool limited = !isnan(target->max_mean_ns) || !isnan(target->max_loss);
	const char *more = verdict->findings ? "" : without_findings(monitor, path);
	char now[OW_DURATION_TEXT], limit[OW_DURATION_TEXT];
	/* A path with gaps can still be known to be too slow. */
	double mean = composed->mean_ns.status == OW_VALUE_NONE ? composed->known_mean_ns : composed->mean_ns.value;
	if (!isnan(target->max_mean_ns) && mean > target->max_mean_ns) {
		ow_duration_text(mean, now);
		ow_duration_text(target->max_mean_ns, limit);
		verdict->state = OW_PATH_BROKEN;
		snprintf(verdict->cause, sizeof(verdict->cause), "%s%s, above its target of %s%s",
		         composed->missing ? "at least " : "", now, limit, more);
	} else if (composed->loss_ratio.status != OW_VALUE_NONE && composed->loss_ratio.value > target->max_loss) {
		verdict->state = OW_PATH_BROKEN;
		snprintf(verdict->cause, sizeof(verdict->cause), "loses %.3g %%, above its target of %.3g %%%s",
		         composed->loss_ratio.value * 100, target->max_loss * 100, more);
	} else if (!limited && verdict->findings) {
		verdict->state = OW_PATH_BROKEN;
		snprintf(verdict->cause, sizeof(verdict->cause), "worse than usual");
	} else if (composed->missing) {
		const struct ow_way *way = &path->route.way[composed->missing_way];
		verdict->state = OW_PATH_UNKNOWN;
		snprintf(verdict->cause, sizeof(verdict->cause), "no result of %.200s%s",
		         place_of(path, way, &way->place[composed->missing_place])->name,
		         composed->missing > 1 ? " and others" : "");
	} else {
		verdict->state = OW_PATH_OK;
		verdict->cause[0] = 0;
	}
}

/*
 * Between the two ends of a microsecond that a router takes more there may be many sigmas, and no user who notices.
 * Where nobody said what is too slow, only what adds to the path counts.
 */
static void leave_out_trifles(const struct ow_monitor *monitor, struct path *path, struct ow_verdict *verdict)
{
	double least = monitor->options.worth * verdict->composed.known_mean_ns;
	uint32_t kept = 0;
	if (!isnan(path->target.max_mean_ns) || !isnan(path->target.max_loss))
		return;
	for (uint32_t i = 0; i < verdict->findings; i++)
		if (path->finding[i].loss || weight(&path->finding[i]) >= least)
			path->finding[kept++] = path->finding[i];
	verdict->findings = kept;
}

/* For whoever asks where it is. */
static void mark_named(const struct path *path, const struct ow_verdict *verdict)
{
	for (uint32_t i = 0; i < path->places; i++) {
		struct place *place = ow_monitor_place_of(path, i);
		for (uint32_t n = 0; n < verdict->findings; n++)
			place->named |= verdict->finding[n].place == place->name;
	}
}

int ow_monitor_judge(struct ow_monitor *monitor, int64_t now_ns, const struct ow_verdict **ret_verdicts,
                     uint32_t *ret_count, struct ow_error *err)
{
	free(monitor->verdict);
	monitor->verdict = calloc((size_t)monitor->paths + 1, sizeof(*monitor->verdict));
	if (!monitor->verdict)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < monitor->places; i++)
		monitor->place[i]->named = false;
	for (uint32_t i = 0; i < monitor->paths; i++) {
		struct path *path = &monitor->path[i];
		struct ow_verdict *verdict = &monitor->verdict[i];
		verdict->target = &path->target;
		if (!path->found) {
			verdict->state = OW_PATH_UNKNOWN;
			memcpy(verdict->cause, path->cause, sizeof(verdict->cause));
			continue;
		}
		struct finder finder = {monitor, path, now_ns};
		ow_compose(&path->route, last_of, &finder, &verdict->composed);
		verdict->findings = findings_of(monitor, path, now_ns);
		verdict->finding = path->finding;
		leave_out_trifles(monitor, path, verdict);
		mark_named(path, verdict);
		judge_target(monitor, path, verdict);
	}
	*ret_verdicts = monitor->verdict;
	*ret_count = monitor->paths;
	return 0;
}

int ow_monitor_changed(struct ow_monitor *monitor, int64_t now_ns, const struct ow_finding **ret_findings,
                       uint32_t *ret_count, struct ow_error *err)
{
	struct ow_finding *changed = reallocarray(monitor->changed, (size_t)monitor->places + 1, sizeof(*changed));
	uint32_t count = 0;
	if (!changed)
		return ow_error_set(err, ENOMEM, "out of memory");
	monitor->changed = changed;
	for (uint32_t i = 0; i < monitor->places; i++) {
		const struct place *place = monitor->place[i];
		if ((place->watch.delay.changed || place->watch.loss.changed) &&
		    ow_monitor_is_fresh(monitor, place, now_ns))
			changed[count++] = finding_of(monitor, place, 0);
	}
	if (count)
		qsort(changed, count, sizeof(*changed), by_strength);
	*ret_findings = changed;
	*ret_count = count;
	return 0;
}
