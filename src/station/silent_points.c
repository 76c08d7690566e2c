/* SPDX-License-Identifier: Apache-2.0 */
/* Which points explain that lanes have no results. */
#include "station/silent_points.h"

#include "base/array.h"
#include "base/id_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define POINT "point "

struct lane {
	uint32_t from, to, number;
	int64_t since_ns;
	bool silent, grouped;
};

struct point {
	struct ow_silent_group group;
	uint32_t lanes, silent; /* not yet explained */
	bool ambiguous;
};

struct ow_silent_points {
	struct lane *lane;
	uint32_t lanes, lanes_room;
	struct point *point; /* the first one is the whole network */
	uint32_t points, points_room;
	struct ow_id_map by_name;
	bool *grouped; /* by the caller's numbers */
	uint32_t numbers, numbers_room;
	bool was;
};

static int64_t point_of(struct ow_silent_points *silence, const char *name)
{
	char text[OW_SILENT_NAME];
	snprintf(text, sizeof(text), "%s%s", silence->points ? POINT : "", name);
	uint64_t hash = XXH3_64bits(text, strlen(text));
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a map without points finds none */
	uint32_t known = OW_ID_MAP_FIND(&silence->by_name, hash, i, strcmp(silence->point[i].group.name, text) == 0);
	if (known != OW_ID_MAP_NONE)
		return known;
	if (OW_GROW(silence->point, silence->points_room, silence->points + 1) < 0 ||
	    ow_id_map_add(&silence->by_name, hash, silence->points) < 0)
		return -ENOMEM;
	struct point *point = &silence->point[silence->points];
	*point = (struct point){.lanes = 0};
	memcpy(point->group.name, text, sizeof(text));
	return silence->points++;
}

int ow_silent_points_create(struct ow_silent_points **ret_silence)
{
	struct ow_silent_points *silence = calloc(1, sizeof(*silence));
	if (!silence || point_of(silence, "all segments") < 0) {
		ow_silent_points_free(silence);
		return -ENOMEM;
	}
	*ret_silence = silence;
	return 0;
}

void ow_silent_points_free(struct ow_silent_points *silence)
{
	if (!silence)
		return;
	free(silence->lane);
	free(silence->point);
	free(silence->grouped);
	ow_id_map_done(&silence->by_name);
	free(silence);
}

void ow_silent_points_clear(struct ow_silent_points *silence)
{
	silence->lanes = 0;
	silence->was = false;
	for (uint32_t i = 0; i < silence->points; i++) {
		silence->was |= silence->point[i].group.silent;
		silence->point[i].lanes = silence->point[i].silent = 0;
		silence->point[i].group.silent = silence->point[i].ambiguous = false;
	}
	for (uint32_t i = 0; i < silence->numbers; i++)
		silence->grouped[i] = false;
}

bool ow_silent_points_was(const struct ow_silent_points *silence)
{
	return silence->was;
}

int ow_silent_points_add(struct ow_silent_points *silence, const char *from, const char *to, uint32_t number,
                         bool silent, int64_t since_ns)
{
	int64_t a = point_of(silence, from), b = point_of(silence, to);
	if (a < 0 || b < 0 || OW_GROW(silence->lane, silence->lanes_room, silence->lanes + 1) < 0 ||
	    OW_GROW_ZEROED(silence->grouped, silence->numbers_room, number + 1) < 0)
		return -ENOMEM;
	if (silence->numbers <= number)
		silence->numbers = number + 1;
	silence->lane[silence->lanes++] = (struct lane){(uint32_t)a, (uint32_t)b, number, since_ns, silent, false};
	silence->point[a].lanes++;
	silence->point[b].lanes++;
	silence->point[a].silent += silent;
	silence->point[b].silent += silent;
	return 0;
}

static bool is_silent(const struct point *point)
{
	return point->lanes > 0 && point->silent == point->lanes;
}

/* Whether a neighbour explains as many lanes. */
static bool is_ambiguous(const struct ow_silent_points *silence, uint32_t chosen)
{
	for (uint32_t i = 0; i < silence->lanes; i++) {
		const struct lane *lane = &silence->lane[i];
		if (lane->grouped || (lane->from != chosen && lane->to != chosen))
			continue;
		const struct point *other = &silence->point[lane->from == chosen ? lane->to : lane->from];
		if (is_silent(other) && other->lanes == silence->point[chosen].lanes)
			return true;
	}
	return false;
}

/* The lanes of a point, or all of them, are explained. */
static void take(struct ow_silent_points *silence, uint32_t chosen)
{
	struct ow_silent_group *group = &silence->point[chosen].group;
	group->silent = true;
	group->lanes = 0;
	group->since_ns = INT64_MAX;
	for (uint32_t i = 0; i < silence->lanes; i++) {
		struct lane *lane = &silence->lane[i];
		if (lane->grouped || (chosen && lane->from != chosen && lane->to != chosen))
			continue;
		lane->grouped = silence->grouped[lane->number] = true;
		group->lanes++;
		if (lane->since_ns < group->since_ns)
			group->since_ns = lane->since_ns;
		silence->point[lane->from].lanes--;
		silence->point[lane->to].lanes--;
		silence->point[lane->from].silent--;
		silence->point[lane->to].silent--;
	}
}

/* The point that explains most lanes; 0 if none does. */
static uint32_t most_silent(const struct ow_silent_points *silence)
{
	uint32_t best = 0;
	for (uint32_t i = 1; i < silence->points; i++) {
		const struct point *point = &silence->point[i];
		if (is_silent(point) && !point->ambiguous && (!best || point->lanes > silence->point[best].lanes))
			best = i;
	}
	return best;
}

void ow_silent_points_find(struct ow_silent_points *silence)
{
	uint32_t left = 0, silent = 0;
	for (uint32_t best; (best = most_silent(silence));) {
		silence->point[best].ambiguous = is_ambiguous(silence, best);
		if (!silence->point[best].ambiguous)
			take(silence, best);
	}
	for (uint32_t i = 0; i < silence->lanes; i++) {
		left += !silence->lane[i].grouped;
		silent += silence->lane[i].silent && !silence->lane[i].grouped;
	}
	if (silent > 1 && silent == left && left == silence->lanes)
		take(silence, 0);
}

const struct ow_silent_group *ow_silent_points_group(const struct ow_silent_points *silence, uint32_t i)
{
	return i < silence->points ? &silence->point[i].group : NULL;
}

bool ow_silent_points_is_grouped(const struct ow_silent_points *silence, uint32_t number)
{
	return number < silence->numbers && silence->grouped[number];
}

bool ow_silent_group_contains(const struct ow_silent_group *group, const char *from, const char *to)
{
	const char *name = group->name + strlen(POINT);
	return strncmp(group->name, POINT, strlen(POINT)) != 0 || strcmp(name, from) == 0 || strcmp(name, to) == 0;
}
