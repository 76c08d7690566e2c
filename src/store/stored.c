/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of a store. A day among months must be found at once, so every query is a range of the time index, or of the
 * lane's index if only one lane is selected; test_stored.c checks the query plans.
 */
#include "store/stored.h"

#include "base/array.h"
#include "base/time.h"
#include "base/word.h"
#include "store/event_row.h"
#include "store/stored_file.h"
#include "base/format.h"
#include "base/text.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Results that are read before any of them is passed on. */
#define PORTION   256
#define LANES_MAX (1u << 19)

/* -- opening ------------------------------------------------------------------------------------------------------ */

static void take_name(const struct ow_statement *statement, int column, char name[OW_RESULT_NAME])
{
	const char *text = ow_column_text(statement, column);
	snprintf(name, OW_RESULT_NAME, "%s", text ? text : "");
}

static int add_lane(struct ow_stored *stored, const struct ow_statement *row, struct ow_error *err)
{
	if (stored->lanes == LANES_MAX)
		return ow_error_set(err, E2BIG, "%s: more than %u lanes", stored->source.name, LANES_MAX);
	if (OW_GROW(stored->lane, stored->lanes_room, stored->lanes + 1) < 0)
		return ow_error_set(err, ENOMEM, "%s: out of memory", stored->source.name);
	struct ow_stored_lane *lane = &stored->lane[stored->lanes++];
	lane->id = ow_column_integer(row, 0);
	take_name(row, 1, lane->segment);
	take_name(row, 2, lane->class_name);
	take_name(row, 3, lane->from);
	take_name(row, 4, lane->to);
	lane->chosen = true;
	return 0;
}

/* All of them, if there are others than before. */
static int read_lanes(struct ow_stored *stored, struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	enum ow_step step = OW_STEP_DONE;
	int64_t count = 0;
	int r = ow_stored_source_ask(&stored->source, "SELECT count(*) FROM lane", &count, err);
	if (r < 0 || count == (int64_t)stored->lanes)
		return r;
	r = ow_stored_source_prepare(&stored->source,
	                             "SELECT id, segment, class, from_point, to_point FROM lane ORDER BY id",
	                             &statement, err);
	if (r < 0)
		return r;
	stored->lanes = 0;
	while (r == 0 && (step = ow_step(statement)) == OW_STEP_ROW)
		r = add_lane(stored, statement, err);
	if (r == 0 && step == OW_STEP_FAILED)
		r = ow_stored_source_fail(&stored->source, err);
	stored->chosen = stored->lanes;
	ow_statement_free(statement);
	return r;
}

static int choose_columns(struct ow_stored *stored, struct ow_error *err)
{
	size_t size;
	FILE *out = open_memstream(&stored->columns, &size);
	stored->reader.version = stored->source.version;
	if (out)
		ow_row_select(out, stored->source.version);
	return out && fclose(out) == 0 ? 0 : ow_error_set(err, ENOMEM, "%s: out of memory", stored->source.name);
}

int ow_stored_open(const char *path, struct ow_stored **ret_stored, struct ow_error *err)
{
	struct ow_stored *stored = calloc(1, sizeof *stored);
	if (!stored)
		return ow_error_set(err, ENOMEM, "out of memory for stored results");
	stored->filter = (struct ow_stored_filter){.since_ns = INT64_MIN, .until_ns = INT64_MAX};
	int r = ow_stored_source_open(path, &stored->source, err);
	if (r == 0)
		r = choose_columns(stored, err);
	if (r == 0)
		r = read_lanes(stored, err);
	if (r < 0)
		ow_stored_close(stored);
	else
		*ret_stored = stored;
	return r;
}

void ow_stored_close(struct ow_stored *stored)
{
	if (!stored)
		return;
	ow_row_reader_done(&stored->reader);
	free(stored->columns);
	ow_stored_source_close(&stored->source);
	free(stored->lane);
	free(stored);
}

const char *ow_stored_where(const struct ow_stored *stored)
{
	return stored->source.name;
}

bool ow_stored_caveat(const struct ow_stored *stored, struct ow_error *ret_text)
{
	int64_t lost = 0;
	if (stored->source.file.without_log) {
		ow_error_set(ret_text, EROFS, "%s: the newest results are in its log, which cannot be read here",
		             stored->source.name);
		return true;
	}
	if (ow_stored_source_ask(&stored->source, "SELECT value FROM meta WHERE key = 'not_stored'", &lost, NULL) < 0 ||
	    lost <= 0)
		return false;
	ow_error_set(ret_text, ENOSPC, "%s: %" PRId64 " intervals were measured but could not be stored",
	             stored->source.name, lost);
	return true;
}

bool ow_stored_has_periods(const struct ow_stored *stored)
{
	return stored->source.server || stored->source.version >= OW_STORED_PERIODS_SINCE;
}

enum ow_period ow_stored_finest(struct ow_stored *stored)
{
	/* A server has minutes of all points, and intervals of few. */
	static const enum ow_period order[2][OW_PERIODS] = {
		{OW_PERIOD_INTERVAL, OW_PERIOD_MINUTE, OW_PERIOD_HOUR, OW_PERIOD_DAY},
		{OW_PERIOD_MINUTE, OW_PERIOD_INTERVAL, OW_PERIOD_HOUR, OW_PERIOD_DAY}};
	for (int i = 0; ow_stored_has_periods(stored) && i < OW_PERIODS; i++) {
		enum ow_period period = order[stored->source.server != NULL][i];
		char sql[60];
		int64_t one;
		snprintf(sql, sizeof sql, "SELECT 1 FROM %s LIMIT 1", ow_periods[period].table);
		if (ow_stored_source_ask(&stored->source, sql, &one, NULL) == 0)
			return period;
	}
	return OW_PERIOD_INTERVAL;
}

const struct ow_stored_lane *ow_stored_lanes(const struct ow_stored *stored, size_t *ret_count)
{
	*ret_count = stored->lanes;
	return stored->lane;
}

const struct ow_stored_lane *ow_stored_lane(const struct ow_stored *stored, int64_t id)
{
	size_t low = 0, high = stored->lanes;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (stored->lane[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < stored->lanes && stored->lane[low].id == id ? &stored->lane[low] : NULL;
}

const char *const ow_stored_period_name[OW_PERIODS] = {"intervals", "minutes", "hours", "days"};

/* -- choosing ----------------------------------------------------------------------------------------------------- */

enum { SEGMENT, CLASS, FROM, TO, NAMES };
static const char *const kind_name[NAMES] = {"segment", "class", "point as sender", "point as receiver"};

static const char *name_of(const struct ow_stored_lane *lane, int kind)
{
	const char *name[NAMES] = {lane->segment, lane->class_name, lane->from, lane->to};
	return name[kind];
}

/* "no segment 'x'; did you mean ..." or the list of existing names. */
static int no_such(const struct ow_stored *stored, int kind, const char *asked, struct ow_error *err)
{
	char list[300] = "";
	struct ow_word_guess guess = {.written = asked};
	size_t used = 0;
	for (size_t i = 0; i < stored->lanes; i++) {
		const char *name = name_of(&stored->lane[i], kind);
		bool told = used >= sizeof list;
		for (size_t k = 0; k < i && !told; k++)
			told = strcmp(name, name_of(&stored->lane[k], kind)) == 0;
		ow_word_offer(&guess, name);
		if (!told)
			used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", name);
	}
	if (guess.best)
		return ow_error_set(err, ENOENT, "%.100s: no %s '%.64s', did you mean '%s'?", stored->source.name,
		                    kind_name[kind], asked, guess.best);
	return ow_error_set(err, ENOENT, "%.100s: no %s '%.64s', there is: %s%s", stored->source.name, kind_name[kind],
	                    asked, *list ? list : "nothing", used >= sizeof list ? "..." : "");
}

int ow_stored_choose(struct ow_stored *stored, const struct ow_stored_filter *filter, struct ow_error *err)
{
	const char *asked[NAMES] = {filter->segment, filter->class_name, filter->from, filter->to};
	size_t chosen = 0;
	int r = read_lanes(stored, err);
	if (r < 0)
		return r;
	if (filter->period != OW_PERIOD_INTERVAL && !ow_stored_has_periods(stored))
		return ow_error_set(err, ENODATA,
		                    "%s: no minutes, hours and days: of an earlier version, which did not have them",
		                    stored->source.name);
	for (int kind = 0; kind < NAMES; kind++) {
		bool found = !asked[kind];
		for (size_t i = 0; i < stored->lanes && !found; i++)
			found = strcmp(asked[kind], name_of(&stored->lane[i], kind)) == 0;
		if (!found)
			return no_such(stored, kind, asked[kind], err);
	}
	for (size_t i = 0; i < stored->lanes; i++) {
		bool fits = true;
		for (int kind = 0; kind < NAMES; kind++)
			fits &= !asked[kind] || strcmp(asked[kind], name_of(&stored->lane[i], kind)) == 0;
		stored->lane[i].chosen = fits;
		chosen += fits;
	}
	stored->chosen = chosen;
	stored->filter = *filter;
	return chosen || !stored->lanes
	               ? 0
	               : ow_error_set(err, ENOENT, "%s: no results of these names together", stored->source.name);
}

/* The condition on lanes: empty for all of them. A + keeps SQLite from using the lane's index for several lanes. */
static void put_lanes(FILE *out, const struct ow_stored *stored)
{
	const char *join = "";
	if (stored->chosen == stored->lanes && stored->lanes > 1)
		return;
	fputs(stored->chosen == 1 ? " AND lane = " : " AND +lane IN (", out);
	for (size_t i = 0; i < stored->lanes; i++) {
		if (!stored->lane[i].chosen)
			continue;
		fprintf(out, "%s%" PRId64, join, stored->lane[i].id);
		join = ", ";
	}
	if (stored->chosen != 1)
		fputs(stored->chosen ? ")" : "NULL)", out);
}

char *ow_stored_query(const struct ow_stored *stored, const char *columns, const char *tail)
{
	struct ow_text sql;
	FILE *out = ow_text_open(&sql);
	if (!out)
		return NULL;
	fprintf(out, "SELECT %s FROM %s WHERE start_ns >= ?1 AND start_ns < ?2", columns,
	        ow_periods[stored->filter.period].table);
	put_lanes(out, stored);
	if (stored->filter.final)
		fputs(" AND final", out);
	const char *join = " AND status IN (";
	for (int i = 0; stored->filter.statuses && i <= OW_RESULT_UNKNOWN; i++) {
		if (!(stored->filter.statuses >> i & 1))
			continue;
		fprintf(out, "%s'%s'", join, ow_result_status_name[i]);
		join = ", ";
	}
	fprintf(out, "%s %s", stored->filter.statuses ? ")" : "", tail);
	return ow_text_close(&sql);
}

int ow_stored_prepare(const struct ow_stored *stored, const char *columns, const char *tail,
                      struct ow_statement **ret_statement, struct ow_error *err)
{
	char *sql = ow_stored_query(stored, columns, tail);
	if (!sql)
		return ow_error_set(err, ENOMEM, "%s: out of memory", stored->source.name);
	int r = ow_stored_source_prepare(&stored->source, sql, ret_statement, err);
	free(sql);
	if (r < 0)
		return r;
	ow_bind_integer(*ret_statement, 1, stored->filter.since_ns);
	ow_bind_integer(*ret_statement, 2, stored->filter.until_ns);
	return 0;
}

enum ow_period ow_stored_period(const struct ow_stored *stored)
{
	return stored->filter.period;
}

/* The start of the first row of each period; INT64_MAX: there is none. */
static int find_first(struct ow_stored *stored, int64_t ret_first_ns[OW_PERIODS], struct ow_error *err)
{
	enum ow_period keep = stored->filter.period;
	int r = 0;
	for (int p = 0; p < OW_PERIODS; p++) {
		int64_t last;
		ret_first_ns[p] = INT64_MAX;
		stored->filter.period = (enum ow_period)p;
		if (r == 0 && (p == OW_PERIOD_INTERVAL || ow_stored_has_periods(stored)))
			r = ow_stored_span(stored, &ret_first_ns[p], &last, err);
		r = r == -ENODATA ? 0 : r;
	}
	stored->filter.period = keep;
	return r;
}

/* Whether the selected time has something that only a coarser period has: parts of it were deleted. */
static bool is_cut(const struct ow_stored *stored, int p, const int64_t first[OW_PERIODS])
{
	if (first[p] == INT64_MAX)
		return true;
	for (int q = p + 1; q < OW_PERIODS && stored->filter.since_ns < first[p]; q++) {
		int64_t length_ns = ow_periods[q].length_ns;
		if (first[q] < ow_floor_div(first[p], length_ns) * length_ns)
			return true;
	}
	return false;
}

int ow_stored_choose_period(struct ow_stored *stored, enum ow_period least, struct ow_error *err)
{
	int64_t first[OW_PERIODS];
	int r = find_first(stored, first, err), p = least;
	if (r < 0)
		return r;
	while (p < OW_PERIOD_DAY && is_cut(stored, p, first))
		p++;
	/* What is not added up yet is only there as it is. */
	while (p > OW_PERIOD_INTERVAL && first[p] == INT64_MAX)
		p--;
	stored->filter.period = (enum ow_period)p;
	return 0;
}

int ow_stored_span(struct ow_stored *stored, int64_t *ret_first_ns, int64_t *ret_last_ns, struct ow_error *err)
{
	struct ow_stored_filter keep = stored->filter;
	static const char *const tails[] = {"ORDER BY start_ns LIMIT 1", "ORDER BY start_ns DESC LIMIT 1"};
	int64_t value[2];
	int r = 0;
	stored->filter.statuses = 0;
	stored->filter.final = false;
	stored->filter.since_ns = INT64_MIN;
	stored->filter.until_ns = INT64_MAX;
	for (int i = 0; r == 0 && i < 2; i++) {
		struct ow_statement *statement = NULL;
		r = ow_stored_prepare(stored, "start_ns", tails[i], &statement, err);
		if (r < 0)
			break;
		int code = ow_step(statement);
		value[i] = ow_column_integer(statement, 0);
		if (code == OW_STEP_DONE)
			r = ow_error_set(err, ENODATA, "%s: no %s are stored", stored->source.name,
			                 stored->filter.period == OW_PERIOD_INTERVAL
			                         ? "results"
			                         : ow_stored_period_name[stored->filter.period]);
		else if (code != OW_STEP_ROW)
			r = ow_stored_source_fail(&stored->source, err);
		ow_statement_free(statement);
	}
	stored->filter = keep;
	if (r == 0) {
		*ret_first_ns = value[0];
		*ret_last_ns = value[1];
	}
	return r;
}

/* -- listing ------------------------------------------------------------------------------------------------------ */

/* Results after the last one that was read: ?3 is its start, ?4 its lane. */
#define NEXT "AND (start_ns, lane) > (?3, ?4) ORDER BY start_ns, lane LIMIT 256"

struct key {
	int64_t start_ns, lane;
};

/* The position just before the newest `limit` of the selected results. */
static int begin_at(struct ow_stored *stored, uint64_t limit, struct key *ret_key, struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	*ret_key = (struct key){INT64_MIN, INT64_MIN};
	if (!limit || limit > INT64_MAX)
		return 0;
	int r = ow_stored_prepare(stored, "start_ns, lane", "ORDER BY start_ns DESC, lane DESC LIMIT 1 OFFSET ?3",
	                          &statement, err);
	if (r < 0)
		return r;
	ow_bind_integer(statement, 3, (int64_t)limit - 1);
	int code = ow_step(statement);
	int64_t lane = ow_column_integer(statement, 1);
	if (code == OW_STEP_ROW)
		*ret_key = (struct key){ow_column_integer(statement, 0), lane > INT64_MIN ? lane - 1 : lane};
	else if (code != OW_STEP_DONE)
		r = ow_stored_source_fail(&stored->source, err);
	ow_statement_free(statement);
	return r;
}

/* The start of the range moves as well, so that read results are not scanned again. */
static void bind_key(const struct ow_stored *stored, struct ow_statement *statement, const struct key *key)
{
	int64_t since = stored->filter.since_ns;
	ow_bind_integer(statement, 1, key->start_ns > since ? key->start_ns : since);
	ow_bind_integer(statement, 3, key->start_ns);
	ow_bind_integer(statement, 4, key->lane);
}

void ow_stored_name(const struct ow_stored_lane *lane, struct ow_interval_result *result)
{
	memcpy(result->segment, lane->segment, sizeof result->segment);
	memcpy(result->class_name, lane->class_name, sizeof result->class_name);
	memcpy(result->from, lane->from, sizeof result->from);
	memcpy(result->to, lane->to, sizeof result->to);
}

static void read_row(struct ow_stored *stored, struct ow_statement *statement, struct ow_interval_result *ret_result)
{
	const struct ow_stored_lane *lane = ow_stored_lane(stored, ow_column_integer(statement, 0));
	ow_row_read(&stored->reader, statement, ret_result);
	if (lane)
		ow_stored_name(lane, ret_result);
}

/* Reads the next portion after *key. Returns the number of results, or a negative errno. */
static int read_portion(struct ow_stored *stored, struct ow_statement *statement, struct ow_interval_result *row,
                        struct key *key, struct ow_error *err)
{
	int count = 0, code = OW_STEP_DONE;
	bind_key(stored, statement, key);
	while (count < PORTION && (code = ow_step(statement)) == OW_STEP_ROW) {
		read_row(stored, statement, &row[count++]);
		*key = (struct key){ow_column_integer(statement, 1), ow_column_integer(statement, 0)};
	}
	int r = code == OW_STEP_DONE || code == OW_STEP_ROW ? count : ow_stored_source_fail(&stored->source, err);
	ow_reset(statement);
	return r;
}

int ow_stored_list(struct ow_stored *stored, uint64_t limit, ow_stored_each *each, void *arg, struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	struct key key = {0};
	struct ow_interval_result *row = reallocarray(NULL, PORTION, sizeof *row);
	int r = row ? begin_at(stored, limit, &key, err)
	            : ow_error_set(err, ENOMEM, "%s: out of memory", stored->source.name);
	if (r == 0)
		r = ow_stored_prepare(stored, stored->columns, NEXT, &statement, err);
	int count = PORTION;
	while (r == 0 && count == PORTION) {
		count = read_portion(stored, statement, row, &key, err);
		r = count < 0 ? count : 0;
		for (int i = 0; r == 0 && i < count; i++)
			r = each(arg, &row[i]);
	}
	ow_statement_free(statement);
	free(row);
	return r;
}

static const char *const worst_tail[] = {
	"AND loss_ratio IS NOT NULL ORDER BY loss_ratio DESC, start_ns, lane LIMIT ?3",
	"AND p99_ns IS NOT NULL ORDER BY p99_ns DESC, start_ns, lane LIMIT ?3",
	"AND mean_ns IS NOT NULL ORDER BY mean_ns DESC, start_ns, lane LIMIT ?3",
};

int ow_stored_worst(struct ow_stored *stored, enum ow_stored_by by, uint64_t count, ow_stored_each *each, void *arg,
                    struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	struct ow_interval_result row;
	int code = OW_STEP_DONE, r = ow_stored_prepare(stored, stored->columns, worst_tail[by], &statement, err);
	if (r < 0)
		return r;
	ow_bind_integer(statement, 3, count < INT64_MAX ? (int64_t)count : INT64_MAX);
	while (r == 0 && (code = ow_step(statement)) == OW_STEP_ROW) {
		read_row(stored, statement, &row);
		r = each(arg, &row);
	}
	if (r == 0 && code != OW_STEP_DONE)
		r = ow_stored_source_fail(&stored->source, err);
	ow_statement_free(statement);
	return r;
}

/* -- events ------------------------------------------------------------------------------------------------------- */

static int prepare_events(const struct ow_stored *stored, const char *columns, const char *tail,
                          struct ow_statement **ret_statement, struct ow_error *err)
{
	char *sql = NULL;
	size_t size;
	FILE *out = open_memstream(&sql, &size);
	if (!out)
		return ow_error_set(err, ENOMEM, "%s: out of memory", stored->source.name);
	fprintf(out, "SELECT %s FROM event WHERE time_ns >= ?1 AND time_ns < ?2", columns);
	put_lanes(out, stored);
	fprintf(out, " %s", tail);
	int r = fclose(out) == 0 ? ow_stored_source_prepare(&stored->source, sql, ret_statement, err)
	                         : ow_error_set(err, ENOMEM, "%s: out of memory", stored->source.name);
	free(sql);
	if (r < 0)
		return r;
	ow_bind_integer(*ret_statement, 1, stored->filter.since_ns);
	ow_bind_integer(*ret_statement, 2, stored->filter.until_ns);
	return 0;
}

/* The id just before the newest `limit` events. */
static int first_event(const struct ow_stored *stored, uint64_t limit, int64_t *ret_id, struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	*ret_id = 0;
	if (!limit || limit > INT64_MAX)
		return 0;
	int r = prepare_events(stored, "id", "ORDER BY id DESC LIMIT 1 OFFSET ?3", &statement, err);
	if (r < 0)
		return r;
	ow_bind_integer(statement, 3, (int64_t)limit - 1);
	int code = ow_step(statement);
	if (code == OW_STEP_ROW)
		*ret_id = ow_column_integer(statement, 0) - 1;
	else if (code != OW_STEP_DONE)
		r = ow_stored_source_fail(&stored->source, err);
	ow_statement_free(statement);
	return r;
}

static void name_event(const struct ow_stored_lane *lane, struct ow_flow_event *event)
{
	memcpy(event->segment, lane->segment, sizeof event->segment);
	memcpy(event->class_name, lane->class_name, sizeof event->class_name);
	memcpy(event->from, lane->from, sizeof event->from);
	memcpy(event->to, lane->to, sizeof event->to);
}

/* Reads the next portion after *id. Returns the number of events, or a negative errno. *ret_more: there may be more. */
static int event_portion(const struct ow_stored *stored, struct ow_statement *statement, struct ow_flow_event *event,
                         int64_t *id, bool *ret_more, struct ow_error *err)
{
	int rows = 0, count = 0, code = OW_STEP_DONE;
	ow_bind_integer(statement, 3, *id);
	while (rows < PORTION && (code = ow_step(statement)) == OW_STEP_ROW) {
		const struct ow_stored_lane *lane = ow_stored_lane(stored, ow_column_integer(statement, 1));
		*id = ow_column_integer(statement, 0);
		event[count] = (struct ow_flow_event){.start_ns = 0};
		if (lane)
			name_event(lane, &event[count]);
		count += ow_event_row_read(statement, &event[count]);
		rows++;
	}
	*ret_more = rows == PORTION;
	int r = code == OW_STEP_DONE || code == OW_STEP_ROW ? count : ow_stored_source_fail(&stored->source, err);
	ow_reset(statement);
	return r;
}

int ow_stored_events(struct ow_stored *stored, uint64_t limit, ow_stored_each_event *each, void *arg,
                     struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	int64_t id = 0;
	if (stored->source.version < OW_EVENT_ROW_SINCE)
		return 0;
	struct ow_flow_event *event = reallocarray(NULL, PORTION, sizeof *event);
	int r = event ? first_event(stored, limit, &id, err)
	              : ow_error_set(err, ENOMEM, "%s: out of memory", stored->source.name);
	if (r == 0)
		r = prepare_events(stored, ow_event_row_select, "AND id > ?3 ORDER BY id LIMIT 256", &statement, err);
	for (bool more = true; r == 0 && more;) {
		int count = event_portion(stored, statement, event, &id, &more, err);
		r = count < 0 ? count : 0;
		for (int i = 0; r == 0 && i < count; i++)
			r = each(arg, &event[i]);
	}
	ow_statement_free(statement);
	free(event);
	return r;
}

int ow_stored_events_count(struct ow_stored *stored, uint64_t *ret_count, struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	*ret_count = 0;
	if (stored->source.version < OW_EVENT_ROW_SINCE)
		return 0;
	int r = prepare_events(stored, "count(*)", "", &statement, err);
	if (r < 0)
		return r;
	if (ow_step(statement) == OW_STEP_ROW)
		*ret_count = (uint64_t)ow_column_integer(statement, 0);
	else
		r = ow_stored_source_fail(&stored->source, err);
	ow_statement_free(statement);
	return r;
}

/* -- CSV ---------------------------------------------------------------------------------------------------------- */

static void put_lane_cells(FILE *out, const struct ow_stored_lane *lane)
{
	for (int kind = 0; kind < NAMES; kind++) {
		ow_format_csv(out, lane ? name_of(lane, kind) : "");
		fputc(',', out);
	}
}

/* Reads the rows of the next portion into memory. Returns their number, or a negative errno. */
static int csv_portion(struct ow_stored *stored, struct ow_statement *statement, struct key *key, FILE *out,
                       struct ow_error *err)
{
	int count = 0;
	enum ow_step step = OW_STEP_DONE;
	bind_key(stored, statement, key);
	while (count < PORTION && (step = ow_step(statement)) == OW_STEP_ROW) {
		*key = (struct key){ow_column_integer(statement, 1), ow_column_integer(statement, 0)};
		put_lane_cells(out, ow_stored_lane(stored, key->lane));
		ow_row_csv(out, stored->source.version, statement);
		/* ISO 8601, which spreadsheets take for a date. */
		char start[OW_FORMAT];
		fprintf(out, ",%s\n", ow_format_time(key->start_ns, "%Y-%m-%dT%H:%M:%S", start));
		count++;
	}
	int r = step == OW_STEP_FAILED ? ow_stored_source_fail(&stored->source, err) : count;
	ow_reset(statement);
	return r;
}

/* "lane, start_ns, ...": all columns. NULL: out of memory. */
static char *all_columns(const struct ow_stored *stored)
{
	struct ow_text text;
	FILE *out = ow_text_open(&text);
	if (!out)
		return NULL;
	ow_row_table(out, stored->source.version);
	return ow_text_close(&text);
}

/* The names of the lane take the place of its number. */
static void put_csv_heading(FILE *out, const char *columns)
{
	fputs("segment,class,from_point,to_point", out);
	for (const char *c = columns + strlen("lane"); *c; c++)
		*c != ' ' ? fputc(*c, out) : 0;
	fputs(",start_utc\n", out);
}

static int prepare_csv(struct ow_stored *stored, FILE *out, struct ow_statement **ret_statement, struct ow_error *err)
{
	char *columns = all_columns(stored);
	int r = columns ? ow_stored_prepare(stored, columns, NEXT, ret_statement, err)
	                : ow_error_set(err, ENOMEM, "%s: out of memory", stored->source.name);
	if (r == 0)
		put_csv_heading(out, columns);
	free(columns);
	return r;
}

int ow_stored_csv(struct ow_stored *stored, uint64_t limit, FILE *out, uint64_t *ret_rows, struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	struct key key = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	int count = PORTION, r = memory ? begin_at(stored, limit, &key, err)
	                                : ow_error_set(err, ENOMEM, "%s: out of memory", stored->source.name);
	if (r == 0)
		r = prepare_csv(stored, out, &statement, err);
	*ret_rows = 0;
	while (r == 0 && count == PORTION) {
		rewind(memory);
		count = csv_portion(stored, statement, &key, memory, err);
		r = count < 0 ? count : 0;
		long length = ftell(memory);
		if (fflush(memory) != 0)
			r = ow_error_set(err, ENOMEM, "%s: out of memory", stored->source.name);
		if (r == 0)
			fwrite(text, 1, (size_t)length, out);
		*ret_rows += r == 0 ? (uint64_t)count : 0;
	}
	ow_statement_free(statement);
	if (memory)
		fclose(memory);
	free(text);
	return r;
}

char *ow_stored_sql(const struct ow_stored *stored, int which)
{
	char *columns, *sql;
	switch (which) {
	case 0:
		return ow_stored_query(stored, stored->columns, NEXT);
	case 1:
		return ow_stored_query(stored, stored->columns, worst_tail[OW_STORED_LOSS]);
	default:
		columns = all_columns(stored);
		sql = columns ? ow_stored_query(stored, columns, NEXT) : NULL;
		free(columns);
		return sql;
	}
}
