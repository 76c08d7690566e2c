/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts: whether a path is within its target, and if not, which of its places have changed. */
#include "base/time.h"
#include "plane/monitor_private.h"
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

/* Places of a path are looked up in the order in which they were found. */
static struct place *place_of(const struct path *path, const struct ow_way *way, const struct ow_place *place)
{
	uint32_t before = 0;
	for (const struct ow_way *w = path->route.way; w != way; w++)
		before += w->places;
	return ow_monitor_place_of(path, before + (uint32_t)(place - way->place));
}

/* The inside of a router that nobody has ever measured is left out: it is a part of the segments around it. */
static const struct ow_watch_sample *last_of(void *arg, const struct ow_way *way, const struct ow_place *place)
{
	struct finder *finder = arg;
	struct place *found = place_of(finder->path, way, place);
	const struct ow_plane_watch *watch = ow_monitor_watch_of(finder->monitor, found, finder->now_ns);
	if (!watch && place->inside && !ow_monitor_is_seen(found))
		return &ow_compose_folded;
	return watch ? &watch->last : NULL;
}

/* Which changes of places matter to the path: a changed delay does not explain a path that loses too many packets. */
struct asked {
	bool delay, loss;
};
static const struct asked both = {true, true};

/* Which of the changes that are asked for the place shows. What is not known now is not changed. */
static struct asked changes_of(const struct ow_plane_watch *watch, struct asked asked)
{
	return (struct asked){asked.delay && watch->delay.changed && watch->last.has_delay,
	                      asked.loss && watch->loss.changed && watch->last.has_loss};
}

static struct ow_finding finding_of(const struct ow_monitor *monitor, const struct place *place,
                                    const struct ow_plane_watch *watch, struct asked changed, double share)
{
	const struct ow_watch_sample *last = &watch->last;
	const struct ow_watch_level *level = changed.delay ? &watch->delay : &watch->loss;
	if (changed.delay && changed.loss && watch->loss.sum > watch->delay.sum)
		level = &watch->loss;
	struct ow_finding finding = {.place = place->name,
	                             .share = share,
	                             .delay = changed.delay,
	                             .loss = changed.loss,
	                             .now_ns = last->has_delay ? last->mean_ns : NAN,
	                             .now_loss = last->sent ? (double)last->lost / (double)last->sent : NAN,
	                             .whole_flows = last->lost ? (double)last->lost_whole / (double)last->lost : NAN,
	                             .z = level == &watch->delay ? watch->delay_z : watch->loss_z,
	                             .strength = level->sum / monitor->threshold,
	                             .since_ns = level->since_ns,
	                             .intervals = level->intervals,
	                             .active = last->active,
	                             .length_ns = last->length_ns};
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

/* How much the place adds to the path: excess delay times its share. A loss counts for more than a delay. */
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

/* The changed places of a path, each once, with the total share of the ways that pass it. */
static uint32_t findings_of(const struct ow_monitor *monitor, struct path *path, struct asked asked, int64_t now_ns,
                            bool *ret_adopted)
{
	uint32_t count = 0, at = 0;
	for (uint32_t w = 0; w < path->route.ways; w++) {
		for (uint32_t i = 0; i < path->route.way[w].places; i++, at++) {
			const struct place *place = ow_monitor_place_of(path, at);
			const struct ow_plane_watch *watch = ow_monitor_watch_of(monitor, place, now_ns);
			uint32_t n = 0;
			if (!watch)
				continue;
			*ret_adopted |= watch->delay.adopted || watch->loss.adopted;
			struct asked changed = changes_of(watch, asked);
			if (!changed.delay && !changed.loss)
				continue;
			while (n < count && path->finding[n].place != place->name)
				n++;
			if (n < count)
				path->finding[n].share += path->route.way[w].share;
			else
				path->finding[count++] =
					finding_of(monitor, place, watch, changed, path->route.way[w].share);
		}
	}
	if (count)
		qsort(path->finding, count, sizeof(*path->finding), by_weight);
	return count;
}

/* Explains a broken target of which no part has changed: a part may be close to a change. */
static const char *without_findings(const struct ow_monitor *monitor, const struct path *path, struct asked asked,
                                    int64_t now_ns)
{
	for (uint32_t i = 0; i < path->places; i++) {
		const struct ow_plane_watch *watch = ow_monitor_watch_of(monitor, ow_monitor_place_of(path, i), now_ns);
		if (watch &&
		    fmax(asked.delay ? watch->delay.sum : 0, asked.loss ? watch->loss.sum : 0) > monitor->threshold / 4)
			return "; no part of it has certainly changed yet";
	}
	return "; but no part of it has changed: its delay and loss are as usual";
}

/* Which limits a path exceeds. */
static struct asked broken_by(const struct ow_target *target, const struct ow_composed *composed)
{
	/* A path with missing results can still be known to be too slow. */
	double mean = composed->mean_ns.status == OW_VALUE_NONE ? composed->known_mean_ns : composed->mean_ns.value;
	return (struct asked){
		.delay = !isnan(target->max_mean_ns) && mean > target->max_mean_ns,
		.loss = composed->loss_ratio.status != OW_VALUE_NONE && composed->loss_ratio.value > target->max_loss,
	};
}

/* Which changes of the parts are looked for: the exceeded limit, or else the limits that the target has. */
static struct asked asked_of(const struct ow_target *target, struct asked broken)
{
	if (broken.delay || broken.loss)
		return broken;
	if (isnan(target->max_mean_ns) && isnan(target->max_loss))
		return both;
	return (struct asked){!isnan(target->max_mean_ns), !isnan(target->max_loss)};
}

static void say_broken(const struct ow_target *target, struct asked broken, const char *more,
                       struct ow_monitor_verdict *verdict)
{
	const struct ow_composed *composed = &verdict->composed;
	char now[OW_DURATION_TEXT], limit[OW_DURATION_TEXT], slow[100] = "", lossy[100] = "";
	if (broken.delay) {
		bool known = composed->mean_ns.status != OW_VALUE_NONE;
		ow_duration_text(known ? composed->mean_ns.value : composed->known_mean_ns, now);
		ow_duration_text(target->max_mean_ns, limit);
		snprintf(slow, sizeof(slow), "%s%s, above its target of %s", known ? "" : "at least ", now, limit);
	}
	if (broken.loss)
		snprintf(lossy, sizeof(lossy), "loses %.3g %%, above its target of %.3g %%",
		         composed->loss_ratio.value * 100, target->max_loss * 100);
	verdict->state = OW_PATH_BROKEN;
	snprintf(verdict->cause, sizeof(verdict->cause), "%s%s%s%s", slow, *slow && *lossy ? ", and " : "", lossy,
	         more);
}

/* A part without a result, or a part whose result has no delay because no packet got through. */
static void say_missing(const struct ow_monitor *monitor, const struct path *path, int64_t now_ns,
                        struct ow_monitor_verdict *verdict)
{
	const struct ow_composed *composed = &verdict->composed;
	const struct ow_way *way = &path->route.way[composed->missing_way];
	const struct place *place = place_of(path, way, &way->place[composed->missing_place]);
	const struct ow_plane_watch *watch = ow_monitor_watch_of(monitor, place, now_ns);
	const struct ow_watch_sample *last = watch ? &watch->last : NULL;
	const char *others = composed->missing > 1 ? " and others" : "";
	verdict->state = OW_PATH_UNKNOWN;
	if (last && last->has_loss && last->sent && last->lost == last->sent)
		snprintf(verdict->cause, sizeof(verdict->cause), "no delay of %.200s (all its packets are lost)%s",
		         place->name, others);
	else if (last && *place->cause)
		snprintf(verdict->cause, sizeof(verdict->cause), "no result of %.120s%s: %.150s", place->name, others,
		         place->cause);
	else if (last && last->length_ns && !last->sent)
		snprintf(verdict->cause, sizeof(verdict->cause), "no packet of %.200s was compared%s", place->name,
		         others);
	else
		snprintf(verdict->cause, sizeof(verdict->cause), "no result of %.200s%s", place->name, others);
}

/* If nothing more of most flows arrives, they may have taken another way. */
#define WHOLE_FLOWS 0.9

static void say_worse(struct ow_monitor_verdict *verdict)
{
	bool slower = false, lossy = false, whole = true;
	for (uint32_t i = 0; i < verdict->findings; i++) {
		const struct ow_finding *finding = &verdict->finding[i];
		slower |= finding->delay;
		lossy |= finding->loss;
		whole &= !finding->loss || finding->whole_flows >= WHOLE_FLOWS;
	}
	snprintf(verdict->cause, sizeof(verdict->cause), "%s%s%s than usual%s", slower ? "slower" : "",
	         slower && lossy ? ", and " : "", lossy ? "loses more" : "",
	         lossy && whole ? "; whole flows do not arrive any more: they are lost, or take another way" : "");
}

static void judge_target(const struct ow_monitor *monitor, const struct path *path, struct asked broken, int64_t now_ns,
                         struct ow_monitor_verdict *verdict)
{
	const struct ow_target *target = &path->target;
	bool limited = !isnan(target->max_mean_ns) || !isnan(target->max_loss);
	if (broken.delay || broken.loss) {
		say_broken(target, broken, verdict->findings ? "" : without_findings(monitor, path, broken, now_ns),
		           verdict);
	} else if (!limited && verdict->findings) {
		verdict->state = OW_PATH_BROKEN;
		say_worse(verdict);
	} else if (verdict->composed.missing) {
		say_missing(monitor, path, now_ns, verdict);
	} else {
		verdict->state = OW_PATH_OK;
		verdict->cause[0] = 0;
	}
}

/*
 * A router that takes a microsecond longer can deviate by many sigmas although no user notices. Therefore only a change
 * that adds to the path's delay counts. If there is no other change and the path is too slow, small changes count as
 * well.
 */
static void leave_out_trifles(const struct ow_monitor *monitor, struct path *path, struct asked broken,
                              struct ow_monitor_verdict *verdict)
{
	double least = monitor->options.worth * verdict->composed.known_mean_ns;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < verdict->findings; i++)
		kept += path->finding[i].loss || weight(&path->finding[i]) >= least;
	if (!kept && broken.delay)
		return;
	kept = 0;
	for (uint32_t i = 0; i < verdict->findings; i++)
		if (path->finding[i].loss || weight(&path->finding[i]) >= least)
			path->finding[kept++] = path->finding[i];
	verdict->findings = kept;
}

/* Marks the places for the search for hops (locate.c). */
static void mark_named(const struct path *path, const struct ow_monitor_verdict *verdict)
{
	for (uint32_t i = 0; i < path->places; i++) {
		struct place *place = ow_monitor_place_of(path, i);
		for (uint32_t n = 0; n < verdict->findings; n++)
			place->named |= verdict->finding[n].place == place->name;
	}
}

/*
 * A clock that moves makes one direction slower and the other faster by the same. So a changed delay may be the clocks' if
 * the other direction became faster by more than half as much. If that is not known, it may be as long as it is within
 * the error of both clocks, before and after, or this error is not known.
 */
static bool is_of_clocks(const struct ow_plane_watch *watch, const struct ow_plane_watch *back)
{
	double usual, usual_back;
	double error_ns = watch->last.clock_error_ns;
	if (!watch->last.has_delay || !ow_watch_median(watch, &usual) || error_ns == 0)
		return false;
	double excess = watch->last.mean_ns - usual;
	if (back && back->last.has_delay && ow_watch_median(back, &usual_back))
		return back->last.mean_ns - usual_back < -excess / 2;
	return isnan(error_ns) || excess <= 2 * error_ns;
}

/* What was usual before a clock moved is not usual any more: both directions learn again. */
static void forget_moved_clocks(struct ow_monitor *monitor, int64_t now_ns)
{
	for (uint32_t i = 0; i < monitor->places; i++) {
		struct place *place = monitor->place[i];
		const struct ow_plane_watch *watch = ow_monitor_watch_of(monitor, place, now_ns);
		if (!watch || !watch->delay.changed)
			continue;
		const struct ow_plane_watch *back =
			place->back ? ow_monitor_watch_of(monitor, place->back, now_ns) : NULL;
		if (!is_of_clocks(watch, back))
			continue;
		ow_monitor_forget_delay(place);
		if (place->back)
			ow_monitor_forget_delay(place->back);
	}
}

int ow_monitor_judge(struct ow_monitor *monitor, int64_t now_ns, const struct ow_monitor_verdict **ret_verdicts,
                     uint32_t *ret_count, struct ow_error *err)
{
	free(monitor->verdict);
	monitor->verdict = calloc((size_t)monitor->paths + 1, sizeof(*monitor->verdict));
	if (!monitor->verdict)
		return ow_error_set(err, ENOMEM, "out of memory");
	forget_moved_clocks(monitor, now_ns);
	for (uint32_t i = 0; i < monitor->places; i++)
		monitor->place[i]->named = false;
	for (uint32_t i = 0; i < monitor->paths; i++) {
		struct path *path = &monitor->path[i];
		struct ow_monitor_verdict *verdict = &monitor->verdict[i];
		verdict->target = &path->target;
		if (!path->found) {
			verdict->state = OW_PATH_UNKNOWN;
			memcpy(verdict->cause, path->cause, sizeof(verdict->cause));
			continue;
		}
		struct finder finder = {monitor, path, now_ns};
		ow_compose(&path->route, last_of, &finder, &verdict->composed);
		struct asked broken = broken_by(&path->target, &verdict->composed);
		verdict->findings =
			findings_of(monitor, path, asked_of(&path->target, broken), now_ns, &verdict->adopted);
		verdict->finding = path->finding;
		leave_out_trifles(monitor, path, broken, verdict);
		mark_named(path, verdict);
		judge_target(monitor, path, broken, now_ns, verdict);
	}
	*ret_verdicts = monitor->verdict;
	*ret_count = monitor->paths;
	return 0;
}
