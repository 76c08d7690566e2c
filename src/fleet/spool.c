/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/spool.h"

#include "base/array.h"
#include "store/event_row.h"
#include "store/row.h"
#include "store/stored_source.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lane {
	int64_t id;
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME], from[OW_RESULT_NAME], to[OW_RESULT_NAME];
};

struct ow_spool {
	struct ow_stored_source source;
	struct ow_row_reader reader;
	int64_t created_ns;
	struct ow_statement *fresh[OW_PERIODS], *range[OW_PERIODS], *lane_range[OW_PERIODS];
	struct ow_statement *look, *events, *samples, *find_lane, *find_id;
	struct lane *lane; /* those used so far */
	size_t lanes, room, next;
};

/* Longer than a transaction of the point takes. */
#define BUSY_MS 2000

int64_t ow_spool_created_ns(const struct ow_spool *spool)
{
	return spool->created_ns;
}

static bool has_table(const struct ow_spool *spool, const char *name)
{
	char sql[120];
	int64_t count = 0;
	sqlite3_snprintf(sizeof sql, sql, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = %Q",
	                 name);
	return ow_stored_source_ask(&spool->source, sql, &count, NULL) == 0 && count > 0;
}

static int prepare_rows(struct ow_spool *spool, enum ow_period period, const char *tail,
                        struct ow_statement **ret_statement, struct ow_error *err)
{
	char *sql = NULL;
	size_t size;
	FILE *out = open_memstream(&sql, &size);
	if (!out)
		return ow_error_set(err, ENOMEM, "out of memory");
	fputs("SELECT ", out);
	ow_row_select(out, spool->source.version);
	fprintf(out, ", rowid FROM %s WHERE final AND %s LIMIT ?3", ow_periods[period].table, tail);
	int r = fclose(out) == 0 ? ow_stored_source_prepare(&spool->source, sql, ret_statement, err)
	                         : ow_error_set(err, ENOMEM, "out of memory");
	free(sql);
	return r;
}

static int prepare_period(struct ow_spool *spool, enum ow_period period, struct ow_error *err)
{
	if (!has_table(spool, ow_periods[period].table))
		return 0;
	int r = prepare_rows(spool, period, "rowid > ?1 AND rowid < ?2 ORDER BY rowid", &spool->fresh[period], err);
	if (r == 0)
		r = prepare_rows(spool, period, "start_ns >= ?1 AND start_ns < ?2 ORDER BY start_ns, lane",
		                 &spool->range[period], err);
	return r < 0 ? r
	             : prepare_rows(spool, period, "lane = ?4 AND start_ns >= ?1 AND start_ns < ?2 ORDER BY start_ns",
	                            &spool->lane_range[period], err);
}

static int prepare(struct ow_spool *spool, struct ow_error *err)
{
	int r = 0;
	for (enum ow_period period = 0; r == 0 && period < OW_PERIODS; period++)
		r = prepare_period(spool, period, err);
	if (r == 0)
		r = ow_stored_source_prepare(&spool->source,
		                             "SELECT segment, class, from_point, to_point FROM lane WHERE id = ?1",
		                             &spool->find_lane, err);
	if (r == 0)
		r = ow_stored_source_prepare(&spool->source,
		                             "SELECT id FROM lane WHERE segment = ?1 AND class = ?2 AND from_point = ?3"
		                             " AND to_point = ?4",
		                             &spool->find_id, err);
	if (r == 0)
		r = ow_stored_source_prepare(
			&spool->source,
			"SELECT lane, start_ns, length_ns, status = 'partial' OR EXISTS (SELECT 1 FROM event WHERE"
			" event.lane = result.lane AND time_ns >= start_ns AND time_ns < start_ns + length_ns),"
			" loss_ratio, p99_ns, status = 'unknown'"
			" FROM result WHERE final AND start_ns > ?1 - 2 * ?3 AND start_ns < ?2"
			" AND start_ns + 2 * length_ns > ?1 AND start_ns + 2 * length_ns <= ?2 ORDER BY start_ns",
			&spool->look, err);
	if (r == 0) {
		char sql[300];
		snprintf(sql, sizeof sql, "SELECT %s FROM event WHERE id > ?1 ORDER BY id LIMIT ?2",
		         ow_event_row_select);
		r = ow_stored_source_prepare(&spool->source, sql, &spool->events, err);
	}
	if (r == 0 && has_table(spool, "sample"))
		r = ow_stored_source_prepare(&spool->source,
		                             "SELECT rowid, bytes FROM sample WHERE rowid > ?1 ORDER BY rowid LIMIT ?2",
		                             &spool->samples, err);
	return r;
}

int ow_spool_open(const char *path, struct ow_spool **ret_spool, struct ow_error *err)
{
	struct ow_spool *spool = calloc(1, sizeof *spool);
	if (!spool)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = ow_stored_source_open(path, &spool->source, err);
	if (r < 0) {
		free(spool);
		return r;
	}
	if (spool->source.version < ow_database_newest()) {
		r = ow_error_set(err, EAGAIN, "%s: has the schema of an earlier version", path);
		ow_spool_close(spool);
		return r;
	}
	spool->reader.version = spool->source.version;
	sqlite3_busy_timeout(spool->source.file.db, BUSY_MS);
	r = ow_stored_source_ask(&spool->source, "SELECT ifnull((SELECT value FROM meta WHERE key = 'created_ns'), 0)",
	                         &spool->created_ns, err);
	if (r == 0)
		r = prepare(spool, err);
	if (r < 0) {
		ow_spool_close(spool);
		return r;
	}
	*ret_spool = spool;
	return 0;
}

void ow_spool_close(struct ow_spool *spool)
{
	if (!spool)
		return;
	for (enum ow_period period = 0; period < OW_PERIODS; period++) {
		ow_statement_free(spool->fresh[period]);
		ow_statement_free(spool->range[period]);
		ow_statement_free(spool->lane_range[period]);
	}
	ow_statement_free(spool->look);
	ow_statement_free(spool->events);
	ow_statement_free(spool->samples);
	ow_statement_free(spool->find_lane);
	ow_statement_free(spool->find_id);
	ow_row_reader_done(&spool->reader);
	ow_stored_source_close(&spool->source);
	free(spool->lane);
	free(spool);
}

/* -- lanes -------------------------------------------------------------------------------------------------------- */

static void copy_name(char name[OW_RESULT_NAME], const struct ow_statement *statement, int column)
{
	const char *text = ow_column_text(statement, column);
	snprintf(name, OW_RESULT_NAME, "%s", text ? text : "");
}

/* NULL: there is no such lane, or no memory. */
static const struct lane *lane_of(struct ow_spool *spool, int64_t id)
{
	/* Rows usually come in the same order of lanes. */
	for (size_t i = 0; i < spool->lanes; i++) {
		size_t k = (spool->next + i) % spool->lanes;
		if (spool->lane[k].id == id) {
			spool->next = k + 1;
			return &spool->lane[k];
		}
	}
	if (OW_GROW(spool->lane, spool->room, spool->lanes + 1) < 0)
		return NULL;
	struct lane *lane = &spool->lane[spool->lanes];
	ow_bind_integer(spool->find_lane, 1, id);
	bool found = ow_step(spool->find_lane) == OW_STEP_ROW;
	if (found) {
		lane->id = id;
		copy_name(lane->segment, spool->find_lane, 0);
		copy_name(lane->class_name, spool->find_lane, 1);
		copy_name(lane->from, spool->find_lane, 2);
		copy_name(lane->to, spool->find_lane, 3);
		spool->lanes++;
	}
	ow_reset(spool->find_lane);
	return found ? lane : NULL;
}

/* -- rows --------------------------------------------------------------------------------------------------------- */

static int each_row(struct ow_spool *spool, const struct ow_statement *statement, ow_spool_each *each, void *arg,
                    struct ow_error *err)
{
	int r = 0;
	enum ow_step step = OW_STEP_DONE;
	int last = ow_columns(statement) - 1;
	while (r == 0 && (step = ow_step(statement)) == OW_STEP_ROW) {
		struct ow_interval_result result = {.length_ns = 0};
		const struct lane *lane = lane_of(spool, ow_column_integer(statement, 0));
		ow_row_read(&spool->reader, statement, &result);
		if (!lane)
			continue;
		memcpy(result.segment, lane->segment, sizeof result.segment);
		memcpy(result.class_name, lane->class_name, sizeof result.class_name);
		memcpy(result.from, lane->from, sizeof result.from);
		memcpy(result.to, lane->to, sizeof result.to);
		r = each(arg, ow_column_integer(statement, last), lane->id, &result);
	}
	if (r == 0 && step == OW_STEP_FAILED)
		r = ow_stored_source_fail(&spool->source, err);
	ow_reset(statement);
	return r;
}

int ow_spool_new(struct ow_spool *spool, enum ow_period period, int64_t after, unsigned limit, ow_spool_each *each,
                 void *arg, struct ow_error *err)
{
	const struct ow_statement *statement = spool->fresh[period];
	if (!statement)
		return 0;
	ow_bind_integer(statement, 1, after);
	ow_bind_integer(statement, 2, INT64_MAX);
	ow_bind_integer(statement, 3, limit);
	return each_row(spool, statement, each, arg, err);
}

int ow_spool_range(struct ow_spool *spool, enum ow_period period, int64_t lane, int64_t since_ns, int64_t until_ns,
                   unsigned limit, ow_spool_each *each, void *arg, struct ow_error *err)
{
	const struct ow_statement *statement = lane ? spool->lane_range[period] : spool->range[period];
	if (!statement)
		return 0;
	ow_bind_integer(statement, 1, since_ns);
	ow_bind_integer(statement, 2, until_ns);
	ow_bind_integer(statement, 3, limit);
	if (lane)
		ow_bind_integer(statement, 4, lane);
	return each_row(spool, statement, each, arg, err);
}

int64_t ow_spool_lane(struct ow_spool *spool, const struct ow_question *q)
{
	const struct ow_statement *s = spool->find_id;
	ow_bind_text(s, 1, q->segment);
	ow_bind_text(s, 2, q->class_name);
	ow_bind_text(s, 3, q->from);
	ow_bind_text(s, 4, q->to);
	int64_t id = ow_step(s) == OW_STEP_ROW ? ow_column_integer(s, 0) : 0;
	ow_reset(s);
	return id;
}

int ow_spool_count(struct ow_spool *spool, const struct ow_question *q, int64_t lane, uint64_t *ret_rows,
                   int64_t *ret_first_ns, struct ow_error *err)
{
	char sql[200], of_lane[40] = "";
	const char *table = ow_periods[q->period].table;
	int64_t rows = 0;
	*ret_rows = 0;
	*ret_first_ns = 0;
	if (!spool->range[q->period])
		return 0;
	if (lane)
		snprintf(of_lane, sizeof of_lane, " AND lane = %" PRId64, lane);
	snprintf(sql, sizeof sql,
	         "SELECT count(*) FROM %s WHERE final AND start_ns >= %" PRId64 " AND start_ns < %" PRId64 "%s", table,
	         q->since_ns, q->until_ns, of_lane);
	int r = ow_stored_source_ask(&spool->source, sql, &rows, err);
	snprintf(sql, sizeof sql, "SELECT ifnull(min(start_ns), 0) FROM %s WHERE final%s", table, of_lane);
	if (r == 0)
		r = ow_stored_source_ask(&spool->source, sql, ret_first_ns, err);
	*ret_rows = (uint64_t)rows;
	return r;
}

int ow_spool_last(struct ow_spool *spool, enum ow_period period, int64_t *ret_number, struct ow_error *err)
{
	char sql[80];
	*ret_number = 0;
	if (!spool->fresh[period])
		return 0;
	snprintf(sql, sizeof sql, "SELECT ifnull(max(rowid), 0) FROM %s", ow_periods[period].table);
	return ow_stored_source_ask(&spool->source, sql, ret_number, err);
}

int ow_spool_start(struct ow_spool *spool, enum ow_period period, int64_t number, int64_t *ret_start_ns,
                   struct ow_error *err)
{
	char sql[160];
	*ret_start_ns = 0;
	if (!spool->fresh[period])
		return 0;
	snprintf(sql, sizeof sql,
	         "SELECT coalesce((SELECT start_ns FROM %s WHERE rowid <= %" PRId64 " ORDER BY rowid DESC LIMIT 1), 0)",
	         ow_periods[period].table, number);
	return ow_stored_source_ask(&spool->source, sql, ret_start_ns, err);
}

int ow_spool_look(struct ow_spool *spool, int64_t since_ns, int64_t until_ns, ow_spool_each_look *each, void *arg,
                  struct ow_error *err)
{
	const struct ow_statement *s = spool->look;
	enum ow_step step;
	int64_t longest_ns = 0;
	/* Of each lane its last interval. */
	int r = ow_stored_source_ask(&spool->source,
	                             "SELECT coalesce(max((SELECT length_ns FROM result WHERE result.lane = lane.id"
	                             " ORDER BY start_ns DESC LIMIT 1)), 0) FROM lane",
	                             &longest_ns, err);
	if (r < 0)
		return r;
	ow_bind_integer(s, 1, since_ns);
	ow_bind_integer(s, 2, until_ns);
	ow_bind_integer(s, 3, longest_ns);
	while ((step = ow_step(s)) == OW_STEP_ROW) {
		struct ow_unusual_look look = {.lane = ow_column_integer(s, 0),
		                               .start_ns = ow_column_integer(s, 1),
		                               .length_ns = ow_column_integer(s, 2),
		                               .eventful = ow_column_integer(s, 3),
		                               .loss = ow_column_real(s, 4),
		                               .p99_ns = ow_column_real(s, 5),
		                               .unknown = ow_column_integer(s, 6)};
		each(arg, &look);
	}
	r = step == OW_STEP_DONE ? 0 : ow_stored_source_fail(&spool->source, err);
	ow_reset(s);
	return r;
}

/* -- events and samples ------------------------------------------------------------------------------------------- */

static int pass_event(struct ow_spool *spool, const struct ow_statement *s, ow_spool_each_event *each, void *arg)
{
	struct ow_flow_event event = {.start_ns = 0};
	const struct lane *lane = lane_of(spool, ow_column_integer(s, 1));
	if (!lane || !ow_event_row_read(s, &event))
		return 0;
	memcpy(event.segment, lane->segment, sizeof event.segment);
	memcpy(event.class_name, lane->class_name, sizeof event.class_name);
	memcpy(event.from, lane->from, sizeof event.from);
	memcpy(event.to, lane->to, sizeof event.to);
	return each(arg, ow_column_integer(s, 0), &event);
}

static int pass_sample(const struct ow_statement *s, ow_spool_each_sample *each, void *arg)
{
	size_t size = 0;
	const void *bytes = ow_column_bytes(s, 1, &size);
	return bytes ? each(arg, ow_column_integer(s, 0), bytes, size) : 0;
}

/* One of the two. */
struct listener {
	ow_spool_each_event *event;
	ow_spool_each_sample *sample;
	void *arg;
};

static int list(struct ow_spool *spool, const struct ow_statement *s, int64_t after, unsigned limit,
                const struct listener *to, struct ow_error *err)
{
	enum ow_step step = OW_STEP_DONE;
	int r = 0;
	if (!s)
		return 0;
	ow_bind_integer(s, 1, after);
	ow_bind_integer(s, 2, limit);
	while (r == 0 && (step = ow_step(s)) == OW_STEP_ROW)
		r = to->event ? pass_event(spool, s, to->event, to->arg) : pass_sample(s, to->sample, to->arg);
	if (r == 0 && step == OW_STEP_FAILED)
		r = ow_stored_source_fail(&spool->source, err);
	ow_reset(s);
	return r;
}

int ow_spool_events(struct ow_spool *spool, int64_t after, unsigned limit, ow_spool_each_event *each, void *arg,
                    struct ow_error *err)
{
	return list(spool, spool->events, after, limit, &(struct listener){.event = each, .arg = arg}, err);
}

int ow_spool_samples(struct ow_spool *spool, int64_t after, unsigned limit, ow_spool_each_sample *each, void *arg,
                     struct ow_error *err)
{
	return list(spool, spool->samples, after, limit, &(struct listener){.sample = each, .arg = arg}, err);
}
