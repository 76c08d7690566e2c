/* SPDX-License-Identifier: Apache-2.0 */
/* Incidents from verdicts, with hysteresis. */
#include "station/incidents.h"

#include "base/array.h"
#include "base/format.h"
#include "base/id_map.h"
#include "base/time.h"
#include "base/word.h"
#include "station/silent_points.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* A target that is exceeded although no part has certainly changed must be so for this many intervals. */
#define BROKEN_INTERVALS 3
/* For intervals of this length and above, two are enough. */
#define LONG_NS (10 * OW_NS_PER_S)
/* An incident ends when its path was in order for this time, and for two intervals. */
#define CALM_NS (10 * OW_NS_PER_S)
/* A path without results is unmeasured after this time, and after three intervals. */
#define SILENT_NS (30 * OW_NS_PER_S)
/* A broken path that is not measured any more is given up after this time. */
#define GIVE_UP_NS (3600 * OW_NS_PER_S)
/* Two events of one incident are at least this far apart; each but the end says something twice as bad. */
#define QUIET_NS (10 * OW_NS_PER_S)
#define TWICE    2.0
#define NEVER    INT64_MIN

const char *const ow_incident_kind_name[] = {"broken", "unmeasured"};
const char *const ow_incident_event_name[] = {"begin", "worse", "end"};

/* What the classes of a subject together show in an interval. */
struct merged {
	bool broken, ok, adopted;
	const struct ow_monitor_verdict *verdict; /* the first that is broken, or the first */
	struct ow_finding finding[OW_INCIDENT_FINDINGS];
	uint32_t findings;
};

struct subject {
	char *name;
	const struct ow_target *target;
	struct merged merged;
	int64_t broken_ns, ok_ns, unknown_ns; /* since when; NEVER = it is not */
	bool was_known;
	bool quiet;        /* unknown for half as long */
	bool silent;       /* unknown for so long that it is unmeasured */
	int64_t length_ns; /* of its intervals, as last known */
	struct ow_incident *open;
	int64_t told_ns; /* the last event */
	double told_loss, told_excess_ns;
	uint32_t told_findings;
};

struct ow_incidents {
	ow_incident_sink *sink;
	void *arg;
	struct subject *subject;
	uint32_t subjects, room;
	struct ow_id_map by_name;
	uint32_t *of_target; /* the subject of each target */
	uint32_t targets, targets_room;
	struct ow_silent_points *silence;
};

int ow_incidents_create(ow_incident_sink *sink, void *arg, struct ow_incidents **ret_incidents)
{
	struct ow_incidents *incidents = calloc(1, sizeof(*incidents));
	if (!incidents || ow_silent_points_create(&incidents->silence) < 0) {
		free(incidents);
		return -ENOMEM;
	}
	incidents->sink = sink;
	incidents->arg = arg;
	*ret_incidents = incidents;
	return 0;
}

void ow_incidents_free(struct ow_incidents *incidents)
{
	if (!incidents)
		return;
	for (uint32_t i = 0; i < incidents->subjects; i++) {
		free(incidents->subject[i].name);
		free(incidents->subject[i].open);
	}
	free(incidents->subject);
	free(incidents->of_target);
	ow_id_map_done(&incidents->by_name);
	ow_silent_points_free(incidents->silence);
	free(incidents);
}

/* -- subjects ---------------------------------------------------------------------------------------------------------
 */

/* The number of the subject of this name, or OW_ID_MAP_NONE. */
static uint32_t find_subject(const struct ow_incidents *incidents, const char *name)
{
	uint64_t hash = XXH3_64bits(name, strlen(name));
	return OW_ID_MAP_FIND(&incidents->by_name, hash, i, strcmp(incidents->subject[i].name, name) == 0);
}

/* The subject of this name, entered if it is new. Returns its number, or -ENOMEM. */
static int64_t subject_of(struct ow_incidents *incidents, const char *name, const struct ow_target *target)
{
	uint64_t hash = XXH3_64bits(name, strlen(name));
	uint32_t known = find_subject(incidents, name);
	if (known != OW_ID_MAP_NONE)
		return known;
	if (OW_GROW(incidents->subject, incidents->room, incidents->subjects + 1) < 0)
		return -ENOMEM;
	struct subject *subject = &incidents->subject[incidents->subjects];
	*subject = (struct subject){.name = strdup(name), .target = target};
	subject->broken_ns = subject->ok_ns = subject->unknown_ns = subject->told_ns = NEVER;
	if (!subject->name || ow_id_map_add(&incidents->by_name, hash, incidents->subjects) < 0) {
		free(subject->name);
		return -ENOMEM;
	}
	return incidents->subjects++;
}

/* A segment of all its classes, or the path by its name. */
static void name_subject(const struct ow_target *target, char name[OW_INCIDENT_SUBJECT])
{
	const char *text = target->place ? target->place : target->name;
	size_t length = target->place ? strcspn(text, "/") : strlen(text);
	snprintf(name, OW_INCIDENT_SUBJECT, "%.*s", (int)length, text);
}

static int enter_targets(struct ow_incidents *incidents, const struct ow_monitor_verdict *verdict, uint32_t count)
{
	char name[OW_INCIDENT_SUBJECT];
	for (; incidents->targets < count; incidents->targets++) {
		const struct ow_target *target = verdict[incidents->targets].target;
		if (OW_GROW(incidents->of_target, incidents->targets_room, incidents->targets + 1) < 0)
			return -ENOMEM;
		name_subject(target, name);
		int64_t subject = subject_of(incidents, name, target);
		if (subject < 0)
			return -ENOMEM;
		incidents->of_target[incidents->targets] = (uint32_t)subject;
	}
	/* Verdicts may have moved their targets. */
	for (uint32_t i = 0; i < count; i++)
		incidents->subject[incidents->of_target[i]].target = verdict[i].target;
	return 0;
}

static void merge(struct merged *merged, const struct ow_monitor_verdict *verdict)
{
	bool broken = verdict->state == OW_PATH_BROKEN;
	if (!merged->verdict || (broken && !merged->broken))
		merged->verdict = verdict;
	merged->broken |= broken;
	merged->ok |= verdict->state == OW_PATH_OK;
	merged->adopted |= verdict->adopted;
	for (uint32_t i = 0; broken && i < verdict->findings && merged->findings < OW_INCIDENT_FINDINGS; i++)
		merged->finding[merged->findings++] = verdict->finding[i];
}

/* -- events -----------------------------------------------------------------------------------------------------------
 */

static void measure(const struct merged *merged, double *ret_loss, double *ret_excess_ns)
{
	*ret_loss = *ret_excess_ns = 0;
	for (uint32_t i = 0; i < merged->findings; i++) {
		const struct ow_finding *finding = &merged->finding[i];
		if (finding->loss && finding->now_loss > *ret_loss)
			*ret_loss = finding->now_loss;
		if (finding->delay && finding->now_ns - finding->usual_ns > *ret_excess_ns)
			*ret_excess_ns = finding->now_ns - finding->usual_ns;
	}
}

/* Fills in what the last interval shows. */
static void describe(struct subject *subject, const char *hops)
{
	struct ow_incident *incident = subject->open;
	const struct merged *merged = &subject->merged;
	incident->target = subject->target;
	incident->length_ns = subject->length_ns;
	if (!merged->broken)
		return;
	memcpy(incident->finding, merged->finding, sizeof(incident->finding));
	incident->findings = merged->findings;
	snprintf(incident->cause, sizeof(incident->cause), "%s", merged->verdict->cause);
	snprintf(incident->hops, sizeof(incident->hops), "%s", hops);
}

static void tell(struct ow_incidents *incidents, struct subject *subject, enum ow_incident_event event, int64_t now_ns)
{
	measure(&subject->merged, &subject->told_loss, &subject->told_excess_ns);
	subject->told_findings = subject->merged.findings;
	subject->told_ns = now_ns;
	subject->open->events++;
	incidents->sink(incidents->arg, event, now_ns, subject->open);
	if (event != OW_INCIDENT_END)
		return;
	free(subject->open);
	subject->open = NULL;
}

static int begin(struct ow_incidents *incidents, struct subject *subject, enum ow_incident_kind kind, int64_t since_ns,
                 int64_t now_ns, const char *cause, const char *hops)
{
	char time[OW_FORMAT];
	struct ow_incident *incident = calloc(1, sizeof(*incident));
	if (!incident)
		return -ENOMEM;
	incident->kind = kind;
	incident->since_ns = since_ns;
	incident->until_ns = NEVER;
	incident->measured = kind == OW_INCIDENT_BROKEN;
	snprintf(incident->subject, sizeof(incident->subject), "%s", subject->name);
	ow_format_time(since_ns, "%Y-%m-%dT%H:%M:%S", time);
	snprintf(incident->id, sizeof(incident->id), "%s@%.19sZ", subject->name, time);
	snprintf(incident->cause, sizeof(incident->cause), "%s", cause);
	subject->open = incident;
	describe(subject, hops);
	tell(incidents, subject, OW_INCIDENT_BEGIN, now_ns);
	return 0;
}

static void end(struct ow_incidents *incidents, struct subject *subject, int64_t until_ns, int64_t now_ns,
                const char *cause)
{
	subject->open->until_ns = until_ns;
	snprintf(subject->open->cause, sizeof(subject->open->cause), "%s", cause);
	describe(subject, "");
	tell(incidents, subject, OW_INCIDENT_END, now_ns);
}

/* -- broken -----------------------------------------------------------------------------------------------------------
 */

static int64_t first_of(const struct merged *merged, int64_t otherwise_ns)
{
	int64_t first_ns = merged->findings ? INT64_MAX : otherwise_ns;
	for (uint32_t i = 0; i < merged->findings; i++)
		if (merged->finding[i].since_ns < first_ns)
			first_ns = merged->finding[i].since_ns;
	return first_ns;
}

static bool is_worse(const struct subject *subject)
{
	double loss, excess_ns;
	measure(&subject->merged, &loss, &excess_ns);
	return subject->merged.findings > subject->told_findings || loss > TWICE * subject->told_loss ||
	       excess_ns > TWICE * subject->told_excess_ns;
}

/* A changed part has been so for several intervals already; a target that is exceeded by chance has not. */
static bool is_lasting(const struct subject *subject, int64_t now_ns)
{
	int intervals = subject->length_ns >= LONG_NS ? 2 : BROKEN_INTERVALS;
	return subject->merged.findings || now_ns - subject->broken_ns >= intervals * subject->length_ns;
}

static int on_broken(struct ow_incidents *incidents, struct subject *subject, int64_t now_ns, const char *hops)
{
	subject->ok_ns = subject->unknown_ns = NEVER;
	if (subject->broken_ns == NEVER)
		subject->broken_ns = now_ns - subject->length_ns;
	if (subject->open && subject->open->kind == OW_INCIDENT_UNMEASURED)
		end(incidents, subject, now_ns, now_ns, "measured again");
	if (!subject->open)
		return is_lasting(subject, now_ns)
		               ? begin(incidents, subject, OW_INCIDENT_BROKEN,
		                       first_of(&subject->merged, subject->broken_ns), now_ns, "", hops)
		               : 0;
	subject->open->measured = true;
	if (now_ns - subject->told_ns >= QUIET_NS && is_worse(subject)) {
		describe(subject, hops);
		tell(incidents, subject, OW_INCIDENT_WORSE, now_ns);
	}
	return 0;
}

static void on_ok(struct ow_incidents *incidents, struct subject *subject, int64_t now_ns)
{
	subject->broken_ns = subject->unknown_ns = NEVER;
	if (subject->ok_ns == NEVER)
		subject->ok_ns = now_ns - subject->length_ns;
	if (!subject->open)
		return;
	int64_t calm_ns = 2 * subject->length_ns > CALM_NS ? 2 * subject->length_ns : CALM_NS;
	if (subject->open->kind == OW_INCIDENT_UNMEASURED)
		end(incidents, subject, subject->ok_ns, now_ns, "measured again");
	else if (now_ns - subject->ok_ns >= calm_ns)
		end(incidents, subject, subject->ok_ns, now_ns,
		    subject->merged.adopted ? "has lasted so long that it is usual now" : "as usual again");
}

static void on_unknown(struct ow_incidents *incidents, struct subject *subject, int64_t now_ns)
{
	subject->broken_ns = subject->ok_ns = NEVER;
	if (subject->unknown_ns == NEVER)
		subject->unknown_ns = now_ns - subject->length_ns;
	int64_t for_ns = now_ns - subject->unknown_ns;
	int64_t silent_ns = 3 * subject->length_ns > SILENT_NS ? 3 * subject->length_ns : SILENT_NS;
	subject->silent = subject->was_known && for_ns >= silent_ns;
	subject->quiet = subject->was_known && for_ns >= silent_ns / 2;
	if (!subject->open || subject->open->kind != OW_INCIDENT_BROKEN)
		return;
	if (for_ns >= GIVE_UP_NS) {
		end(incidents, subject, subject->unknown_ns, now_ns,
		    "not measured for an hour: whether it is still broken is not known");
	} else if (subject->silent && subject->open->measured) {
		subject->open->measured = false;
		snprintf(subject->open->cause, sizeof(subject->open->cause), "not measured any more: %.300s",
		         subject->merged.verdict->cause);
		tell(incidents, subject, OW_INCIDENT_WORSE, now_ns);
	}
}

/* -- unmeasured -------------------------------------------------------------------------------------------------------
 */

/* An incident without numbers: as long as it is wanted. */
static int keep_unmeasured(struct ow_incidents *incidents, struct subject *subject, bool wanted, int64_t since_ns,
                           int64_t now_ns, const char *cause, const char *why_not)
{
	bool is_open = subject->open && subject->open->kind == OW_INCIDENT_UNMEASURED;
	if (wanted && !subject->open)
		return begin(incidents, subject, OW_INCIDENT_UNMEASURED, since_ns, now_ns, cause, "");
	if (!wanted && is_open)
		end(incidents, subject, now_ns, now_ns, why_not);
	return 0;
}

/* A point all of whose lanes are silent, or all lanes of the network: one incident instead of one for each lane. */
static int update_group(struct ow_incidents *incidents, const char *name, bool silent, int64_t since_ns, int64_t now_ns,
                        uint32_t lanes)
{
	char cause[100];
	if (!silent && find_subject(incidents, name) == OW_ID_MAP_NONE)
		return 0;
	int64_t number = subject_of(incidents, name, NULL);
	if (number < 0)
		return -ENOMEM;
	snprintf(cause, sizeof(cause), "no results of %s %u %s", lanes > 1 ? "all its" : "its", lanes,
	         ow_plural(lanes, "lane", "lanes"));
	return keep_unmeasured(incidents, &incidents->subject[number], silent, since_ns, now_ns, cause,
	                       "measured again");
}

/* Which lanes are silent, and which points explain it. *ret_any: a lane is, or was. */
static int find_silence(struct ow_incidents *incidents, const struct ow_monitor_verdict *verdict, uint32_t count,
                        bool *ret_any)
{
	int r = 0;
	ow_silent_points_clear(incidents->silence);
	*ret_any = ow_silent_points_was(incidents->silence);
	for (uint32_t i = 0; i < count && r == 0; i++) {
		const struct subject *subject = &incidents->subject[incidents->of_target[i]];
		*ret_any |= subject->silent || (subject->open && subject->open->kind == OW_INCIDENT_UNMEASURED);
		/* The lanes of a point do not end in the same interval: those that are quiet for a while count, too. */
		if (subject->target->place && subject->was_known)
			r = ow_silent_points_add(incidents->silence, verdict[i].target->from, verdict[i].target->to,
			                         incidents->of_target[i], subject->quiet, subject->unknown_ns);
	}
	if (r == 0 && *ret_any)
		ow_silent_points_find(incidents->silence);
	return r;
}

/*
 * The lanes of a point that is back do not come back in the same interval either: those that are still silent are so
 * from now on, so that they do not accuse the point at their other end. True if there are some.
 */
static bool forget_returned(struct ow_incidents *incidents, const struct ow_monitor_verdict *verdict, uint32_t count,
                            int64_t now_ns)
{
	const struct ow_silent_group *group;
	bool any = false;
	for (uint32_t g = 0; (group = ow_silent_points_group(incidents->silence, g)); g++) {
		uint32_t known = find_subject(incidents, group->name);
		if (group->silent || known == OW_ID_MAP_NONE || !incidents->subject[known].open)
			continue;
		for (uint32_t i = 0; i < count; i++) {
			struct subject *subject = &incidents->subject[incidents->of_target[i]];
			if (subject->unknown_ns == NEVER ||
			    !ow_silent_group_contains(group, verdict[i].target->from, verdict[i].target->to))
				continue;
			subject->unknown_ns = now_ns;
			subject->quiet = subject->silent = false;
			any = true;
		}
	}
	return any;
}

static int update_silence(struct ow_incidents *incidents, const struct ow_monitor_verdict *verdict, uint32_t count,
                          int64_t now_ns)
{
	const struct ow_silent_group *group;
	bool any;
	int r = find_silence(incidents, verdict, count, &any);
	if (r < 0 || !any)
		return r;
	if (forget_returned(incidents, verdict, count, now_ns))
		r = find_silence(incidents, verdict, count, &any);
	for (uint32_t i = 0; r == 0 && (group = ow_silent_points_group(incidents->silence, i)); i++)
		r = update_group(incidents, group->name, group->silent, group->since_ns, now_ns, group->lanes);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		struct subject *subject = &incidents->subject[incidents->of_target[i]];
		bool grouped = ow_silent_points_is_grouped(incidents->silence, incidents->of_target[i]);
		r = keep_unmeasured(incidents, subject, subject->silent && !grouped, subject->unknown_ns, now_ns,
		                    subject->merged.verdict->cause,
		                    grouped ? "a whole point is not measured" : "measured again");
	}
	return r;
}

int ow_incidents_update(struct ow_incidents *incidents, int64_t now_ns, const struct ow_monitor_verdict *verdict,
                        uint32_t count, const char *hops)
{
	int r = enter_targets(incidents, verdict, count);
	for (uint32_t i = 0; i < incidents->subjects; i++)
		incidents->subject[i].merged = (struct merged){0};
	for (uint32_t i = 0; r == 0 && i < count; i++)
		merge(&incidents->subject[incidents->of_target[i]].merged, &verdict[i]);
	for (uint32_t i = 0; r == 0 && i < incidents->subjects; i++) {
		struct subject *subject = &incidents->subject[i];
		const struct merged *merged = &subject->merged;
		if (!merged->verdict)
			continue;
		if (merged->verdict->composed.length_ns)
			subject->length_ns = merged->verdict->composed.length_ns;
		subject->was_known |= merged->broken || merged->ok;
		subject->silent = subject->quiet = false;
		if (merged->broken)
			r = on_broken(incidents, subject, now_ns, hops);
		else if (merged->ok)
			on_ok(incidents, subject, now_ns);
		else
			on_unknown(incidents, subject, now_ns);
	}
	return r < 0 ? r : update_silence(incidents, verdict, count, now_ns);
}
