/* SPDX-License-Identifier: Apache-2.0 */
/* oneway plane monitor --why: every part of a path, before and after. */
#include "base/time.h"
#include "station/input.h"
#include "cli/plane_monitor.h"
#include "station/network.h"
#include "cli/terminal.h"
#include "plane/era.h"
#include "result/json.h"
#include "base/format.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is before is taken from this much longer ago than the question. */
#define BEFORE_NS (3600 * OW_NS_PER_S)
/* A part has changed when its delay or loss exceeds this many standard errors: by chance one part in 2,000. */
#define SIGNIFICANT 3.5

struct part {
	char name[OW_PLACE_TEXT];
	double share; /* of the path's packets */
	struct ow_era before, after;
	struct ow_watch_sample sample[2];
	struct ow_era_change change;
};

struct asked {
	const struct ow_station *station;
	const struct ow_plane_why *why;
	struct ow_topology *topology;
	struct ow_route route;
	struct part *part;
	uint32_t parts;
	int when; /* which of the samples is composed */
};

static struct part *part_of(struct asked *asked, const char *name)
{
	for (uint32_t i = 0; i < asked->parts; i++)
		if (strcmp(asked->part[i].name, name) == 0)
			return &asked->part[i];
	return NULL;
}

/* Class and all: where the class has no results of its own, those of all count. */
static void strip_class(const struct asked *asked, char *place)
{
	char *slash = strrchr(place, '/');
	if (slash && asked->why->class_name && strcmp(slash + 1, asked->why->class_name) == 0)
		*slash = 0;
}

static int on_result(void *arg, const struct ow_interval_result *result)
{
	struct asked *asked = arg;
	char name[OW_PLACE_TEXT];
	struct ow_watch_sample sample;
	if (result->start_ns >= asked->why->until_ns || ow_station_is_round_trip(result) ||
	    !ow_station_place(asked->station, result, name))
		return 0;
	strip_class(asked, name);
	struct part *part = part_of(asked, name);
	if (!part)
		return 0;
	ow_plane_sample(result, &sample);
	ow_era_add(result->start_ns < asked->why->since_ns ? &part->before : &part->after, &sample);
	return 0;
}

static int find_parts(struct asked *asked, struct ow_error *err)
{
	uint32_t room = 0;
	for (uint32_t w = 0; w < asked->route.ways; w++)
		room += asked->route.way[w].places;
	asked->part = calloc(room, sizeof(*asked->part));
	if (!asked->part)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (uint32_t w = 0; w < asked->route.ways; w++) {
		const struct ow_way *way = &asked->route.way[w];
		for (uint32_t i = 0; i < way->places; i++) {
			char name[OW_PLACE_TEXT];
			if (!ow_place_text(asked->topology, way, &way->place[i], name))
				return ow_error_set(err, E2BIG, "a part of the path has too long a name");
			struct part *part = part_of(asked, name);
			if (!part) {
				part = &asked->part[asked->parts++];
				memcpy(part->name, name, sizeof(name));
			}
			part->share += way->share;
		}
	}
	return 0;
}

static const struct ow_watch_sample *find(void *arg, const struct ow_way *way, const struct ow_place *place)
{
	struct asked *asked = arg;
	char name[OW_PLACE_TEXT];
	if (!ow_place_text(asked->topology, way, place, name))
		return NULL;
	const struct ow_watch_sample *sample = &part_of(asked, name)->sample[asked->when];
	return sample->has_delay || sample->has_loss ? sample : NULL;
}

static int by_excess(const void *pa, const void *pb)
{
	const struct part *a = pa, *b = pb;
	double ea = isfinite(a->change.excess_ns) ? a->change.excess_ns * a->share : -INFINITY;
	double eb = isfinite(b->change.excess_ns) ? b->change.excess_ns * b->share : -INFINITY;
	return (ea < eb) - (ea > eb);
}

/* -- what is said -----------------------------------------------------------------------------------------------------
 */

static void put_part(const struct part *part, int width)
{
	char before[OW_DURATION_TEXT] = "-", after[OW_DURATION_TEXT] = "-", excess[OW_DURATION_TEXT] = "-";
	char loss_before[OW_FORMAT] = "-", loss_after[OW_FORMAT] = "-", sigmas[OW_FORMAT] = "-", name[OW_PLACE_TEXT];
	const struct ow_era_change *change = &part->change;
	ow_format_clean(part->name, !ow_terminal_utf8(), name, sizeof(name));
	ow_format_cut(name, (size_t)width);
	if (part->before.intervals > 0)
		ow_duration_text(part->before.mean, before);
	if (part->after.intervals > 0)
		ow_duration_text(part->after.mean, after);
	if (isfinite(change->excess_ns))
		ow_duration_text(change->excess_ns, excess);
	if (isfinite(change->loss_before)) {
		ow_format_percent(change->loss_before, loss_before);
		ow_format_percent(change->loss_after, loss_after);
	}
	bool slow = change->delay_z > SIGNIFICANT, lossy = change->loss_z > SIGNIFICANT;
	if (isfinite(change->delay_z))
		snprintf(sigmas, sizeof(sigmas), "%.1f", change->delay_z);
	printf("%c %s%*s %10s %10s %10s %7s %7s %7s\n", slow || lossy ? '*' : ' ', name,
	       width - (int)ow_format_columns(name), "", before, after, excess, sigmas, loss_before, loss_after);
}

/* Parts that have results both before and after. */
static uint32_t compared(const struct asked *asked)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < asked->parts; i++) {
		const struct part *part = &asked->part[i];
		count += (part->before.intervals > 0 && part->after.intervals > 0) ||
		         (isfinite(part->change.loss_before) && isfinite(part->change.loss_after));
	}
	return count;
}

static void put_conclusion(const struct asked *asked, const struct ow_composed composed[2])
{
	char before[OW_DURATION_TEXT], after[OW_DURATION_TEXT], more[OW_DURATION_TEXT];
	double excess = composed[1].mean_ns.value - composed[0].mean_ns.value;
	bool known = composed[0].mean_ns.status != OW_VALUE_NONE && composed[1].mean_ns.status != OW_VALUE_NONE;
	bool any = false;
	if (known) {
		ow_duration_text(composed[0].mean_ns.value, before);
		ow_duration_text(composed[1].mean_ns.value, after);
		ow_duration_text(fabs(excess), more);
		printf("The path takes %s, %s %s than before (%s).\n", after, more, excess < 0 ? "less" : "more",
		       before);
	} else {
		puts("The path cannot be composed: a part of it has no results before or after.");
	}
	for (uint32_t i = 0; i < asked->parts; i++) {
		const struct part *part = &asked->part[i];
		char name[OW_PLACE_TEXT];
		ow_format_clean(part->name, !ow_terminal_utf8(), name, sizeof(name));
		if (part->change.delay_z > SIGNIFICANT) {
			ow_duration_text(part->change.excess_ns, more);
			printf("%s is slower by %s", name, more);
			if (known && excess > 0)
				printf(", %.0f %% of the path's excess",
				       100 * part->share * part->change.excess_ns / excess);
			puts(".");
			any = true;
		}
		if (part->change.loss_z > SIGNIFICANT) {
			printf("%s loses %.3g %%, before %.3g %%.\n", name, part->change.loss_after * 100,
			       part->change.loss_before * 100);
			any = true;
		}
	}
	uint32_t known_parts = compared(asked), unknown = asked->parts - known_parts;
	if (!any)
		printf("%s is worse than before beyond chance.\n", unknown ? "No part with results" : "No part of it");
	if (unknown)
		printf("Of %u of its %u parts nothing can be said: they have no results before, or none after.\n",
		       unknown, asked->parts);
}

static void put_text(const struct asked *asked, const struct ow_composed composed[2])
{
	char time[OW_FORMAT];
	int width = ow_terminal_width(stdout) - 60;
	width = width < 18 ? 18 : width > 40 ? 40 : width;
	printf("%s to %s%s%s since %s, against the hour before\n\n", asked->why->from, asked->why->to,
	       asked->why->class_name ? ", " : "", asked->why->class_name ? asked->why->class_name : "",
	       ow_format_local(asked->why->since_ns, "%Y-%m-%d %H:%M:%S", time));
	printf("  %-*s %10s %10s %10s %7s %7s %7s\n", width, "part", "before", "after", "excess", "sigmas", "loss",
	       "after");
	for (uint32_t i = 0; i < asked->parts; i++)
		put_part(&asked->part[i], width);
	putchar('\n');
	put_conclusion(asked, composed);
}

static void json_part(struct ow_json *json, const struct part *part)
{
	ow_json_object(json, NULL);
	ow_json_string(json, "place", part->name);
	ow_json_flag(json, "responsible", part->change.delay_z > SIGNIFICANT || part->change.loss_z > SIGNIFICANT);
	ow_json_number(json, "share", part->share);
	ow_json_number(json, "intervals_before", part->before.intervals);
	ow_json_number(json, "intervals_after", part->after.intervals);
	ow_json_number(json, "before_ns", part->before.intervals > 0 ? part->before.mean : NAN);
	ow_json_number(json, "after_ns", part->after.intervals > 0 ? part->after.mean : NAN);
	ow_json_number(json, "excess_ns", part->change.excess_ns);
	ow_json_number(json, "excess_error_ns", part->change.excess_error_ns);
	ow_json_number(json, "sigmas", part->change.delay_z);
	ow_json_number(json, "loss_before", part->change.loss_before);
	ow_json_number(json, "loss_after", part->change.loss_after);
	ow_json_number(json, "loss_sigmas", part->change.loss_z);
	ow_json_end(json);
}

static void put_json(const struct asked *asked, const struct ow_composed composed[2])
{
	struct ow_json json = {.out = stdout};
	ow_json_object(&json, NULL);
	ow_json_command(&json, "plane monitor");
	ow_json_string(&json, "from", asked->why->from);
	ow_json_string(&json, "to", asked->why->to);
	ow_json_integer(&json, "since_ns", asked->why->since_ns);
	ow_json_number(&json, "before_ns", ow_json_known(&composed[0].mean_ns));
	ow_json_number(&json, "after_ns", ow_json_known(&composed[1].mean_ns));
	ow_json_number(&json, "loss_before", ow_json_known(&composed[0].loss_ratio));
	ow_json_number(&json, "loss_after", ow_json_known(&composed[1].loss_ratio));
	ow_json_array(&json, "parts");
	for (uint32_t i = 0; i < asked->parts; i++)
		json_part(&json, &asked->part[i]);
	ow_json_end(&json);
	ow_json_end(&json);
}

static int ask(struct asked *asked, char *const *paths, int count, struct ow_error *err)
{
	struct ow_station_input *input;
	bool ended;
	int r = ow_station_input_open(paths, count, false, asked->why->since_ns - BEFORE_NS, &input, err);
	if (r < 0)
		return r;
	r = ow_station_input_poll(input, on_result, asked, &ended, err);
	ow_station_input_close(input);
	return r;
}

static int find_route(struct asked *asked, struct ow_error *err)
{
	const struct ow_plane_why *why = asked->why;
	bool *is_mrouter = NULL;
	int r = ow_station_network(asked->station, &asked->topology, &is_mrouter, err);
	if (r < 0)
		return r;
	uint32_t from = ow_topology_find(asked->topology, why->from), to = ow_topology_find(asked->topology, why->to);
	if (from == UINT32_MAX || to == UINT32_MAX)
		r = ow_error_set(err, ENOENT, "the network has no router '%.100s'",
		                 from == UINT32_MAX ? why->from : why->to);
	else if (from == to)
		r = ow_error_set(err, EINVAL, "both ends are %.100s", why->from);
	else
		r = ow_route_find(asked->topology, is_mrouter, from, to, &asked->route, err);
	free(is_mrouter);
	return r < 0 ? r : find_parts(asked, err);
}

int ow_plane_why(const struct ow_station *station, char *const *paths, int count, const struct ow_plane_why *why,
                 bool json, struct ow_error *err)
{
	struct asked asked = {.station = station, .why = why};
	struct ow_composed composed[2];
	int r = find_route(&asked, err);
	if (r == 0)
		r = ask(&asked, paths, count, err);
	for (uint32_t i = 0; r == 0 && i < asked.parts; i++) {
		struct part *part = &asked.part[i];
		ow_era_sample(&part->before, &part->sample[0]);
		ow_era_sample(&part->after, &part->sample[1]);
		ow_era_compare(&part->before, &part->after, &part->change);
	}
	if (r == 0) {
		for (asked.when = 0; asked.when < 2; asked.when++)
			ow_compose(&asked.route, find, &asked, &composed[asked.when]);
		qsort(asked.part, asked.parts, sizeof(*asked.part), by_excess);
		if (!compared(&asked))
			r = ow_error_set(
				err, ENODATA,
				"no part of %.100s to %.100s has results both in the hour before --since and after it",
				why->from, why->to);
		else if (json)
			put_json(&asked, composed);
		else
			put_text(&asked, composed);
	}
	free(asked.part);
	ow_route_done(&asked.route);
	ow_topology_free(asked.topology);
	return r;
}
