/* SPDX-License-Identifier: Apache-2.0 */
/* Minutes, hours and days of a store: store_rollups.h has when they are made. */
#include "store/store_rollups.h"

#include "base/array.h"
#include "base/time.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Minutes in one transaction: some 10 ms, during which nobody else can write. */
#define MINUTES_MAX 64

struct ow_store_rollups_lane {
	int64_t id;
	int64_t until_ns;  /* its minutes before this one are added up */
	int64_t newest_ns; /* start of its newest final result; INT64_MIN: none */
};

struct ow_store_rollups_dirty {
	int64_t lane, start_ns;
};

static int64_t start_of(int64_t time_ns, enum ow_period period)
{
	int64_t length_ns = ow_periods[period].length_ns;
	return time_ns < INT64_MIN + length_ns ? INT64_MIN : ow_floor_div(time_ns, length_ns) * length_ns;
}

/* -- statements --------------------------------------------------------------------------------------------------- */

static int no_memory(const struct ow_store_rollups *s, struct ow_error *err)
{
	return ow_error_set(err, ENOMEM, "%s: out of memory", s->file->path);
}

/* The parts of a sum, in the order of time: lane, start, end. */
static void put_read(FILE *out, enum ow_period period)
{
	fputs("SELECT ", out);
	ow_row_select(out, ow_row_version());
	fprintf(out, " FROM %s WHERE lane = ? AND start_ns >= ? AND start_ns < ?%s ORDER BY start_ns",
	        ow_periods[period - 1].table, period == OW_PERIOD_MINUTE ? " AND final" : "");
}

static void put_insert(FILE *out, enum ow_period period)
{
	ow_row_insert(out, ow_periods[period].table);
}

static int prepare(struct ow_store_rollups *s, void (*put)(FILE *out, enum ow_period period), enum ow_period period,
                   sqlite3_stmt **ret_statement, struct ow_error *err)
{
	char *sql = NULL;
	size_t size;
	FILE *out = open_memstream(&sql, &size);
	if (out)
		put(out, period);
	int r = out && fclose(out) == 0 ? ow_database_prepare(s->file, sql, ret_statement, err) : no_memory(s, err);
	free(sql);
	return r;
}

/* What was deleted, after it was told in a transaction that failed. */
static int ask_deleted(struct ow_store_rollups *s, struct ow_error *err)
{
	char sql[120];
	int r = 0;
	for (int p = 0; s->stale && r == 0 && p < OW_PERIODS; p++) {
		snprintf(sql, sizeof sql,
		         "SELECT ifnull(max(value), -9223372036854775807) FROM meta WHERE key = 'deleted_%s_ns'",
		         ow_periods[p].table);
		r = ow_database_ask(s->file, sql, &s->deleted_ns[p], err);
	}
	s->stale = r < 0;
	return r;
}

int ow_store_rollups_init(struct ow_store_rollups *s, const struct ow_database *file, struct ow_error *err)
{
	*s = (struct ow_store_rollups){.file = file, .reader = {.version = ow_row_version()}, .stale = true};
	int r = ow_rollup_create(&s->rollup) < 0 ? no_memory(s, err) : 0;
	for (int p = OW_PERIOD_MINUTE; r == 0 && p < OW_PERIODS; p++) {
		r = prepare(s, put_read, (enum ow_period)p, &s->read[p], err);
		if (r == 0)
			r = prepare(s, put_insert, (enum ow_period)p, &s->put[p], err);
	}
	if (r < 0 ||
	    (r = ow_database_prepare(file,
	                             "SELECT start_ns FROM result WHERE lane = ? AND start_ns >= ? AND final"
	                             " ORDER BY start_ns LIMIT 1",
	                             &s->first, err)) < 0 ||
	    (r = ow_database_prepare(file,
	                             "SELECT start_ns FROM result WHERE lane = ? AND final ORDER BY start_ns DESC"
	                             " LIMIT 1",
	                             &s->newest, err)) < 0 ||
	    (r = ow_database_prepare(file, "SELECT start_ns FROM minute WHERE lane = ? ORDER BY start_ns DESC LIMIT 1",
	                             &s->rolled, err)) < 0)
		return r;
	return ow_database_prepare(file, "SELECT id FROM lane WHERE id > ? ORDER BY id LIMIT 1", &s->next_lane, err);
}

void ow_store_rollups_done(struct ow_store_rollups *s)
{
	for (int p = 0; p < OW_PERIODS; p++) {
		sqlite3_finalize(s->read[p]);
		sqlite3_finalize(s->put[p]);
		free(s->dirty[p]);
	}
	sqlite3_finalize(s->first);
	sqlite3_finalize(s->newest);
	sqlite3_finalize(s->rolled);
	sqlite3_finalize(s->next_lane);
	ow_row_reader_done(&s->reader);
	ow_rollup_free(s->rollup);
	free(s->lane);
}

/* One number; *ret_value is unchanged if there is none. */
static int ask(struct ow_store_rollups *s, sqlite3_stmt *statement, int64_t a, int64_t b, int64_t *ret_value,
               struct ow_error *err)
{
	sqlite3_bind_int64(statement, 1, a);
	if (sqlite3_bind_parameter_count(statement) > 1)
		sqlite3_bind_int64(statement, 2, b);
	int code = sqlite3_step(statement), r = 0;
	if (code == SQLITE_ROW)
		*ret_value = sqlite3_column_int64(statement, 0);
	else if (code != SQLITE_DONE)
		r = ow_database_fail(s->file, err);
	sqlite3_reset(statement);
	return r;
}

/* -- lanes -------------------------------------------------------------------------------------------------------- */

static int load_lane(struct ow_store_rollups *s, int64_t id, struct ow_store_rollups_lane **ret_lane,
                     struct ow_error *err)
{
	struct ow_store_rollups_lane lane = {.id = id, .until_ns = INT64_MIN, .newest_ns = INT64_MIN};
	int r = ask_deleted(s, err);
	if (r == 0)
		r = ask(s, s->rolled, id, 0, &lane.until_ns, err);
	if (r == 0)
		r = ask(s, s->newest, id, 0, &lane.newest_ns, err);
	if (r < 0)
		return r;
	if (lane.until_ns != INT64_MIN)
		lane.until_ns = ow_time_later(lane.until_ns, ow_periods[OW_PERIOD_MINUTE].length_ns);
	/* Minutes that were deleted do not come back. */
	if (lane.until_ns < s->deleted_ns[OW_PERIOD_MINUTE])
		lane.until_ns = s->deleted_ns[OW_PERIOD_MINUTE];
	if (OW_GROW(s->lane, s->lanes_room, s->lanes + 1) < 0)
		return no_memory(s, err);
	s->lane[s->lanes] = lane;
	*ret_lane = &s->lane[s->lanes++];
	return 0;
}

static int find_lane(struct ow_store_rollups *s, int64_t id, struct ow_store_rollups_lane **ret_lane,
                     struct ow_error *err)
{
	/* Results usually come in the same order of lanes, of some intervals of a lane at a time. */
	for (size_t i = 0; i < s->lanes; i++) {
		size_t k = (s->last + i) % s->lanes;
		if (s->lane[k].id == id) {
			s->last = k;
			*ret_lane = &s->lane[k];
			return 0;
		}
	}
	return load_lane(s, id, ret_lane, err);
}

/* -- what is to be added up --------------------------------------------------------------------------------------- */

static int mark(struct ow_store_rollups *s, enum ow_period period, int64_t lane, int64_t time_ns, struct ow_error *err)
{
	struct ow_store_rollups_dirty d = {lane, start_of(time_ns, period)};
	struct ow_store_rollups_dirty *list = s->dirty[period];
	for (size_t i = s->dirties[period]; i > 0; i--) {
		if (list[i - 1].lane == d.lane && list[i - 1].start_ns == d.start_ns)
			return 0;
	}
	if (OW_GROW(s->dirty[period], s->dirty_room[period], s->dirties[period] + 1) < 0)
		return no_memory(s, err);
	s->dirty[period][s->dirties[period]++] = d;
	return 0;
}

int ow_store_rollups_note(struct ow_store_rollups *s, int64_t lane, int64_t start_ns, struct ow_error *err)
{
	struct ow_store_rollups_lane *l;
	int r = find_lane(s, lane, &l, err);
	if (r < 0)
		return r;
	if (start_ns > l->newest_ns)
		l->newest_ns = start_ns;
	return start_ns < l->until_ns ? mark(s, OW_PERIOD_MINUTE, lane, start_ns, err) : 0;
}

void ow_store_rollups_forget(struct ow_store_rollups *s)
{
	s->lanes = 0;
	s->stale = true;
	for (int p = 0; p < OW_PERIODS; p++)
		s->dirties[p] = 0;
}

/* -- adding up ---------------------------------------------------------------------------------------------------- */

static int add_parts(struct ow_store_rollups *s, enum ow_period period, const struct ow_store_rollups_dirty *d,
                     struct ow_error *err)
{
	sqlite3_stmt *read = s->read[period];
	int code;
	ow_rollup_begin(s->rollup, d->start_ns, ow_periods[period].length_ns);
	sqlite3_bind_int64(read, 1, d->lane);
	sqlite3_bind_int64(read, 2, d->start_ns);
	sqlite3_bind_int64(read, 3, ow_time_later(d->start_ns, ow_periods[period].length_ns));
	while ((code = sqlite3_step(read)) == SQLITE_ROW) {
		struct ow_interval_result part;
		ow_row_read(&s->reader, OW_STATEMENT_SQLITE(read), &part);
		ow_rollup_add(s->rollup, &part);
	}
	int r = code == SQLITE_DONE ? 0 : ow_database_fail(s->file, err);
	sqlite3_reset(read);
	return r;
}

/* Adds one up and stores it. What is above it has to be added up as well. */
static int roll(struct ow_store_rollups *s, enum ow_period period, const struct ow_store_rollups_dirty *d,
                int64_t until_ns, struct ow_error *err)
{
	struct ow_interval_result sum;
	if (d->start_ns < s->deleted_ns[period - 1])
		return 0;
	int r = add_parts(s, period, d, err);
	if (r < 0)
		return r;
	ow_rollup_result(s->rollup, &sum);
	if (!sum.intervals)
		return 0;
	sum.final = ow_time_later(d->start_ns, ow_periods[period].length_ns) <= until_ns;
	ow_row_bind(OW_STATEMENT_SQLITE(s->put[period]), d->lane, &sum);
	if (sqlite3_step(s->put[period]) != SQLITE_DONE)
		r = ow_database_fail(s->file, err);
	sqlite3_reset(s->put[period]);
	return r < 0 || period + 1 == OW_PERIODS ? r : mark(s, (enum ow_period)(period + 1), d->lane, d->start_ns, err);
}

/* Minutes of a lane that are over, by its results or by this time. Returns how many, or a negative errno. */
static int advance(struct ow_store_rollups *s, struct ow_store_rollups_lane *lane, int64_t before_ns, int most,
                   struct ow_error *err)
{
	int64_t newest = lane->newest_ns == INT64_MIN ? INT64_MIN : start_of(lane->newest_ns, OW_PERIOD_MINUTE);
	int64_t end_ns = newest > before_ns ? newest : before_ns;
	int count = 0;
	while (count < most && lane->until_ns < end_ns) {
		struct ow_store_rollups_dirty d = {lane->id, INT64_MAX};
		int64_t before = lane->until_ns;
		int r = ask(s, s->first, lane->id, before, &d.start_ns, err);
		if (r < 0)
			return r;
		d.start_ns = start_of(d.start_ns, OW_PERIOD_MINUTE);
		if (d.start_ns >= end_ns)
			break;
		lane->until_ns = ow_time_later(d.start_ns, ow_periods[OW_PERIOD_MINUTE].length_ns);
		/* The hour before is over now, if this is another one. */
		if ((before != INT64_MIN && (r = mark(s, OW_PERIOD_HOUR, lane->id, before - 1, err)) < 0) ||
		    (r = roll(s, OW_PERIOD_MINUTE, &d, lane->until_ns, err)) < 0)
			return r;
		count++;
	}
	return count;
}

static int roll_dirty(struct ow_store_rollups *s, enum ow_period period, struct ow_error *err)
{
	for (size_t i = 0; i < s->dirties[period]; i++) {
		struct ow_store_rollups_dirty d = s->dirty[period][i];
		struct ow_store_rollups_lane *lane;
		int r = find_lane(s, d.lane, &lane, err);
		if (r < 0 || (r = roll(s, period, &d, lane->until_ns, err)) < 0)
			return r;
	}
	s->dirties[period] = 0;
	return 0;
}

static int update(struct ow_store_rollups *s, int64_t before_ns, struct ow_error *err)
{
	int left = MINUTES_MAX, r = roll_dirty(s, OW_PERIOD_MINUTE, err);
	for (size_t i = 0; r >= 0 && i < s->lanes && left > 0; i++) {
		r = advance(s, &s->lane[i], before_ns, left, err);
		left -= r;
	}
	for (int p = OW_PERIOD_HOUR; r >= 0 && p < OW_PERIODS; p++)
		r = roll_dirty(s, (enum ow_period)p, err);
	return r < 0 ? r : left <= 0;
}

int ow_store_rollups_update(struct ow_store_rollups *s, struct ow_error *err)
{
	return update(s, INT64_MIN, err);
}

int ow_store_rollups_update_all(struct ow_store_rollups *s, int64_t before_ns, struct ow_error *err)
{
	int64_t id = INT64_MIN, next = INT64_MAX;
	int r = 0;
	while (r == 0 && (r = ask(s, s->next_lane, id, 0, &next, err)) == 0 && next != INT64_MAX) {
		struct ow_store_rollups_lane *lane;
		r = find_lane(s, next, &lane, err);
		id = next;
		next = INT64_MAX;
	}
	return r < 0 ? r : update(s, before_ns, err);
}

int ow_store_rollups_deleted(struct ow_store_rollups *s, enum ow_period period, int64_t before_ns, struct ow_error *err)
{
	char sql[120];
	if (before_ns <= s->deleted_ns[period])
		return 0;
	snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO meta VALUES ('deleted_%s_ns', %lld)",
	         ow_periods[period].table, (long long)before_ns);
	int r = ow_database_run(s->file, sql, err);
	if (r == 0)
		s->deleted_ns[period] = before_ns;
	return r;
}
