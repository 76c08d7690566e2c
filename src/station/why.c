/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why a path is worse than before: compares every part of it before and after. */
#include "station/why.h"

#include "base/time.h"
#include "plane/compose.h"
#include "station/wait.h"
#include "station/input.h"
#include "station/lane_places.h"
#include "station/network.h"
#include "station/sample.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the time before --since that counts as "before". */
#define BEFORE_NS (3600 * OW_NS_PER_S)
/*
 * A part has changed if its delay or loss has increased by more than this many standard errors: by chance one part in
 * 2,000.
 */
#define SIGNIFICANT 3.5

struct asked {
	const struct ow_station *station;
	struct ow_lane_places *lanes;
	struct ow_wait *wait;
	struct ow_error *err;
	const struct ow_why_question *question;
	struct ow_topology *topology;
	struct ow_route route;
	struct ow_why *why;
	int when; /* which of the samples is composed */
};

static struct ow_why_part *part_of(struct asked *asked, const char *name)
{
	for (uint32_t i = 0; i < asked->why->parts; i++)
		if (strcmp(asked->why->part[i].name, name) == 0)
			return &asked->why->part[i];
	return NULL;
}

/* Results of the class and of all packets: if the class has no results, those of all packets are used. */
static void strip_class(const struct asked *asked, char *place)
{
	char *slash = strrchr(place, '/');
	if (slash && asked->question->class_name && strcmp(slash + 1, asked->question->class_name) == 0)
		*slash = 0;
}

static int on_result(void *arg, const struct ow_interval_result *result)
{
	struct asked *asked = arg;
	struct ow_watch_sample sample;
	bool is_new, full;
	if (result->start_ns >= asked->question->until_ns || ow_station_is_round_trip(result) ||
	    !ow_station_times_valid(result))
		return 0;
	const struct ow_lane_place *lane = ow_lane_places_find(asked->lanes, result, &is_new, &full);
	if (!lane)
		return full ? 0 : ow_error_set(asked->err, ENOMEM, "out of memory");
	if (!lane->place)
		return 0;
	ow_station_sample(result, &sample);
	return ow_wait_add(asked->wait, lane->place, &sample, 0, asked->err);
}

/* The results of the parts of the path, each time once: a minute does not count besides its seconds. */
static void take_results(struct asked *asked)
{
	char name[OW_PLACE_TEXT];
	const char *place;
	struct ow_watch_sample sample;
	while (ow_wait_next(asked->wait, true, 0, &place, &sample)) {
		snprintf(name, sizeof(name), "%s", place);
		strip_class(asked, name);
		struct ow_why_part *part = part_of(asked, name);
		if (!part || sample.start_ns < part->until_ns)
			continue;
		part->until_ns = sample.start_ns + sample.length_ns;
		ow_era_add(sample.start_ns < asked->question->since_ns ? &part->before : &part->after, &sample);
	}
}

static int find_parts(struct asked *asked, struct ow_error *err)
{
	uint32_t room = 0;
	for (uint32_t w = 0; w < asked->route.ways; w++)
		room += asked->route.way[w].places;
	asked->why->part = calloc(room, sizeof(*asked->why->part));
	if (!asked->why->part)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (uint32_t w = 0; w < asked->route.ways; w++) {
		const struct ow_way *way = &asked->route.way[w];
		for (uint32_t i = 0; i < way->places; i++) {
			char name[OW_PLACE_TEXT];
			if (!ow_place_text(asked->topology, way, &way->place[i], name))
				return ow_error_set(err, E2BIG, "the name of a part of the path is too long");
			struct ow_why_part *part = part_of(asked, name);
			if (!part) {
				part = &asked->why->part[asked->why->parts++];
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
	const struct ow_why_part *part = part_of(asked, name);
	const struct ow_watch_sample *sample = part ? &part->sample[asked->when] : NULL;
	if (!part)
		return &ow_compose_folded;
	return sample->has_delay || sample->has_loss ? sample : NULL;
}

static int by_excess(const void *pa, const void *pb)
{
	const struct ow_why_part *a = pa, *b = pb;
	double ea = isfinite(a->change.excess_ns) ? a->change.excess_ns * a->share : -INFINITY;
	double eb = isfinite(b->change.excess_ns) ? b->change.excess_ns * b->share : -INFINITY;
	return (ea < eb) - (ea > eb);
}

/* Summarises the eras of a part, each and together. */
static void compare(struct ow_why_part *part)
{
	ow_era_sample(&part->before, &part->sample[0]);
	ow_era_sample(&part->after, &part->sample[1]);
	ow_era_compare(&part->before, &part->after, &part->change);
	part->slower = part->change.delay_z > SIGNIFICANT;
	part->lossier = part->change.loss_z > SIGNIFICANT;
}

static bool is_compared(const struct ow_why_part *part)
{
	return (part->before.intervals > 0 && part->after.intervals > 0) ||
	       (isfinite(part->change.loss_before) && isfinite(part->change.loss_after));
}

static int ask(struct asked *asked, char *const *paths, int count, struct ow_error *err)
{
	struct ow_station_input *input;
	bool ended;
	int r = ow_station_input_open(paths, count, false, asked->question->since_ns - BEFORE_NS, NULL, &input, err);
	if (r < 0)
		return r;
	r = ow_station_input_poll(input, on_result, asked, &ended, err);
	ow_station_input_close(input);
	return r;
}

static int find_route(struct asked *asked, struct ow_error *err)
{
	const struct ow_why_question *question = asked->question;
	bool *is_mrouter = NULL;
	int r = ow_station_by_segments(asked->station) && !asked->station->map
	                ? ow_lane_places_network(asked->lanes, &asked->topology, &is_mrouter, err)
	                : ow_station_network(asked->station, &asked->topology, &is_mrouter, err);
	if (r < 0)
		return r;
	uint32_t from = ow_topology_find(asked->topology, question->from),
		 to = ow_topology_find(asked->topology, question->to);
	if (from == UINT32_MAX || to == UINT32_MAX)
		r = ow_error_set(err, ENOENT, "the network has no router '%.100s'",
		                 from == UINT32_MAX ? question->from : question->to);
	else if (from == to)
		r = ow_error_set(err, EINVAL, "both ends are %.100s", question->from);
	else
		r = ow_route_find(asked->topology, is_mrouter, from, to, &asked->route, err);
	free(is_mrouter);
	return r < 0 ? r : find_parts(asked, err);
}

static bool has_results(const struct ow_era *era)
{
	return era->intervals > 0 || era->sent > 0;
}

/* The inside of a router that nobody measures is a part of the segments around it. */
static void fold_insides(struct ow_why *why)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < why->parts; i++) {
		const struct ow_why_part *part = &why->part[i];
		if (!strchr(part->name, '[') || has_results(&part->before) || has_results(&part->after))
			why->part[kept++] = *part;
	}
	why->folded = why->parts - kept;
	why->parts = kept;
}

static int answer(struct asked *asked, struct ow_error *err)
{
	struct ow_why *why = asked->why;
	take_results(asked);
	fold_insides(why);
	for (uint32_t i = 0; i < why->parts; i++) {
		compare(&why->part[i]);
		why->compared += is_compared(&why->part[i]);
	}
	if (!why->compared)
		return ow_error_set(
			err, ENODATA,
			"no part of %.100s to %.100s has results both in the hour before --since and after it",
			asked->question->from, asked->question->to);
	for (asked->when = 0; asked->when < 2; asked->when++)
		ow_compose(&asked->route, find, asked, &why->composed[asked->when]);
	qsort(why->part, why->parts, sizeof(*why->part), by_excess);
	return 0;
}

int ow_why_ask(const struct ow_station *station, char *const *paths, int count, const struct ow_why_question *question,
               struct ow_why *ret_why, struct ow_error *err)
{
	*ret_why = (struct ow_why){0};
	struct asked asked = {.station = station, .question = question, .why = ret_why, .err = err};
	int r = 0;
	if (ow_lane_places_create(station, &asked.lanes) < 0 || ow_wait_create(&asked.wait) < 0)
		r = ow_error_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = ask(&asked, paths, count, err);
	if (r == 0)
		r = find_route(&asked, err);
	if (r == 0)
		r = answer(&asked, err);
	ow_lane_places_free(asked.lanes);
	ow_wait_free(asked.wait);
	ow_route_done(&asked.route);
	ow_topology_free(asked.topology);
	if (r != 0)
		ow_why_done(ret_why);
	return r;
}

void ow_why_done(struct ow_why *why)
{
	free(why->part);
	*why = (struct ow_why){0};
}
