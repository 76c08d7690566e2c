/* SPDX-License-Identifier: Apache-2.0 */
/* Missing intervals become rows, so that a store has no holes that look as if nothing were wrong. */
#include "store/store_gaps.h"

#include "base/clock.h"
#include "result/cause.h"
#include <errno.h>

/* Rows of a lane that may be provisional: those that wait for late packets (at most 1024 intervals), or for a peer. */
#define PROVISIONAL_ROWS "20000"

int ow_store_gaps_init(struct ow_store_gaps *absent, const struct ow_database *file, struct ow_error *err)
{
	*absent = (struct ow_store_gaps){.file = file, .since_ns = ow_clock_real_ns()};
	int r = ow_database_prepare(file,
	                            "SELECT start_ns + length_ns FROM result WHERE lane = ?"
	                            " ORDER BY start_ns DESC LIMIT 1",
	                            &absent->last, err);
	if (r == 0)
		r = ow_database_prepare(
			file,
			"INSERT OR IGNORE INTO result (lane, start_ns, length_ns, interval, final,"
			" exact, status, cause, sample_shift, active) VALUES (?, ?, ?, ?, 1, 0, 'unknown', ?6, 0, ?5)",
			&absent->fill, err);
	return r;
}

void ow_store_gaps_done(struct ow_store_gaps *absent)
{
	sqlite3_finalize(absent->last);
	sqlite3_finalize(absent->fill);
}

#define PROVISIONAL                                                                                            \
	" final = 0 AND rowid IN (SELECT r.rowid FROM lane l JOIN result r ON r.lane = l.id AND r.start_ns >=" \
	" (SELECT start_ns - " PROVISIONAL_ROWS " * length_ns FROM result WHERE lane = l.id"                   \
	" ORDER BY start_ns DESC LIMIT 1))"

static int note_provisional(const struct ow_database *file, struct ow_store_rollups *rollups, struct ow_error *err)
{
	sqlite3_stmt *statement = NULL;
	int r = ow_database_prepare(file, "SELECT lane, start_ns FROM result WHERE" PROVISIONAL, &statement, err),
	    code = 0;
	while (r == 0 && (code = sqlite3_step(statement)) == SQLITE_ROW)
		r = ow_store_rollups_note(rollups, sqlite3_column_int64(statement, 0),
		                          sqlite3_column_int64(statement, 1), err);
	if (r == 0 && code != SQLITE_DONE)
		r = ow_database_fail(file, err);
	sqlite3_finalize(statement);
	return r;
}

int ow_store_gaps_settle(const struct ow_database *file, struct ow_store_rollups *rollups, struct ow_error *err)
{
	int r = note_provisional(file, rollups, err);
	if (r < 0)
		return r;
	return ow_database_run(
		file,
		"UPDATE result SET final = 1,"
		" status = CASE WHEN status = 'measured' AND pending > 0 THEN 'partial' ELSE status END,"
		" cause = CASE WHEN status <> 'unknown' AND pending > 0 THEN coalesce(cause || '; ', '') || pending ||"
		" ' packets undecided: the point was killed before they could arrive' ELSE cause END"
		" WHERE" PROVISIONAL,
		err);
}

int ow_store_gaps_last(struct ow_store_gaps *absent, int64_t lane, int64_t *ret_end_ns, struct ow_error *err)
{
	int r = 0;
	sqlite3_bind_int64(absent->last, 1, lane);
	int code = sqlite3_step(absent->last);
	if (code == SQLITE_ROW)
		*ret_end_ns =
			sqlite3_column_int64(absent->last, 0) < 0 ? INT64_MIN : sqlite3_column_int64(absent->last, 0);
	else if (code == SQLITE_DONE)
		*ret_end_ns = INT64_MIN;
	else
		r = ow_database_fail(absent->file, err);
	sqlite3_reset(absent->last);
	return r;
}

static const char *cause_of(const struct ow_store_gaps *absent, int64_t start_ns, int64_t length_ns)
{
	if (start_ns < absent->lost_last_ns && start_ns + length_ns > absent->lost_ns)
		return ow_cause_not_stored;
	if (start_ns < absent->since_ns)
		return ow_cause_not_running;
	return ow_cause_not_measured;
}

static int fill(struct ow_store_gaps *absent, int64_t lane, int64_t start_ns, int64_t length_ns, int64_t interval,
                bool active, struct ow_error *err)
{
	const int64_t values[] = {lane, start_ns, length_ns, interval, active};
	for (int i = 0; i < 5; i++)
		sqlite3_bind_int64(absent->fill, i + 1, values[i]);
	sqlite3_bind_text(absent->fill, 6, cause_of(absent, start_ns, length_ns), -1, SQLITE_STATIC);
	int r = sqlite3_step(absent->fill) == SQLITE_DONE ? 0 : ow_database_fail(absent->file, err);
	sqlite3_reset(absent->fill);
	/* A row that cannot be stored stays missing; the rows after it are still written. */
	return r == -EBADMSG ? 0 : r;
}

int ow_store_gaps_fill(struct ow_store_gaps *absent, int64_t lane, int64_t end_ns,
                       const struct ow_interval_result *next, struct ow_error *err)
{
	if (next->length_ns <= 0 || next->start_ns <= end_ns)
		return 0;
	int64_t gap_ns = next->start_ns - end_ns, rows = gap_ns / next->length_ns, rest_ns = gap_ns % next->length_ns;
	int r = 0;
	if (rows > OW_STORE_GAPS_ROWS)
		rows = OW_STORE_GAPS_ROWS;
	else if (rest_ns > 0) /* the length of intervals has changed */
		r = fill(absent, lane, end_ns, rest_ns, next->interval - rows - 1, next->active, err);
	for (int64_t i = rows; r == 0 && i > 0; i--)
		r = fill(absent, lane, next->start_ns - i * next->length_ns, next->length_ns, next->interval - i,
		         next->active, err);
	return r;
}
