/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres_lanes.h"

#include "base/array.h"
#include "base/id_map.h"
#include "base/random.h"
#include "store/postgres_schema.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define LANES_MAX 4000000u

enum { SEGMENT, CLASS, FROM, TO, POINT, NAMES };

struct lane {
	char *names;       /* all five, each with its terminating zero */
	uint32_t key_size; /* bytes of the first four */
	int64_t id;        /* 0: waits to be added */
};

/* How many lanes a point has added. */
struct point {
	char name[OW_RESULT_NAME];
	size_t lanes;
};

struct ow_postgres_lanes {
	uint64_t seed;
	struct ow_id_map map; /* by the first four names */
	struct lane *lane;
	size_t lanes, room, added; /* those before `added` are in the database */
	struct ow_id_map point_map;
	struct point *point;
	size_t points, points_room;
};

int ow_postgres_lanes_create(struct ow_postgres_lanes **ret_lanes)
{
	struct ow_postgres_lanes *l = calloc(1, sizeof *l);
	if (!l)
		return -ENOMEM;
	l->seed = ow_random_secret(l);
	*ret_lanes = l;
	return 0;
}

static void forget(struct ow_postgres_lanes *l)
{
	for (size_t i = 0; i < l->lanes; i++)
		free(l->lane[i].names);
	l->lanes = l->added = l->points = 0;
	ow_id_map_clear(&l->map);
	ow_id_map_clear(&l->point_map);
}

void ow_postgres_lanes_free(struct ow_postgres_lanes *l)
{
	if (!l)
		return;
	forget(l);
	ow_id_map_done(&l->map);
	ow_id_map_done(&l->point_map);
	free(l->lane);
	free(l->point);
	free(l);
}

/* -- looking up --------------------------------------------------------------------------------------------------- */

/* Writes the names one after the other. Returns the bytes of the first four. */
static size_t join(const char *const name[NAMES], char ret_text[NAMES * OW_RESULT_NAME], size_t *ret_size)
{
	size_t at = 0, key = 0;
	for (int i = 0; i < NAMES; i++) {
		size_t length = strnlen(name[i], OW_RESULT_NAME - 1);
		memcpy(ret_text + at, name[i], length);
		ret_text[at + length] = 0;
		at += length + 1;
		key = i == TO ? at : key;
	}
	*ret_size = at;
	return key;
}

static uint32_t find(const struct ow_postgres_lanes *l, const char *key, size_t size, uint64_t hash)
{
	return OW_ID_MAP_FIND(&l->map, hash, i,
	                      l->lane[i].key_size == size && memcmp(l->lane[i].names, key, size) == 0);
}

int64_t ow_postgres_lanes_find(const struct ow_postgres_lanes *l, const struct ow_interval_result *r)
{
	const char *const name[NAMES] = {r->segment, r->class_name, r->from, r->to, ""};
	char text[NAMES * OW_RESULT_NAME];
	size_t size, key = join(name, text, &size);
	uint32_t found = find(l, text, key, XXH3_64bits_withSeed(text, key, l->seed));
	return found == OW_ID_MAP_NONE ? 0 : l->lane[found].id;
}

/* The entry of a point; NULL if there is no memory. */
static struct point *point_of(struct ow_postgres_lanes *l, const char *name)
{
	size_t length = strnlen(name, OW_RESULT_NAME - 1);
	uint64_t hash = XXH3_64bits_withSeed(name, length, l->seed);
	uint32_t found = OW_ID_MAP_FIND(&l->point_map, hash, i, strcmp(l->point[i].name, name) == 0);
	if (found != OW_ID_MAP_NONE)
		return &l->point[found];
	if (OW_GROW(l->point, l->points_room, l->points + 1) < 0 ||
	    ow_id_map_add(&l->point_map, hash, (uint32_t)l->points) < 0)
		return NULL;
	struct point *point = &l->point[l->points++];
	*point = (struct point){.lanes = 0};
	memcpy(point->name, name, length);
	return point;
}

/* Adds a lane unless it is there. Returns its place, or a negative errno. */
static int64_t keep(struct ow_postgres_lanes *l, const char *const name[NAMES], int64_t id, size_t most)
{
	char text[NAMES * OW_RESULT_NAME];
	size_t size, key = join(name, text, &size);
	uint64_t hash = XXH3_64bits_withSeed(text, key, l->seed);
	uint32_t found = find(l, text, key, hash);
	if (found != OW_ID_MAP_NONE)
		return found;
	struct point *point = point_of(l, name[POINT]);
	if (!point)
		return -ENOMEM;
	if (point->lanes >= most || l->lanes >= LANES_MAX)
		return -EDQUOT;
	char *copy = malloc(size);
	if (!copy || OW_GROW(l->lane, l->room, l->lanes + 1) < 0 ||
	    ow_id_map_add(&l->map, hash, (uint32_t)l->lanes) < 0) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, text, size);
	l->lane[l->lanes] = (struct lane){copy, (uint32_t)key, id};
	point->lanes++;
	return (int64_t)l->lanes++;
}

int ow_postgres_lanes_want(struct ow_postgres_lanes *l, const char *point, const struct ow_interval_result *r,
                           size_t most)
{
	const char *const name[NAMES] = {r->segment, r->class_name, r->from, r->to, point};
	int64_t place = keep(l, name, 0, most);
	return place < 0 ? (int)place : 0;
}

/* -- the database ------------------------------------------------------------------------------------------------- */

/* Reads lanes: their numbers and names. */
static int take(struct ow_postgres_lanes *l, struct ow_postgres *p, const char *sql, struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	enum ow_step step = OW_STEP_DONE;
	int r = ow_postgres_prepare(p, sql, &statement, err);
	while (r == 0 && (step = ow_step(statement)) == OW_STEP_ROW) {
		const char *name[NAMES];
		for (int i = 0; i < NAMES; i++) {
			name[i] = ow_column_text(statement, i + 1);
			name[i] = name[i] ? name[i] : "";
		}
		int64_t place = keep(l, name, ow_column_integer(statement, 0), SIZE_MAX);
		if (place < 0)
			r = ow_error_set(err, (int)-place, "%s: %s", ow_postgres_name(p),
			                 place == -ENOMEM ? "out of memory for its lanes" : "too many lanes");
		else
			l->lane[place].id = ow_column_integer(statement, 0);
	}
	if (r == 0 && step == OW_STEP_FAILED)
		r = ow_postgres_fail(p, err);
	ow_statement_free(statement);
	return r;
}

#define LANE_NAMES "segment, class, from_point, to_point, point"

int ow_postgres_lanes_load(struct ow_postgres_lanes *l, struct ow_postgres *p, struct ow_error *err)
{
	forget(l);
	int r = take(l, p, "SELECT id, " LANE_NAMES " FROM lane", err);
	l->added = l->lanes;
	return r;
}

static int copy_wanted(struct ow_postgres_lanes *l, struct ow_postgres *p, struct ow_error *err)
{
	struct ow_postgres_copy *copy = NULL;
	int r = ow_postgres_copy_begin(p, "COPY pg_temp.stage_lane FROM STDIN (FORMAT binary)", &copy, err);
	if (r < 0)
		return r;
	for (size_t i = l->added; i < l->lanes; i++) {
		const struct ow_statement *row = ow_postgres_copy_row(copy, 1 + NAMES);
		const char *name = l->lane[i].names;
		ow_bind_integer(row, 1, (int64_t)i);
		for (int k = 0; k < NAMES; k++, name += strlen(name) + 1)
			ow_bind_text(row, k + 2, name);
	}
	return ow_postgres_copy_end(copy, err);
}

int ow_postgres_lanes_add(struct ow_postgres_lanes *l, struct ow_postgres *p, struct ow_error *err)
{
	if (l->added == l->lanes)
		return 0;
	/* One collector at a time: two that add the same lanes could wait for each other in a circle. */
	static const char begin[] =
		"CREATE TEMPORARY TABLE IF NOT EXISTS stage_lane (number bigint, segment text, class text,"
		" from_point text, to_point text, point text) ON COMMIT DELETE ROWS;"
		"BEGIN; SELECT pg_advisory_xact_lock(" OW_POSTGRES_LOCK_CLASS ", 4)";
	static const char insert[] = "INSERT INTO lane (" LANE_NAMES ") SELECT " LANE_NAMES
				     " FROM pg_temp.stage_lane ORDER BY number ON CONFLICT DO NOTHING";
	int r = ow_postgres_run(p, begin, err);
	if (r == 0)
		r = copy_wanted(l, p, err);
	if (r == 0)
		r = ow_postgres_run(p, insert, err);
	if (r == 0)
		r = take(l, p,
		         "SELECT id, segment, class, from_point, to_point, lane.point FROM lane JOIN pg_temp.stage_lane"
		         " USING (segment, class, from_point, to_point)",
		         err);
	if (r == 0)
		r = ow_postgres_run(p, "COMMIT", err);
	else if (ow_postgres_in_transaction(p))
		ow_postgres_run(p, "ROLLBACK", NULL);
	if (r == 0)
		l->added = l->lanes;
	return r;
}
